"""`as_torch`: a wend function as a function of tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from wend.base import trees
from wend.base.errors import TypeMismatchError, explain
from wend.capture.convert import capture
from wend.function.function import Function
from wend.interop.flat_function import ArrayType, Bridge, FlatFunction, as_weak
from wend.interop.torch.operations import call

_TORCH = Bridge(
    name="as_torch",
    compiler="PyTorch",
    arrays="its gradients",
    own_dtype=lambda dtype: dtype,
)

_PYTHON_NUMBERS = (bool, int, float, complex)


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
        A function of the same arguments, whose results are tensors on the CPU.

    Raises:
        VariableError: `fun` uses a variable.
        TypeMismatchError: it changes an argument in place, prints, calls Python, or returns arrays
            whose size only a run can tell; or a tensor is not on the CPU, or of a dtype that NumPy
            does not have.

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
    if not callable(fun):
        raise TypeError(f"as_torch takes a function, not {fun!r}")
    name = fun.name if isinstance(fun, Function) else str(getattr(fun, "__name__", "function"))
    traces: dict[Any, _Trace] = {}

    @functools.wraps(fun)
    def call_traced(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = trees.flatten((args, kwargs))
        operands = [_as_tensor(x) for x in leaves]
        static = tuple(
            None if operand is not None else _static(name, leaf)
            for operand, leaf in zip(operands, leaves, strict=True)
        )
        tensors = [x for x in operands if x is not None]
        types = tuple(map(_type_of, tensors))
        is_weak = tuple(type(x) in _PYTHON_NUMBERS for x in leaves if _is_operand(x))
        key = structure, static, types, is_weak
        if key not in traces:
            traces[key] = _Trace(name, fun, structure, static, types, is_weak)
        return traces[key](tensors)

    opaque: Callable[..., Any] = torch.compiler.allow_in_graph(call_traced)
    return opaque


def _is_operand(leaf: Any) -> bool:
    return isinstance(leaf, (torch.Tensor, np.ndarray, np.generic, *_PYTHON_NUMBERS))


def _as_tensor(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf
    return torch.from_numpy(np.array(leaf)) if _is_operand(leaf) else None


@functools.cache
def _numpy_dtype(dtype: Any) -> np.dtype[Any]:
    try:
        own: np.dtype[Any] = torch.empty(0, dtype=dtype).numpy().dtype
    except TypeError:
        cure = "cast it, for example by x.float()."
        raise TypeMismatchError(explain(f"as_torch: NumPy has no {dtype}.", cure=cure)) from None
    return own


def _type_of(tensor: Any) -> ArrayType:
    return ArrayType(tuple(tensor.shape), _numpy_dtype(tensor.dtype))


def _static(name: str, leaf: Any) -> tuple[type, Any]:
    try:
        hash(leaf)
    except TypeError:
        what = f"as_torch of {name}: an argument holds a {type(leaf).__name__}, which has no hash."
        cure = "register its class with wend.tree, or pass its tensors."
        raise TypeMismatchError(explain(what, cure=cure)) from None
    return type(leaf), leaf


class _Trace:
    """A function for one signature."""

    def __init__(
        self,
        name: str,
        fun: Callable[..., Any],
        structure: trees.TreeDef,
        static: Sequence[tuple[type, Any] | None],
        types: Sequence[ArrayType],
        is_weak: Sequence[bool],
    ) -> None:
        self._fun, self._structure, self._static, self._is_weak = fun, structure, static, is_weak
        self._result: trees.TreeDef | None = None
        self._flat = FlatFunction(_TORCH, name, self._call_flat, types)

    def __call__(self, tensors: Sequence[Any]) -> Any:
        self._flat.result_types  # noqa: B018 - what is refused is raised outside of PyTorch
        results = call(self._flat, tensors)
        assert self._result is not None
        return trees.unflatten(self._result, results)

    def _call_flat(self, *arrays: Any) -> tuple[Any, ...]:
        """Call the function on arrays alone; note the structure of its result."""
        pairs = zip(arrays, self._is_weak, strict=True)
        remaining = iter([as_weak(x) if weak else x for x, weak in pairs])
        leaves = [next(remaining) if leaf is None else leaf[1] for leaf in self._static]
        args, kwargs = trees.unflatten(self._structure, leaves)
        fun = self._fun if isinstance(self._fun, Function) else capture(self._fun)
        results, self._result = trees.flatten(fun(*args, **kwargs))
        return tuple(results)
