"""Repeated elements: sizes that no memory holds, where NumPy's wrap."""

from __future__ import annotations

import numpy as np
import pytest

import wend


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("count", [2**61, 2**62, 2**63 - 1])
def test_repeats_beyond_64_bits_are_errors(count: int, backend: str) -> None:
    repeat = wend.function(lambda x, n: np.repeat(x, n).shape[0], backend=backend)
    with pytest.raises(MemoryError):
        repeat(np.arange(4.0), count)
    with pytest.raises(MemoryError):
        repeat(np.arange(4.0), np.full(4, count))


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_few_repeats_are_numpys(backend: str) -> None:
    repeat = wend.function(np.repeat, backend=backend)
    for x, counts in ((np.arange(3.0), np.array([2, 0, 3])), (np.zeros(0), 2), (np.arange(3), 0)):
        np.testing.assert_array_equal(repeat(x, counts), np.repeat(x, counts))
