"""`as_wend`: a function or module of PyTorch as a function of wend programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from wend.base import trees
from wend.interop import foreign_function
from wend.interop.foreign_function import ArrayLibrary
from wend.interop.torch.operations import conjugate
from wend.interop.torch.running import to_numpy


def as_wend(fun: Callable[..., Any], result_specs: Any) -> Callable[..., Any]:
    """Return a function for wend programs that runs a function or module of PyTorch.

    A recorded loop calls it in every trip, in program order with prints. Derivatives of any order
    and in both modes are PyTorch's, in the arguments; the parameters of a module are constants with
    the values that they have in the call. For derivatives in them, pass them as an argument:
    `as_wend(lambda params, x: torch.func.functional_call(module, params, (x,)), specs)`.

    Args:
        fun: a function of pytrees of tensors on the CPU, or a `torch.nn.Module`, without side
            effects. It gets tensors of the dtypes of the arrays.
        result_specs: the results: a pytree of `TensorSpec`s or of arrays like them.

    Returns:
        A function of pytrees of arrays, plain or traced.

    Raises:
        TypeMismatchError: `fun` returns no tensor, or one of another dtype or shape or on another
            device.
        StructureError: it returns another structure.

    Example:
        >>> import numpy as np, torch, wend  # doctest: +SKIP
        >>> from wend.interop.torch import as_wend  # doctest: +SKIP
        >>> sine = as_wend(torch.sin, wend.TensorSpec((), np.float64))  # doctest: +SKIP
        >>> @wend.function  # doctest: +SKIP
        ... def twice(x):
        ...     for _ in range(2):
        ...         x = sine(x)
        ...     return x
        >>> print(round(twice(1.0), 4))  # doctest: +SKIP
        0.7456
    """
    return foreign_function.as_wend(_TORCH, fun, result_specs)


def _on_numpy(fun: Callable[..., Any]) -> Callable[..., tuple[np.ndarray, ...]]:
    def run(*arrays: Any) -> tuple[np.ndarray, ...]:
        # Copies: what the function keeps or changes is its own.
        operands = [torch.from_numpy(np.array(x)) for x in arrays]
        with torch.no_grad():
            return tuple(np.array(to_numpy(x)) for x in fun(*operands))

    return run


def _vjp(
    fun: Callable[..., Any], tensors: Sequence[Any]
) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    with torch.enable_grad():
        _, pull_back = torch.func.vjp(fun, *tensors)
    return lambda cts: tuple(map(conjugate, pull_back(tuple(map(conjugate, cts)))))


_TORCH = ArrayLibrary(
    flatten=trees.flatten,
    on_numpy=_on_numpy,
    vjp=_vjp,
    is_float=lambda x: x.is_floating_point() or x.is_complex(),
)
