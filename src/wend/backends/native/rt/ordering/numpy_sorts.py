"""Addresses of NumPy's vectorized sorts.

NumPy's C-API table, the same in all of NumPy 2, has a function that returns the sort of a dtype:
`int sort(void *numbers, npy_intp count, void *array)`. For plain numbers `array` may be null.
"""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

from wend.backends.native.target import host_cpu
from wend.backends.native.target.numpy_capi import numpy_functions
from wend.backends.native.target.platform import platform

_GET_ARR_FUNCS_INDEX = 365  # `_PyDataType_GetArrFuncs`
_QUICKSORT_OFFSET = 8 * (21 + 12)  # in a `PyArray_ArrFuncs`: after 21 casts and 12 other functions
# Without these NumPy's sort takes several times as long as that of `sorts.py`.
_VECTOR_FEATURES = ("AVX2", "ASIMD")
# AVX-512 sorts compress vectors into memory, which these processors do in microcode: up to so many
# elements they are as fast as `sorts.py`, and of 200,000 a third to an eighth as fast (D51).
_SLOW_COMPRESSION, _MAX_FAST_COUNT = ("znver4",), 1000


def name(dtype: np.dtype) -> str:
    """Return the name of the sort of a dtype in modules."""
    return f"numpy.sort.{dtype.str[1:]}"


def declaration(dtype: np.dtype) -> str:
    """Return the declaration of the sort of a dtype."""
    return f"declare i32 @{name(dtype)}(ptr, i64, ptr) nounwind"


def addresses(dtype: np.dtype) -> dict[str, int]:
    """Return the address of the sort by its name; empty if it is missing or slow."""
    address = _address(dtype)
    return {name(dtype): address} if address else {}


def is_available(dtype: np.dtype) -> bool:
    """Return whether NumPy has a vectorized sort of a dtype."""
    return platform().is_process and _address(dtype) != 0


def max_count() -> int | None:
    """Return the number of elements beyond which NumPy's sorts are slow; None if there is none."""
    return _MAX_FAST_COUNT if host_cpu.name() in _SLOW_COMPRESSION else None


@cache
def _address(dtype: np.dtype) -> int:
    features = _multiarray_umath.__cpu_features__
    if dtype.itemsize < 4 or not any(features.get(vector) for vector in _VECTOR_FEATURES):
        return 0
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(
        numpy_functions({"get": _GET_ARR_FUNCS_INDEX})["get"]
    )
    address = ctypes.c_void_p.from_address(get(dtype) + _QUICKSORT_OFFSET).value or 0
    return address if address and _sorts_correctly(address, dtype) else 0


def _sorts_correctly(address: int, dtype: np.dtype) -> bool:
    """Return whether a function sorts correctly when `array` is null."""
    numbers = np.arange(100, dtype=dtype)[::-1].copy()
    sort = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p)
    sort(address)(numbers.ctypes.data, numbers.size, None)
    return bool((numbers == np.arange(100)).all())
