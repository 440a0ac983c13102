"""Arrays of JAX as arguments, results and contents of variables."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

# An array has this class; to make one would start JAX before the user has set up its devices.
from jax._src.array import ArrayImpl

from wend.base.errors import UnsupportedError, explain, listed
from wend.base.refusals import refusal
from wend.ir.graph import Graph
from wend.ir.types import TensorType
from wend.runtime.array_boundary import HOST, ArrayBoundary, foreign_boundary


class DeviceArrays(ArrayBoundary):
    """Arrays of JAX, on whichever devices they are; none of them ever changes."""

    array_types = (ArrayImpl,)
    tracer_types = (jax.core.Tracer,)
    sharding_types = (jax.sharding.Sharding,)

    cure_for_read_only = (
        "pass an array of NumPy, np.array(x), whose new contents are written back; or return the "
        "new array: arrays of JAX never change."
    )

    def type_of(self, array: Any) -> TensorType:
        return TensorType(np.dtype(array.dtype), tuple(array.shape))

    def receive(self, leaf: Any) -> Any:
        """Return an array as it is; NumPy's and numbers are copied, and go where a program says."""
        if isinstance(leaf, self.array_types):
            return leaf
        boundary = foreign_boundary(leaf)
        # A copy: JAX may refer to NumPy's memory, which the caller may change during the run
        return np.array(HOST.receive(leaf if boundary is None else boundary.to_host(leaf)))

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
        """Return results, of which those of a run on the host go to the default device."""
        with jax.enable_x64(True):
            return [jnp.array(x) if isinstance(x, HOST.array_types) else x for x in results]

    def copy(self, values: Sequence[Any]) -> list[Any]:
        return list(values)

    def is_writeable(self, array: Any) -> bool:
        return False

    def write(self, array: Any, value: Any) -> None:
        raise TypeError("an array of JAX never changes")

    def shares_memory(self, a: Any, b: Any) -> bool:
        return False


BOUNDARY = DeviceArrays()

_WIDE = [np.dtype(t) for t in (np.float64, np.complex128, np.int64, np.uint64)]
_warned: set[str] = set()


def warn_of_64_bits(graph: Graph) -> None:
    """Warn, once, if a graph has 64-bit numbers as results while JAX's default is 32 bits."""
    if _warned or jax.config.jax_enable_x64:
        return
    types = (result.type for result in graph.results)
    if any(isinstance(type, TensorType) and type.dtype in _WIDE for type in types):
        _warned.add("of 64 bits")
        warnings.warn(
            'backend="jax" gives 64-bit numbers, as wend\'s dtypes say, but functions of JAX turn '
            "them into 32-bit ones while jax_enable_x64 is off, and cut integers that do not fit: "
            'to keep them, set jax.config.update("jax_enable_x64", True); or compute in '
            "np.float32 and np.int32.",
            UserWarning,
            stacklevel=2,
        )


# What compilers say of what a device does not have: of TPUs, "rewriting computation to not contain
# X64 element types … is not implemented"; of Metal, "failed to legalize … f64"
_LACKS = re.compile(
    r"not implemented|unimplemented|not support|unsupported|legalize", re.IGNORECASE
)
_WIDE_NAMES = re.compile(r"\b(x64|[csuif]64|float64|complex128)\b", re.IGNORECASE)


def refusal_of_64_bits(graph: Graph, error: Exception) -> Exception | None:
    """Return why a device cannot run a graph, if an error says that it has no 64-bit numbers."""
    values = [value for node in graph.walk() for value in (*node.operands, *node.results)]
    types = [value.type for value in (*graph.params, *graph.results, *values)]
    wide = sorted({str(t.dtype) for t in types if isinstance(t, TensorType) and t.dtype in _WIDE})
    text = str(error)
    if not wide or not _LACKS.search(text) or not _WIDE_NAMES.search(text):
        return None
    first = next(line for line in text.splitlines() if line)
    problem = (
        f'backend="jax": {graph.name} computes with {listed(wide)}, and the device, '
        f"{jax.default_backend()}, does not: {first}"
    )
    cure = (
        "compute in np.float32 and np.int32; or on a device that has 64-bit numbers, as the CPU: "
        'jax.config.update("jax_platforms", "cpu"), before JAX is used.'
    )
    return refusal(UnsupportedError(explain(problem, cure=cure)))
