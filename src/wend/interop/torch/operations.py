"""Calls of wend functions on tensors, with PyTorch's rules of differentiation and batching.

The derivatives of a call are calls, so they have derivatives and batches of the same kind. A
derivative call is self-contained: it computes from the operands (D42).

A call in eager PyTorch is a run and, where a gradient may be asked for, a node of autograd's graph.
Elsewhere a call is the operation `wend::call`, which PyTorch's dispatcher takes through the
functions of `torch.func`, the modes that trace, and graphs of `torch.compile`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

from wend.interop.flat_function import FlatFunction
from wend.interop.numbered_functions import NumberedFunctions
from wend.interop.torch.running import PLAIN_TENSORS, dtype_of, run

_functions = NumberedFunctions()  # that the operation calls

# PyTorch does not tell officially whether a function of `torch.func`, a mode that sees all
# operations, or forward mode is at work. Where a name is gone, calls go the general way, which is
# slower.
is_transformed: Callable[[], bool] = getattr(
    torch._C, "_are_functorch_transforms_active", lambda: True
)
modes: Callable[[], int] = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)


def is_forward_mode() -> bool:
    """Whether tensors may have tangents."""
    return getattr(forward_ad, "_current_level", 0) >= 0


def call(function: FlatFunction, operands: Sequence[Any]) -> Sequence[Any]:
    """Call a function of arrays on tensors."""
    if is_transformed() or not _is_eager(operands):
        return dispatch(function, [*operands])
    return _call_eagerly(function, operands)


def _is_eager(operands: Sequence[Any]) -> bool:
    """Whether a call outside of `torch.func` is seen by nobody but autograd."""
    return not modes() and PLAIN_TENSORS.issuperset(map(type, operands))


def _call_eagerly(function: FlatFunction, operands: Sequence[Any]) -> Sequence[Any]:
    results = run(function, operands)
    if is_forward_mode() or (torch.is_grad_enabled() and any(x.requires_grad for x in operands)):
        return apply_call(function, results, *operands)
    return results


def dispatch(function: FlatFunction, operands: list[Any]) -> list[Any]:
    """Call a function by PyTorch's dispatcher."""
    if modes():  # perhaps one that makes a program
        return _operation(operands, _functions.number_of(function))  # type: ignore[no-any-return]
    return _operation(operands, _functions.passing_number_of(function))  # type: ignore[no-any-return]


def conjugate(x: Any) -> Any:
    """Return the conjugate: PyTorch's gradients are those of wend and JAX, conjugated."""
    return torch.conj_physical(x) if x.is_complex() else x


def _pull_back(
    function: FlatFunction, is_needed: tuple[bool, ...], is_seeded: tuple[bool, ...]
) -> tuple[FlatFunction | None, tuple[int, ...], tuple[int, ...]]:
    """Return what computes gradients, if there are any, and the operands and results it is of."""
    key = is_needed, is_seeded
    known: Any = function.pullbacks.get(key)
    if known is None:
        positions = function.differentiable_results
        wrt = tuple(k for k in function.differentiable_operands if is_needed[k])
        seeded = tuple(k for k, i in enumerate(positions) if is_seeded[i])
        pull_back = function.cotangents(wrt, seeded) if wrt and seeded else None
        known = pull_back, wrt, tuple(positions[k] for k in seeded)
        function.pullbacks[key] = known
    return known  # type: ignore[no-any-return]


class _CallNode(torch.autograd.Function):  # type: ignore[misc]
    """A node of autograd's graph: a call that has run."""

    @staticmethod
    def forward(
        ctx: Any, function: FlatFunction, results: Sequence[Any], *operands: Any
    ) -> tuple[Any, ...]:
        # The dispatcher takes what is left of operands after a function of `torch.func`
        ctx.function, ctx.call = function, dispatch if is_transformed() else call
        ctx.save_for_backward(*operands)
        if is_forward_mode() or modes():
            ctx.save_for_forward(*operands)
        ctx.set_materialize_grads(False)
        floats = function.differentiable_results
        if len(floats) < len(results):
            ctx.mark_non_differentiable(*(x for k, x in enumerate(results) if k not in floats))
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *cts: Any) -> tuple[Any, ...]:
        is_needed, is_seeded = ctx.needs_input_grad[2:], tuple([ct is not None for ct in cts])
        pull_back, wrt, seeded = _pull_back(ctx.function, is_needed, is_seeded)
        gradients: list[Any] = [None] * (2 + len(is_needed))
        if pull_back is not None:
            seeds = [conjugate(cts[k]) for k in seeded]
            pulled = ctx.call(pull_back, [*ctx.saved_tensors, *seeds])
            for k, gradient in zip(wrt, pulled, strict=True):
                gradients[2 + k] = conjugate(gradient)
        return tuple(gradients)

    @staticmethod
    def jvp(ctx: Any, _: Any, __: Any, *tangents: Any) -> tuple[Any, ...]:
        function = ctx.function
        wrt = tuple(
            k
            for k, t in enumerate(tangents)
            if t is not None and function.types[k].is_differentiable
        )
        pushed: list[Any] = [None] * len(function.result_types)
        if wrt:
            operands = [*ctx.saved_tensors, *(tangents[k] for k in wrt)]
            results = ctx.call(function.tangents(wrt), operands)
            for k, tangent in zip(function.differentiable_results, results, strict=True):
                pushed[k] = tangent
        return tuple(pushed)


# Makes a node: `apply` of `torch.autograd.Function` but for what it does for `torch.func`, which
# takes most of its time
apply_call: Callable[..., tuple[Any, ...]] = super(torch.autograd.Function, _CallNode).apply


# The operation. Its kernels for autograd and for batches are ours: those that `torch.library` makes
# of rules refuse the functions of `torch.func`.
_library = torch.library.Library("wend", "DEF")
_library.define(
    "call(Tensor[] operands, int number) -> Tensor[]", tags=(torch.Tag.pt2_compliant_tag,)
)
_operation: Any = torch.ops.wend.call.default


def _run(operands: list[Any], number: int) -> list[Any]:
    return run(_functions[number], operands)


def _fake_run(operands: list[Any], number: int) -> list[Any]:
    types = _functions[number].result_types
    device = next((x.device for x in operands if x.ndim), None)
    return [torch.empty(type.shape, dtype=dtype_of(type), device=device) for type in types]


def _run_and_record(operands: list[Any], number: int) -> list[Any]:
    function = _functions[number]
    if not is_transformed() and _is_eager(operands):
        return list(_call_eagerly(function, operands))
    with torch._C._AutoDispatchBelowAutograd():
        if torch._C._is_fwd_grad_enabled():
            results = _operation(operands, number)
        else:  # in `jvp`: it is off for this function of `torch.func`, not for those around it
            with forward_ad._set_fwd_grad_enabled(True):
                results = _operation(operands, number)
    was_allowed = _may_record_here()
    _let_record_here(True)
    try:
        return list(apply_call(function, results, *operands))
    finally:
        _let_record_here(was_allowed)


# The dispatcher calls a kernel for autograd once for each function of `torch.func`. PyTorch allows
# it to add a node only if it asks to.
_functorch = torch._C._functorch
_may_record_here = _functorch.get_single_level_autograd_function_allowed
_let_record_here = _functorch.set_single_level_autograd_function_allowed


def _run_batch(info: Any, in_dims: Any, operands: list[Any], number: int) -> Any:
    mapped = _functions[number].mapped(tuple(in_dims[0]), info.batch_size)
    results = list(call(mapped, operands))
    return results, [0] * len(results)


_library.impl("call", _run, "CompositeExplicitAutograd")
_library.impl("call", _run_and_record, "Autograd")
torch.library.register_fake("wend::call", _fake_run, lib=_library)
torch.library.register_vmap("wend::call", _run_batch, lib=_library)
