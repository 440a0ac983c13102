"""The supported dtypes, with the short names that graphs are printed in."""

from __future__ import annotations

import numpy as np

from wend.base.errors import TypeMismatchError, explain

SHORT_NAMES: dict[np.dtype, str] = {
    np.dtype(np.bool_): "bool",
    np.dtype(np.int8): "i8",
    np.dtype(np.int16): "i16",
    np.dtype(np.int32): "i32",
    np.dtype(np.int64): "i64",
    np.dtype(np.uint8): "u8",
    np.dtype(np.uint16): "u16",
    np.dtype(np.uint32): "u32",
    np.dtype(np.uint64): "u64",
    np.dtype(np.float16): "f16",
    np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
    np.dtype(np.complex64): "c64",
    np.dtype(np.complex128): "c128",
}
LONG_NAMES: dict[str, np.dtype] = {short: dtype for dtype, short in SHORT_NAMES.items()}

BOOL = np.dtype(np.bool_)
INT64 = np.dtype(np.int64)
FLOAT64 = np.dtype(np.float64)

BOOLS = frozenset({BOOL})
INTEGERS = frozenset(dtype for dtype in SHORT_NAMES if dtype.kind in "iu")
FLOATS = frozenset(dtype for dtype in SHORT_NAMES if dtype.kind == "f")
COMPLEXES = frozenset(dtype for dtype in SHORT_NAMES if dtype.kind == "c")
INEXACT = FLOATS | COMPLEXES
REALS = INTEGERS | FLOATS
NUMERIC = REALS | COMPLEXES
ALL = NUMERIC | BOOLS


def is_supported(dtype: np.dtype) -> bool:
    """Return whether arrays of this dtype can be traced (native byte order, no objects)."""
    return dtype in SHORT_NAMES


def short(dtype: np.dtype) -> str:
    """Return `f64` for float64, and so on.

    Raises:
        TypeMismatchError: graphs do not have the dtype.
    """
    if dtype not in SHORT_NAMES:
        raise unsupported(dtype)
    return SHORT_NAMES[dtype]


def real_of(dtype: np.dtype) -> np.dtype:
    """Return the dtype of the real part: float64 for complex128; a real dtype itself."""
    return np.zeros((), dtype).real.dtype


def complex_of(dtype: np.dtype) -> np.dtype:
    """Return the complex dtype with parts of this real dtype."""
    return np.dtype(np.complex64) if dtype.itemsize <= 4 else np.dtype(np.complex128)


def unsupported(dtype: np.dtype) -> TypeMismatchError:
    """Return the error for arrays of a dtype that graphs do not have."""
    if dtype.names is not None:
        cure = "keep an array for each field, in a dict or an object with attributes."
    elif dtype.kind in "mM":
        cure = "convert it to a number of seconds before: (t - start) / np.timedelta64(1, 's')."
    elif dtype.kind in "fc":
        cure = "use float64, or complex128."
    else:
        cure = "keep objects and texts in a list or dict."
    return TypeMismatchError(
        explain(f"arrays of dtype {dtype} cannot be used in a graph.", cure=cure)
    )
