"""The Runge–Kutta method of order 5(4) by Dormand and Prince, with adaptive step sizes.

It is plain Python and runs as such. Under `wend.function` or `wend.grad` the `while` becomes one
node of the graph, however many steps the data require, and a gradient runs back through exactly
those steps.

References:
    J. R. Dormand and P. J. Prince: A family of embedded Runge–Kutta formulae.
    Journal of Computational and Applied Mathematics 6 (1980), 19–26.

    E. Hairer, S. P. Nørsett and G. Wanner: Solving Ordinary Differential Equations I, second
    edition, Springer 1993. Section II.4 has the step size control, II.5 the method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import wend

State = tuple[Any, ...]
Field = Callable[..., State]

# The coefficients a_ij: each row has the weights of the previous slopes at the next stage. The last
# stage is the solution of order 5 itself, so its slope is also the first one of the next step.
STAGES: tuple[tuple[float, ...], ...] = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
# Weights of the error estimate: the solution of order 5 minus that of order 4.
ERROR: tuple[float, ...] = (
    *(71 / 57600, 0, -71 / 16695, 71 / 1920),
    *(-17253 / 339200, 22 / 525, -1 / 40),
)

# The solver gives up when a step falls below this fraction of the duration.
MIN_STEP_FRACTION = 1e-14


def advance(
    field: Field, state: State, duration: Any, step: Any, tol: Any
) -> tuple[State, Any, Any]:
    """Solve `d state / dt = field(*state)` over a time `duration`.

    The result is differentiable in the state and in all that `field` reads, but not in `duration`.
    If time matters, make it a component of the state with slope 1.

    Args:
        field: maps the components of a state to their slopes.
        state: the components, each a scalar.
        duration: the time to integrate over, zero or more.
        step: an initial step size. A step so long that numbers overflow is rejected, but the
            gradient is then NaN (0 · ∞).
        tol: the error tolerance of a step, `tol * (1 + |component|)` for each component.

    Returns:
        The final state, a suitable size for the next step, and the number of steps tried. The state
        is NaN if it cannot be reached because the steps become too short.

    Example:
        >>> from wend.cli.dopri import advance
        >>> (y,), _, tried = advance(lambda y: (-y,), (1.0,), 2.0, 0.1, 1e-8)
        >>> round(float(y), 8), tried
        (0.13533528, 18)
    """
    remaining, slope, tried = duration, field(*state), 0
    while remaining > 0.0 and step > MIN_STEP_FRACTION * duration:
        # Divide the remaining time into equal steps: none is tiny, and the last one ends exactly
        # at the end.
        h = remaining / np.ceil(remaining / step)
        # The step size is chosen by the method and is not part of the problem: the solution
        # depends on it only within the tolerated error, so the derivative through h is noise of
        # that size. Following it would carry no information, and would put the error estimate
        # and the controller on the tape.
        h = wend.stop_gradient(h)
        proposal, proposal_slope, error = runge_kutta(field, state, slope, h)
        ratio = error_ratio(error, state, proposal, tol)
        tried += 1
        if ratio <= 1.0:
            remaining, state, slope = remaining - h, proposal, proposal_slope
            # (4.13): the largest acceptable step, with a safety factor.
            step = h * np.minimum(0.9 * np.maximum(ratio, 1e-9) ** -0.2, 5.0)
        else:
            # Half a step has 1/32 of the error. If this one overflowed, `ratio` is NaN.
            step = 0.5 * h
    if remaining > 0.0:
        state = tuple(np.nan for _ in state)
    return state, step, tried


def runge_kutta(field: Field, state: State, slope: State, h: Any) -> tuple[State, State, State]:
    """Take one step of size h; return the new state, its slope, and an error estimate."""
    slopes, proposal = [slope], state
    for weights in STAGES:
        proposal = tuple(y + h * k for y, k in zip(state, weighted(weights, slopes), strict=True))
        slopes.append(field(*proposal))
    error = tuple(h * k for k in weighted(ERROR, slopes))
    return proposal, slopes[-1], error


def weighted(weights: Sequence[float], slopes: Sequence[State]) -> State:
    """Return the weighted sum of slopes, component by component."""
    return tuple(
        sum(w * k for w, k in zip(weights, component, strict=True) if w)
        for component in zip(*slopes, strict=True)
    )


def error_ratio(error: State, old: State, new: State, tol: Any) -> Any:
    """Return the ratio of an error to its tolerance, by (4.10) and (4.11)."""
    scaled = [
        e / (tol + tol * np.maximum(abs(y), abs(z)))
        for e, y, z in zip(error, old, new, strict=True)
    ]
    return np.sqrt(sum(e * e for e in scaled) / len(scaled))
