"""Tails and densities of `scipy.stats`, beyond what `test_functions` compares."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, multivariate_normal

import wend


@pytest.mark.parametrize("df", [1, 2, 5, 40, 151])
def test_tails_of_chi_squared_distributions(df):
    x = np.array([-1.0, 0.0, 0.3, 4.0, 60.0, 300.0])
    result = wend.function(lambda x: chi2.sf(x, df))(x)
    np.testing.assert_allclose(result, chi2.sf(x, df), rtol=1e-9, atol=1e-15)


def test_an_indefinite_covariance():
    fun = wend.function(lambda x, c: multivariate_normal.logpdf(x, cov=c))
    with pytest.raises(ValueError, match="symmetric positive semidefinite"):
        fun(np.ones(2), np.diag([1.0, -1.0]))
