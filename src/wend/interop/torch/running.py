"""Runs of wend functions on tensors: on their memory where it is on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from wend.base.errors import TypeMismatchError
from wend.interop.flat_function import ArrayType, FlatFunction
from wend.interop.torch.devices import not_on_cpu_text, run_on_device

PLAIN_TENSORS = frozenset({torch.Tensor, torch.nn.Parameter})  # their memory is their elements


class _ElsewhereError(TypeMismatchError):
    """A tensor is not on the CPU."""


def to_numpy(x: Any) -> np.ndarray:
    """Return the elements of a tensor on the CPU, which share its memory."""
    if not isinstance(x, torch.Tensor):
        raise TypeMismatchError(f"expected a tensor, found {type(x).__name__}: {x!r:.60}")
    if not x.is_cpu:
        raise _ElsewhereError(not_on_cpu_text(x.device))
    array: np.ndarray = resolved(x).numpy()
    return array


def resolved(x: Any) -> Any:
    """Return a tensor whose memory holds its elements as they are."""
    x = x.detach().resolve_conj().resolve_neg()
    return x.clone() if x._is_zerotensor() else x  # zeros, as tangents may be, without memory


def dtype_of(type: ArrayType) -> Any:
    """Return the dtype of a tensor for an array."""
    return torch.from_numpy(np.empty(0, type.dtype)).dtype


def run(function: FlatFunction, operands: Sequence[Any]) -> list[Any]:
    """Return the results, without a derivative."""
    try:
        return _run_on_cpu(function, operands)
    except _ElsewhereError:  # no test of each operand before
        return run_on_device(function, operands)


def _run_on_cpu(function: FlatFunction, operands: Sequence[Any]) -> list[Any]:
    enter, models = function.entry or _prepare(function)
    if enter is None:
        return _run_arrays(function, operands)
    held = [_contiguous(x) for x in operands]
    outputs = [torch.empty_like(x) for x in models]
    enter(*[x.data_ptr() for x in held], *[x.data_ptr() for x in outputs])
    return outputs


def _prepare(function: FlatFunction) -> Any:
    """Set and return how machine code is entered, if it is, and tensors like the results."""
    call = function.buffer_call
    models = [_model(type) for type in function.result_types]
    function.entry = None if call is None else call.call, models
    return function.entry


def _model(type: ArrayType) -> Any:
    """Return a tensor on the CPU of which `torch.empty_like` makes results; it takes no memory."""
    if np.prod(type.shape, dtype=np.int64) > 1:  # results then are in C order
        return torch.empty((), dtype=dtype_of(type), device="cpu").expand(type.shape)
    return torch.empty(type.shape, dtype=dtype_of(type), device="cpu")


def _contiguous(x: Any) -> Any:
    """Return a tensor whose memory is its elements in C order."""
    if not x.is_cpu:
        raise _ElsewhereError(not_on_cpu_text(x.device))
    if x.is_complex() or x.is_neg() or x._is_zerotensor():
        x = resolved(x)
    return x if x.is_contiguous() else x.detach().contiguous()


def _run_arrays(function: FlatFunction, operands: Sequence[Any]) -> list[Any]:
    """Run a function by way of NumPy arrays."""
    results = function.run([to_numpy(x) for x in operands])
    return [
        torch.from_numpy(np.array(x)).reshape(type.shape)
        for x, type in zip(results, function.result_types, strict=True)
    ]
