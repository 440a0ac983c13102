"""SciPy's functions in captured code: its values, and derivatives."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg as sl
import scipy.spatial.distance as sd
import scipy.special as ss
from scipy.stats import chi2, entropy, kurtosis, norm, skew
from scipy.stats import multivariate_normal as mvn

import wend

A = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])
B = np.array([1.0, 2.0, 3.0])
FUNCTIONS = {
    "logsumexp": lambda a, b: ss.logsumexp(b) + ss.logsumexp(a, axis=1, keepdims=True),
    "softmax": lambda a, b: ss.softmax(b) + ss.log_softmax(b),
    "ufuncs": lambda a, b: ss.expit(b) + ss.erf(b) + ss.gammaln(b) + ss.polygamma(1, b),
    "solve": lambda a, b: sl.solve(a, b) + sl.solve(a, b, transposed=True),
    "cho_solve": lambda a, b: sl.cho_solve(sl.cho_factor(a), b),
    # The other triangle of the result is that of the operand.
    "cho_factor": lambda a, b: sl.cho_factor(a + np.tril(np.outer(b, b), -1))[0],
    "cho_factor_lower": lambda a, b: sl.cho_factor(a + np.triu(np.outer(b, b), 1), lower=True)[0],
    "cho_solve_lower": lambda a, b: sl.cho_solve(sl.cho_factor(a, lower=True), b),
    "upper": lambda a, b: sl.solve_triangular(a, b),
    "lower": lambda a, b: sl.solve_triangular(a, b, lower=True, check_finite=False),
    "transposed": lambda a, b: sl.solve_triangular(a, b, trans="T"),
    "unit_diagonal": lambda a, b: sl.solve_triangular(a, b, unit_diagonal=True, lower=True),
    "cholesky": lambda a, b: sl.cholesky(a) + sl.cholesky(a, lower=True),
    "det_inv_norm": lambda a, b: sl.det(a) * sl.inv(a) + sl.norm(b) + sl.norm(a, "fro"),
    "eigh": lambda a, b: sl.eigh(a)[0] + sl.eigh(a, eigvals_only=True) + sl.eigvalsh(a),
    "normal": lambda a, b: norm.logpdf(b).sum() + norm.pdf(b, 1.0, scale=b[0] + 1),
    "normal_tails": lambda a, b: norm.cdf(b) + norm.sf(b) + norm.logcdf(b) + norm.logsf(b, 0.5),
    "svd": lambda a, b: sl.svd(a, lapack_driver="gesvd")[1] + sl.svdvals(a),
    "expm": lambda a, b: sl.expm(a) + sl.expm(a / 100) + sl.expm(3 * a) / 1e5,
    "distances": lambda a, b: sd.pdist(a) + sd.pdist(a * b, "sqeuclidean"),
    "distances_of_two": lambda a, b: sd.cdist(a, a + b) + sd.cdist(a, b * a, metric="sqeuclidean"),
    "chi2": lambda a, b: sum(chi2.sf(b, k) + chi2.cdf(b, k) * k for k in (1, 2, 3, 6, 7)),
    "multivariate": lambda a, b: mvn.logpdf(b, b / 2, a) + mvn.pdf(b, cov=a) + mvn.logpdf(b[0]),
    "singular": lambda a, b: mvn.logpdf(b, b / 2, a, True),
    "moments": lambda a, b: skew(a, axis=1) + skew(b) + kurtosis(a) * kurtosis(a, axis=None),
    "lyapunov": lambda a, b: sl.solve_discrete_lyapunov(a / 8, a) + sl.eig(a)[0].real.sum(),
    "eigenvalues": lambda a, b: sl.eigvals(a).real.sum() + sl.eig(a, right=False).real.sum(),
    "block_diag": lambda a, b: (
        sl.block_diag(a, b, 2 * b[:1], 3) @ np.arange(8.0)
        + sl.block_diag([[b[0], 1], [2, b[1]]]).sum()
    ),
    "entropy": lambda a, b: entropy(b) + entropy(a + 1, b[:, None] + a, base=2, axis=1),
    "square": lambda a, b: sd.squareform(sd.squareform(b + 1) * 2) + sd.squareform(b),
    "normal_quantile": lambda a, b: norm.ppf(b / 10, loc=2.0),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_derivatives(name):
    fun = FUNCTIONS[name]
    for backend in ("native", "numpy"):
        compiled = wend.function(fun, backend=backend)
        np.testing.assert_allclose(compiled(A, B), fun(A, B), rtol=1e-12)
    weights = np.arange(1.0, np.size(fun(A, B)) + 1).reshape(np.shape(fun(A, B)))

    def total(a, b):
        return np.sum(fun(a, b) * weights)

    slopes = wend.grad(total, (0, 1))(A, B)
    rng = np.random.default_rng(0)
    for _ in range(3):
        da, db, step = rng.normal(size=A.shape), rng.normal(size=B.shape), 1e-5
        ends = [total(A + s * step * da, B + s * step * db) for s in (1, -1)]
        slope = np.sum(slopes[0] * da) + np.sum(slopes[1] * db)
        assert slope == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6, abs=1e-7)


def test_options_that_are_not_recorded_are_refused():
    with pytest.raises(wend.WendError, match=r"solve\(…, assume_a='pos'\) at .* is not recorded"):
        wend.function(lambda a, b: sl.solve(a, b, assume_a="pos"))(A, B)


def test_calls_without_traced_values_are_scipys():
    fixed = wend.function(lambda x: x * sl.solve(np.eye(2), np.ones(2), assume_a="pos"))
    np.testing.assert_array_equal(fixed(2.0), [2.0, 2.0])


def test_singular_covariances():
    flat = np.diag([2.0, 0.0, 1.0])
    for backend in ("native", "numpy"):
        allowed = wend.function(lambda b, c: mvn.logpdf(b, cov=c, allow_singular=True))
        np.testing.assert_allclose(
            allowed(B, flat), mvn.logpdf(B, cov=flat, allow_singular=True), rtol=1e-12
        )
        refused = wend.function(lambda b, c: mvn.logpdf(b, cov=c), backend=backend)
        with pytest.raises(np.linalg.LinAlgError, match="allow_singular is False"):
            refused(B, flat)


@pytest.mark.parametrize(
    "fun",
    [
        lambda a, b: sd.pdist(a, "cosine"),
        lambda a, b: chi2.sf(b, b[0]),
        lambda a, b: skew(a, bias=False),
        lambda a, b: mvn.logpdf(a, cov=a),
    ],
)
def test_what_is_not_taken_is_refused(fun):
    with pytest.raises(wend.WendError, match="is not recorded with this option"):
        wend.function(fun)(A, B)
