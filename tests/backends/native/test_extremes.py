"""Where extreme elements are: the first of those that tie, the first NaN; in rows of any length."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.backends.native.test_sorting import SEEDS, compiled, numbers, sizes

from wend.backends.native.kinds import REGISTERS
from wend.ops import reducing

DTYPES = st.sampled_from(sorted(REGISTERS, key=str))


@given(
    dtype=DTYPES,
    length=st.integers(1, 20) | st.sampled_from([255, 256, 257, 600, 1000]),
    others=st.lists(st.integers(0, 3), max_size=2),
    axis=st.integers(0, 2),
    known=st.booleans(),
    seed=SEEDS,
)
@settings(max_examples=60, deadline=None)
def test_as_numpy(
    dtype: np.dtype, length: int, others: list[int], axis: int, known: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    axis %= len(others) + 1
    x = numbers(rng, dtype, sizes(length, others, axis))
    for op, function in ((reducing.argmax, np.argmax), (reducing.argmin, np.argmin)):
        found = compiled(op, [x], known, axis=axis, keepdims=False)
        np.testing.assert_array_equal(found, function(x, axis=axis))
