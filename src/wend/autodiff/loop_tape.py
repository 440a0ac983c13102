"""What a forward loop records for its backward loop (D11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wend.autodiff.backward import is_constant
from wend.autodiff.loop_transpose import COUNT, Transposed
from wend.autodiff.residuals import min_cut_residuals
from wend.ir.builder import new_symbol
from wend.ir.dtypes import INTEGERS
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_nodes
from wend.ir.types import ListType, Symbol, TensorType, Type, substitute, symbols
from wend.ops import elementwise
from wend.ops.build import Build
from wend.ops.control import WhileParts


class TapePlan:
    """What the forward loop records, and which outer value holds each record.

    A value that `after` is given is what `before` forwarded, and what `after` hands on is what
    the next `before` is given: so both are looked for in the records of `before` first.
    """

    def __init__(self, w: WhileParts, before: Transposed, after: Transposed) -> None:
        self.w, self.before, self.after = w, before, after
        self.counters = _counters(w)
        self.starts = dict(zip(w.after_forwarded, w.forwarded, strict=True))
        handed_on = dict(zip(w.next_carry, w.before_carry, strict=True))
        reads = after.reads()
        self.aliases = {
            value: handed_on[value]
            for value in reads
            if value in handed_on and value.node is not None and not is_constant(value)
        }
        free_before = {*w.before_invariants, *self.counters}
        free_after = {value for value, start in self.starts.items() if start in free_before}
        kept = min_cut_residuals(reads, {*w.after_invariants, *self.aliases, *free_after})
        for_before = [*before.reads(), *self.aliases.values()]
        there = set(min_cut_residuals(for_before, free_before))
        # A carry that `before` only hands on is recorded by `after`, which runs once less.
        only_after = {v for v in kept if self._is_handed_on(v) and self.starts[v] not in there}
        by_start = [v for v in kept if v in self.starts and v not in only_after]
        self.after_kept = [value for value in kept if value not in by_start]
        needed = [*for_before, *(self.starts[value] for value in by_start)]
        self.before_kept = min_cut_residuals(needed, free_before)
        self.before_types = [_record_type(value) for value in self.before_kept]
        self.after_types = [_record_type(value) for value in self.after_kept]

    def _is_handed_on(self, value: Value) -> bool:
        return value in self.starts and self.starts[value] in self.w.before_carry

    def forward_nodes(self, node: Node) -> Sequence[Node]:
        """The nodes to stand for the forward loop: it also counts trips and keeps records."""
        b, w = Build(""), self.w
        b.source = node.source
        lists = [b.list_new(type) for type in (*self.before_types, *self.after_types)]
        carry = [*w.carry, b.integer(0), *lists]
        loop = b.while_(carry, w.invariants, self._forward_before(), self._forward_after())
        given = iter(loop.results[len(w.forwarded) :])
        self.trips = next(given)
        self.before_lists = dict(zip(self.before_kept, given, strict=False))
        self.after_lists = dict(
            zip(
                self.after_kept,
                loop.results[len(loop.results) - len(self.after_kept) :],
                strict=True,
            )
        )
        return b.nodes

    def _forward_before(self) -> Graph:
        b, w = Build("before"), self.w
        b.source = w.source
        mapping, trips, lists, others = self._open(b, w.before, len(w.carry), self.before)
        lists = [
            b.list_push(list, mapping[value])
            for list, value in zip(lists, self.before_kept, strict=True)
        ]
        results = [mapping[value] for value in w.before.results]
        return b.finish([*results, trips, *lists, *others])

    def _forward_after(self) -> Graph:
        b, w = Build("after"), self.w
        b.source = w.source
        mapping, trips, others, lists = self._open(b, w.after, len(w.forwarded), self.after)
        lists = [
            b.list_push(list, mapping[value])
            for list, value in zip(lists, self.after_kept, strict=True)
        ]
        results = [mapping[value] for value in w.next_carry]
        return b.finish([*results, b.add(trips, b.integer(1)), *others, *lists])

    def _open(
        self, b: Build, region: Graph, given: int, done: Transposed
    ) -> tuple[dict[Value, Value], Value, list[Value], list[Value]]:
        """Copy a region's nodes into `b`, with params for the count and the lists."""
        mapping = {param: b.param(param.type, param.name) for param in region.params[:given]}
        trips = b.param(COUNT)
        before_lists = [b.param(ListType(type)) for type in self.before_types]
        after_lists = [b.param(ListType(type)) for type in self.after_types]
        for param in region.params[given:]:
            mapping[param] = b.param(param.type, param.name)
        b.nodes += copy_nodes(region.nodes, mapping, done.bwd.replaced)
        b.nodes += copy_nodes(done.b.forward_shape_reads, mapping)
        return mapping, trips, before_lists, after_lists


@dataclass(frozen=True, slots=True)
class Counter:
    """An integer carry that moves by one step a trip: its value at trip t follows from t."""

    start: Value  # outside
    step: Value  # in `after`: a constant or an invariant
    is_down: bool


def _counters(w: WhileParts) -> dict[Value, Counter]:
    """The carries of `before` that only count, so that they are never recorded."""
    found = {}
    for start, param, last in zip(w.carry, w.before_carry, w.next_carry, strict=True):
        type, node = param.type, last.node
        if not isinstance(type, TensorType) or type.shape != () or type.dtype not in INTEGERS:
            continue
        if node is None or node.op not in (elementwise.add, elementwise.sub):
            continue
        is_down = node.op is elementwise.sub
        for value, step in (node.operands, node.operands[::-1])[: 1 if is_down else 2]:
            forwarded = value in w.after_forwarded and w.forwarded[w.after_forwarded.index(value)]
            if forwarded is param and (is_constant(step) or step in w.after_invariants):
                found[param] = Counter(start, step, is_down)
    return found


def _record_type(value: Value) -> Type:
    """The type of a record; sizes that may differ from trip to trip get names of their own."""
    names: dict[Symbol, Symbol] = {symbol: new_symbol() for symbol in symbols(value.type)}
    return substitute(value.type, names)
