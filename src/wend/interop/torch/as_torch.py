"""`as_torch`: a wend function as a function of tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.fx.immutable_collections import immutable_dict, immutable_list

from wend.base import trees
from wend.base.errors import TypeMismatchError, explain
from wend.interop.bridged import SignatureTraces
from wend.interop.flat_function import ArrayType, Bridge, as_weak
from wend.interop.torch.direct_calls import MISSED, DirectCalls
from wend.interop.torch.operations import call

_PYTHON_NUMBERS = (bool, int, float, complex)


def _is_operand(leaf: Any) -> bool:
    return isinstance(leaf, (torch.Tensor, np.ndarray, np.generic, *_PYTHON_NUMBERS))


def _as_tensor(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf
    return torch.from_numpy(np.array(leaf)) if _is_operand(leaf) else None


_NUMPY_DTYPES = {  # looked up, for a tensor made while PyTorch compiles has no elements
    torch.from_numpy(np.empty(0, dtype)).dtype: np.dtype(dtype) for dtype in "?bBhHiIlLefdFD"
}


def _numpy_dtype(dtype: Any) -> np.dtype[Any]:
    if dtype not in _NUMPY_DTYPES:
        cure = "cast it, for example by x.float()."
        raise TypeMismatchError(explain(f"as_torch: NumPy has no {dtype}.", cure=cure))
    return _NUMPY_DTYPES[dtype]


def _type_of(tensor: Any) -> ArrayType:
    return ArrayType(tuple(tensor.shape), _numpy_dtype(tensor.dtype))


# What torch.compile makes of the lists and dicts among arguments, for the trace a list or a dict
trees.register_node(immutable_list, lambda x: (list(x), None), lambda _, items: list(items))
trees.register_node(
    immutable_dict,
    lambda x: (list(x.values()), tuple(x)),
    lambda keys, items: dict(zip(keys, items, strict=True)),
)

_TORCH = Bridge(
    name="as_torch",
    compiler="PyTorch",
    arrays="its gradients",
    call=call,
    flatten=trees.flatten,
    unflatten=trees.unflatten,
    as_operand=_as_tensor,
    type_of=_type_of,
    is_weak=lambda leaf, tensor: type(leaf) in _PYTHON_NUMBERS,
    as_weak=as_weak,
    leaf_cure="register its class with wend.tree, or pass its tensors.",
    own_dtype=lambda dtype: dtype,
)


def as_torch(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of tensors that runs a wend function as native code.

    It works under autograd to any order, and under `torch.func.grad`, `vjp`, `jvp`, `hessian` and
    `vmap`: loops whose trip count depends on the data have derivatives. Operands share memory with
    the tensors. The function is traced once for each signature; a derivative call computes from
    the operands.

    Args:
        fun: a function of pytrees of arrays, plain or a `wend.Function`. Other leaves than tensors,
            arrays and numbers must be hashable, and are part of the signature.

    Returns:
        A function of the same arguments, whose results are tensors. Tensors on a GPU are computed
        on there by JAX (`backend="jax"`), which must be installed for that GPU.

    Raises:
        VariableError: `fun` uses a variable.
        TypeMismatchError: it changes an argument in place, prints, calls Python, or returns arrays
            whose size only a run can tell; or tensors are on a device that JAX does not have, or
            of a dtype that NumPy does not have.

    Example:
        >>> import torch, numpy as np  # doctest: +SKIP
        >>> from wend.interop.torch import as_torch  # doctest: +SKIP
        >>> def root(a):
        ...     x = a
        ...     while np.abs(x * x - a) > 1e-12 * a:
        ...         x = 0.5 * (x + a / x)
        ...     return x
        >>> a = torch.tensor(4.0, dtype=torch.float64, requires_grad=True)  # doctest: +SKIP
        >>> as_torch(root)(a).backward()  # doctest: +SKIP
        >>> round(a.grad.item(), 9)  # doctest: +SKIP
        0.25
    """
    traces = SignatureTraces(_TORCH, fun)
    direct_calls = DirectCalls()
    by_count = direct_calls.by_count

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and (direct := by_count.get(len(args))):
            result = direct(*args)
            if result is not MISSED:
                return result
        trace, tensors = traces.find(args, kwargs)
        result = trace(tensors)
        if not kwargs:
            direct_calls.add(args, trace)
        return result

    # A code object of its own: by it torch.compile tells the functions that a program may call.
    call.__code__ = call.__code__.replace()  # type: ignore[attr-defined]
    opaque: Callable[..., Any] = torch.compiler.allow_in_graph(call)
    return opaque
