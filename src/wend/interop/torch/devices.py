"""Tensors on a GPU: the JAX backend computes there, on the same memory (DLPack)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from wend.backends.protocol import choose
from wend.base.config import set_here
from wend.base.errors import TypeMismatchError, explain
from wend.interop.flat_function import FlatFunction

# The devices whose memory JAX takes from PyTorch
SHARED = frozenset({"cuda"})


def run_on_device(function: FlatFunction, operands: Sequence[Any]) -> list[Any]:
    """Run a function where its operands are; return tensors there.

    Args:
        function: the function.
        operands: tensors of one GPU, and numbers on the CPU.

    Raises:
        TypeMismatchError: they are on a device that JAX does not have, or on several.
    """
    devices = {x.device for x in operands if not x.is_cpu or x.ndim}
    device = next(iter(devices))
    if len(devices) > 1:
        names = " and ".join(sorted(map(str, devices)))
        cure = "move them to one device: x.to(device)."
        raise TypeMismatchError(explain(f"wend.interop.torch: tensors are on {names}.", cure=cure))
    if device.type not in SHARED:
        raise TypeMismatchError(not_on_cpu_text(device))
    try:
        boundary: Any = choose("jax").boundary
    except ImportError as error:
        raise TypeMismatchError(not_on_cpu_text(device)) from error
    with set_here(backend="jax"), boundary.in_64_bits():
        arrays = [_array(boundary, x.to(device)) for x in operands]
        results = function.concrete.run("jax", arrays)
    return [torch.from_dlpack(x) for x in results]


def _array(boundary: Any, x: Any) -> Any:
    """Return an array of JAX that shares the memory of a tensor."""
    try:
        return boundary.adopt(x.detach().resolve_conj().resolve_neg().contiguous())
    except (RuntimeError, ValueError) as error:
        raise TypeMismatchError(not_on_cpu_text(x.device)) from error


def not_on_cpu_text(device: Any) -> str:
    """Return the text that refuses a tensor on a device that nothing here computes on."""
    cure = "move it to the CPU and the results back: x.cpu()."
    if device.type in SHARED:
        cure = f"{cure[:-1]}; or install JAX for this device: pip install 'jax[cuda13]'."
    return explain(f"wend.interop.torch: a tensor is on {device}.", cure=cure)
