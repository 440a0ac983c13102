"""The pass pipelines and their driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from wend.base.config import settings
from wend.base.errors import NestingError
from wend.base.lazy.cached_property import cached_property
from wend.base.lazy.dataclass import dataclass
from wend.base.reporting.dump import continue_dump, dump_of
from wend.base.reporting.log import step
from wend.ir.graph import Graph, Node
from wend.ir.printer import to_text
from wend.ir.verify import verify
from wend.ops import lists, shaping
from wend.passes.algebra import algebra
from wend.passes.batch_maps import batch_maps, batch_maps_around_lanes
from wend.passes.canonicalize_loops import canonicalize_loops
from wend.passes.chunk_maps import chunk_maps
from wend.passes.cse import cse
from wend.passes.dce import dce
from wend.passes.dedup_callees import dedup_callees
from wend.passes.distribute_loops import distribute_loops, distribute_loops_to_lanes
from wend.passes.expand_scalars import expand_scalars
from wend.passes.factor_solves import factor_solves, factor_solves_once, join_factors
from wend.passes.flatten_maps import flatten_maps
from wend.passes.fold import fold
from wend.passes.fold_views import fold_views, fold_views_for_adjoints
from wend.passes.forward_stores import forward_stores
from wend.passes.fuse_maps import fuse_maps
from wend.passes.hoist import hoist
from wend.passes.hoist_states import hoist_states
from wend.passes.in_bounds import mark_in_bounds
from wend.passes.inline import inline_calls
from wend.passes.lower_linear_blocks import lower_linear_blocks
from wend.passes.lower_maybes import lower_maybes
from wend.passes.lower_parallel_maps import (
    lower_maps_of_lists,
    lower_maps_without_lanes,
    lower_parallel_maps,
)
from wend.passes.merge_ifs import merge_ifs
from wend.passes.merge_stores import merge_stores
from wend.passes.order_updates import order_updates
from wend.passes.push_out import push_out
from wend.passes.reassociate_minima import reassociate_minima
from wend.passes.rematerialize_fills import rematerialize_fills
from wend.passes.simplify_loops import simplify_loops
from wend.passes.strip_mine_maps import strip_mine_maps
from wend.passes.trim_loops import trim_loops
from wend.passes.unroll_loops import unroll_loops
from wend.passes.unshare_regions import unshare_regions

Transform: TypeAlias = Callable[[Graph], Graph]

# Before a graph is differentiated or shown.
CANONICALIZE: Sequence[Transform] = (canonicalize_loops, dce, dedup_callees)
# Before a graph is run.
OPTIMIZE: Sequence[Transform] = (
    lower_linear_blocks,
    inline_calls,
    fold_views,
    mark_in_bounds,
    merge_stores,
    forward_stores,
    hoist_states,
    distribute_loops,
    fuse_maps,
    strip_mine_maps,
    flatten_maps,
    batch_maps,
    lower_parallel_maps,
    trim_loops,
    simplify_loops,
    fold,
    algebra,
    merge_ifs,
    factor_solves,
    hoist,
    cse,
    join_factors,
    reassociate_minima,
    canonicalize_loops,
    dce,
    push_out,
    order_updates,
    unshare_regions,
)
# The same for a backend that runs `parallel_map` nodes, and batches their bodies
OPTIMIZE_AROUND_MAPS: Sequence[Transform] = tuple(
    lower_maps_of_lists if x is lower_parallel_maps else x for x in OPTIMIZE if x is not batch_maps
)
# Before a run whose elements tell their numbers: loops stay whole, and what nothing reads may fail
IN_ORDER: Sequence[Transform] = (inline_calls, canonicalize_loops, unshare_regions)
# Of `OPTIMIZE`, those after which sums may be computed in another order.
REORDERS_SUMS: Sequence[Transform] = (distribute_loops, strip_mine_maps, batch_maps, push_out)


def optimize_in_chunks(of_maps: Sequence[Transform]) -> Sequence[Transform]:
    """Return the passes for a backend that runs chunks, lanes in registers, and fused code.

    Args:
        of_maps: what the backend does to maps, so that more of them run in lanes.
    """
    in_chunks: Mapping[Transform, Sequence[Transform]] = {
        fold_views: (unroll_loops, fold_views),
        distribute_loops: (distribute_loops_to_lanes,),
        batch_maps: (*of_maps, lower_maybes, chunk_maps, batch_maps_around_lanes),
        lower_parallel_maps: (lower_maps_without_lanes,),
        order_updates: (rematerialize_fills, order_updates),
    }
    return tuple(part for x in OPTIMIZE for part in in_chunks.get(x, (x,)))


def before_differentiating(graph: Graph) -> Graph:
    """Return a graph in which trips read elements of arrays, not of views, and factor no matrix.

    What they read is not what the trips before stored: that is carried. Functions of what a loop
    knows are computed before it.
    """
    folded = fold_views_for_adjoints(unroll_loops(graph))
    merged = cse(forward_stores(merge_stores(mark_in_bounds(folded))), _is_worth_sharing)
    return factor_solves_once(expand_scalars(merged))


def _is_worth_sharing(node: Node) -> bool:
    """Return whether equal nodes are merged before a gradient is taken.

    Products take transposes as they are; a shared one would be kept. A branch that shares a stack
    with what follows would hand on a cotangent whose size only the run knows.
    """
    return node.op not in (shaping.transpose, lists.list_stack)


def run_passes(graph: Graph, passes: Sequence[Transform]) -> Graph:
    """Apply passes in order; with `config(verify=True)` each result is verified.

    With `config(dump=…)` each result is written to a file, with `config(debug=True)` the total time
    is logged.

    Raises:
        NestingError: the functions that the graph calls are nested too deeply.
    """
    try:
        return _apply_passes(graph, passes)
    except RecursionError:
        raise NestingError.of(_depth(graph)) from None


def _apply_passes(graph: Graph, passes: Sequence[Transform]) -> Graph:
    check, dump = settings().verify, dump_of(graph, graph.name)
    if dump is not None:
        dump.write("graph", "wir", to_text(graph, sources=True), graph)
    original = graph
    verified: set[Graph] = set()
    with step("passes", graph.name) as tell:
        for transform in passes:
            graph = transform(graph)
            if check:
                verify(graph, verified)
            if dump is not None:
                dump.write(transform.__name__, "wir", to_text(graph, sources=True), graph)
        tell(lambda: f"{original.count()} nodes -> {graph.count()}")
    if dump is not None:
        continue_dump(dump, graph)
    return graph


def _depth(graph: Graph) -> int:
    """Return the nesting depth of a graph's regions, without recursion."""
    depth, level, visited = 0, {graph}, {graph}
    while level:
        depth += 1
        level = {
            region for outer in level for node in outer.nodes for region in node.regions
        } - visited
        visited |= level
    return depth


@dataclass(frozen=True, eq=False)
class LazyOptimized:
    """A graph that is optimized on first use.

    Attributes:
        graph: the graph before optimization.
        passes: the passes to apply.
    """

    graph: Graph
    passes: Sequence[Transform] = OPTIMIZE

    @cached_property
    def optimized(self) -> Graph:
        """The graph to run."""
        return run_passes(self.graph, self.passes) if self.passes else self.graph
