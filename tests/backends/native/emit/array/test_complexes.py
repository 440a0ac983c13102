"""Complex numbers in native code: made, taken apart, added and multiplied as NumPy does."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.backends.native.emit.array.test_positions import check
from tests.helpers.graphs import traced
from tests.helpers.shares import sized

import wend
from wend.backends.native.backend import BACKEND

SHAPES = st.sampled_from([(), (1,), (7,), (0, 3), (2, 3, 4)])


@given(
    dtype=st.sampled_from(["c16", "c8"]),
    shape=SHAPES,
    known=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=sized(5, 12), deadline=None)
def test_as_the_interpreter(dtype: str, shape: tuple[int, ...], known: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)

    def numbers() -> np.ndarray:
        odd = np.array([0.0, -0.0, np.inf, np.nan, 1.0, -2.5])
        parts = rng.standard_normal((2, *shape))
        parts = np.where(rng.random(parts.shape) < 0.2, rng.choice(odd, parts.shape), parts)
        found = np.empty(shape, dtype)
        found.real, found.imag = parts
        return found

    x, y = numbers(), numbers()
    for name in ("real", "imag", "conj", "complex_abs", "neg"):
        check(name, [x], known)
    for name in ("add", "sub", "mul"):
        check(name, [x, y], known)
    check("complex", [x.real.copy(), x.imag.copy()], known)


def test_elements_in_loops_take_no_memory() -> None:
    """A complex number that is read or written, and goes nowhere else, lies on the stack."""

    def butterflies(x: Any, w: Any) -> Any:
        x = x.copy()
        for k in range(len(x) // 2):
            u, v = x[k], x[-1 - k] * w
            x[k] = u + v
            x[-1 - k] = abs(u - v) - v.conjugate() * u.imag
        return x

    for dtype in ("c16", "c8"):
        x = np.arange(1, 11).astype(dtype) * np.dtype(dtype).type(0.5 - 1j)
        w = x.dtype.type(0.6 + 0.8j)
        text = BACKEND.text(traced(butterflies, x, w, optimize=True))
        assert text.count("= call noalias ptr @wend.take") == 1
        np.testing.assert_allclose(wend.function(butterflies)(x, w), butterflies(x, w), rtol=1e-6)


def test_numbers_that_leave_a_trip() -> None:
    """They are carried, pushed, chosen by branches and returned from where they lie."""

    def program(x: Any) -> Any:
        last, items, total = x[0], [], 0j
        for k in range(len(x)):
            number = x[k]
            items.append(number)
            if number.real > 1.0:
                last = number
            total = total + number * last
        return last, np.array(items)[::-1], total, x[1]

    x = np.arange(6) * (0.5 - 1j)
    for backend in ("native", "numpy"):
        found = wend.function(program, backend=backend)(x)
        for y, expected in zip(found, program(x), strict=True):
            np.testing.assert_array_equal(y, expected)
