"""NumPy's Fourier loops in native code; that they are used is tests/numpy/test_fft.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
from wend.backends.native.rt import numpy_fft


@pytest.mark.parametrize("stem", numpy_fft.STEMS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_numpy_has_every_loop(stem: str, dtype: str) -> None:
    assert numpy_fft.is_available(stem, np.dtype(dtype))
    name = numpy_fft.name(stem, np.dtype(dtype))
    assert numpy_fft.is_transform(name)
    assert numpy_fft.address(name)


def test_what_is_no_loop_of_numpys_is_not_available() -> None:
    assert not numpy_fft.is_available("no such loop", np.dtype("f8"))
    assert not numpy_fft.is_available("fft", np.dtype("f2"))


def test_without_a_loop_the_kernel_runs(monkeypatch: Any) -> None:
    monkeypatch.setattr(numpy_fft, "is_available", lambda stem, dtype: False)
    x = np.arange(5.0)
    run = wend.function(lambda x: np.fft.rfft(x) * 3, backend="native")
    np.testing.assert_array_equal(run(x), np.fft.rfft(x) * 3)
    assert "runs in Python: rfft" in str(run.explain())
