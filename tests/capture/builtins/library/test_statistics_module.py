"""Functions of `statistics` for traced numbers, beside Python's."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers.drawn import few

import wend
from wend.base.errors import UnsupportedError
from wend.testing import check_grads

NAMES = "mean fmean median variance pvariance stdev pstdev".split()
NUMBERS = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NAMES)
@few
@given(numbers=NUMBERS)
def test_of_floats(name, numbers):
    function = getattr(statistics, name)
    for convert in (list, np.array, lambda xs: np.array(xs, np.float32)):
        data = convert(numbers)
        if len(numbers) < 2 and name in ("variance", "stdev"):
            with pytest.raises(statistics.StatisticsError, match="two data points"):
                wend.function(lambda data: function(data))(data)
            continue
        result = wend.function(lambda data: function(data))(data)
        np.testing.assert_allclose(result, float(function(data)), rtol=1e-5, atol=1e-5)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NAMES)
def test_gradients(name):
    numbers = (1.0, 4.0, 2.5, 7.0)
    check_grads(lambda *xs: getattr(statistics, name)(xs), numbers, order=2)


@pytest.mark.parametrize("name", NAMES)
def test_of_whole_numbers(name):
    compiled = wend.function(lambda xs: getattr(statistics, name)(xs))
    expected = getattr(statistics, name)([1, 2, 4])
    assert compiled([1, 2, 4]) == pytest.approx(expected)
    if name == "fmean":
        assert compiled(np.array([1, 2, 4])) == pytest.approx(expected)
    else:
        with pytest.raises(UnsupportedError, match=r"float\(x\)"):
            compiled(np.array([1, 2, 4]))
