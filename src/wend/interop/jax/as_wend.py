"""`as_wend`: a JAX function as a function of wend programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from wend.interop import foreign_function
from wend.interop.foreign_function import ArrayLibrary


def as_wend(fun: Callable[..., Any], result_specs: Any) -> Callable[..., Any]:
    """Return a function for wend programs that runs a JAX function.

    `jax.jit` compiles the function once for each signature. A recorded loop calls it in every trip,
    in program order with prints. Derivatives of any order and in both modes are JAX's.

    Args:
        fun: a function of pytrees of JAX arrays, without side effects.
        result_specs: the results: a pytree of `TensorSpec`s or of arrays like them.

    Returns:
        A function of pytrees of arrays, plain or traced.

    Raises:
        TypeMismatchError: `fun` returns an array of another dtype or shape.
        StructureError: it returns another structure.

    Example:
        >>> import jax.numpy as jnp, numpy as np, wend
        >>> from wend.interop.jax import as_wend
        >>> sine = as_wend(jnp.sin, wend.TensorSpec((), np.float32))
        >>> @wend.function
        ... def twice(x):
        ...     for _ in range(2):
        ...         x = sine(x)
        ...     return x
        >>> print(round(float(twice(np.float32(1.0))), 4))
        0.7456
    """
    return foreign_function.as_wend(_JAX, fun, result_specs)


def _on_numpy(fun: Callable[..., Any]) -> Callable[..., tuple[np.ndarray, ...]]:
    jitted = jax.jit(fun)
    return lambda *arrays: tuple(map(np.asarray, jitted(*arrays)))


def _vjp(
    fun: Callable[..., Any], arrays: Sequence[Any]
) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    _, pull_back = jax.vjp(fun, *arrays)
    return lambda cts: pull_back(tuple(cts))


_JAX = ArrayLibrary(
    flatten=jax.tree_util.tree_flatten,
    on_numpy=_on_numpy,
    vjp=_vjp,
    is_float=lambda x: np.dtype(x.dtype).kind in "fc",
)
