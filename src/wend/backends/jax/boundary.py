"""Arrays of JAX as arguments, results and contents of variables."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import jax
import numpy as np

# An array has this class; to make one would start JAX before the user has set up its devices.
from jax._src.array import ArrayImpl

from wend.ir.types import TensorType
from wend.runtime.array_boundary import HOST, ArrayBoundary, foreign_boundary


class DeviceArrays(ArrayBoundary):
    """Arrays of JAX, on whichever devices they are; none of them ever changes."""

    array_types = (ArrayImpl,)

    cure_for_read_only = (
        "pass an array of NumPy, np.array(x), whose new contents are written back; or return the "
        "new array: arrays of JAX never change."
    )

    def type_of(self, array: Any) -> TensorType:
        return TensorType(np.dtype(array.dtype), tuple(array.shape))

    def receive(self, leaf: Any) -> Any:
        """Return an array as it is; NumPy's and numbers are copied to the default device."""
        if isinstance(leaf, self.array_types):
            return leaf
        boundary = foreign_boundary(leaf)
        host = np.asarray(HOST.receive(leaf if boundary is None else boundary.to_host(leaf)))
        with jax.enable_x64(True):
            # A copy: JAX may refer to NumPy's memory, which the caller may change during the run
            return jax.device_put(host, may_alias=False)

    def adopt(self, array: Any) -> Any:
        """Return the array of another library on a device of JAX; they share memory (DLPack).

        Raises:
            RuntimeError: JAX does not have that device.
        """
        with self.in_64_bits():
            return jax.dlpack.from_dlpack(array)

    def in_64_bits(self) -> AbstractContextManager[Any]:
        """Return a context in which JAX keeps numbers of 64 bits, as other libraries have them."""
        context: AbstractContextManager[Any] = jax.enable_x64(True)
        return context

    def to_host(self, array: Any) -> Any:
        return HOST.receive(np.asarray(array))

    def unshare(self, results: Sequence[Any], others: Sequence[Any]) -> list[Any]:
        return list(results)

    def copy(self, values: Sequence[Any]) -> list[Any]:
        return list(values)

    def is_writeable(self, array: Any) -> bool:
        return False

    def write(self, array: Any, value: Any) -> None:
        raise TypeError("an array of JAX never changes")

    def shares_memory(self, a: Any, b: Any) -> bool:
        return False


BOUNDARY = DeviceArrays()
