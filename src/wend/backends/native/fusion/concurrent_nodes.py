"""Nodes of a graph that run at once: long ones that do not need each other.

They are products of matrices, factorizations and loops without effects, each of which takes long by
itself, so that a thread of its own repays. Each becomes a function with the same code as before:
results have the same bits, and of several errors the first in the program is raised.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush

from wend.backends.native.analysis.liveness import LastUses
from wend.backends.native.fusion.gemm_accumulate import accumulator_of
from wend.backends.native.fusion.op_classes import is_layout, reduction_of
from wend.backends.native.rt.linalg import blas
from wend.backends.native.target.chunk_call import chunk_call
from wend.backends.native.target.concurrent_call import concurrent_call
from wend.backends.native.target.value_layout import is_array
from wend.base.errors import listed
from wend.base.source import at
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.rewrite import copy_nodes, keep_names, rebuild_graph, with_operands
from wend.ir.types import TensorType
from wend.ops import contracting
from wend.ops.build import Build
from wend.ops.chunked_map import ChunkedMapParts
from wend.ops.control import if_, while_
from wend.ops.frame_states import frame_state
from wend.ops.frame_states import may_fail as may_end_run
from wend.passes.estimate_work import FACTORS, total_work

# Seconds of estimated work that repay another thread, which may have to wake up
MIN_WORK = 100e-6

_TASK_OPS = frozenset({contracting.dot_general, while_, *FACTORS})


def group_concurrent_nodes(graph: Graph, first: int) -> tuple[Graph, list[ChunkedMapParts]]:
    """Replace nodes that run at once by calls of what will be functions.

    Args:
        graph: the graph, without `chunked_map` nodes.
        first: the number of the first function.

    Returns:
        The graph with `concurrent_call` nodes, and the functions that these call.
    """
    tasks: list[ChunkedMapParts] = []
    if graph.ops.isdisjoint(_TASK_OPS):
        return graph, tasks
    # Errors of a group leave at one place, which has one frame state
    may_fail = frame_state not in graph.ops
    return _grouped(graph, first, tasks, may_fail), tasks


def concurrent_remarks(graph: Graph, first: int, tasks: Sequence[ChunkedMapParts]) -> Iterator[str]:
    """Yield what `explain` says of each group of nodes that run at once."""
    if not tasks:
        return
    for node in graph.walk():
        if node.op is concurrent_call:
            start = node.attrs["first"] - first
            group = tasks[start : start + len(node.attrs["takes"])]
            names = [f"{_name(task)}{at(task.source)}" for task in group]
            yield f"runs at once: {listed(names)}"


def _name(task: ChunkedMapParts) -> str:
    return "the loop" if task.body.name == while_.name else task.body.name


def _grouped(graph: Graph, first: int, tasks: list[ChunkedMapParts], may_fail: bool) -> Graph:
    groups = _groups(graph, may_fail)
    members = {node for group in groups for node in group}
    moved = {x.node for node in members for x in _views(node)}
    nodes: list[Node] = []
    mapping: dict[Value, Value] = {}
    for unit in _in_order(graph.nodes, groups):
        if unit[0] in members:
            call = _call(unit, mapping, first, tasks)
            nodes.append(call)
            old = [x for node in unit for x in node.results]
            mapping.update(zip(old, call.results, strict=True))
            continue
        (node,) = unit
        if node in moved:
            continue
        regions = node.regions
        if node.op in (while_, if_):
            regions = tuple(_grouped(region, first, tasks, may_fail) for region in regions)
        nodes.append(with_operands(node, [mapping.get(x, x) for x in node.operands], regions))
        if nodes[-1] is not node:
            mapping.update(zip(node.results, nodes[-1].results, strict=True))
    return rebuild_graph(graph, graph.params, nodes, [mapping.get(x, x) for x in graph.results])


def long_tasks(graph: Graph) -> list[Node]:
    """Return the nodes of a region that may be functions of their own and take long."""
    long = [node for node in graph.nodes if node.op in _TASK_OPS and total_work(node) >= MIN_WORK]
    if len(long) < 2:
        return []
    uses = LastUses(graph)
    return [node for node in long if _is_task(uses, node)]


def has_groups(graph: Graph, may_fail: bool) -> bool:
    """Return whether nodes of a region run at once, where those of a group may fail or not."""
    return bool(_groups(graph, may_fail))


def _groups(graph: Graph, may_fail: bool) -> list[Sequence[Node]]:
    """Return nodes that take long, in groups that do not need each other."""
    tasks = {node for node in long_tasks(graph) if may_fail or not may_end_run(node)}
    if len(tasks) < 2:
        return []
    # How many tasks stand in a row before a node: those of one level do not need each other
    levels: dict[Value, int] = {}
    groups: dict[int, list[Node]] = {}
    for node in graph.nodes:
        level = max((levels.get(x, 0) for x in node.operands), default=0)
        if node in tasks:
            groups.setdefault(level, []).append(node)
        levels.update(dict.fromkeys(node.results, level + (node in tasks)))
    several = [group for group in groups.values() if len(group) > 1]
    return [x for x in several if _may_move(graph.nodes, x) and _keeps_sums(graph.nodes, x)]


def _is_task(uses: LastUses, node: Node) -> bool:
    """Return whether a node may be a function of its own, and computes the same there."""
    if not all(isinstance(x.type, TensorType) and x.type.shape is not None for x in _values(node)):
        return False
    if node.op is contracting.dot_general:
        if accumulator_of(uses, node) is not None or not _is_serial(node):
            return False
        if not _has_views_of_its_own(uses, node):
            return False
    known = {dim for x in node.operands for dim in x.tensor.dims}
    dims = (dim for x in node.results for dim in x.tensor.dims)
    if not all(isinstance(dim, int) or dim in known for dim in dims):
        return False
    inner = [x for region in node.regions for x in region.walk()]
    return not any(x.op is chunk_call or x.op.effect is not Effect.NONE for x in inner)


def _values(node: Node) -> Iterable[Value]:
    return (*node.operands, *node.results)


def _is_serial(product: Node) -> bool:
    """Return whether BLAS, if it computes a product, does so on the calling thread.

    Otherwise its own threads share the work already.
    """
    shapes = [value.tensor.dims for value in product.operands]
    sizes = [[dim for dim in dims if isinstance(dim, int)] for dims in shapes]
    if any(len(known) < len(dims) for known, dims in zip(sizes, shapes, strict=True)):
        return False
    batch, contract = product.attrs["batch"][0], product.attrs["contract"][0]
    shared = math.prod(sizes[0][k] for k in (*batch, *batch, *contract))
    multiplications = math.prod(sizes[0]) * math.prod(sizes[1]) // max(shared, 1)
    return blas.is_single_threaded() or multiplications <= blas.MAX_TILED_FMAS


def _has_views_of_its_own(uses: LastUses, product: Node) -> bool:
    """Return whether no other node reads the views that a product reads in place."""
    views = _views(product)
    return all(len(uses.users(x)) == 1 and not uses.is_result(x) for x in views)


def _views(node: Node) -> list[Value]:
    """Return the results of layout operations that a product reads in place, operands first."""
    if node.op is not contracting.dot_general:
        return []
    views: dict[Value, None] = {}
    pending = [*node.operands]
    while pending:
        value = pending.pop()
        if value.node is not None and is_layout(value.node) and value.node.operands:
            views.pop(value, None)  # after what reads it
            views[value] = None
            pending += value.node.operands
    return [*reversed(views)]


def _may_move(nodes: Sequence[Node], group: Sequence[Node]) -> bool:
    """Return whether no order is lost where a group runs at once: of errors, effects, updates.

    What stands between its nodes comes before the group, or after it where it needs one of them.
    """
    first, last = nodes.index(group[0]), nodes.index(group[-1])
    members, after = {*group}, {x for node in group for x in node.results}
    has_failing_member = any(map(may_end_run, group))
    for node in nodes[first : last + 1]:
        if node in members:
            continue
        is_after = not after.isdisjoint(node.operands)
        if is_after:
            after.update(node.results)
        is_ordered = may_end_run(node) or node.op.effect is not Effect.NONE
        if node.op.updates is not None or (is_ordered and (is_after or has_failing_member)):
            return False
    return True


def _keeps_sums(nodes: Sequence[Node], group: Sequence[Node]) -> bool:
    """Return whether a reduction stays in, or out of, the loop that computes its elements.

    A member between them may divide that loop, and sums of elements in memory add in another order.
    """
    places = {node: place for place, node in enumerate(nodes)}
    members = {places[node] for node in group}
    first, last = min(members), max(members)
    after: set[Value] = set()  # what needs a member
    # Where the loop begins that may compute a value, and whether that is before the group
    loops: dict[Value, tuple[int, bool]] = {}
    for place, node in enumerate(nodes):
        if place in members or (place > first and not after.isdisjoint(node.operands)):
            after.update(node.results)
        if node.op in _TASK_OPS or node.regions or not any(is_array(x.type) for x in node.operands):
            continue
        is_after = place > last or not after.isdisjoint(node.results)
        read = [loops[x] for x in node.operands if x in loops]
        start = min([place, *(x for x, _ in read)])
        is_around = is_after and any(precedes for _, precedes in read)
        if reduction_of(node) is not None:
            between = sum(start < x < place for x in members)
            if between != (len(group) if is_around else 0):
                return False
        value = start, not is_after or is_around
        loops.update({x: value for x in node.results if is_array(x.type)})
    return True


def _in_order(nodes: Sequence[Node], groups: Sequence[Sequence[Node]]) -> Iterator[Sequence[Node]]:
    """Yield nodes and groups, each after what it needs, else in the order of the program.

    The place of a group is that of its last node.
    """
    units: list[Sequence[Node]] = [(node,) for node in nodes]
    place = {node: k for k, node in enumerate(nodes)}
    for group in groups:
        last = place[group[-1]]
        units[last] = group
        place.update(dict.fromkeys(group, last))
    needs = {
        k: {
            place[x.node]
            for node in units[k]
            for x in node.operands
            if x.node is not None and x.node in place
        }
        for k in {*place.values()}
    }
    users: dict[int, list[int]] = {}
    for k, needed in needs.items():
        for other in needed:
            users.setdefault(other, []).append(k)
    waits = {k: len(needed) for k, needed in needs.items()}
    ready = [k for k, count in waits.items() if not count]
    heapify(ready)
    while ready:
        k = heappop(ready)
        yield units[k]
        for user in users.get(k, ()):
            waits[user] -= 1
            if not waits[user]:
                heappush(ready, user)


def _call(
    group: Sequence[Node],
    mapping: dict[Value, Value],
    first: int,
    tasks: list[ChunkedMapParts],
) -> Node:
    """Return the call of a group of nodes; their functions are added to the tasks."""
    operands: dict[Value, int] = {}
    takes: list[tuple[int, ...]] = []
    number = first + len(tasks)
    for node in group:
        views = _views(node)
        inside = [x.node for x in views if x.node is not None] + [node]
        read = dict.fromkeys(x for n in inside for x in n.operands if x not in views)
        body = Build(node.op.name)
        params = {x: body.param(x.type, x.name) for x in read}
        body.nodes += copy_nodes(inside, params)
        results = body.nodes[-1].results
        outer = [mapping.get(x, x) for x in read]
        takes.append(tuple(operands.setdefault(x, len(operands)) for x in outer))
        graph = body.finish(results)
        tasks.append(ChunkedMapParts((), tuple(outer), graph, 1, (), node.source, 1))
    types = tuple(x.type for node in group for x in node.results)
    attrs = {"first": number, "takes": tuple(takes), "results": types}
    call = Node(concurrent_call, [*operands], attrs, (), types, group[0].source)
    keep_names([x for node in group for x in node.results], call.results)
    return call
