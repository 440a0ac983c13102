"""What a run gives, or raises; and whether two runs gave the same."""

from __future__ import annotations

import copy
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import wend
from wend.backends.strict import same_bits
from wend.base import trees

MOST = 1e8  # nothing is compared with a tolerance beyond: what is chaotic is no fault
BUILT_IN = (
    IndexError,
    ZeroDivisionError,
    OverflowError,
    NotImplementedError,
    ValueError,
    TypeError,
)


def outcome(f: Callable[..., Any], variables: Sequence[Any], args: Sequence[Any]) -> Any:
    """Results, arguments after the call and what variables hold; or the error."""
    # Arrays without axes are numbers, which nothing changes in place.
    given = [x[()] if isinstance(x, np.ndarray) else x for x in copy.deepcopy(args)]
    try:
        results = f(*given)
    except Exception as error:
        if isinstance(error, (wend.WendError, *BUILT_IN)):
            return error
        raise
    leaves = trees.flatten(results)[0]
    return [*leaves, *given, *(np.asarray(v.value) for v in variables)]


def raised_when_traced(found: Any) -> bool:
    """Whether it is an error that the Python of a program raised."""
    if not isinstance(found, Exception):
        return False
    frames = traceback.walk_tb(found.__traceback__)
    return any(frame.f_code.co_filename.startswith("<program") for frame, _ in frames)


def is_large(results: Sequence[Any]) -> bool:
    """Whether results are too large, or no numbers, to be compared with a tolerance."""
    return not all(np.abs(x).max(initial=0) < MOST for x in map(np.asarray, results))


def alike(found: Any, expected: Any, tol: float, role: str) -> None:
    """Equal, or as far apart as `tol` for each unit of the largest; or errors of one class."""
    if isinstance(expected, Exception) or isinstance(found, Exception):
        kind = next((kind for kind in BUILT_IN if isinstance(expected, kind)), ())
        assert isinstance(found, kind or wend.WendError), f"{role}: {found!r}, not {expected!r}"
        return
    assert len(found) == len(expected), f"{role}: {len(found)} results, not {len(expected)}"
    for k, (x, y) in enumerate(zip(map(np.asarray, found), map(np.asarray, expected), strict=True)):
        about = f"{role}, result {k}"
        assert x.dtype == y.dtype, f"{about}: {x.dtype}, not {y.dtype}"
        assert x.shape == y.shape, f"{about}: {x.shape}, not {y.shape}"
        if y.dtype.kind != "f":
            np.testing.assert_array_equal(x, y, err_msg=about)
            continue
        most = np.abs(y[np.isfinite(y)]).max(initial=1.0)
        np.testing.assert_allclose(x, y, rtol=0, atol=tol * most, err_msg=about)


def are_alike(found: Any, expected: Any, tol: float) -> bool:
    """Whether `alike` has nothing against them."""
    try:
        alike(found, expected, tol, "")
    except AssertionError:
        return False
    return True


def identical(found: Any, expected: Any, role: str) -> None:
    """The same bits; or errors of one class."""
    if isinstance(expected, Exception) or isinstance(found, Exception):
        alike(found, expected, 0.0, role)
        return
    assert len(found) == len(expected), f"{role}: {len(found)} results, not {len(expected)}"
    for k, (x, y) in enumerate(zip(found, expected, strict=True)):
        assert same_bits(x, y), f"{role}, result {k}: {x!r} is not {y!r}"
