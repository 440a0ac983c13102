"""Lowering of maybes of arrays, for lanes: an array, and whether it is present.

A cotangent that arrives only where a branch has run is a number in the other lanes, too. It is
-0.0 there: a sum with it is the other summand, to the sign of a zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from wend.ir.dtypes import BOOL
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.rewrite import copy_node, rewrite_nodes, with_operands
from wend.ir.types import MaybeType, TensorType, Type
from wend.ops import elementwise, maybe, shaping
from wend.ops.build import Build
from wend.ops.control import WhileParts, if_, while_
from wend.ops.parallel_map import parallel_map
from wend.passes.dce import dce
from wend.passes.lane_maps import may_run_in_lanes

# A value, or the array of a maybe and whether it is present
_Lowered: TypeAlias = tuple[Value, ...]


def lower_maybes(graph: Graph) -> Graph:
    """Lower the maybes of each map that runs in lanes without them, in regions too."""
    if parallel_map not in graph.ops:
        return graph

    def lower(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        regions = [lower_maybes(region) for region in node.regions]
        copy = with_operands(node, operands, regions)
        if node.op is parallel_map and _has_maybe(regions[0]):
            body = without_maybes(regions[0])
            lowered = copy if body is None else copy_node(copy, operands, [body])
            copy = lowered if may_run_in_lanes(lowered) else copy
        nodes.append(copy)
        return copy.results

    return rewrite_nodes(graph, lower)


def without_maybes(body: Graph) -> Graph | None:
    """Return a body with its maybes lowered; None if it has some that cannot be."""
    if not _has_maybe(body):
        return body
    return dce(_lower_region(body)) if _can_lower(body) else None


def _has_maybe(body: Graph) -> bool:
    return any(isinstance(x.type, MaybeType) for node in body.walk() for x in node.results)


def _can_lower(body: Graph) -> bool:
    """Return whether a body takes and gives no maybe, and uses only those of numbers."""
    outer = [*body.param_types, *body.result_types]
    return not any(isinstance(type, MaybeType) for type in outer) and all(
        _takes_maybes(node) or not _maybes([*node.operands, *node.results]) for node in body.walk()
    )


def _takes_maybes(node: Node) -> bool:
    is_known = node.op in _RULES or node.op is if_ or node.op is while_
    maybes = _maybes([*node.operands, *node.results])
    return is_known and all(isinstance(x.of, TensorType) and x.of.is_static for x in maybes)


def _maybes(values: Iterable[Value]) -> list[MaybeType]:
    return [x.type for x in values if isinstance(x.type, MaybeType)]


def _lower_region(graph: Graph, result_types: Sequence[Type] = ()) -> Graph:
    """Lower a region, whose results are to have these types; by default their own."""
    b = Build(graph.name)
    values: dict[Value, _Lowered] = {}
    for x in graph.params:
        values[x] = tuple(b.param(type, x.name) for type in _lowered_types(x.type))
    for node in graph.nodes:
        b.source = node.source
        operands = [values[x] for x in node.operands]
        values.update(zip(node.results, _lower_node(b, node, operands), strict=True))
    types = result_types or graph.result_types
    results = [values[x] for x in graph.results]
    return b.finish(_flat(b, results, types))


def _lower_node(b: Build, node: Node, operands: Sequence[_Lowered]) -> Sequence[_Lowered]:
    types = [x.type for x in node.results]
    if node.op is if_:
        (selector,), *others = operands
        args = _flat(b, others, node.regions[0].param_types)
        branches = [_lower_region(region, types) for region in node.regions]
        return _split(b.if_(selector, args, branches).results, types)
    if node.op is while_:
        return _lower_while(b, node, operands)
    if node.op in _RULES and _maybes([*node.operands, *node.results]):
        return [_RULES[node.op](b, node, operands)]
    copy = copy_node(node, [x for (x,) in operands])
    b.nodes.append(copy)
    return [(x,) for x in copy.results]


def _lower_while(b: Build, node: Node, operands: Sequence[_Lowered]) -> Sequence[_Lowered]:
    p, types = WhileParts.of(node), [x.type for x in node.results]
    count = len(p.carry)
    before = _lower_region(p.before, [p.predicate.type, *(x.type for x in p.after_forwarded)])
    after = _lower_region(p.after, [x.type for x in p.before_carry])
    loop = b.while_(
        _flat(b, operands[:count], [x.type for x in p.before_carry]),
        _flat(b, operands[count:], [x.type for x in p.before_invariants]),
        before,
        after,
        memory=p.memory,
        applied=p.applied,
        limit=p.limit,
        parallel_iterations=p.parallel_iterations,
    )
    return _split(loop.results, types)


def _lowered_types(type: Type) -> list[Type]:
    return [type.of, TensorType(BOOL, ())] if isinstance(type, MaybeType) else [type]


def _flat(b: Build, values: Sequence[_Lowered], types: Sequence[Type]) -> list[Value]:
    """Return values one after the other, those that are to be maybes with a flag."""
    flat: list[Value] = []
    for value, type in zip(values, types, strict=True):
        flat += value
        if isinstance(type, MaybeType) and len(value) == 1:
            flat.append(b.constant(True))
    return flat


def _split(values: Sequence[Value], types: Sequence[Type]) -> list[_Lowered]:
    split, start = [], 0
    for type in types:
        stop = start + len(_lowered_types(type))
        split.append(tuple(values[start:stop]))
        start = stop
    return split


def _zero(b: Build, node: Node, operands: Sequence[_Lowered]) -> _Lowered:
    (type,) = _maybes(node.results)
    assert isinstance(type.of, TensorType)
    zero = {"f": -0.0, "c": complex(-0.0, -0.0)}.get(type.of.dtype.kind, 0)
    shape = tuple(dim for dim in type.of.dims if isinstance(dim, int))
    return b.constant(np.full(shape, zero, type.of.dtype)), b.constant(False)


def _autograd_add(b: Build, node: Node, operands: Sequence[_Lowered]) -> _Lowered:
    total = b.add(operands[0][0], operands[1][0])
    if any(len(x) == 1 for x in operands):
        return (total,)
    return total, _any(b, operands)


def _instantiate(b: Build, node: Node, operands: Sequence[_Lowered]) -> _Lowered:
    (number, is_present), (zeros,) = operands
    return (b.select(b.broadcast_like(is_present, zeros), number, zeros),)


def _present(b: Build, node: Node, operands: Sequence[_Lowered]) -> _Lowered:
    return operands[0][:1]


def _is_zero(b: Build, node: Node, operands: Sequence[_Lowered]) -> _Lowered:
    return (b.emit(elementwise.bit_not, operands[0][1]),)


def _any_nonzero(b: Build, node: Node, operands: Sequence[_Lowered]) -> _Lowered:
    if any(len(x) == 1 for x in operands):
        return (b.constant(True),)
    return (_any(b, operands),)


def _any(b: Build, operands: Sequence[_Lowered]) -> Value:
    """Return whether any of some maybes is present."""
    flag, *flags = (x[1] for x in operands)
    for other in flags:
        flag = b.emit(elementwise.bit_or, flag, other)
    return flag


def _refine(b: Build, node: Node, operands: Sequence[_Lowered]) -> _Lowered:
    return operands[0]


_RULES: Mapping[Op, Callable[[Build, Node, Sequence[_Lowered]], _Lowered]] = {
    maybe.zero: _zero,
    maybe.autograd_add: _autograd_add,
    maybe.instantiate: _instantiate,
    maybe.present: _present,
    maybe.is_zero: _is_zero,
    maybe.any_nonzero: _any_nonzero,
    shaping.refine: _refine,
}
