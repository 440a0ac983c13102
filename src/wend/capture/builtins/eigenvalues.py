"""`np.linalg.eig`, `eigvals` and `real_if_close`: real or complex as the values are.

Whether all eigenvalues are real is part of the trace, where it can be. In loops, branches and the
elements of a `vmap`, and after effects, the results are complex.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wend.base.errors import ConcreteValueError, explain
from wend.base.source import at, user_source
from wend.capture.state.paths import decided_truth, is_mapped
from wend.eager.dispatch import any_staged
from wend.eager.promotion import tensor_type
from wend.numpy import creating, decompositions, reducing
from wend.numpy import elementwise as ew
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
    np.real_if_close: real_if_close,
}
