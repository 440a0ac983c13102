"""Objects that hold numbers as bytes: byte arrays, arrays of Python's `array`, ctypes objects."""

from __future__ import annotations

import ctypes
from array import array
from typing import Any

from wend.base.errors import UnsupportedError, explain
from wend.base.source import at, user_source

_CData: type = ctypes.c_int.__mro__[-2]  # the base, in C, of all classes of ctypes
BUFFERS: tuple[type, ...] = (bytearray, array, _CData)


def bytes_of(buffer: Any) -> bytes:
    """Return the bytes that a buffer holds, without running user code."""
    return bytes(memoryview(buffer))


def restorable_bytes(buffer: Any) -> bytes:
    """Return the bytes of a buffer, for `assign_bytes`.

    Raises:
        UnsupportedError: they are addresses of what nothing else may keep alive.
    """
    if isinstance(buffer, _CData) and _has_pointers(type(buffer)):
        raise UnsupportedError(
            explain(
                f"a {type(buffer).__name__} of ctypes may be changed{at(user_source())}, and "
                "holds pointers, whose changes cannot be taken back.",
                cure="keep the objects in a list, or mark the function with @wend.do_not_capture.",
            )
        )
    return bytes_of(buffer)


def assign_bytes(buffer: Any, value: bytes) -> None:
    """Give a buffer back the bytes that it has held."""
    if isinstance(buffer, bytearray):
        bytearray.__setitem__(buffer, slice(None), value)
    elif isinstance(buffer, array):
        array.__delitem__(buffer, slice(None))
        array.frombytes(buffer, value)
    else:
        ctypes.memmove(ctypes.addressof(buffer), value, len(value))


def shows_memory(value: Any) -> bool:
    """Return whether an object is a window on memory, as other objects may be, too."""
    return isinstance(value, _CData)


def _has_pointers(kind: Any) -> bool:
    """Return whether objects of a class of ctypes hold addresses that they keep alive."""
    if issubclass(kind, ctypes.Array):
        return _has_pointers(kind._type_)
    if issubclass(kind, (ctypes.Structure, ctypes.Union)):
        fields = (field for base in kind.__mro__ for field in vars(base).get("_fields_", ()))
        return any(_has_pointers(field[1]) for field in fields)
    return not issubclass(kind, ctypes._SimpleCData) or kind._type_ in "OzZ"
