"""Programs of PyTorch that do nothing: what its own ways of adding a function take.

A function of theirs returns an array like its argument, and so does its gradient, which is a call
of the same function on the argument and the cotangent.
"""

from __future__ import annotations

from typing import Any

import torch


class EmptyFunction(torch.autograd.Function):  # type: ignore[misc]
    """For eager PyTorch."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Keep the argument, as gradients that compute from it do."""
        ctx.save_for_backward(x)
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        """Return an array like the argument."""
        (x,) = ctx.saved_tensors
        return torch.empty_like(x)


class EmptyTransformed(torch.autograd.Function):  # type: ignore[misc]
    """For `torch.func`; its gradient has one, too."""

    @staticmethod
    def forward(x: Any, *more: Any) -> Any:
        """Return an array like the argument."""
        return torch.empty_like(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep the argument."""
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        """Call the same function."""
        return EmptyTransformed.apply(*ctx.saved_tensors, ct)


class _Node(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, results: list[Any], *operands: Any) -> tuple[Any, ...]:
        ctx.save_for_backward(*operands)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *cts: Any) -> tuple[Any, ...]:
        return None, *_operation([*ctx.saved_tensors, *cts])


def _record(operands: list[Any]) -> list[Any]:
    with torch._C._AutoDispatchBelowAutograd():
        results = _operation(operands)
    if not torch._C._are_functorch_transforms_active():
        return results  # type: ignore[no-any-return]
    torch._C._functorch.set_single_level_autograd_function_allowed(True)
    try:
        return list(super(torch.autograd.Function, _Node).apply(results, *operands))
    finally:
        torch._C._functorch.set_single_level_autograd_function_allowed(False)


_library = torch.library.Library("bench", "DEF")
_library.define("empty(Tensor[] operands) -> Tensor[]")
_library.impl("empty", lambda xs: [torch.empty_like(xs[0])], "CPU")
_library.impl("empty", _record, "Autograd")
_operation: Any = torch.ops.bench.empty.default


def empty_operation(x: Any) -> Any:
    """Call an operation of `torch.library` with a kernel for autograd, as `as_torch` has one."""
    return _operation([x])[0]
