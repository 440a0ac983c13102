"""Queries about dtypes. Those of traced arrays are answered while tracing."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.errors import TypeMismatchError
from wend.eager import promotion
from wend.eager.dispatch import Staged
from wend.numpy.operands import dtype_of
from wend.numpy.public import implements


def _is_dtype_like(x: Any) -> bool:
    return isinstance(x, (np.dtype, type, str))


@implements(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """Return the type that results from applying promotion rules; see `numpy.result_type`."""
    examples = [np.empty(0, np.dtype(x)) if _is_dtype_like(x) else x for x in arrays_and_dtypes]
    return promotion.result_dtype(*examples)


@implements(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Return whether a cast between dtypes can occur under a casting rule; see `numpy.can_cast`."""
    return np.can_cast(dtype_of(from_) if isinstance(from_, Staged) else from_, to, casting)


@implements(np.common_type)
def common_type(*arrays: Any) -> Any:
    """Return a scalar type that is common to the input arrays; see `numpy.common_type`."""
    return np.common_type(*(np.empty(0, dtype_of(x)) for x in arrays))


@implements(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    """Return whether the dtype of an array is complex; see `numpy.iscomplexobj`."""
    return dtype_of(x).kind == "c"


@implements(np.isrealobj)
def isrealobj(x: Any) -> bool:
    """Return whether the dtype of an array is not complex; see `numpy.isrealobj`."""
    return dtype_of(x).kind != "c"


def finfo(type: Any, /) -> Any:
    """Return the machine limits of a float dtype, or of an array's; see `numpy.finfo`."""
    return np.finfo(_dtype_in(type, "fc"))


def iinfo(type: Any, /) -> Any:
    """Return the machine limits of an integer dtype, or of an array's; see `numpy.iinfo`."""
    return np.iinfo(_dtype_in(type, "iu"))


def _dtype_in(x: Any, kinds: str) -> Any:
    dtype = dtype_of(x) if isinstance(x, (Staged, np.ndarray, np.generic)) else x
    if isinstance(x, Staged) and dtype.kind not in kinds:
        raise TypeMismatchError(f"there are no such limits for {dtype}")
    return dtype


__array_api_version__ = "2025.12"


def __array_namespace_info__() -> Any:  # noqa: N807
    """Return NumPy's inspection namespace: devices, capabilities and dtypes."""
    return np.__array_namespace_info__()
