"""What wend is to reach, and whether it did in this run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench import summary
from bench.figures import Results
from bench.peers import CATALOGUE
from bench.workload import (
    FIRST_GRADIENT,
    FIRST_VALUE,
    GRADIENT,
    IMPORT,
    LATER_GRADIENT,
    MEMORY,
    VALUE,
)
from bench.workloads import GROUPS

OWN, XLA, C, FAST = "wend", "wend-jax", "c", "c-fast"
REST = "every other peer"


@dataclass(frozen=True, slots=True)
class Goal:
    """At most so many times what a peer takes, or so many seconds, or bytes a trip.

    Attributes:
        workload: one, or a group, of which the geometric mean counts.
        other: the peer; None: `limit` is in seconds, or bytes a trip.
        beside: the peer's measure; the same one if it is empty.
        own: which of wend's ways is measured.
    """

    workload: str
    measure: str
    limit: float
    other: str | None = None
    beside: str = ""
    own: str = "wend"


GOALS = (
    Goal("scalar_while", VALUE, 0.6, C),
    Goal("scalar_while", GRADIENT, 0.6, C),
    Goal("scalar_while", VALUE, 1.15, FAST),
    Goal("scalar_while", GRADIENT, 1.25, FAST),
    Goal("scalar_while", VALUE, 1.0, REST),
    Goal("scalar_while", GRADIENT, 1.0, REST),
    Goal("vec100", VALUE, 4.0, C),
    Goal("vec100", GRADIENT, 4.0, C),
    Goal("vec100", VALUE, 1.15, C),
    Goal("vec100", GRADIENT, 1.4, C),
    Goal("dopri", VALUE, 1.3, C),
    Goal("dopri", GRADIENT, 1.3, C),
    Goal("dopri", GRADIENT, 1 / 5, "catalyst"),
    Goal("dopri", GRADIENT, 1 / 10, "jax-tape"),
    Goal("dopri", GRADIENT, 1 / 20, "diffrax"),
    Goal("dopri", FIRST_GRADIENT, 0.4),
    Goal("demo", GRADIENT, 0.3e-3),
    Goal("demo", FIRST_GRADIENT, 0.5),
    Goal("call", VALUE, 1.0, "numba"),
    Goal("call_outside", VALUE, 0.25e-6),
    Goal("first_call", FIRST_VALUE, 0.04),
    Goal("first_call", IMPORT, 0.15),
    Goal("million", GRADIENT, 3.0, C, VALUE),
    Goal("million", MEMORY, 16.0),
    Goal("vec100", GRADIENT, 1 / 2, "jax-scan"),
    *(
        Goal(f"lstm_{steps}", GRADIENT, 1.0, peer)
        for steps in (200, 1000)
        for peer in ("jax", "tensorflow", "tensorflow-xla")
    ),
    *(
        goal
        for steps in (200, 500, 1000)
        for goal in (
            Goal(f"lstm_{steps}", VALUE, 1.15, "torch-nn"),
            Goal(f"lstm_{steps}", GRADIENT, 0.85, "torch-nn"),
            Goal(f"lstm_{steps}", GRADIENT, 1 / 1.8, "jax"),
        )
    ),
    Goal("fill", VALUE, 0.1),
    Goal("lstm_500", GRADIENT, 1.5, "tensorflow-xla"),
    Goal("lstm_500", FIRST_GRADIENT, 0.4),
    *(
        goal
        for name in ("gmm_10", "gmm_64", "letters")
        for goal in (Goal(name, GRADIENT, 0.8, "jax"), Goal(name, GRADIENT, 3.0, OWN, VALUE))
    ),
    *(
        goal
        for name in ("chain_f64", "chain_f32")
        for goal in (Goal(name, VALUE, 1 / 4, "python"), Goal(name, VALUE, 1.0, "jax"))
    ),
    Goal("scalar_while", GRADIENT, 1.6, "jax-tape", own=XLA),
    Goal("first_gradient", FIRST_GRADIENT, 2.5, "jax-tape", own=XLA),
    Goal("first_gradient", LATER_GRADIENT, 1.0, own=XLA),
    Goal("dopri", FIRST_GRADIENT, 2.5, "jax-tape", own=XLA),
    Goal("lstm_200", GRADIENT, 1.1, "jax", own=XLA),
    Goal("lstm_500", FIRST_GRADIENT, 2.5, "jax", own=XLA),
    Goal("npbench", VALUE, 1.0, "numba"),
    Goal("npbench", VALUE, 1 / 5, "python"),
)


def lines(found: Mapping[str, Results]) -> Iterator[str]:
    """Yield a line for each goal whose workload was run."""
    for goal in GOALS:
        if goal.workload in GROUPS:
            if ratios := summary.over(found, goal.workload, goal.measure, goal.other or ""):
                amount = 1 / summary.mean(ratios)
                text = f"{amount:.2f}× in the mean of {len(ratios)}"
                judged = _judged(f"goal ≤ {aim(goal)}", amount, text, goal.limit)
                yield f"{goal.workload}, {goal.measure}: {judged}"
        elif goal.workload in found:
            yield f"{goal.workload}, {goal.measure}: {verdict(goal, found[goal.workload])}"


def verdict(goal: Goal, results: Results) -> str:
    """Say the goal, what was measured, and whether it is met."""
    own = results.figure(goal.measure, goal.own)
    wish = f"{'' if goal.own == OWN else 'on XLA, '}goal ≤ {aim(goal)}"
    if own is None or own.wrong:
        return f"{wish}, not measured"
    if goal.other is None:
        amount = own.median / (results.trips or 1) if goal.measure == MEMORY else own.median
        return _judged(wish, amount, shown(goal, amount), goal.limit)
    measure = goal.beside or goal.measure
    others = _others(results) if goal.other == REST else [goal.other]
    there = [(results.figure(measure, peer), peer) for peer in others]
    rights = [(figure.median, peer) for figure, peer in there if figure and not figure.wrong]
    if not rights:
        return f"{wish}, not measured: {label(goal.other)} gives no figure"
    best, peer = min(rights)
    beside = f" ({CATALOGUE[peer].label})" if goal.other == REST else ""
    ratio = own.median / best
    return _judged(wish, ratio, f"{ratio:.2f}×{beside}", goal.limit)


def aim(goal: Goal) -> str:
    if goal.other is None:
        return shown(goal, goal.limit)
    beside = f" ({goal.beside})" if goal.beside else ""
    return f"{goal.limit:.3g}× {label(goal.other)}{beside}"


def label(peer: str) -> str:
    return CATALOGUE[peer].label if peer in CATALOGUE else peer


def shown(goal: Goal, amount: float) -> str:
    return f"{amount:.1f} bytes a trip" if goal.measure == MEMORY else f"{1e3 * amount:.3g} ms"


def _others(results: Results) -> list[str]:
    return [peer for peer in results.peers() if peer not in (OWN, XLA, C, FAST)]


def _judged(wish: str, amount: float, text: str, limit: float) -> str:
    return f"{wish}, measured {text}, {'met' if amount <= limit else 'not met'}"
