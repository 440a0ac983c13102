"""Every elementwise function's derivatives against mpmath: orders 1 to 3, in all modes.

Without `-m slow` a few points of each function are checked, in one mode an order.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.array_cases import SAMPLES
from tests.helpers.arrays import quiet, reach
from tests.helpers.exact import partials
from tests.helpers.exact_functions import MIN_POINTS, ROWS

RELATIVE = 1e-10
SAMPLED = 3  # points of a function, in the short form


def reverse(fun: Callable[..., Any], k: int) -> Callable[..., Any]:
    return wend.grad(lambda *xs: wnp.sum(fun(*xs)), argnums=k)


def forward(fun: Callable[..., Any], k: int) -> Callable[..., Any]:
    def derivative(*xs: Any) -> Any:
        tangents = tuple(np.full(np.shape(x), float(j == k)) for j, x in enumerate(xs))
        return wend.jvp(fun, xs, tangents)[1]

    return derivative


# The innermost comes first: reverse over reverse, forward over reverse, reverse over forward.
MODES = {
    1: [(reverse,), (forward,)],
    2: [(reverse, reverse), (reverse, forward), (forward, reverse)],
    3: [(reverse,) * 3, (reverse, forward, forward), (forward, reverse, reverse)],
}


def derivatives(size: int, *, is_short: bool, first: int) -> Iterator[tuple[Any, Any]]:
    """Ways to differentiate: (arguments by which, the innermost first; the mode of each)."""
    for order, modes in MODES.items():
        if is_short:
            ways = list(itertools.combinations_with_replacement(range(size), order))
            # Of third order a half: they take the most time.
            some = ways[first % 2 :: 2] if len(ways) > 3 else ways
            for turn, by in enumerate(some, first):
                yield by, modes[turn % len(modes)]
        else:
            yield from itertools.product(itertools.product(range(size), repeat=order), modes)


def sizes(exact: Callable[..., Any], count: int, order: int) -> np.ndarray:
    """The largest derivative of an order at each point, at least 1."""
    ways = itertools.combinations_with_replacement(range(count), order)
    found = [abs(exact(tuple(by.count(k) for k in range(count)))) for by in ways]
    return np.maximum(1, np.nan_to_num(np.max(found, axis=0), posinf=1.0))


def check(name: str, *, is_short: bool) -> None:
    """Compare all derivatives of an elementwise function at points, all at once."""
    row = ROWS[name]
    first = len(name)
    step = len(row.points) // SAMPLED if is_short else 1
    points = row.points[first % step :: step]
    xs = [np.array(x) for x in zip(*points, strict=True)]
    exact = partials(row.exact, points, is_singular=row.is_singular)
    wrong = []
    for by, mode in derivatives(len(xs), is_short=is_short, first=first):
        expected = exact(tuple(by.count(k) for k in range(len(xs))))
        derivative = row.function
        for way, k in zip(mode, by, strict=True):
            derivative = way(derivative, k)
        found = np.broadcast_to(quiet(functools.partial(derivative, *xs)), expected.shape)
        is_known = np.isfinite(expected) & (abs(expected) < 1e290)
        # Terms that cancel to 0 leave a last digit of theirs.
        floor = np.where(expected == 0, 1e-14 * sizes(exact, len(xs), len(by)), row.floor)
        with np.errstate(invalid="ignore"):
            error = abs(found - expected) - (RELATIVE * abs(expected) + floor)
        wrong += [
            f"{name} by {by}, {[way.__name__ for way in mode]}, at {points[i]}: "
            f"{found[i]}, not {expected[i]}"
            for i in np.flatnonzero(is_known & ~(error <= 0))
        ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.sampled(20)
@pytest.mark.parametrize("name", ROWS)
def test_derivatives_at_a_few_points(name: str) -> None:
    with wend.config(backend="numpy"):
        check(name, is_short=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_derivatives_at_many_points(name: str) -> None:
    with wend.config(backend="native"):
        check(name, is_short=False)


@pytest.mark.parametrize("name", ROWS)
def test_a_function_has_many_points(name: str) -> None:
    assert len(ROWS[name].points) >= MIN_POINTS


# The elementwise functions that give an operand, or whose rows have other names
SAME = {"polyadd": "add", "polysub": "subtract"}
SAME |= {"special.psi": "special.digamma", "deg2rad": "radians", "rad2deg": "degrees"}
OPERANDS = [np.array(x) for x in ([0.3, -0.7, 0.45], [0.6, 0.2, -0.9], [0.8, 0.55, 0.65])]


def is_differentiable_elementwise(function: Callable[..., Any], xs: list[np.ndarray]) -> bool:
    """Whether each element of the result is that of the elements, and has a derivative."""
    try:
        whole = function(*xs)
        if not isinstance(whole, np.ndarray) or whole.shape != xs[0].shape:
            return False
        if whole.dtype.kind != "f" or any(np.array_equal(whole, x) for x in xs):
            return False
        parts = [function(*(x[i : i + 1] for x in xs)) for i in range(len(xs[0]))]
        if not all(np.array_equal(part, whole[i : i + 1]) for i, part in enumerate(parts)):
            return False
        slopes = wend.grad(lambda *xs: wnp.sum(function(*xs)), argnums=tuple(range(len(xs))))(*xs)
    except Exception:  # it takes other arguments
        return False
    return any(np.any(slope) for slope in slopes)


@functools.cache
def needs_row(name: str) -> bool:
    """Return whether a function of one to three arrays is elementwise and has a derivative."""
    function = reach(wnp, name)
    operands = [
        [x + shift for x in OPERANDS[:count]]
        for count, shift in itertools.product((1, 2, 3), (0, 1))
    ]
    return any(
        quiet(functools.partial(is_differentiable_elementwise, function, xs)) for xs in operands
    )


def missing_rows(names: Collection[str]) -> set[str]:
    """Return the differentiable elementwise functions that none of these rows is of."""
    rows = [ROWS[name].function for name in names]
    missing = set()
    for name in {sample.name for sample in SAMPLES if not sample.name.startswith("_")}:
        function = reach(wnp, name)
        if name in names or SAME.get(name) in names or function in rows:
            continue
        if needs_row(name):
            missing.add(name)
    return missing


def test_every_differentiable_elementwise_function_has_a_row() -> None:
    assert not missing_rows(ROWS)


REMOVED = ["tanh", "special.digamma", "special.kl_div", "hypot", "clip", "arctan2", "fmod"]


def test_a_row_that_lacks_is_found() -> None:
    lacking = missing_rows(ROWS.keys() - REMOVED)
    assert set(REMOVED) | {"special.psi"} <= lacking


def test_a_derivative_that_deviates_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    row = ROWS["exp"]
    wrong = dataclasses.replace(row, function=lambda x: row.function(x * (1 + 1e-9)))
    monkeypatch.setitem(ROWS, "exp", wrong)
    with pytest.raises(AssertionError, match=r"exp by \(0,\)"):
        check("exp", is_short=True)
