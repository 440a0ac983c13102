"""Elements in order, each with its number: a graph to run where a run has failed in a map (D36).

An array operation that fails in an element has no order among others: the elements run side by
side, batched, in lanes and on threads. This graph fails where a loop over the elements would, and
its frame states tell the number of the element.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wend.ir.dtypes import INT64
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.rewrite import copy_node, keep_names
from wend.ir.types import TensorType, Type
from wend.ops import effects
from wend.ops.build import Build
from wend.ops.control import call, if_, while_
from wend.ops.effects import raise_if
from wend.ops.frame_states import contents_in, frame_state, may_fail
from wend.ops.hosting import FORWARD
from wend.ops.parallel_map import ParallelMapParts, parallel_map
from wend.passes.inline import inline_calls
from wend.passes.lower_linear_blocks import lower_linear_blocks
from wend.passes.lower_parallel_maps import lower_parallel_maps
from wend.passes.strip_stores import strip_stores
from wend.runtime.partial_writes import ELEMENT, element_keys, outside

# Operations whose regions take the last operands as their last params
_TRANSPARENT = (while_, if_, call, parallel_map)
_NUMBER = TensorType(INT64, ())


def errors_in_maps(graph: Graph) -> tuple[type[BaseException], ...]:
    """Return what array operations in the maps of a graph may raise."""
    if parallel_map not in graph.ops:
        return ()
    maps = (node for node in graph.walk() if node.op is parallel_map)
    failing = [x for node in maps for x in node.regions[0].walk() if x.op.may_fail(x)]
    errors = [error for node in failing for error in node.op.errors_of(node)]
    errors += [IndexError] * any(x.op.traps for x in failing)
    return tuple(dict.fromkeys(errors))


def asks_python(graph: Graph) -> bool:
    """Return whether a graph calls Python for what it computes."""
    return not graph.ops.isdisjoint([effects.host_action, *FORWARD])


def number_elements(graph: Graph) -> Graph:
    """Return a graph that raises the error of another one, with the numbers of the elements.

    It prints nothing, and changes no variable. It calls Python only for what it computes. What
    nothing reads stays, as errors come in the order of the program: a gradient that does not need
    the values of a loop would fail in the backward loop, which begins with the last trip.
    """
    graph = strip_stores(inline_calls(lower_linear_blocks(graph)))
    return lower_parallel_maps(_region(graph, 0))


def _region(region: Graph, around: int | None) -> Graph:
    """Return a graph or region that also takes the numbers of so many elements around it.

    Args:
        region: the region.
        around: how many there are; None: the number of one is not known.
    """
    b = Build(region.name)
    mapping = {x: b.param(x.type, x.name) for x in region.params}
    numbers = None if around is None else [b.param(_NUMBER) for _ in range(around)]
    _append(b, region.nodes, mapping, numbers)
    return _finished(b, [mapping[x] for x in region.results])


def _finished(b: Build, results: Sequence[Value]) -> Graph:
    """Return a graph or region whose results need all that may fail in it."""
    failing = [x for node in b.nodes if may_fail(node) for x in node.results]
    arrays = [x for x in failing if isinstance(x.type, TensorType)]
    if arrays:
        passes = b.constant(False)
        check = b.emit(raise_if, b.token(), passes, *arrays, error="RuntimeError", text=None)
        results = [_after(b, x, check) for x in results]
    return b.finish(results)


def _append(
    b: Build,
    nodes: Iterable[Node],
    mapping: dict[Value, Value],
    numbers: Sequence[Value] | None,
) -> None:
    """Append nodes that lie in elements of these numbers, the outer one first."""
    for node in nodes:
        b.source = node.source
        operands = [mapping[x] for x in node.operands]
        if node.op.effect is Effect.WORLD and len(node.results) == 1:
            mapping[node.results[0]] = operands[0]
            continue
        if node.op is frame_state:
            numbers = _told(node, mapping) or numbers
        if node.op is parallel_map:
            copy = _numbered(b, node, operands, numbers)
        elif node.op in _TRANSPARENT and numbers is not None:
            regions = [_region(region, len(numbers)) for region in node.regions]
            copy = copy_node(node, [*operands, *numbers], regions)
        else:
            copy = copy_node(node, operands, [_region(region, None) for region in node.regions])
        b.nodes.append(copy)
        mapping.update(zip(node.results, copy.results, strict=True))


def _told(state: Node, mapping: dict[Value, Value]) -> list[Value]:
    """Return the numbers of elements that a frame state tells, the outer one first."""
    contents = dict(zip(state.attrs["written"], contents_in(state), strict=True))
    return [mapping[contents[k]] for k in element_keys(contents)]


def _numbered(
    b: Build, node: Node, operands: Sequence[Value], numbers: Sequence[Value] | None
) -> Node:
    """Return a map whose elements tell their numbers, if these are known."""
    p, count = ParallelMapParts.of(node), node.attrs["mapped"]
    if numbers is None or not p.is_numbered:
        return copy_node(node, operands, [_region(p.body, None)])
    inner = Build(p.body.name)
    mapping = {x: inner.param(x.type, x.name) for x in p.elements}
    own = inner.param(_NUMBER)
    mapping |= {x: inner.param(x.type, x.name) for x in p.body_invariants}
    known = [*(inner.param(_NUMBER) for _ in numbers), own]
    keys = [outside(ELEMENT, depth) for depth in reversed(range(len(known)))]
    state = inner.emit(frame_state, inner.token(), *known, written=tuple(keys))
    # Where nothing of the element is used, nothing in it fails
    mapping = {x: _after(inner, param, state) for x, param in mapping.items()}
    _append(inner, p.body.nodes, mapping, known)
    body = _finished(inner, [mapping[x] for x in p.body.results])
    mapped = [*operands[:count], _positions(b, operands[:count])]
    copy = Node(
        node.op,
        [*mapped, *operands[count:], *numbers],
        {**node.attrs, "mapped": len(mapped)},
        [body],
        [x.type for x in node.results],
        node.source,
    )
    keep_names(node.results, copy.results)
    return copy


def _after(b: Build, x: Value, state: Value) -> Value:
    return b.after(x, state) if isinstance(x.type, TensorType) else x


def _positions(b: Build, mapped: Sequence[Value]) -> Value:
    """Return the numbers of the elements of some arrays or lists."""
    arrays = [x for x in mapped if isinstance(x.type, TensorType)]
    if not arrays:
        return b.iota(b.list_len(mapped[0]))
    size: Type = _NUMBER.with_shape(arrays[0].tensor.dims[:1])
    return b.refine(b.iota(b.size_of(arrays[0], 0)), size)
