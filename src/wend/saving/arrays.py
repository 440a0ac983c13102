"""Arrays as `.npy` members, read without trust in their headers."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np

from wend.base.errors import LoadError
from wend.ir.dtypes import is_supported

_MAGIC = b"\x93NUMPY\x01\x00"
_MAX_HEADER = 4096


def to_npy(array: Any) -> bytes:
    """Return an array in the format of `numpy.save`."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def from_npy(data: bytes, where: str) -> np.ndarray:
    """Return a read-only array.

    Raises:
        LoadError: the data is no such file, or has not the size that its header says.
    """
    if data[: len(_MAGIC)] != _MAGIC:
        raise LoadError(f"{where} is no .npy file of version 1.0")
    file = io.BytesIO(data)
    file.seek(len(_MAGIC))
    try:
        shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(
            file, max_header_size=_MAX_HEADER
        )
    except Exception as error:  # noqa: BLE001  # NumPy's reader has no list of what it raises
        raise LoadError(f"{where}: its header cannot be read: {error}") from None
    dtype = np.dtype(dtype)
    if not is_supported(dtype):
        raise LoadError(f"{where} has the dtype {dtype}, which functions do not take")
    size, start = math.prod(shape), file.tell()
    if any(n < 0 for n in shape) or len(shape) > 64 or size * dtype.itemsize != len(data) - start:
        raise LoadError(f"{where}: its header does not fit its size: {dtype}, {shape!r:.60}")
    array = np.frombuffer(data, dtype, size, start)
    # A copy is aligned, as an array that NumPy makes.
    array = array.reshape(shape, order="F" if is_fortran else "C").copy(order="K")
    array.flags.writeable = False
    return array
