"""Dormand and Prince's Runge–Kutta method of order 5(4), in steps as long as the error allows.

One `wend.while_loop` takes a state from one time to another. How many steps that takes depends on
the state and on the equations' parameters; a gradient runs back through exactly those steps.

References:
    J. R. Dormand and P. J. Prince: A family of embedded Runge–Kutta formulae.
    Journal of Computational and Applied Mathematics 6 (1980), 19–26.

    E. Hairer, S. P. Nørsett and G. Wanner: Solving Ordinary Differential Equations I, second
    edition, Springer 1993. Section II.4 has the control of the steps, II.5 the method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import wend
import wend.numpy as wnp

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


class Walk(NamedTuple):
    """A state on its way through time: what the loop carries."""

    left: Any  # the time still to go
    step: Any  # the length of the step to try next
    state: State
    slope: State  # the field at `state`


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
        >>> (y,), _, steps = advance(lambda y: (-y,), (1.0,), 2.0, 0.1, 1e-8)
        >>> round(float(y), 8), int(steps)
        (0.13533528, 18)
    """
    shortest = SHORTEST * duration

    def is_under_way(walk: Walk) -> Any:
        return (walk.left > 0.0) & (walk.step > shortest)

    def go_on(walk: Walk) -> Walk:
        return attempt(field, walk, tol)

    walk, steps = wend.while_loop(
        is_under_way,
        go_on,
        Walk(duration, step, state, field(*state)),
        return_trips=True,
    )
    reached = tuple(wnp.where(walk.left > 0.0, wnp.nan, component) for component in walk.state)
    return reached, walk.step, steps


def attempt(field: Field, walk: Walk, tol: Any) -> Walk:
    """Try one step; take it if its error is small enough, or else prepare a shorter one."""
    # Equal parts of what is left: none is tiny, and the last one is all of it, so it lands
    # exactly on the end.
    h = walk.left / wnp.ceil(walk.left / walk.step)
    # The length of a step is the method's choice, no part of the problem: whatever it is, the
    # solution is the same but for the error we tolerate. So the derivative of the solution by way
    # of h is noise of that size. To follow it would carry no information, and would put the
    # estimate of the error and the controller on the tape, for every step.
    h = wend.stop_gradient(h)
    state, slope, error = runge_kutta(field, walk.state, walk.slope, h)
    ratio = error_ratio(error, walk.state, state, tol)
    # Hairer, Nørsett and Wanner's (4.13): the step that would just do, with some caution.
    better = h * wnp.clip(0.9 * ratio**-0.2, 0.2, 5.0)
    return wend.cond(  # type: ignore[no-any-return]
        ratio <= 1.0,
        lambda: Walk(walk.left - h, better, state, slope),
        # Half a step has 1/32 of the error. (And where the step has overflowed, `ratio` is NaN.)
        lambda: Walk(walk.left, 0.5 * h, walk.state, walk.slope),
    )


def runge_kutta(field: Field, state: State, slope: State, h: Any) -> tuple[State, State, State]:
    """One step of length h: the new state, the slope there, and an estimate of the error."""
    slopes, place = [slope], state
    for weights in STAGES:
        mean = weighted(weights, slopes)
        place = tuple(y + h * k for y, k in zip(state, mean, strict=True))
        slopes.append(field(*place))
    error = tuple(h * k for k in weighted(ERROR, slopes))
    return place, slopes[-1], error


def weighted(weights: Sequence[float], slopes: Sequence[State]) -> State:
    """The sum of slopes, each times its weight, component by component."""
    used = [(w, slope) for w, slope in zip(weights, slopes, strict=True) if w]
    first, *rest = (tuple(w * k for k in slope) for w, slope in used)
    for term in rest:
        first = tuple(a + b for a, b in zip(first, term, strict=True))
    return first


def error_ratio(error: State, old: State, new: State, tol: Any) -> Any:
    """How many times too large an error is: (4.10) and (4.11)."""
    scales = [tol + tol * wnp.maximum(abs(y), abs(z)) for y, z in zip(old, new, strict=True)]
    squares = [(e / scale) ** 2 for e, scale in zip(error, scales, strict=True)]
    return wnp.sqrt(sum(squares[1:], squares[0]) / len(squares))
