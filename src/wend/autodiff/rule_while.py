"""The adjoint of `While` is again a `While`, counted down by the forward trip count (D1).

Its `before` is the transpose of the forward `before`, its `after` that of `after`: so the former
runs T + 1 times, the first time for the exit pass, and the latter T times. Neither evaluates the
forward predicate again. Record t of the forward `before` and record t − 1 of `after` are read by
position (D11), and the cotangents of invariants add up in carries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wend.autodiff.activity import LoopActivity, loop_activity
from wend.autodiff.cotangents import Cotangent, Cotangents
from wend.autodiff.residuals import forward_reads, values_to_keep
from wend.autodiff.transpose import BackwardBuild, Pass, Transposer
from wend.base.zero import ZERO, Zero
from wend.ir.builder import new_symbol
from wend.ir.dtypes import INT64, INTEGERS
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_nodes
from wend.ir.types import ListType, Symbol, TensorType, Type, substitute, symbols
from wend.ops import creating, elementwise
from wend.ops.build import Build
from wend.ops.control import WhileParts

_COUNT = TensorType(INT64, ())


def pull_back_while(t: Transposer, this: Pass, node: Node, cts: Sequence[Cotangent]) -> None:
    """Append the backward `While` of a forward one."""
    w = WhileParts.of(node)
    activity = loop_activity(w, [operand in this.active for operand in node.operands])
    seeded = {i for i, ct in enumerate(cts) if ct is not ZERO and w.forwarded[i] in activity.before}
    plan = _find_nonzero(t, w, activity, seeded)
    if not plan.forwarded:
        return
    before = _transpose_before(t, w, activity, plan)
    after = _transpose_after(t, w, activity, plan)
    tape = _Tape(w, before, after)
    this.replaced[node] = tape.forward_nodes(node)
    _append_backward(this, node, cts, plan, tape)


@dataclass(frozen=True, slots=True)
class _Nonzero:
    """Which cotangents are not Zero: of forwarded values, of carries, of invariants."""

    forwarded: tuple[int, ...]
    carry: tuple[int, ...]
    invariants: tuple[int, ...]


def _find_nonzero(
    t: Transposer, w: WhileParts, activity: LoopActivity, seeded: set[int]
) -> _Nonzero:
    """Grow the seeds around the loop until nothing new becomes Nonzero."""
    forwarded = seeded
    while True:
        plan = _Nonzero(tuple(sorted(forwarded)), (), ())
        before = _transpose_before(t, w, activity, plan)
        carry = _arrived(before, w.before_carry)
        plan = _Nonzero(plan.forwarded, carry, ())
        after = _transpose_after(t, w, activity, plan)
        grown = forwarded | set(_arrived(after, w.after_forwarded))
        if grown == forwarded:
            sums = {
                *_arrived(before, w.before_invariants),
                *_arrived(after, w.after_invariants),
            }
            return _Nonzero(plan.forwarded, carry, tuple(sorted(sums)))
        forwarded = grown


def _arrived(region: _Transposed, values: Sequence[Value]) -> tuple[int, ...]:
    return tuple(i for i, value in enumerate(values) if region.this.cts.get(value) is not ZERO)


@dataclass(slots=True)
class _Transposed:
    """The transpose of one region: params (count, cotangents…, sums…), and what comes out."""

    this: Pass
    params: list[Value]
    count: Value  # the number of trips still to undo, as the region's results hand it on
    results: list[Value]

    @property
    def b(self) -> BackwardBuild:
        return self.this.b

    def reads(self) -> list[Value]:
        return forward_reads(self.b, [self.count, *self.results])


def _transpose_before(
    t: Transposer, w: WhileParts, activity: LoopActivity, plan: _Nonzero
) -> _Transposed:
    b = BackwardBuild("before")
    this = Pass(b, Cotangents(), activity.before)
    params = [b.param(_COUNT)]
    params += _seed(this, w.forwarded, plan.forwarded)
    params += _seed(this, w.before_invariants, plan.invariants)
    t.pull_back(this, w.before.nodes)
    results = _collect(this, w.before_carry, plan.carry)
    results += _collect(this, w.before_invariants, plan.invariants)
    return _Transposed(this, params, params[0], results)


def _transpose_after(
    t: Transposer, w: WhileParts, activity: LoopActivity, plan: _Nonzero
) -> _Transposed:
    b = BackwardBuild("after")
    this = Pass(b, Cotangents(), activity.after)
    params = [b.param(_COUNT)]
    count = b.sub(params[0], b.integer(1))
    params += _seed(this, w.next_carry, plan.carry)
    params += _seed(this, w.after_invariants, plan.invariants)
    t.pull_back(this, w.after.nodes)
    results = _collect(this, w.after_forwarded, plan.forwarded)
    results += _collect(this, w.after_invariants, plan.invariants)
    return _Transposed(this, params, count, results)


def _seed(this: Pass, values: Sequence[Value], chosen: Iterable[int]) -> list[Value]:
    params = []
    for i in chosen:
        params.append(this.b.param(values[i].type))
        this.seed(values[i], params[-1])
    return params


def _collect(this: Pass, values: Sequence[Value], chosen: Iterable[int]) -> list[Value]:
    found = []
    for i in chosen:
        ct = this.cts.get(values[i])
        like = values[i]
        found.append(
            this.b.zeros_like(like) if isinstance(ct, Zero) else this.b.instantiate(ct, like)
        )
    return found


class _Tape:
    """What the forward loop records, and which outer value holds each record.

    A value that `after` is given is what `before` forwarded, and what `after` hands on is what
    the next `before` is given: so both are looked for in the records of `before` first.
    """

    def __init__(self, w: WhileParts, before: _Transposed, after: _Transposed) -> None:
        self.w, self.before, self.after = w, before, after
        self.counters = _counters(w)
        self.starts = dict(zip(w.after_forwarded, w.forwarded, strict=True))
        handed_on = dict(zip(w.next_carry, w.before_carry, strict=True))
        reads = after.reads()
        self.aliases = {
            value: handed_on[value]
            for value in reads
            if value in handed_on and value.node is not None and not _is_constant(value)
        }
        kept = values_to_keep(reads, {*w.after_invariants, *self.aliases})
        self.after_kept = [value for value in kept if value not in self.starts]
        needed = [
            *before.reads(),
            *(self.starts[value] for value in kept if value in self.starts),
            *self.aliases.values(),
        ]
        self.before_kept = values_to_keep(needed, {*w.before_invariants, *self.counters})
        self.before_types = [_record_type(value) for value in self.before_kept]
        self.after_types = [_record_type(value) for value in self.after_kept]

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
        mapping, trips, lists, others = self._open(b, w.before, len(w.carry), self.before)
        lists = [
            b.list_push(list, mapping[value])
            for list, value in zip(lists, self.before_kept, strict=True)
        ]
        results = [mapping[value] for value in w.before.results]
        return b.finish([*results, trips, *lists, *others])

    def _forward_after(self) -> Graph:
        b, w = Build("after"), self.w
        mapping, trips, others, lists = self._open(b, w.after, len(w.forwarded), self.after)
        lists = [
            b.list_push(list, mapping[value])
            for list, value in zip(lists, self.after_kept, strict=True)
        ]
        results = [mapping[value] for value in w.next_carry]
        return b.finish([*results, b.add(trips, b.integer(1)), *others, *lists])

    def _open(
        self, b: Build, region: Graph, given: int, done: _Transposed
    ) -> tuple[dict[Value, Value], Value, list[Value], list[Value]]:
        """Copy a region's nodes into `b`, with params for the count and the lists."""
        mapping = {param: b.param(param.type, param.name) for param in region.params[:given]}
        trips = b.param(_COUNT)
        before_lists = [b.param(ListType(type)) for type in self.before_types]
        after_lists = [b.param(ListType(type)) for type in self.after_types]
        for param in region.params[given:]:
            mapping[param] = b.param(param.type, param.name)
        b.nodes += copy_nodes(region.nodes, mapping, done.this.replaced)
        b.nodes += copy_nodes(done.b.extras, mapping)
        return mapping, trips, before_lists, after_lists


def _counters(w: WhileParts) -> dict[Value, tuple[Value, Value]]:
    """Integer carries that grow by one step a trip: the start outside, and the step in `after`.

    Their value at trip t follows from t, so they are never recorded.
    """
    found = {}
    for start, param, last in zip(w.carry, w.before_carry, w.next_carry, strict=True):
        type, node = param.type, last.node
        if not isinstance(type, TensorType) or type.shape != () or type.dtype not in INTEGERS:
            continue
        if node is None or node.op is not elementwise.add:
            continue
        for value, step in (node.operands, node.operands[::-1]):
            forwarded = value in w.after_forwarded and w.forwarded[w.after_forwarded.index(value)]
            if forwarded is param and (_is_constant(step) or step in w.after_invariants):
                found[param] = (start, step)
    return found


def _is_constant(value: Value) -> bool:
    return value.node is not None and value.node.op is creating.constant


def _record_type(value: Value) -> Type:
    """The type of a record; sizes that may differ from trip to trip get names of their own."""
    names: dict[Symbol, Symbol] = {symbol: new_symbol() for symbol in symbols(value.type)}
    return substitute(value.type, names)


class _Reader:
    """Gets forward values of one region back in a backward region, at one trip."""

    def __init__(self, into: _Region, index: Value, lists: dict[Value, Value]) -> None:
        self.into, self.index, self.lists = into, index, lists
        self.found: dict[Value, Value] = {}

    def __call__(self, value: Value) -> Value:
        if value not in self.found:
            self.found[value] = self._get(value)
        return self.found[value]

    def _get(self, value: Value) -> Value:
        b = self.into.b
        if value in self.into.invariants:
            return self.into.outer(self.into.invariants[value])
        if value in self.lists:
            record = b.list_get(self.into.outer(self.lists[value]), self.index)
            return b.refine(record, value.type)
        node = value.node
        assert node is not None, f"{value!r} was not kept"
        for copy in copy_nodes([node], {operand: self(operand) for operand in node.operands}):
            b.nodes.append(copy)
        return b.nodes[-1].results[value.index]


class _BeforeReader(_Reader):
    """Reads what `before` knew; counters follow from the trip."""

    def __init__(self, into: _Region, index: Value, tape: _Tape) -> None:
        super().__init__(into, index, tape.before_lists)
        self.counters = tape.counters

    def _get(self, value: Value) -> Value:
        if value not in self.counters:
            return super()._get(value)
        b, (start, step) = self.into.b, self.counters[value]
        dtype = step.type.dtype  # type: ignore[union-attr]
        moved = b.mul(b.cast(self.index, dtype), self.into.step(step))
        return b.add(self.into.outer(start), moved)


class _AfterReader(_Reader):
    """Reads what `after` knew; its start and its end belong to `before`, of this trip and the next."""

    def __init__(self, into: _Region, this: Value, following: Value, tape: _Tape) -> None:
        super().__init__(into, this, tape.after_lists)
        self.starts, self.aliases = tape.starts, tape.aliases
        self.at_start = _BeforeReader(into, this, tape)
        self.at_end = _BeforeReader(into, following, tape)

    def _get(self, value: Value) -> Value:
        if value in self.starts:
            return self.at_start(self.starts[value])
        if value in self.aliases:
            return self.at_end(self.aliases[value])
        return super()._get(value)


class _Region:
    """A backward region under construction, with the outer values it asks for."""

    def __init__(self, name: str, done: _Transposed, w: WhileParts) -> None:
        self.b = Build(name)
        self.done = done
        self.mapping = {param: self.b.param(param.type) for param in done.params}
        self.invariants = dict(zip(w.before_invariants, w.invariants, strict=True))
        self.invariants.update(zip(w.after_invariants, w.invariants, strict=True))
        self.asked: dict[Value, Value] = {}

    def outer(self, value: Value) -> Value:
        """An outer value, as an invariant of the backward loop."""
        if value not in self.asked:
            self.asked[value] = Value(value.type)
        return self.asked[value]

    def step(self, value: Value) -> Value:
        """What a counter grows by: a constant or an invariant of `after`."""
        if value in self.invariants:
            return self.outer(self.invariants[value])
        assert value.node is not None
        (copy,) = copy_nodes([value.node], {})
        self.b.nodes.append(copy)
        return copy.results[0]

    def fill(self, reader: _Reader) -> None:
        """Get what the transpose reads, then its nodes."""
        self.mapping.update({value: reader(value) for value in self.done.reads()})
        self.b.nodes += copy_nodes(self.done.b.nodes, self.mapping)

    def finish(self, predicate: Sequence[Value], outer: Sequence[Value]) -> Graph:
        params = [*self.b.params, *(self.outer(value) for value in outer)]
        done = self.done
        results = [*predicate, *(self.mapping[v] for v in (done.count, *done.results))]
        return Graph(self.b.name, tuple(params), tuple(self.b.nodes), tuple(results))


def _append_backward(
    this: Pass, node: Node, cts: Sequence[Cotangent], plan: _Nonzero, tape: _Tape
) -> None:
    b, w = this.b, tape.w
    before, after = _Region("before", tape.before, w), _Region("after", tape.after, w)
    before_count = before.mapping[tape.before.count]
    before.fill(_BeforeReader(before, before_count, tape))
    following = after.mapping[tape.after.params[0]]
    previous = after.b.sub(following, after.b.integer(1))
    after.fill(_AfterReader(after, previous, following, tape))
    goes_on = before.b.gt(before_count, before.b.integer(0))
    outer = [*dict.fromkeys([*before.asked, *after.asked])]
    regions = before.finish([goes_on], outer), after.finish([], outer)
    seeds = [_instantiated(b, cts[i], node.results[i]) for i in plan.forwarded]
    sums = [
        _instantiated(b, this.cts.take(w.invariants[j]), w.invariants[j]) for j in plan.invariants
    ]
    loop = b.while_([tape.trips, *seeds, *sums], outer, *regions)
    carried, summed = loop.results[1 : 1 + len(plan.carry)], loop.results[1 + len(plan.carry) :]
    for i, ct in zip(plan.carry, carried, strict=True):
        if w.carry[i] in this.active:
            this.cts.add(b, w.carry[i], ct)
    for j, ct in zip(plan.invariants, summed, strict=True):
        this.cts.add(b, w.invariants[j], ct)


def _instantiated(b: Build, ct: Cotangent, like: Value) -> Value:
    """The cotangent; where nothing arrived the one zero that a sum starts from."""
    return b.zeros_like(like) if isinstance(ct, Zero) else b.instantiate(ct, like)
