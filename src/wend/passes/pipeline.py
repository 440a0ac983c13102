"""The passes in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from wend.base.config import settings
from wend.base.dump import dump_of, goes_on
from wend.base.errors import NestingError
from wend.base.log import step
from wend.ir.graph import Graph
from wend.ir.printer import to_text
from wend.ir.verify import verify
from wend.passes.algebra import algebra
from wend.passes.canonicalize_loops import canonicalize_loops
from wend.passes.cse import cse
from wend.passes.dce import dce
from wend.passes.dedup_callees import dedup_callees
from wend.passes.fold import fold
from wend.passes.hoist import hoist
from wend.passes.inline import inline_calls
from wend.passes.lower_linear_blocks import without_blocks
from wend.passes.merge_ifs import merge_ifs
from wend.passes.unshare_regions import unshare_regions

Transform: TypeAlias = Callable[[Graph], Graph]

# Before a graph is differentiated or shown: meaning in few nodes.
CANONICALIZE: Sequence[Transform] = (canonicalize_loops, dce, dedup_callees)
# Before a graph is run.
OPTIMIZE: Sequence[Transform] = (
    without_blocks,
    inline_calls,
    fold,
    algebra,
    merge_ifs,
    hoist,
    cse,
    canonicalize_loops,
    dce,
    unshare_regions,
)


def run_passes(graph: Graph, passes: Sequence[Transform]) -> Graph:
    """Apply passes in order; with `config(verify=True)` each result is verified.

    With `config(dump=…)` each result is written to a file, with `config(debug=True)` it is said
    how long all took.

    Raises:
        NestingError: the functions that the graph calls are too many in each other.
    """
    try:
        return _applied(graph, passes)
    except RecursionError:
        raise NestingError.of(_depth(graph)) from None


def _applied(graph: Graph, passes: Sequence[Transform]) -> Graph:
    check, dump = settings().verify, dump_of(graph, graph.name)
    if dump is not None:
        dump.write("graph", "wir", to_text(graph, sources=True), graph)
    given = graph
    with step("passes", graph.name) as tell:
        for transform in passes:
            graph = transform(graph)
            if check:
                verify(graph)
            if dump is not None:
                dump.write(transform.__name__, "wir", to_text(graph, sources=True), graph)
        tell(lambda: f"{given.count()} nodes -> {graph.count()}")
    if dump is not None:
        goes_on(dump, graph)
    return graph


def _depth(graph: Graph) -> int:
    """How many graphs are in each other, found without recursion."""
    depth, level, known = 0, {graph}, {graph}
    while level:
        depth += 1
        level = {
            region for outer in level for node in outer.nodes for region in node.regions
        } - known
        known |= level
    return depth


@dataclass(frozen=True, eq=False)
class LazyOptimized:
    """A graph that is optimised when somebody looks at what comes of it.

    Attributes:
        given: the graph as it is.
        passes: what is applied to it.
    """

    given: Graph
    passes: Sequence[Transform] = OPTIMIZE

    @cached_property
    def optimized(self) -> Graph:
        """What is run."""
        return run_passes(self.given, self.passes) if self.passes else self.given
