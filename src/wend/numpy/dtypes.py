"""Questions about dtypes, of traced arrays as well: they are answered while recording."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.errors import TypeMismatchError
from wend.eager import promotion
from wend.eager.dispatch import Staged
from wend.numpy.operands import dtype_of
from wend.numpy.public import implements


def _is_kind(x: Any) -> bool:
    return isinstance(x, (np.dtype, type, str))


@implements(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """`numpy.result_type`, for traced arrays as well."""
    examples = [np.empty(0, np.dtype(x)) if _is_kind(x) else x for x in arrays_and_dtypes]
    return promotion.result_dtype(*examples)


@implements(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """`numpy.can_cast`, for traced arrays as well."""
    return np.can_cast(dtype_of(from_) if isinstance(from_, Staged) else from_, to, casting)


@implements(np.common_type)
def common_type(*arrays: Any) -> Any:
    """`numpy.common_type`, for traced arrays as well."""
    return np.common_type(*(np.empty(0, dtype_of(x)) for x in arrays))


@implements(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    """`numpy.iscomplexobj`, for traced arrays as well."""
    return dtype_of(x).kind == "c"


@implements(np.isrealobj)
def isrealobj(x: Any) -> bool:
    """`numpy.isrealobj`, for traced arrays as well."""
    return dtype_of(x).kind != "c"


def finfo(type: Any, /) -> Any:
    """`numpy.finfo` of a dtype, or of an array's."""
    return np.finfo(_dtype_in(type, "fc"))


def iinfo(type: Any, /) -> Any:
    """`numpy.iinfo` of a dtype, or of an array's."""
    return np.iinfo(_dtype_in(type, "iu"))


def _dtype_in(x: Any, kinds: str) -> Any:
    dtype = dtype_of(x) if isinstance(x, (Staged, np.ndarray, np.generic)) else x
    if isinstance(x, Staged) and dtype.kind not in kinds:
        raise TypeMismatchError(f"there are no such limits for {dtype}")
    return dtype


__array_api_version__ = "2025.12"


def __array_namespace_info__() -> Any:  # noqa: N807
    """NumPy's answers: devices, capabilities, default dtypes and dtypes."""
    return np.__array_namespace_info__()
