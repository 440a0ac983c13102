"""Calls of Python by a program, with all bits of 64-bit arrays.

JAX makes these calls in threads of XLA, where 64-bit numbers are off unless the user has turned
them on for the process: it would round what it passes. So such arrays are passed as 32-bit words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_WORD = np.dtype(np.uint32)


def call_host(
    call: Callable[..., Any],
    function: Callable[..., Sequence[Any]],
    specs: Sequence[jax.ShapeDtypeStruct],
    arrays: Sequence[jax.Array],
    **options: Any,
) -> list[jax.Array]:
    """Return what a function of NumPy's arrays returns, of some shapes and dtypes.

    Args:
        call: `jax.pure_callback`, or another callback of JAX.
        function: what is called.
        specs: of its results.
        arrays: its arguments.
        options: those of `call`.
    """
    types = [(x.shape, np.dtype(x.dtype)) for x in arrays]

    def run(*passed: Any) -> Sequence[Any]:
        values = [_received(x, *type) for x, type in zip(passed, types, strict=True)]
        results = zip(function(*values), specs, strict=True)
        return [_sent(np.asarray(x, s.dtype), s) for x, s in results]

    words = call(run, [_passed(s) for s in specs], *map(_words, arrays), **options)
    return [_array(x, s) for x, s in zip(words, specs, strict=True)]


def _passed(spec: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    """Return the shape and dtype in which an array is passed."""
    if not _has_words(np.dtype(spec.dtype)):
        return spec
    axes = (2, 2) if spec.dtype == np.complex128 else (2,)
    return jax.ShapeDtypeStruct((*spec.shape, *axes), _WORD)


def _has_words(dtype: np.dtype) -> bool:
    return dtype.itemsize >= 8 and dtype != np.complex64


def _words(x: jax.Array) -> jax.Array:
    """Return an array as it is passed to Python."""
    if not _has_words(np.dtype(x.dtype)):
        return x
    parts = jnp.stack([x.real, x.imag], axis=-1) if x.dtype == np.complex128 else x
    return jax.lax.bitcast_convert_type(parts, _WORD)


def _array(x: jax.Array, spec: jax.ShapeDtypeStruct) -> jax.Array:
    """Return an array that Python has passed."""
    if not _has_words(np.dtype(spec.dtype)):
        return x
    if spec.dtype != np.complex128:
        return jax.lax.bitcast_convert_type(x, spec.dtype)
    parts = jax.lax.bitcast_convert_type(x, np.float64)
    return jax.lax.complex(parts[..., 0], parts[..., 1])


def _received(x: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    x = np.asarray(x)
    whole = x.reshape(-1).view(dtype).reshape(shape) if _has_words(dtype) else x
    return whole[()]


def _sent(x: np.ndarray, spec: jax.ShapeDtypeStruct) -> np.ndarray:
    passed = _passed(spec)
    return x.reshape(-1).view(passed.dtype).reshape(passed.shape) if passed is not spec else x
