"""The transposes of a loop's two regions, and the cotangents in them that may be nonzero."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from wend.autodiff.activity import LoopActivity
from wend.autodiff.backward import BackwardBuild, forward_reads
from wend.autodiff.cotangents import Cotangent, Cotangents
from wend.autodiff.transpose import BackwardPass, Transposer
from wend.base.zero import ZERO, Zero
from wend.ir.dtypes import INT64
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import TensorType
from wend.ops.control import WhileParts

TRIP_COUNT = TensorType(INT64, ())


@dataclass(frozen=True, slots=True)
class LoopCotangentActivity:
    """The positions whose cotangents may be nonzero: forwarded values, carries, invariants."""

    forwarded: tuple[int, ...]
    carry: tuple[int, ...]
    invariants: tuple[int, ...]


def activity_fixpoint(
    t: Transposer, w: WhileParts, activity: LoopActivity, seeded: frozenset[int]
) -> LoopCotangentActivity:
    """Propagate the seeded cotangents around the loop until no further one becomes nonzero.

    Each round transposes both regions as a trial: the nodes are dropped, so rules must be pure.
    """
    forwarded = seeded
    while True:
        nonzero = LoopCotangentActivity(tuple(sorted(forwarded)), (), ())
        before = transpose_before(t, w, activity, nonzero, is_trial=True)
        carry = _nonzero_positions(before, w.before_carry)
        nonzero = LoopCotangentActivity(nonzero.forwarded, carry, ())
        after = transpose_after(t, w, activity, nonzero, is_trial=True)
        grown = forwarded | set(_nonzero_positions(after, w.after_forwarded))
        if grown == forwarded:
            invariants = {
                *_nonzero_positions(before, w.before_invariants),
                *_nonzero_positions(after, w.after_invariants),
            }
            return LoopCotangentActivity(nonzero.forwarded, carry, tuple(sorted(invariants)))
        forwarded = grown


def _nonzero_positions(region: Transposed, values: Sequence[Value]) -> tuple[int, ...]:
    return tuple(i for i, value in enumerate(values) if region.bwd.cts.get(value) is not ZERO)


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
    activity: LoopActivity,
    nonzero: LoopCotangentActivity,
    *,
    is_trial: bool = False,
) -> Transposed:
    """Map cotangents of what `before` forwards to those of the carry; sum those of invariants."""
    bwd = BackwardPass(BackwardBuild("before"), Cotangents(), activity.before, is_trial=is_trial)
    sources = [w.forwarded[i] for i in nonzero.forwarded]
    targets = [w.before_carry[i] for i in nonzero.carry]
    sums = [w.before_invariants[i] for i in nonzero.invariants]
    return _transpose(t, w, bwd, w.before, [*sources, *sums], [*targets, *sums], trips=0)


def transpose_after(
    t: Transposer,
    w: WhileParts,
    activity: LoopActivity,
    nonzero: LoopCotangentActivity,
    *,
    is_trial: bool = False,
) -> Transposed:
    """Map cotangents of the next carry to those of what `after` received; count one trip down."""
    bwd = BackwardPass(BackwardBuild("after"), Cotangents(), activity.after, is_trial=is_trial)
    sources = [w.next_carry[i] for i in nonzero.carry]
    targets = [w.after_forwarded[i] for i in nonzero.forwarded]
    sums = [w.after_invariants[i] for i in nonzero.invariants]
    return _transpose(t, w, bwd, w.after, [*sources, *sums], [*targets, *sums], trips=1)


def _transpose(
    t: Transposer,
    w: WhileParts,
    bwd: BackwardPass,
    region: Graph,
    sources: Sequence[Value],
    targets: Sequence[Value],
    *,
    trips: int,
) -> Transposed:
    """Pull cotangents of `sources` back to `targets`, and count so many trips down."""
    b = bwd.b
    b.source = w.source
    params = [b.param(TRIP_COUNT)]
    count = b.sub(params[0], b.integer(trips)) if trips else params[0]
    for value in sources:
        params.append(b.param(value.type))
        bwd.seed(value, params[-1])
    t.pull_back(bwd, region.nodes)
    b.source = w.source
    results = [_instantiated(b, bwd.cts.get(value), value) for value in targets]
    return Transposed(bwd, params, count, results)


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
