"""The transposes of a loop's two regions, and the cotangents in them that may be nonzero."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from wend.autodiff.activity import LoopActivity
from wend.autodiff.backward import BackwardBuild, forward_reads
from wend.autodiff.cotangents import Cotangents
from wend.autodiff.transpose import BackwardPass, Transposer
from wend.base.zero import ZERO, Zero
from wend.ir.dtypes import INT64
from wend.ir.graph import Node, Value
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
    b = BackwardBuild("before")
    b.source = w.source
    bwd = BackwardPass(b, Cotangents(), activity.before, is_trial=is_trial)
    params = [b.param(TRIP_COUNT)]
    params += _seed(bwd, w.forwarded, nonzero.forwarded)
    params += _seed(bwd, w.before_invariants, nonzero.invariants)
    t.pull_back(bwd, w.before.nodes)
    b.source = w.source
    results = _collect(bwd, w.before_carry, nonzero.carry)
    results += _collect(bwd, w.before_invariants, nonzero.invariants)
    return Transposed(bwd, params, params[0], results)


def transpose_after(
    t: Transposer,
    w: WhileParts,
    activity: LoopActivity,
    nonzero: LoopCotangentActivity,
    *,
    is_trial: bool = False,
) -> Transposed:
    """Map cotangents of the next carry to those of what `after` received; count one trip down."""
    b = BackwardBuild("after")
    b.source = w.source
    bwd = BackwardPass(b, Cotangents(), activity.after, is_trial=is_trial)
    params = [b.param(TRIP_COUNT)]
    count = b.sub(params[0], b.integer(1))
    params += _seed(bwd, w.next_carry, nonzero.carry)
    params += _seed(bwd, w.after_invariants, nonzero.invariants)
    t.pull_back(bwd, w.after.nodes)
    b.source = w.source
    results = _collect(bwd, w.after_forwarded, nonzero.forwarded)
    results += _collect(bwd, w.after_invariants, nonzero.invariants)
    return Transposed(bwd, params, count, results)


def _seed(bwd: BackwardPass, values: Sequence[Value], positions: Iterable[int]) -> list[Value]:
    params = []
    for i in positions:
        params.append(bwd.b.param(values[i].type))
        bwd.seed(values[i], params[-1])
    return params


def _collect(bwd: BackwardPass, values: Sequence[Value], positions: Iterable[int]) -> list[Value]:
    b, cts = bwd.b, [(values[i], bwd.cts.get(values[i])) for i in positions]
    return [
        b.zeros_like(like) if isinstance(ct, Zero) else b.instantiate(ct, like) for like, ct in cts
    ]


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
