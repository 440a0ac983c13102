"""Distributions and moments of `scipy.stats`, in functions of wend."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from wend.capture.stage.branches import if_value
from wend.eager import raising
from wend.eager.dispatch import Staged
from wend.numpy import elementwise as ew
from wend.numpy import linalg, matrices, reducing, shaping, special
from wend.trace.recording.recording import current

_MAX_DEGREES = 200
_SINGULAR = "When `allow_singular is False`, the input matrix must be symmetric positive definite."

_INDEFINITE = "The input matrix must be symmetric positive semidefinite."


def takes_degrees(df: Any) -> bool:
    """Return whether the tail of a chi-squared distribution is known for its degrees of freedom."""
    is_known = isinstance(df, (int, np.integer)) and not isinstance(df, (bool, Staged))
    return is_known and 0 < df <= _MAX_DEGREES


def chi2_sf(x: Any, df: int) -> Any:
    """Return the upper tail of the chi-squared distribution: a finite sum for whole degrees."""
    half = ew.maximum(x, 0.0) / 2.0
    if df % 2:
        tail = special.erfc(ew.sqrt(half))
        powers = [(k + 0.5, math.gamma(k + 1.5)) for k in range(df // 2)]
    else:
        tail = 0.0
        powers = [(float(k), math.gamma(k + 1.0)) for k in range(df // 2)]
    terms = [half**power / gamma for power, gamma in powers]
    return tail + ew.exp(-half) * sum(terms) if terms else tail


def skew(a: Any, axis: int | None = 0) -> Any:
    """Return the skewness along an axis; NaN where all elements are nearly equal."""
    return _standardized_moment(a, axis, 3)


def kurtosis(a: Any, axis: int | None = 0) -> Any:
    """Return the excess kurtosis along an axis; NaN where all elements are nearly equal."""
    return _standardized_moment(a, axis, 4) - 3.0


def entropy(pk: Any, qk: Any = None, base: float | None = None, axis: int = 0) -> Any:
    """Return the entropy of probabilities, or their divergence from others; both are normalized."""
    pk = pk / reducing.sum(pk, axis=axis, keepdims=True)
    if qk is None:
        terms = -special.xlogy(pk, pk)
    else:
        qk = qk / reducing.sum(qk, axis=axis, keepdims=True)
        terms = special.xlogy(pk, pk) - special.xlogy(pk, qk)
    total = reducing.sum(terms, axis=axis)
    return total if base is None else total / math.log(base)


def _standardized_moment(a: Any, axis: int | None, order: int) -> Any:
    mean = reducing.mean(a, axis=axis, keepdims=True)
    second = reducing.mean((a - mean) ** 2, axis=axis)
    moment = reducing.mean((a - mean) ** order, axis=axis)
    is_constant = second <= (np.finfo(float).eps * reducing.mean(a, axis=axis)) ** 2
    return ew.where(is_constant, np.nan, moment / ew.where(is_constant, 1.0, second) ** (order / 2))


def multivariate_logpdf(
    x: Any, mean: Any = 0.0, cov: Any = 1.0, allow_singular: bool = False
) -> Any:
    """Return the log-density of a normal distribution at one point.

    A covariance that is singular keeps the directions in which it is not, if that is allowed.
    """
    count = _count(x)
    offset = shaping.reshape(x - mean, (count,))
    lower = matrices.tril(shaping.reshape(cov * np.ones((1, 1)), (count, count)))
    matrix = lower + shaping.matrix_transpose(matrices.tril(lower, -1))  # which SciPy reads
    values = linalg.eigvalsh(matrix)
    smallest = 1e6 * np.finfo(float).eps * reducing.max(ew.abs(values))
    is_singular = reducing.any(values <= smallest)
    _raise_if(reducing.min(values) < -smallest, ValueError, _INDEFINITE)
    if not allow_singular:
        _raise_if(is_singular, np.linalg.LinAlgError, _SINGULAR)
        matrix = ew.where(is_singular, np.eye(count), matrix)  # `solve` raises another error

    def regular() -> Any:
        squares = offset @ linalg.solve(matrix, offset)
        return -0.5 * (count * math.log(2 * math.pi) + linalg.slogdet(matrix)[1] + squares)

    def singular() -> Any:
        scales, directions = linalg.eigh(matrix)
        is_kept = scales > smallest
        scales = ew.where(is_kept, scales, 1.0)
        coordinates = offset @ directions
        parts = ew.where(is_kept, coordinates, 0.0)
        outside = ew.sqrt(reducing.sum(ew.where(is_kept, 0.0, coordinates) ** 2))
        rank = reducing.sum(ew.where(is_kept, 1.0, 0.0))
        logs = reducing.sum(ew.log(scales)) + rank * math.log(2 * math.pi)
        density = -0.5 * (logs + reducing.sum(parts**2 / scales))
        return ew.where(outside < 1e3 * smallest, density, -np.inf)

    return if_value(is_singular, singular, regular, None) if allow_singular else regular()


def _raise_if(test: Any, error: type[Exception], text: str) -> None:
    """Raise an error in the runs in which a test holds."""
    recording = current()
    if recording is not None and not raising.guard(
        lambda: test, "multivariate_normal", error, text
    ):
        recording.emit_raise(error, text, test, [])


def _count(x: Any) -> int:
    return int(math.prod(shaping.shape(x)))


def takes_point(x: Any, mean: Any = 0.0, cov: Any = 1.0) -> bool:
    """Return whether `multivariate_logpdf` takes such arguments: one point."""
    shapes = [shaping.shape(part) for part in (x, mean, cov)]
    if not all(isinstance(size, int) for shape in shapes for size in shape):
        return False
    count = max(1, *(size for size in (*shapes[1], *shapes[2]))) if any(shapes[1:]) else 1
    return len(shapes[0]) < 2 and math.prod(shapes[0]) == count


CHI2: Mapping[str, Callable[..., Any]] = {
    "sf": chi2_sf,
    "cdf": lambda x, df: 1.0 - chi2_sf(x, df),
}
MULTIVARIATE_NORMAL: Mapping[str, Callable[..., Any]] = {
    "logpdf": multivariate_logpdf,
    "pdf": lambda *args, **options: ew.exp(multivariate_logpdf(*args, **options)),
}
