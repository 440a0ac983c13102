"""A backward graph for fewer cotangents: those that never arrive are Zero, and cost nothing.

A backward graph is linear in its cotangents. What is computed from Zero alone is Zero, and a sum
is what is left of it, in regions too. So a cotangent that does not arrive is not 0 · inf
somewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_nodes
from wend.ir.traverse import reached_values
from wend.ir.types import MaybeType, TensorType, Type, without_maybe
from wend.ops import elementwise, lists, maybe, shaping
from wend.ops.build import Build
from wend.ops.control import IfParts, WhileParts, call, if_, while_

_SUMS = (elementwise.add, maybe.autograd_add, lists.list_add)


class UnknownZero(Exception):
    """A sum needs zeros of a type whose sizes only the run knows."""


def without_seeds(
    backward: Graph, seeds: Sequence[Value], absent: Iterable[Value]
) -> tuple[Graph, tuple[bool, ...]]:
    """The backward graph where some of its `seeds` do not arrive.

    Returns:
        The graph of the params that are left and the results that are; and of each result
        whether it is left.

    Raises:
        UnknownZero: a node takes both what arrives and what does not, of unknown size.
    """
    done = _Reduced(backward, set(seeds), set(absent))
    left = tuple(done.is_left(result) for result in backward.results)
    return done.finish([v for v in backward.results if done.is_left(v)]), left


class _Reduced:
    """A copy of a graph without what is Zero.

    Args:
        graph: what is copied.
        moving: the params that hold cotangents.
        absent: those of them that are Zero.
    """

    def __init__(self, graph: Graph, moving: set[Value], absent: set[Value]) -> None:
        self.b, self.missing = Build(graph.name), set(absent)
        self.moved = reached_values(graph, moving)
        kept = [param for param in graph.params if param not in absent]
        self.mapping = {param: self.b.param(param.type, param.name) for param in kept}
        for node in graph.nodes:
            linear = [operand for operand in node.operands if operand in self.moved]
            if linear and self.missing.issuperset(linear):
                self.missing.update(node.results)
            elif self.missing.isdisjoint(linear):
                self._copy(node)
            else:
                self.b.source = node.source
                _PARTLY.get(node.op, _partly_sum if node.op in _SUMS else _partly)(self, node)

    def is_left(self, value: Value) -> bool:
        return value not in self.missing

    def get(self, value: Value) -> Value:
        """The copy of a value; zeros where it is Zero."""
        if value in self.missing:
            return _zeros(self.b, value.type)
        return self.mapping[value]

    def finish(self, results: Sequence[Value]) -> Graph:
        return self.b.finish([self.get(value) for value in results])

    def _copy(self, node: Node) -> None:
        self.b.nodes += copy_nodes([node], self.mapping)

    def put(self, node: Node, kept: Sequence[int], new: Node) -> None:
        """Let a new node stand for one, of whose results only some are left."""
        self.missing.update(node.results)
        for k, result in zip(kept, new.results, strict=True):
            self.missing.remove(node.results[k])
            self.mapping[node.results[k]] = result


def _zeros(b: Build, type: Type) -> Value:
    if isinstance(type, MaybeType):
        return b.zero(type.of)
    if not isinstance(type, TensorType) or not type.is_static:
        raise UnknownZero(str(type))
    number = b.constant(np.zeros((), type.dtype))
    return number if not type.dims else b.emit(shaping.broadcast_to, number, shape=type.dims)


def _partly(done: _Reduced, node: Node) -> None:
    """Any node of which some operands are Zero: it gets zeros for them."""
    given = {operand: done.get(operand) for operand in node.operands}
    done.b.nodes += copy_nodes([node], given)
    done.mapping.update({result: given[result] for result in node.results})


def _partly_sum(done: _Reduced, node: Node) -> None:
    """A sum of which one term is Zero is the other term."""
    (other,) = filter(done.is_left, node.operands)
    b, result, left = done.b, node.results[0], done.mapping[other]
    if isinstance(left.type, MaybeType) and not isinstance(result.type, MaybeType):
        left = b.emit(maybe.instantiate, left, _zeros(b, result.type))
    wanted = result.type if isinstance(left.type, MaybeType) else without_maybe(result.type)
    done.mapping[result] = b.refine(left, wanted)


def _partly_branches(done: _Reduced, node: Node) -> None:
    """An `if` or a `call`: a result is Zero where every branch gives Zero."""
    operands = IfParts.of(node).operands if node.op is if_ else node.operands
    kept = [k for k, operand in enumerate(operands) if done.is_left(operand)]
    branches = []
    for branch in node.regions:
        pairs = list(zip(branch.params, operands, strict=True))
        moving = {param for param, operand in pairs if operand in done.moved}
        absent = {param for param, operand in pairs if not done.is_left(operand)}
        branches.append((branch, _Reduced(branch, moving, absent)))
    left = [
        k
        for k in range(len(node.results))
        if any(own.is_left(branch.results[k]) for branch, own in branches)
    ]
    graphs = [own.finish([branch.results[k] for k in left]) for branch, own in branches]
    given = [done.mapping[operands[k]] for k in kept]
    if node.op is if_:
        new = done.b.if_(done.mapping[node.operands[0]], given, graphs)
    else:
        new = done.b.call(graphs[0], given)
    done.put(node, left, new)


def _partly_while(done: _Reduced, node: Node) -> None:
    """A loop: a carry is Zero that starts so, and is Zero again after every trip."""
    w = WhileParts.of(node)
    count = len(w.carry)
    zero = {k for k in range(count) if not done.is_left(node.operands[k])}
    no_invariants = {k for k, v in enumerate(w.invariants) if not done.is_left(v)}
    moving = _moving(w, done)
    while True:
        params = _chosen(w.before_carry, zero) | _chosen(w.before_invariants, no_invariants)
        before = _Reduced(w.before, moving & {*w.before.params}, params)
        gone = {k for k, value in enumerate(w.forwarded) if not before.is_left(value)}
        params = _chosen(w.after_forwarded, gone) | _chosen(w.after_invariants, no_invariants)
        after = _Reduced(w.after, moving & {*w.after.params}, params)
        still = {k for k in zero if not after.is_left(w.next_carry[k])}
        if still == zero:
            break
        zero = still
    carries = [k for k in range(count) if k not in zero]
    forwards = [k for k in range(len(w.forwarded)) if k not in gone]
    carry = [done.get(w.carry[k]) for k in carries]
    invariants = [done.get(v) for k, v in enumerate(w.invariants) if k not in no_invariants]
    regions = (
        before.finish([w.predicate, *(w.forwarded[k] for k in forwards)]),
        after.finish([w.next_carry[k] for k in carries]),
    )
    done.put(node, forwards, done.b.while_(carry, invariants, *regions))


def _moving(w: WhileParts, done: _Reduced) -> set[Value]:
    """The params of both regions that hold cotangents, in some trip."""
    carried = {k for k, value in enumerate(w.carry) if value in done.moved}
    outer = {k for k, value in enumerate(w.invariants) if value in done.moved}
    while True:
        first = _chosen(w.before_carry, carried) | _chosen(w.before_invariants, outer)
        reached = reached_values(w.before, first)
        handed_on = {k for k, value in enumerate(w.forwarded) if value in reached}
        second = _chosen(w.after_forwarded, handed_on) | _chosen(w.after_invariants, outer)
        reached = reached_values(w.after, second)
        grown = carried | {k for k, value in enumerate(w.next_carry) if value in reached}
        if grown == carried:
            return first | second
        carried = grown


def _chosen(values: Sequence[Value], positions: set[int]) -> set[Value]:
    return {values[k] for k in positions}


_PARTLY = {if_: _partly_branches, call: _partly_branches, while_: _partly_while}
