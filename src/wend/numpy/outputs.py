"""`out=` of NumPy's functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.errors import ShapeError, TypeMismatchError, change_of_outside
from wend.base.source import at, user_source
from wend.eager.checking import checked
from wend.eager.dispatch import Staged
from wend.eager.promotion import as_array, cast, common_shape, tensor_type


def put_into(out: Any, result: Any, *, broadcasts: bool = False, casting: Any = "same_kind") -> Any:
    """Store a result in an array, as NumPy's `out=` does; return the array.

    Raises:
        TypeMismatchError, ShapeError: those of `check_takes`.
        ValueError: the sizes differ, of which only the run knows.
    """
    (array,) = out if isinstance(out, tuple) else (out,)
    check_takes(array, result, broadcasts=broadcasts, casting=casting)
    is_ranked = tensor_type(result).rank is not None and tensor_type(array).rank is not None
    if is_ranked and not broadcasts:  # what is assigned is broadcast
        differ = [n != size for n, size in zip(as_array(result).shape, array.shape, strict=True)]
        text = "the output does not match the size of the result"
        result = checked(result, *((fails, ValueError, text) for fails in differ))
    dtype = tensor_type(array).dtype
    if dtype.kind in "bc" or tensor_type(result).dtype.kind != "c":
        result = cast(result, dtype)  # wraps, where a number that is assigned has to fit
    array[...] = result
    return array


def check_takes(
    out: Any, result: Any, *, broadcasts: bool = False, casting: Any = "same_kind"
) -> None:
    """Check that an array takes a result.

    Args:
        out: the array.
        result: of the shape of the array.
        broadcasts: the result may be smaller than the array, as that of a ufunc.
        casting: NumPy's rule by which the result is cast.

    Raises:
        TypeMismatchError: the array cannot be traced, or the dtype of the result does not fit.
        ShapeError: the shape of the result does not fit.
    """
    if type(out) is np.ndarray or not isinstance(out, (np.ndarray, Staged)):
        raise change_of_outside(
            out,
            f"an array that is not traced is changed in place{at(user_source())} by a traced "
            "value.",
            "use the result, as in x = np.add(x, y); or ",
        )
    if isinstance(out, Staged):
        out.check_writeable("output array")
    source, target = tensor_type(result), tensor_type(out)
    if not np.can_cast(source.dtype, target.dtype, casting):
        raise TypeMismatchError(
            f"out={at(user_source())}: cannot cast {source} to {target.dtype} by the rule "
            f"{casting!r}"
        )
    target_shape = common_shape([source.shape, target.shape]) if broadcasts else source.shape
    if target_shape is None or target.shape is None:
        return  # the run decides of ranks
    is_static = target.is_static and source.is_static
    if len(target_shape) != len(target.shape) or (is_static and target_shape != target.shape):
        raise ShapeError(
            f"out={at(user_source())}: an output of shape {target.shape} does not take a result of "
            f"shape {source.shape}"
        )
