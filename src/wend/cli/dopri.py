"""Dormand and Prince's Runge–Kutta method of order 5(4), in steps as long as the error allows.

Plain Python: run it as it is, and it computes with numbers. Under `wend.function` or `wend.grad`
the `while` becomes one node of the graph, however many steps the data ask for, and a gradient runs
back through exactly those steps.

References:
    J. R. Dormand and P. J. Prince: A family of embedded Runge–Kutta formulae.
    Journal of Computational and Applied Mathematics 6 (1980), 19–26.

    E. Hairer, S. P. Nørsett and G. Wanner: Solving Ordinary Differential Equations I, second
    edition, Springer 1993. Section II.4 has the control of the steps, II.5 the method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import wend

State = tuple[Any, ...]
Field = Callable[..., State]

# Each row leads to the place where the next slope is taken: so much of every slope before it.
# The last place is the solution of order 5 itself, so its slope is also the first of the next step.
STAGES: tuple[tuple[float, ...], ...] = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
# The solution of order 5 less that of order 4, which tells the error.
ERROR: tuple[float, ...] = (
    *(71 / 57600, 0, -71 / 16695, 71 / 1920),
    *(-17253 / 339200, 22 / 525, -1 / 40),
)

# A step that has to be shorter than this part of the way leads nowhere.
SHORTEST = 1e-14


def advance(
    field: Field, state: State, duration: Any, step: Any, tol: Any
) -> tuple[State, Any, Any]:
    """Solve `d state / dt = field(*state)`, from a state to where it is `duration` later.

    The result is differentiable in the state, and in all that `field` reads. It is not in
    `duration`: where time matters, make it a part of the state, with a slope of 1.

    Args:
        field: the components of a state → their slopes.
        state: the components, each a scalar.
        duration: how much later, zero or more.
        step: a first guess of how long a step may be. One so long that numbers overflow is found
            out, but the gradient is then NaN (0 · ∞).
        tol: the error that a step may make, in each component `tol * (1 + |component|)`.

    Returns:
        The state at the end, a good length for the step that follows, and the number of steps
        that were tried. A state that cannot be reached, for the steps to it get shorter and
        shorter, is NaN.

    Example:
        >>> from wend.cli.dopri import advance
        >>> (y,), _, tried = advance(lambda y: (-y,), (1.0,), 2.0, 0.1, 1e-8)
        >>> round(float(y), 8), tried
        (0.13533528, 18)
    """
    left, slope, tried = duration, field(*state), 0
    while left > 0.0 and step > SHORTEST * duration:
        # Equal parts of what is left: none is tiny, and the last one is all of it, so it lands
        # exactly on the end.
        h = left / np.ceil(left / step)
        # The length of a step is the method's choice, no part of the problem: whatever it is,
        # the solution is the same but for the error we tolerate. So the derivative of the
        # solution by way of h is noise of that size. To follow it would carry no information,
        # and would put the estimate of the error and the controller on the tape.
        h = wend.stop_gradient(h)
        there, slope_there, error = runge_kutta(field, state, slope, h)
        ratio = error_ratio(error, state, there, tol)
        tried += 1
        if ratio <= 1.0:
            left, state, slope = left - h, there, slope_there
            # (4.13): the step that would just do, with some caution.
            step = h * np.minimum(0.9 * np.maximum(ratio, 1e-9) ** -0.2, 5.0)
        else:
            # Half a step has 1/32 of the error. (Where this one overflowed, `ratio` is NaN.)
            step = 0.5 * h
    if left > 0.0:
        state = tuple(np.nan for _ in state)
    return state, step, tried


def runge_kutta(field: Field, state: State, slope: State, h: Any) -> tuple[State, State, State]:
    """One step of length h: the new state, the slope there, and an estimate of the error."""
    slopes, there = [slope], state
    for weights in STAGES:
        there = tuple(y + h * k for y, k in zip(state, weighted(weights, slopes), strict=True))
        slopes.append(field(*there))
    error = tuple(h * k for k in weighted(ERROR, slopes))
    return there, slopes[-1], error


def weighted(weights: Sequence[float], slopes: Sequence[State]) -> State:
    """The sum of slopes, each times its weight, component by component."""
    return tuple(
        sum(w * k for w, k in zip(weights, component, strict=True) if w)
        for component in zip(*slopes, strict=True)
    )


def error_ratio(error: State, old: State, new: State, tol: Any) -> Any:
    """How many times too large an error is: (4.10) and (4.11)."""
    scaled = [
        e / (tol + tol * np.maximum(abs(y), abs(z)))
        for e, y, z in zip(error, old, new, strict=True)
    ]
    return np.sqrt(sum(e * e for e in scaled) / len(scaled))
