"""`np.linalg.eig`, `eigvals`, `roots` and `real_if_close`: real or complex as the values are.

Whether all eigenvalues are real is part of the trace, where it can be. In loops, branches and the
elements of a `vmap`, and after effects, the results are complex. So is which coefficients of a
polynomial are zeros at its ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wend.base.errors import ConcreteValueError, explain
from wend.base.source import at, user_source
from wend.capture.state.paths import decided_truth, is_mapped
from wend.eager.dispatch import any_staged
from wend.eager.promotion import cast, tensor_type
from wend.numpy import creating, decompositions, reducing, shaping
from wend.numpy import elementwise as ew
from wend.numpy.operands import staged
from wend.numpy.shaping import known_size
from wend.trace.arrays.concrete_array import adopt_result


def eig(a: Any) -> Any:
    """Return `np.linalg.eig(a)`."""
    if not any_staged([a]):
        return adopt_result(np.linalg.eig(a))
    result = decompositions.eig(a)
    if _is_complex("eig", a, result.eigenvalues):
        return result
    return decompositions.EigResult(result.eigenvalues.real, result.eigenvectors.real)


def eigvals(a: Any) -> Any:
    """Return `np.linalg.eigvals(a)`."""
    if not any_staged([a]):
        return adopt_result(np.linalg.eigvals(a))
    values = decompositions.eigvals(a)
    return values if _is_complex("eigvals", a, values) else values.real


def roots(p: Any) -> Any:
    """Return `np.roots(p)`: the eigenvalues of the companion matrix, and 0 for each last zero."""
    if not any_staged([p]):
        return adopt_result(np.roots(p))
    p = staged(creating.asarray(p)) if isinstance(p, (list, tuple)) else staged(p)
    p = shaping.reshape(p, (1,)) if tensor_type(p).shape == () else p
    if tensor_type(p).rank != 1:
        raise ValueError("Input must be a rank-1 array.")
    start, stop = 0, known_size(p, 0, "roots")
    while start < stop and _is_zero(p[start]):
        start += 1
    zeros = 0
    while start < stop and _is_zero(p[stop - 1]):
        stop, zeros = stop - 1, zeros + 1
    dtype = np.result_type(tensor_type(p).dtype, np.float64)
    p = cast(p[start:stop], dtype)
    degree = stop - start - 1
    values = creating.array(np.zeros(0))
    if degree > 0:
        first = -p[1:] / p[0]
        values = eigvals(shaping.concatenate([first[None], np.eye(degree)[:-1]]))
    return shaping.concatenate([values, np.zeros(zeros, tensor_type(values).dtype)])


def _is_zero(coefficient: Any) -> bool:
    """Return whether a coefficient is zero, which is part of the trace.

    Raises:
        ConcreteValueError: a trace for one of both cases will know; or it is not known here.
    """
    outcome, site = decided_truth(ew.equal(coefficient, 0))
    if site is None and outcome is not None:
        return outcome
    error = ConcreteValueError(
        explain(
            f"np.roots{at(user_source())} leaves out the zeros at both ends of the coefficients, "
            "which are only known when it runs.",
            cure="outside of loops and branches a call has a trace for them; else take the "
            "eigenvalues of the companion matrix, by wend.numpy.linalg.eigvals.",
        )
    )
    error.deciding_test = site  # type: ignore[attr-defined]
    raise error


def _is_complex(name: str, a: Any, values: Any) -> bool:
    """Return whether the eigenvalues of a matrix have an imaginary part, as far as is known.

    `name`: the function that computes them.

    Raises:
        ConcreteValueError: a trace for one of both cases will know.
    """
    if tensor_type(a).dtype.kind == "c" or is_mapped():
        return True
    outcome, site = decided_truth(reducing.any(ew.not_equal(values.imag, 0)))
    if site is None:
        return outcome is not False
    error = ConcreteValueError(
        explain(
            f"np.linalg.{name}{at(user_source())} gives real arrays if all eigenvalues are real, "
            "and complex ones if not; which of both is only known when it runs.",
            cure=f"use wend.numpy.linalg.{name}, which always gives complex ones, and take their "
            ".real or .imag.",
        )
    )
    error.deciding_test = site  # type: ignore[attr-defined]
    raise error


def real_if_close(a: Any, tol: float = 100) -> Any:
    """Return `np.real_if_close(a, tol)`."""
    if not any_staged([a]):
        return adopt_result(np.real_if_close(a, tol))
    array = creating.asarray(a)
    dtype = tensor_type(array).dtype
    if dtype.kind != "c":
        return array
    limit = tol * np.finfo(dtype).eps if tol > 1 else tol
    is_far = reducing.any(ew.logical_not(ew.less(ew.absolute(array.imag), limit)))
    outcome, site = decided_truth(is_far)
    if site is None and outcome is not None:
        return array if outcome else array.real
    error = ConcreteValueError(
        explain(
            f"np.real_if_close{at(user_source())} gives a real array if all imaginary parts are "
            "small, and a complex one if not; which of both is only known when it runs.",
            cure="take its .real, or leave it complex.",
        )
    )
    error.deciding_test = site  # type: ignore[attr-defined]
    raise error


REPLACED: dict[Callable[..., Any], Callable[..., Any]] = {
    np.linalg.eig: eig,
    np.linalg.eigvals: eigvals,
    np.roots: roots,
    np.real_if_close: real_if_close,
}
