"""The structures of XLA's foreign function interface that a handler reads and writes.

They follow `xla/ffi/api/c_api.h`, which jaxlib ships. Structures grow at their ends only, so fields
that are not needed are left out there.
"""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import jax

# The version of the interface that is written here. XLA accepts older minor versions.
MAJOR, MINOR = 0, 3

EXECUTE = 3  # the stage in which a handler computes
METADATA = 1  # the extension that asks for the version of a handler
INTERNAL = 13  # the code of an error

_Pointer = ctypes.c_void_p


class Extension(ctypes.Structure):
    """An extension of a structure, by which XLA asks or tells more."""

    _fields_ = [("size", ctypes.c_size_t), ("type", ctypes.c_int), ("next", _Pointer)]


class Metadata(ctypes.Structure):
    """The description of a handler."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("version_size", ctypes.c_size_t),
        ("version_extension", _Pointer),
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("traits", ctypes.c_uint32),
    ]


class MetadataExtension(ctypes.Structure):
    """A request for metadata."""

    _fields_ = [("base", Extension), ("metadata", ctypes.POINTER(Metadata))]


class Buffer(ctypes.Structure):
    """An operand or a result."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("extension", _Pointer),
        ("dtype", ctypes.c_int),
        ("data", _Pointer),
    ]


class Buffers(ctypes.Structure):
    """The operands, or the results."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension", _Pointer),
        ("count", ctypes.c_int64),
        ("types", _Pointer),
        ("items", ctypes.POINTER(ctypes.POINTER(Buffer))),
    ]


class Scalar(ctypes.Structure):
    """The value of an attribute."""

    _fields_ = [("dtype", ctypes.c_int), ("value", ctypes.POINTER(ctypes.c_int64))]


class Attributes(ctypes.Structure):
    """The attributes of a call."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension", _Pointer),
        ("count", ctypes.c_int64),
        ("types", _Pointer),
        ("names", _Pointer),
        ("items", ctypes.POINTER(ctypes.POINTER(Scalar))),
    ]


class ErrorArguments(ctypes.Structure):
    """The arguments of `Error_Create`."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("extension", _Pointer),
        ("message", ctypes.c_char_p),
        ("code", ctypes.c_int),
    ]


CreateError = ctypes.CFUNCTYPE(_Pointer, ctypes.POINTER(ErrorArguments))


class Api(ctypes.Structure):
    """The functions that XLA offers a handler."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("extension", _Pointer),
        ("version_size", ctypes.c_size_t),
        ("version_extension", _Pointer),
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("internal", _Pointer),
        ("create_error", CreateError),
    ]


class CallFrame(ctypes.Structure):
    """One call of a handler."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("extension", ctypes.POINTER(Extension)),
        ("api", ctypes.POINTER(Api)),
        ("context", _Pointer),
        ("stage", ctypes.c_int),
        ("operands", Buffers),
        ("results", Buffers),
        ("attributes", Attributes),
    ]


def major_version() -> int | None:
    """Return the major version of the interface of the installed jaxlib, None if unknown."""
    header = Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h"
    try:
        text = header.read_text(encoding="utf-8")
    except OSError:
        return None
    definition = re.search(r"#define XLA_FFI_API_MAJOR (\d+)", text)
    return None if definition is None else int(definition[1])
