"""NumPy's own sorts of plain numbers, called without the interpreter.

Its table of C functions, the same in all of NumPy 2, has one that says what a dtype is sorted by:
`int sort(void *numbers, npy_intp count, void *array)`. Of plain numbers it needs no array.
"""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

from wend.backends.native.target.numpy_capi import numpy_functions

_GET_FUNCTIONS = 365  # `_PyDataType_GetArrFuncs`
_QUICKSORT = 8 * (21 + 12)  # of a `PyArray_ArrFuncs`: after 21 casts and 12 functions more
# Without vectors of these kinds NumPy takes several times as long as our own sort does.
_VECTORS = ("AVX2", "ASIMD")


def name(dtype: np.dtype) -> str:
    """What modules call the sort of a dtype by."""
    return f"numpy.sort.{dtype.str[1:]}"


def declaration(dtype: np.dtype) -> str:
    """What modules say of it."""
    return f"declare i32 @{name(dtype)}(ptr, i64, ptr) nounwind"


def addresses(dtype: np.dtype) -> dict[str, int]:
    """Where it is, by its name; nothing if it is not there, or not fast."""
    found = _address(dtype)
    return {name(dtype): found} if found else {}


def is_there(dtype: np.dtype) -> bool:
    """Whether numbers of a dtype are sorted by vectors."""
    return _address(dtype) != 0


@cache
def _address(dtype: np.dtype) -> int:
    features = _multiarray_umath.__cpu_features__
    if dtype.itemsize < 4 or not any(features.get(vector) for vector in _VECTORS):
        return 0
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(
        numpy_functions({"get": _GET_FUNCTIONS})["get"]
    )
    found = ctypes.c_void_p.from_address(get(dtype) + _QUICKSORT).value or 0
    return found if found and _sorts(found, dtype) else 0


def _sorts(address: int, dtype: np.dtype) -> bool:
    """Whether a function does what is asked of it here: no array is given to it."""
    numbers = np.arange(100, dtype=dtype)[::-1].copy()
    sort = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p)
    sort(address)(numbers.ctypes.data, numbers.size, None)
    return bool((numbers == np.arange(100)).all())
