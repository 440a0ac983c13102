"""The warning that JAX does not compute on with the 64-bit floats that wend gives."""

from __future__ import annotations

import warnings

import jax
import numpy as np

from wend.ir.graph import Graph
from wend.ir.types import TensorType

_WIDE = (np.dtype(np.float64), np.dtype(np.complex128))
_warned: set[str] = set()


def warn_of_64_bits(graph: Graph) -> None:
    """Warn, once, if a graph has 64-bit floats as results while JAX's default is 32 bits."""
    if _warned or jax.config.jax_enable_x64:
        return
    types = (result.type for result in graph.results)
    if any(isinstance(type, TensorType) and type.dtype in _WIDE for type in types):
        _warned.add("of 64 bits")
        warnings.warn(
            'backend="jax" gives 64-bit floats, as wend\'s dtypes say, but functions of JAX turn '
            "them into 32-bit ones while jax_enable_x64 is off: to keep them, set "
            'jax.config.update("jax_enable_x64", True); or compute in np.float32.',
            UserWarning,
            stacklevel=2,
        )
