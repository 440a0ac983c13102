"""What native code asks of NumPy: arrays, and memory for them that starts at multiples of 64.

NumPy frees what an array owns by the handler that the array names (NEP 49). Ours differs from
NumPy's own in that large arrays are aligned, so that others can share them, and in that memory
goes round between them and the pools (`blocks.py`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

# The functions of `blocks.py` that do it
HANDLING = ("wend.malloc", "wend.calloc", "wend.realloc", "wend.give_back")
_CALLED = ("malloc", "calloc", "realloc", "free")
_NAME = b"mem_handler"  # what NumPy calls such a capsule
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_capsule_pointer.restype = ctypes.c_void_p
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_new_capsule.restype = ctypes.py_object


def numpy_functions(places: Mapping[str, int]) -> dict[str, int]:
    """Addresses of functions of NumPy's C interface, by where they are in its table."""
    table: Any = _multiarray_umath
    start = _capsule_pointer(table._ARRAY_API, None)
    return {
        name: ctypes.c_void_p.from_address(start + 8 * place).value or 0
        for name, place in places.items()
    }


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy in C order that starts at a multiple of 64."""
    memory = np.empty(array.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


class _Handler(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in _CALLED),
    )


class Handler:
    """Memory of arrays, by functions of native code; kept for good, as arrays may be.

    Attributes:
        capsule: it, as arrays refer to it.
    """

    def __init__(self, functions: Mapping[str, int]) -> None:
        self._record = _Handler(
            name=b"wend",
            version=1,
            **dict(zip(_CALLED, map(functions.__getitem__, HANDLING), strict=True)),
        )
        self.capsule: Any = _new_capsule(ctypes.addressof(self._record), _NAME, None)
