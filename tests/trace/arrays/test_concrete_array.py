"""Arrays that are made and known in captured code are NumPy's, in every place of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend

CALLS: list[Callable[[Any], Any]] = [
    lambda x: np.mean(x, where=np.array([True, False, True])),
    lambda x: np.nanmean(x, where=np.array([True, False, True])),
    lambda x: np.var(x, where=np.array([True, False, True]), mean=np.array(1.0)),
    lambda x: x + np.sum(np.ones(3), where=np.array([True, False, True])),
    lambda x: x + np.add.reduce(np.ones(3), where=np.array([True, False, True])),
    lambda x: x + np.max(np.ones(3), initial=np.array(7.0), where=np.array([False, True, False])),
    lambda x: x + np.add(1.0, 2.0, out=np.zeros(3), where=np.array([True, False, True])),
    lambda x: np.add(x, 2.0, out=np.zeros(3), where=np.array([True, False, True])),
    lambda x: x + np.clip(5.0, np.zeros(3), np.array([1.0, 2.0, 9.0]), out=np.zeros(3)),
    lambda x: x + np.add.reduceat(np.arange(3.0), np.array([0, 1, 2])),
]


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("call", CALLS, ids=range(len(CALLS)))
def test_known_arrays_are_arguments_by_name(call: Callable[[Any], Any], backend: str) -> None:
    x = np.array([1.0, 2.5, -3.0])
    result, expected = wend.function(call, backend=backend)(x), call(x)
    np.testing.assert_allclose(result, expected, rtol=1e-12)
