"""Dormand and Prince's Runge–Kutta method of order 5(4), its steps as long as the error allows.

One `wend.while_loop` carries the state from one time to another, in as many steps as the equations
ask for; a gradient runs back through the very steps that were taken.

References:
    J. R. Dormand, P. J. Prince: A family of embedded Runge–Kutta formulae. Journal of
    Computational and Applied Mathematics 6 (1980), 19–26.
    E. Hairer, S. P. Nørsett, G. Wanner: Solving Ordinary Differential Equations I, second
    edition, Springer 1993: section II.4 for the control of the steps, II.5 for the method.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any, NamedTuple

import wend
import wend.numpy as wnp

State = tuple[Any, ...]
Field = Callable[..., State]

# Where each slope after the first is taken: as far along the mean of the ones before it, by weight.
# The last place is the solution of order 5 itself, so its slope also begins the step that follows.
STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
# The solution of order 5 less the one of order 4.
ERROR = (71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


class Solution(NamedTuple):
    left: Any
    step: Any
    state: State
    slope: State


def advance(field, state, duration, step, tol):
    def is_under_way(now: Solution):
        return now.left > 0.0

    def attempt(now: Solution):
        h = now.left / wnp.ceil(now.left / now.step)
        h = wend.stop_gradient(h)
        state, slope, error = runge_kutta(field, now.state, now.slope, h)
        ratio = wend.stop_gradient(error_ratio(error, now.state, state, tol))
        accepted = ratio <= 1.0
        factor = 0.9 * (ratio + 1e-10) ** -0.2
        factor = wnp.minimum(wnp.maximum(factor, 0.2), 5.0)
        if MODE == "where":
            left, state, slope = _where(accepted, (now.left - h, state, slope), (now.left, now.state, now.slope))
        else:
            left, state, slope = wend.cond(accepted, lambda: (now.left - h, state, slope), lambda: (now.left, now.state, now.slope))
        return Solution(left, h * factor, state, slope)

    start = Solution(duration, step, state, field(*state))
    end, trips = wend.while_loop(is_under_way, attempt, start, return_trips=True)
    return end.state, end.step, trips

MODE = "where"
def _where(p, a, b):
    import wend.base.trees as t
    x, d = t.flatten(a)
    y, _ = t.flatten(b)
    return t.unflatten(d, [wnp.where(p, i, j) for i, j in zip(x, y)])

def error_ratio(error, old, new, tol):
    s = 0.0
    for e, a, b in zip(error, old, new):
        s = s + (e / (tol + tol * wnp.maximum(abs(a), abs(b))))**2
    return wnp.sqrt(s * 0.5)

def weighted(weights, values):
    terms = [w * v for w, v in zip(weights, values) if w]
    return sum(terms[1:], terms[0])

def runge_kutta(field, state, slope, h):
    slopes = [slope]
    for row in STAGES:
        point = tuple(y + h * weighted(row, ks) for y, ks in zip(state, zip(*slopes)))
        slopes.append(field(*point))
    error = tuple(h * weighted(ERROR, ks) for ks in zip(*slopes))
    return point, slopes[-1], error
