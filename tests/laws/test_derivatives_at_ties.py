"""Where NumPy's function is smooth, so is ours: derivatives of every function at ties and zeros.

Each public function is called on arrays whose elements are all equal, moved along a random line.
NumPy's values left and right of the tie tell whether the function is smooth there, and what its
first two derivatives are. Where it is not smooth, derivatives are never NaN, except in the rows of
docs/conventions.md that say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.array_cases import SAMPLES
from tests.helpers.arrays import Sample, quiet

# Their sizes depend on values, or they need a number before the run.
SIZED_BY_VALUES = {
    *("arange", "compress", "extract", "repeat", "unique"),
    *("unique_all", "unique_counts", "unique_inverse", "unique_values"),
}
# The rows of docs/conventions.md: no derivative (NaN), or an infinite one.
SIZED_BY_THE_RUN = {"linalg.lstsq"}  # as many residuals as the rank allows
UNDEFINED = {"std", "nanstd", "angle", "arctan2", "atan2", "linalg.qr"}
INFINITE = {
    *("sqrt", "cbrt", "special.xlogy", "special.entr", "arccosh", "acosh"),
    *("arcsin", "asin", "arccos", "acos"),
}
STEP = 1e-3
ROWS = [s for s in SAMPLES if s.traced and s.smooth and s.name not in SIZED_BY_VALUES]
TIES = {"zeros": 0.0, "equal": 0.7, "ones": 1.0}


def is_moved(x: Any) -> bool:
    return np.asarray(x).dtype.kind in "fc"


def along(sample: Sample, function: Any, tie: float, m: Any, seeds: Sequence[int] = (7, 8)) -> Any:
    """The function of one number that is a weighted sum of all results along a line."""
    rngs = [np.random.default_rng(seed) for seed in seeds]
    at = [np.full_like(x, tie) if is_moved(x) else x for x in sample.arrays]
    directions = [
        sum(rng.standard_normal(np.shape(x)) for rng in rngs) if is_moved(x) else None for x in at
    ]

    def line(s: Any) -> Any:
        args = [x if d is None else x + s * d for x, d in zip(at, directions, strict=True)]
        total = 0.0 * s
        for k, x in enumerate(sample.run(function, *args)):
            if not is_moved(x):
                continue
            shape = () if sample.name in SIZED_BY_THE_RUN else np.shape(x)
            weights = np.random.default_rng(k).standard_normal((2, *shape))
            total = total + m.sum(m.real(x) * weights[0]) + m.sum(m.imag(x) * weights[1])
        return total

    return line


def slopes(line: Any) -> tuple[float | None, float | None]:
    """The first two derivatives at 0 from values; None where the two sides differ."""
    h = STEP
    y = {k: float(line(k * h)) for k in range(-3, 4)}
    if not np.isfinite([*y.values()]).all():
        return None, None
    size = max(map(abs, y.values())) + 1e-3
    changes = [abs(y[k] - y[0]) for k in y]
    if max(changes[2], changes[4]) > 0.5 * max(changes) + 1e-9 * size:
        return None, None  # a jump, or a root
    first = [(-11 * y[0] + 18 * y[d] - 9 * y[2 * d] + 2 * y[3 * d]) / (6 * h * d) for d in (1, -1)]
    if abs(first[0] - first[1]) > 1e-5 * (size + abs(first[0])):
        return None, None
    second = [(2 * y[0] - 5 * y[d] + 4 * y[2 * d] - y[3 * d]) / h**2 for d in (1, -1)]
    central = (y[1] - 2 * y[0] + y[-1]) / h**2
    is_smooth = abs(second[0] - second[1]) <= 2e-2 * (size + abs(second[0]))
    return (first[0] + first[1]) / 2, central if is_smooth else None


def expected_slopes(sample: Sample, tie: float) -> tuple[float | None, float | None]:
    """The same where derivatives along two lines add up to that along their sum."""
    lines = [along(sample, sample.original, tie, np, seeds) for seeds in ((7,), (8,), (7, 8))]
    (one, _), (other, _), (both, second) = map(slopes, lines)
    if one is None or other is None or both is None:
        return None, None
    if abs(one + other - both) > 1e-5 * (abs(one) + abs(other) + 1):
        return None, None
    return both, second


@pytest.mark.sampled(40)
@pytest.mark.parametrize("tie", ["equal", "zeros", pytest.param("ones", marks=pytest.mark.slow)])
@pytest.mark.parametrize("sample", ROWS, ids=str)
def test_smooth_functions_are_smooth_at_ties(sample: Sample, tie: str) -> None:
    if not any(map(is_moved, sample.arrays)):
        return  # nothing to differentiate
    try:
        expected = quiet(lambda: expected_slopes(sample, TIES[tie]))
    except (np.linalg.LinAlgError, ValueError, TypeError, ZeroDivisionError):
        return
    line = along(sample, sample.public, TIES[tie], wnp)
    with wend.config(backend="numpy"):
        try:
            found = quiet(lambda: wend.jvp(wend.grad(line), (0.0,), (1.0,)))
        except np.linalg.LinAlgError:
            return
    is_finite = np.isfinite(quiet(lambda: along(sample, sample.original, TIES[tie], np)(0.0)))
    if is_finite and sample.name not in UNDEFINED | INFINITE:
        assert not np.isnan(found).any()
    for order, (a, b) in enumerate(zip(found, expected, strict=True), start=1):
        if b is not None and sample.name not in UNDEFINED:
            assert abs(a - b) <= 10 ** (2 * order - 5) * (1 + abs(b)), f"order {order}"
