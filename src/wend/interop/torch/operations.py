"""Calls of wend functions on tensors, with PyTorch's rules of differentiation and batching.

The derivatives of a call are calls, so they have derivatives and batches of the same kind. A
derivative call is self-contained: it computes from the operands (D42).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

from wend.base.errors import TypeMismatchError
from wend.interop.flat_function import ArrayType, FlatFunction
from wend.interop.numbered_functions import NumberedFunctions
from wend.interop.torch.devices import not_on_cpu_text, run_on_device

_functions = NumberedFunctions()  # that graphs of torch.compile call


PLAIN_TENSORS = frozenset({torch.Tensor, torch.nn.Parameter})  # their memory is their elements

# PyTorch does not tell officially whether a function of `torch.func`, or forward mode, is at work.
# Where the name is gone, each call goes the general way, which is slower.
_is_transformed: Callable[[], bool] = getattr(
    torch._C, "_are_functorch_transforms_active", lambda: True
)


def _is_forward_mode() -> bool:
    return getattr(forward_ad, "_current_level", 0) >= 0


def call(function: FlatFunction, operands: Sequence[Any]) -> tuple[Any, ...]:
    """Call a function of arrays on tensors."""
    needs_grad = False
    for x in operands:
        if type(x) not in PLAIN_TENSORS:  # fake tensors come when nothing is compiled, too
            return _call_by_number(function, operands)
        needs_grad = needs_grad or x.requires_grad
    if torch.compiler.is_compiling():
        return _call_by_number(function, operands)
    apply: Callable[..., tuple[Any, ...]]
    if _is_transformed():
        apply = _TransformedCall.apply
    elif _is_forward_mode() or (needs_grad and torch.is_grad_enabled()):
        apply = _EagerCall.apply
    else:
        return tuple(_run(function, operands))
    return apply(function, *operands)


def _call_by_number(function: FlatFunction, operands: Sequence[Any]) -> tuple[Any, ...]:
    """Call a function as an operation that graphs may hold."""
    number = _functions.number_of(function)
    return tuple(torch.ops.wend.call(list(operands), number))


def to_numpy(x: Any) -> np.ndarray:
    """Return the elements of a tensor on the CPU, which share its memory."""
    if not isinstance(x, torch.Tensor):
        raise TypeMismatchError(f"expected a tensor, found {type(x).__name__}: {x!r:.60}")
    if not x.is_cpu:
        raise _ElsewhereError(not_on_cpu_text(x.device))
    array: np.ndarray = x.detach().resolve_conj().resolve_neg().numpy()
    return array


def dtype_of(type: ArrayType) -> Any:
    """Return the dtype of a tensor for an array."""
    return torch.from_numpy(np.empty(0, type.dtype)).dtype


class _ElsewhereError(TypeMismatchError):
    """A tensor is not on the CPU."""


def _run(function: FlatFunction, operands: Sequence[Any]) -> list[Any]:
    try:
        return _run_on_cpu(function, operands)
    except _ElsewhereError:  # no test of each operand before
        return run_on_device(function, operands)


def _run_on_cpu(function: FlatFunction, operands: Sequence[Any]) -> list[Any]:
    enter, models = function.entry or _prepare(function)
    if enter is None:
        return _run_arrays(function, operands)
    held = [_contiguous(x) for x in operands]
    outputs = [torch.empty_like(x, memory_format=torch.contiguous_format) for x in models]
    enter(*[x.data_ptr() for x in held], *[x.data_ptr() for x in outputs])
    return outputs


def _prepare(function: FlatFunction) -> Any:
    """Set and return how machine code is entered, if it is, and tensors like the results."""
    call = function.buffer_call
    models = [torch.empty((), dtype=dtype_of(t)).expand(t.shape) for t in function.result_types]
    function.entry = None if call is None else call.call, models
    return function.entry


def direct_call(function: FlatFunction) -> Callable[[Sequence[Any]], Any] | None:
    """Return the fast path for eager calls of machine code that need no gradient.

    It returns None for other calls, and for tensors that have to be copied first. One Python
    function does what `call` does in several, which saves a third of the time for small tensors.
    """
    entry: Any = function.entry
    if entry is None or entry[0] is None:
        return None
    if any(type.dtype.kind == "c" for type in (*function.types, *function.result_types)):
        return None
    enter, (model,) = entry
    empty_like, c_order = torch.empty_like, torch.contiguous_format
    is_compiling, is_grad_enabled = torch.compiler.is_compiling, torch.is_grad_enabled
    is_transformed, is_forward_mode = _is_transformed, _is_forward_mode

    def run(tensors: Sequence[Any]) -> Any:
        if is_compiling() or is_transformed() or is_forward_mode():
            return None
        pointers = []
        for x in tensors:
            if not x.is_cpu or x.is_neg() or not x.is_contiguous():
                return None
            if x.requires_grad and is_grad_enabled():
                return None
            pointers.append(x.data_ptr())
        result = empty_like(model, memory_format=c_order)
        enter(*pointers, result.data_ptr())
        return result

    return run


def _contiguous(x: Any) -> Any:
    """Return a tensor whose memory is its elements in C order."""
    if not x.is_cpu:
        raise _ElsewhereError(not_on_cpu_text(x.device))
    if x.is_complex() or x.is_neg():
        x = x.detach().resolve_conj().resolve_neg()
    return x if x.is_contiguous() else x.detach().contiguous()


def _run_arrays(function: FlatFunction, operands: Sequence[Any]) -> list[Any]:
    """Run a function by way of NumPy arrays."""
    results = function.run([to_numpy(x) for x in operands])
    return [
        torch.from_numpy(np.array(x)).reshape(type.shape)
        for x, type in zip(results, function.result_types, strict=True)
    ]


def conjugate(x: Any) -> Any:
    """Return the conjugate: PyTorch's gradients are those of wend and JAX, conjugated."""
    return torch.conj_physical(x) if x.is_complex() else x


def _pull_back(
    call: Callable[..., tuple[Any, ...]],
    function: FlatFunction,
    operands: Sequence[Any],
    is_needed: Sequence[bool],
    cts: Sequence[Any],
) -> list[Any]:
    """Return the gradients of the operands, None where there is none; `call` computes them."""
    positions = function.differentiable_results
    wrt = tuple(k for k in function.differentiable_operands if is_needed[k])
    seeded = tuple(k for k, i in enumerate(positions) if cts[i] is not None)
    gradients: list[Any] = [None] * len(operands)
    if wrt and seeded:
        seeds = [conjugate(cts[positions[k]]) for k in seeded]
        pulled = call(function.cotangents(wrt, seeded), [*operands, *seeds])
        for k, gradient in zip(wrt, pulled, strict=True):
            gradients[k] = conjugate(gradient)
    return gradients


def _keep(ctx: Any, function: FlatFunction, operands: Sequence[Any], output: Any) -> None:
    """Keep what the derivatives of a call need."""
    ctx.function = function
    ctx.save_for_backward(*operands)
    if _is_forward_mode() or _is_transformed():
        ctx.save_for_forward(*operands)
    ctx.set_materialize_grads(False)
    floats = function.differentiable_results
    if len(floats) < len(output):
        ctx.mark_non_differentiable(*(x for k, x in enumerate(output) if k not in floats))


class _EagerCall(torch.autograd.Function):  # type: ignore[misc]
    """A call in eager PyTorch, outside of the functions of `torch.func`."""

    @staticmethod
    def forward(ctx: Any, function: FlatFunction, *operands: Any) -> tuple[Any, ...]:
        output = tuple(_run(function, operands))
        _keep(ctx, function, operands, output)
        return output

    @staticmethod
    def backward(ctx: Any, *cts: Any) -> tuple[Any, ...]:
        is_needed = ctx.needs_input_grad[1:]
        return (None, *_pull_back(call, ctx.function, ctx.saved_tensors, is_needed, cts))

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> tuple[Any, ...]:
        function = ctx.function
        wrt = tuple(
            k
            for k, t in enumerate(tangents)
            if t is not None and function.types[k].is_differentiable
        )
        pushed: list[Any] = [None] * len(function.result_types)
        if wrt:
            operands = [*ctx.saved_tensors, *(tangents[k] for k in wrt)]
            results = call(function.tangents(wrt), operands)
            for k, tangent in zip(function.differentiable_results, results, strict=True):
                pushed[k] = tangent
        return tuple(pushed)


class _TransformedCall(_EagerCall):
    """A call that functions of `torch.func` transform.

    PyTorch binds its arguments by `inspect.signature`, which takes longer than all else.
    """

    @staticmethod
    def forward(function: FlatFunction, *operands: Any) -> tuple[Any, ...]:  # type: ignore[override]
        return tuple(_run(function, operands))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        function, *operands = inputs
        _keep(ctx, function, operands, output)

    @staticmethod
    def vmap(info: Any, in_dims: Any, function: FlatFunction, *operands: Any) -> Any:
        mapped = function.mapped(tuple(in_dims[1:]), info.batch_size)
        results = call(mapped, operands)
        return results, (0,) * len(results)


# In graphs of torch.compile
@torch.library.custom_op("wend::call", mutates_args=())  # type: ignore[untyped-decorator]
def _compiled_call(operands: list[torch.Tensor], number: int) -> list[torch.Tensor]:
    return _run(_functions[number], operands)


def _fake_call(operands: list[Any], number: int) -> list[Any]:
    types = _functions[number].result_types
    device = next((x.device for x in operands if x.ndim), None)
    return [torch.empty(type.shape, dtype=dtype_of(type), device=device) for type in types]


def _keep_operands(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    operands, ctx.number = inputs
    ctx.save_for_backward(*operands)


def _compiled_backward(ctx: Any, cts: list[Any]) -> tuple[Any, None]:
    operands = ctx.saved_tensors
    is_needed = [x.requires_grad for x in operands]
    gradients = _pull_back(_call_by_number, _functions[ctx.number], operands, is_needed, cts)
    return gradients, None


_compiled_call.register_fake(_fake_call)
_compiled_call.register_autograd(_compiled_backward, setup_context=_keep_operands)
