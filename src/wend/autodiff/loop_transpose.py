"""The transposes of a loop's two regions, and which cotangents in them are other than Zero."""

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

COUNT = TensorType(INT64, ())


@dataclass(frozen=True, slots=True)
class LoopCotangentActivity:
    """Which cotangents are not Zero: of forwarded values, of carries, of invariants."""

    forwarded: tuple[int, ...]
    carry: tuple[int, ...]
    invariants: tuple[int, ...]


def activity_fixpoint(
    t: Transposer, w: WhileParts, activity: LoopActivity, seeded: frozenset[int]
) -> LoopCotangentActivity:
    """Grow the seeds around the loop until nothing new becomes Nonzero."""
    forwarded = seeded
    while True:
        plan = LoopCotangentActivity(tuple(sorted(forwarded)), (), ())
        before = transpose_before(t, w, activity, plan, is_trial=True)
        carry = _arrived(before, w.before_carry)
        plan = LoopCotangentActivity(plan.forwarded, carry, ())
        after = transpose_after(t, w, activity, plan, is_trial=True)
        grown = forwarded | set(_arrived(after, w.after_forwarded))
        if grown == forwarded:
            sums = {
                *_arrived(before, w.before_invariants),
                *_arrived(after, w.after_invariants),
            }
            return LoopCotangentActivity(plan.forwarded, carry, tuple(sorted(sums)))
        forwarded = grown


def _arrived(region: Transposed, values: Sequence[Value]) -> tuple[int, ...]:
    return tuple(i for i, value in enumerate(values) if region.bwd.cts.get(value) is not ZERO)


@dataclass(slots=True)
class Transposed:
    """The transpose of one region: params (count, cotangents…, sums…), and what comes out."""

    bwd: BackwardPass
    params: list[Value]
    count: Value  # the number of trips still to undo, as the region's results hand it on
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
    plan: LoopCotangentActivity,
    *,
    is_trial: bool = False,
) -> Transposed:
    """Cotangents of what `before` forwards to those of the carry, invariants adding up."""
    b = BackwardBuild("before")
    b.source = w.source
    bwd = BackwardPass(b, Cotangents(), activity.before, is_trial=is_trial)
    params = [b.param(COUNT)]
    params += _seed(bwd, w.forwarded, plan.forwarded)
    params += _seed(bwd, w.before_invariants, plan.invariants)
    t.pull_back(bwd, w.before.nodes)
    b.source = w.source
    results = _collect(bwd, w.before_carry, plan.carry)
    results += _collect(bwd, w.before_invariants, plan.invariants)
    return Transposed(bwd, params, params[0], results)


def transpose_after(
    t: Transposer,
    w: WhileParts,
    activity: LoopActivity,
    plan: LoopCotangentActivity,
    *,
    is_trial: bool = False,
) -> Transposed:
    """Cotangents of the next carry to those of what `after` was given; one trip less to undo."""
    b = BackwardBuild("after")
    b.source = w.source
    bwd = BackwardPass(b, Cotangents(), activity.after, is_trial=is_trial)
    params = [b.param(COUNT)]
    count = b.sub(params[0], b.integer(1))
    params += _seed(bwd, w.next_carry, plan.carry)
    params += _seed(bwd, w.after_invariants, plan.invariants)
    t.pull_back(bwd, w.after.nodes)
    b.source = w.source
    results = _collect(bwd, w.after_forwarded, plan.forwarded)
    results += _collect(bwd, w.after_invariants, plan.invariants)
    return Transposed(bwd, params, count, results)


def _seed(bwd: BackwardPass, values: Sequence[Value], chosen: Iterable[int]) -> list[Value]:
    params = []
    for i in chosen:
        params.append(bwd.b.param(values[i].type))
        bwd.seed(values[i], params[-1])
    return params


def _collect(bwd: BackwardPass, values: Sequence[Value], chosen: Iterable[int]) -> list[Value]:
    found = []
    for i in chosen:
        ct = bwd.cts.get(values[i])
        like = values[i]
        found.append(
            bwd.b.zeros_like(like) if isinstance(ct, Zero) else bwd.b.instantiate(ct, like)
        )
    return found


T = TypeVar("T")


class Memo(Generic[T]):
    """Answers about nodes; an answer may not refer to its node, or neither would ever go."""

    def __init__(self) -> None:
        self._found: WeakKeyDictionary[Node, dict[Hashable, T]] = WeakKeyDictionary()

    def __call__(self, node: Node, question: Hashable, find: Callable[[], T]) -> T:
        """The answer to a question about a node, found when first asked."""
        answers = self._found.setdefault(node, {})
        if question not in answers:
            answers[question] = find()
        return answers[question]
