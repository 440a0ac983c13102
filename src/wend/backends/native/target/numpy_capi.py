"""NumPy's C API, as native code uses it: its functions, and an aligned memory handler.

NumPy frees an array's data with the handler that the array names (NEP 49). This handler differs
from NumPy's own in that large arrays start at multiples of 64 bytes, so that others can share
them, and in that freed memory circulates between arrays and the pools (`blocks.py`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

# The functions of `blocks.py` that implement the handler
HANDLER_FUNCTIONS = ("wend.malloc", "wend.calloc", "wend.realloc", "wend.give_back")
_HANDLER_FIELDS = ("malloc", "calloc", "realloc", "free")
_CAPSULE_NAME = b"mem_handler"  # NumPy's name for the capsule of a handler
# Of its own: the attributes of `ctypes.pythonapi` are shared with whoever else sets their types.
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_new_capsule = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", ctypes.pythonapi))


def numpy_functions(indices: Mapping[str, int]) -> dict[str, int]:
    """Return the addresses of functions of NumPy's C API, by their index in its table."""
    table: Any = _multiarray_umath
    start = _capsule_pointer(table._ARRAY_API, None)
    return {
        name: ctypes.c_void_p.from_address(start + 8 * index).value or 0
        for name, index in indices.items()
    }


def aligned_copy(array: np.ndarray) -> np.ndarray:
    """Return a copy in C order that starts at a multiple of 64 bytes."""
    memory = np.empty(array.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


class _HandlerStruct(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in _HANDLER_FIELDS),
    )


class MemoryHandler:
    """A NumPy memory handler backed by native code; it lives forever, as arrays may.

    Attributes:
        capsule: the handler as arrays refer to it.
    """

    def __init__(self, functions: Mapping[str, int]) -> None:
        self._record = _HandlerStruct(
            name=b"wend",
            version=1,
            **dict(
                zip(_HANDLER_FIELDS, map(functions.__getitem__, HANDLER_FUNCTIONS), strict=True)
            ),
        )
        self.capsule: Any = _new_capsule(ctypes.addressof(self._record), _CAPSULE_NAME, None)
