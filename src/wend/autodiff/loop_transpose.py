"""The transposes of a loop's two regions, and the cotangents in them that may be nonzero."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import or_
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from wend.autodiff.activity import RegionActivity
from wend.autodiff.backward import BackwardBuild, forward_reads
from wend.autodiff.changes_in_place import changed_carries, changed_in_either
from wend.autodiff.cotangents import Cotangent, Cotangents
from wend.autodiff.transpose import BackwardPass, Transposer
from wend.base.lazy.dataclass import dataclass
from wend.base.zero import ZERO, Zero
from wend.ir.dataflow import flow_backward
from wend.ir.dtypes import FLOATS, INT64
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import Symbol, TensorType, Type, fresh
from wend.ops.control import WhileParts

TRIP_COUNT = TensorType(INT64, ())
_NUMBERS = {TensorType(dtype, ()) for dtype in FLOATS}


@dataclass(frozen=True, slots=True)
class LoopCotangentActivity:
    """The positions whose cotangents may be nonzero: forwarded values, carries, invariants."""

    forwarded: tuple[int, ...]
    carry: tuple[int, ...]
    invariants: tuple[int, ...]


def cotangent_activity(
    t: Transposer, node: Node, activity: RegionActivity, seeded: frozenset[int]
) -> LoopCotangentActivity:
    """Propagate the seeded cotangents backward around a loop.

    Each round transposes the regions as a trial: the nodes are dropped, so rules must be pure.
    """
    w = WhileParts.of(node)

    def transfer(region: int, cts: Sequence[bool]) -> list[bool]:
        if region == 0:
            nonzero = LoopCotangentActivity(_nonzero_positions(cts[1:]), (), ())
            transposed = transpose_before(t, w, activity, nonzero, is_trial=True)
        else:
            nonzero = LoopCotangentActivity((), _nonzero_positions(cts), ())
            transposed = transpose_after(t, w, activity, nonzero, is_trial=True)
        params = node.regions[region].params
        return [transposed.bwd.cts.get(param) is not ZERO for param in params]

    seeds = [k in seeded for k in range(len(node.results))]
    flow = flow_backward(node, seeds, or_, transfer, unforwarded=False)
    return LoopCotangentActivity(
        _nonzero_positions(flow.entered[0][1:]),
        _nonzero_positions(flow.node[: len(w.carry)]),
        _nonzero_positions(flow.node[len(w.carry) :]),
    )


def _nonzero_positions(flags: Sequence[bool]) -> tuple[int, ...]:
    return tuple(k for k, flag in enumerate(flags) if flag)


@dataclass(slots=True)
class Transposed:
    """The transpose of one region.

    Attributes:
        bwd: the backward pass over its nodes.
        params: the trip count, then cotangents, then sums for invariants.
        count: the number of trips still to undo, as the results pass it on.
        results: the cotangents and sums that come out.
    """

    bwd: BackwardPass
    params: list[Value]
    count: Value
    results: list[Value]

    @property
    def b(self) -> BackwardBuild:
        return self.bwd.b

    def reads(self) -> list[Value]:
        return forward_reads(self.b, [self.count, *self.results])


def transpose_before(
    t: Transposer,
    w: WhileParts,
    activity: RegionActivity,
    nonzero: LoopCotangentActivity,
    *,
    is_trial: bool = False,
    changing: Iterable[int] = (),
) -> Transposed:
    """Map cotangents of what `before` forwards to those of the carry; sum those of invariants."""
    sources = [(w.forwarded[i], w.after_forwarded[i]) for i in nonzero.forwarded]
    targets = [w.before_carry[i] for i in nonzero.carry]
    sums = [w.before_invariants[i] for i in nonzero.invariants]
    changed = changed_in_either(w).union(w.before_invariants[k] for k in changing)
    bwd = _backward_pass("before", activity.regions[0], changed, is_trial=is_trial)
    return _transpose(t, w, bwd, w.before, sources, targets, sums, trips=0)


def transpose_after(
    t: Transposer,
    w: WhileParts,
    activity: RegionActivity,
    nonzero: LoopCotangentActivity,
    *,
    is_trial: bool = False,
    changing: Iterable[int] = (),
) -> Transposed:
    """Map cotangents of the next carry to those of what `after` received; count one trip down."""
    sources = [(w.next_carry[i], w.before_carry[i]) for i in nonzero.carry]
    targets = [w.after_forwarded[i] for i in nonzero.forwarded]
    sums = [w.after_invariants[i] for i in nonzero.invariants]
    changed = changed_carries(w).union(w.after_invariants[k] for k in changing)
    bwd = _backward_pass("after", activity.regions[1], changed, is_trial=is_trial)
    return _transpose(t, w, bwd, w.after, sources, targets, sums, trips=1)


def _backward_pass(
    name: str, active: set[Value], changing: set[Value], *, is_trial: bool
) -> BackwardPass:
    b = BackwardBuild(name)
    return BackwardPass(b, Cotangents(), active, is_trial=is_trial, changing=changing)


def _transpose(
    t: Transposer,
    w: WhileParts,
    bwd: BackwardPass,
    region: Graph,
    sources: Sequence[tuple[Value, Value]],
    targets: Sequence[Value],
    sums: Sequence[Value],
    *,
    trips: int,
) -> Transposed:
    """Pull cotangents of values back to `targets` and `sums`, and count so many trips down.

    `sources`: the values, and the params of the other region that receive them. A size may be known
    of a value, but not of the param, and then not of the cotangent that arrives.

    The terms of a trip are summed before they are added to a sum of numbers: the next trip waits
    for one addition, and LLVM vectorizes a loop with sums of that form.
    """
    b = bwd.b
    b.source = w.source
    params = [b.param(TRIP_COUNT)]
    count = b.sub(params[0], b.integer(trips)) if trips else params[0]
    for value, receiver in [*sources, *zip(sums, sums, strict=True)]:
        type = _received(value.type, receiver.type)
        params.append(b.param(type))
        ct = params[-1] if type == value.type else b.refine(params[-1], type=value.type)
        if value is not receiver or value.type not in _NUMBERS:
            bwd.seed(value, ct)
    t.pull_back(bwd, region.nodes)
    b.source = w.source
    for value, so_far in zip(sums, params[len(params) - len(sums) :], strict=True):
        if value.type in _NUMBERS:
            terms = bwd.cts.take(value)
            bwd.cts.set(value, so_far)
            bwd.cts.add(b, value, terms)
    results = [_instantiated(b, bwd.cts.get(value), value) for value in [*targets, *sums]]
    return Transposed(bwd, params, count, results)


def _received(type: Type, receiver: Type) -> Type:
    """Return the type of a value with unknown sizes where the param that receives it has such."""
    if not isinstance(type, TensorType) or not isinstance(receiver, TensorType):
        return type
    if type.shape is None or receiver.shape is None:
        return type.with_shape(None)
    dims = zip(type.shape, receiver.shape, strict=True)
    is_relaxed = [isinstance(a, int) and isinstance(b, Symbol) for a, b in dims]
    shape = (
        fresh() if relaxed else dim for dim, relaxed in zip(type.dims, is_relaxed, strict=True)
    )
    return type.with_shape(tuple(shape)) if any(is_relaxed) else type


def _instantiated(b: BackwardBuild, ct: Cotangent, like: Value) -> Value:
    return b.zeros_like(like) if isinstance(ct, Zero) else b.instantiate(ct, like)


T = TypeVar("T")


class Memo(Generic[T]):
    """Results computed per node; a result must not refer to its node, or neither would be freed."""

    def __init__(self) -> None:
        self._results: WeakKeyDictionary[Node, dict[Hashable, T]] = WeakKeyDictionary()

    def __call__(self, node: Node, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the result for a node and a key, computed at the first call."""
        results = self._results.setdefault(node, {})
        if key not in results:
            results[key] = compute()
        return results[key]
