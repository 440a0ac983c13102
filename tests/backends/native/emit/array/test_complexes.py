"""Complex numbers in native code: made, taken apart, added and multiplied as NumPy does."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.backends.native.emit.array.test_positions import check

SHAPES = st.sampled_from([(), (1,), (7,), (0, 3), (2, 3, 4)])


@given(
    dtype=st.sampled_from(["c16", "c8"]),
    shape=SHAPES,
    known=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=12, deadline=None)
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
