"""Polynomials as vectors of coefficients, highest power first."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from wend.base.errors import UnsupportedError, explain
from wend.base.refusals import refusal
from wend.base.source import at, user_source
from wend.eager.promotion import cast
from wend.ir.dtypes import FLOAT64
from wend.numpy import decompositions, reducing, shaping
from wend.numpy import elementwise as ew
from wend.numpy.calculus import convolve
from wend.numpy.creating import zeros_like
from wend.numpy.decompositions import lstsq
from wend.numpy.joining import atleast_1d
from wend.numpy.matrices import vander
from wend.numpy.operands import all_staged, dtype_of, staged, strong
from wend.numpy.public import implements
from wend.numpy.shaping import known_size


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    """Evaluate a polynomial at specific values, by Horner's rule; see `numpy.polyval`."""
    x, p = strong(x), atleast_1d(staged(p))
    value: Any = zeros_like(x)
    for k in range(known_size(p, 0, "polyval")):
        value = value * x + p[k]
    return value


@implements(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Any:
    """Find the sum of two polynomials; see `numpy.polyadd`."""
    first, second = _aligned(a1, a2)
    return first + second


@implements(np.polysub)
def polysub(a1: Any, a2: Any) -> Any:
    """Return the difference of two polynomials; see `numpy.polysub`."""
    first, second = _aligned(a1, a2)
    return first - second


def _aligned(a1: Any, a2: Any) -> list[Any]:
    rows = [atleast_1d(x) for x in all_staged((a1, a2))]
    sizes = [known_size(x, 0, "the sum of polynomials") for x in rows]
    return [shaping.pad(x, (max(sizes) - n, 0)) for x, n in zip(rows, sizes, strict=True)]


@implements(np.polymul)
def polymul(a1: Any, a2: Any) -> Any:
    """Find the product of two polynomials; see `numpy.polymul`.

    Leading zeros of traced polynomials are not trimmed.
    """
    return convolve(*(_nonempty(atleast_1d(staged(x))) for x in (a1, a2)))


def _nonempty(p: Any) -> Any:
    """Return the coefficients; those of the polynomial 0 if there are none."""
    return p if known_size(p, 0, "polymul") else shaping.pad(p, (1, 0))


@implements(np.polyfit)
def polyfit(
    x: Any,
    y: Any,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: Any = None,
    cov: bool = False,
) -> Any:
    """Fit a polynomial by least squares; see `numpy.polyfit`.

    Of a fit that is not unique, one of least norm is returned, without NumPy's warning.
    """
    x, y = all_staged((x, y))
    known = (np.arange(float(known_size(x, 0, "polyfit"))), np.zeros(shaping.shape(y)))
    if full or cov or np.ndim(deg) != 0:
        what = "np.polyfit with full, cov or a list of degrees"
        cure = "fit by np.linalg.lstsq on np.vander(x, deg + 1)."
        raise refusal(
            UnsupportedError(explain(f"{what}{at(user_source())} is not traced.", cure=cure))
        )
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.polyfit(*known, deg)  # NumPy's errors
    x, y = strong(x) + 0.0, strong(y) + 0.0
    left = vander(x, deg + 1)
    if w is not None:
        w = staged(w) + 0.0
        left = left * w[:, None]
        y = y * (w[:, None] if shaping.rank_of(y) == 2 else w)
    scale = ew.sqrt(reducing.sum(left * left, axis=0))
    limit = known[0].size * np.finfo(np.float64).eps if rcond is None else rcond
    fitted = lstsq(left / scale, y, limit)[0]
    return (
        shaping.matrix_transpose(shaping.matrix_transpose(fitted) / scale)
        if (shaping.rank_of(y) == 2)
        else fitted / scale
    )


@implements(np.poly)
def poly(seq_of_zeros: Any) -> Any:
    """Find the coefficients of a polynomial with given roots; see `numpy.poly`.

    For a matrix of real numbers, of its characteristic polynomial.

    Raises:
        UnsupportedError: the roots are complex: only the run knows whether NumPy's result is real.
    """
    roots = atleast_1d(staged(seq_of_zeros))
    shape = shaping.shape(roots)
    dtype = dtype_of(roots)
    if dtype.kind == "c":
        raise refusal(
            UnsupportedError(
                explain(
                    f"np.poly{at(user_source())} of complex numbers gives real coefficients if "
                    "the roots are pairs of conjugates, which only the run knows.",
                    cure="multiply in a loop: c = np.convolve(c, np.array([1, -root])).",
                )
            )
        )
    is_matrix = len(shape) == 2 and shape[0] == shape[1] != 0
    if is_matrix:
        matrix, roots = roots, decompositions.eigvals(roots)
    elif len(shape) != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    elif dtype != np.float32:
        roots = cast(roots, FLOAT64)
    result = staged(np.ones(1, dtype_of(roots)))
    for k in range(known_size(roots, 0, "poly")):
        moved = shaping.pad(result * roots[k], (1, 0))
        result = shaping.pad(result, (0, 1)) - moved
    if is_matrix:  # eigenvalues of a real matrix are pairs of conjugates
        return ew.graft(result.real, _characteristic_polynomial(matrix))
    return result if known_size(roots, 0, "poly") else 1.0


def _characteristic_polynomial(matrix: Any) -> Any:
    """Return the coefficients by the method of Faddeev and Le Verrier.

    Its derivatives are true where eigenvalues meet; those of eigenvalues are not.
    """
    matrix = matrix if dtype_of(matrix).kind == "f" else cast(matrix, FLOAT64)
    size = known_size(matrix, 0, "poly")
    identity = np.eye(size, dtype=dtype_of(matrix))
    coefficients, adjugate = [identity[0, :1]], identity
    for k in range(1, size + 1):
        product = np.matmul(matrix, adjugate)
        last = np.trace(product) / -k
        coefficients.append(shaping.reshape(last, (1,)))
        adjugate = product + last * identity
    return shaping.concatenate(coefficients)


@implements(np.polyder)
def polyder(p: Any, m: int = 1) -> Any:
    """Return the derivative of the specified order of a polynomial; see `numpy.polyder`."""
    p, m = staged(p), int(m)
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    for _ in range(m):
        powers = np.arange(known_size(p, 0, "polyder") - 1, 0, -1)
        p = p[:-1] * powers
    return p


@implements(np.polyint)
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """Return an antiderivative (indefinite integral) of a polynomial; see `numpy.polyint`."""
    p, m = staged(p), int(m)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    constants = [0.0] * m if k is None else [k] if np.ndim(k) == 0 else list(k)
    constants = constants * m if len(constants) == 1 else constants
    for constant in constants[:m]:
        powers = np.arange(known_size(p, 0, "polyint"), 0, -1)
        p = shaping.concatenate([p / powers, shaping.reshape(staged(constant), (1,))])
    return p
