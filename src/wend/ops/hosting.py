"""Host calls: calls of Python at execution time, and their pullbacks (D17).

    py_function(token, arrays…)                        → token, results…
    py_function_forward(token, arrays…)                → token, results…, handle
    py_pull(handle, sources…, cotangents…)             → cotangents of some of the sources
    py_pull_forward(handle, sources…, cotangents…)     → the same, handle

A handle is a recorded run of Python, which the forward form gives as a residual. A pull may be
recorded in turn, on the same handle, so derivatives of any order exist. The sources are operands
so that the pull can be differentiated by them; their values are those that the handle holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from wend.base.errors import TypeMismatchError
from wend.ir.graph import Node, Value
from wend.ir.op import ByRegions, Effect, Op
from wend.ir.types import HOST, TOKEN, TensorType, Type, fresh, is_differentiable
from wend.runtime.host_results import noted_results

# A dtype and a shape; a size is None if only the run knows it, the shape None for any rank.
Declared: TypeAlias = tuple[np.dtype, tuple[int | None, ...] | None]


class Handle(Protocol):
    """A recorded run of Python."""

    def pull(self, seeded: Sequence[int], wrt: Sequence[int], cts: Sequence[Any]) -> list[Any]:
        """Return the cotangents of some sources, from those of some results."""

    def pull_recorded(
        self, seeded: Sequence[int], wrt: Sequence[int], cts: Sequence[Any]
    ) -> tuple[list[Any], Handle]:
        """Pull back like `pull`, recorded with respect to the sources and the cotangents."""


class HostCallable(Protocol):
    """A Python function that graphs call."""

    @property
    def name(self) -> str:
        """The function's name in the user's code."""

    def call(self, arrays: Sequence[Any]) -> list[Any]:
        """Run the function."""

    def call_recorded(self, arrays: Sequence[Any]) -> tuple[list[Any], Handle]:
        """Run the function, recorded with respect to its differentiable arrays."""


def _infer_call(
    token: Type, *arrays: Type, function: HostCallable, results: tuple[Declared, ...]
) -> tuple[Type, ...]:
    if token != TOKEN:
        raise TypeMismatchError(f"the first operand must be a token, not {token}")
    types: list[Type] = [TOKEN]
    for dtype, sizes in results:
        first = sum(len(getattr(type, "shape", None) or ()) for type in types)
        shape = None
        if sizes is not None:
            shape = tuple(fresh(first + k) if n is None else n for k, n in enumerate(sizes))
        types.append(TensorType(dtype, shape))
    return tuple(types)


def _infer_forward(*types: Type, **attrs: Any) -> tuple[Type, ...]:
    return (*_infer_call(*types, **attrs), HOST)


def _infer_pull(
    handle: Type, *types: Type, sources: int, seeded: Sequence[int], wrt: Sequence[int]
) -> tuple[Type, ...]:
    if handle != HOST:
        raise TypeMismatchError(f"the first operand must be a host handle, not {handle}")
    if len(types) != sources + len(seeded):
        raise TypeMismatchError(f"{sources} sources and {len(seeded)} cotangents, not {len(types)}")
    return tuple(types[k] for k in wrt)


def _infer_pull_forward(*types: Type, **attrs: Any) -> tuple[Type, ...]:
    return (*_infer_pull(*types, **attrs), HOST)


def _kernel_call(
    token: Any, *arrays: Any, function: HostCallable, results: tuple[Declared, ...]
) -> Any:
    noted, call = noted_results.get(), function.call
    return (token, *(call(arrays) if noted is None else noted.of(call, arrays)))


def _kernel_forward(
    token: Any, *arrays: Any, function: HostCallable, results: tuple[Declared, ...]
) -> Any:
    noted, call = noted_results.get(), function.call_recorded
    outputs, handle = call(arrays) if noted is None else noted.of(call, arrays)
    return (token, *outputs, handle)


def _kernel_pull(
    handle: Handle, *arrays: Any, sources: int, seeded: Sequence[int], wrt: Sequence[int]
) -> Any:
    noted, args = noted_results.get(), (seeded, wrt, arrays[sources:])
    cotangents = handle.pull(*args) if noted is None else noted.of(handle.pull, *args)
    return cotangents[0] if len(cotangents) == 1 else tuple(cotangents)


def _kernel_pull_forward(
    handle: Handle, *arrays: Any, sources: int, seeded: Sequence[int], wrt: Sequence[int]
) -> Any:
    noted, pull, args = noted_results.get(), handle.pull_recorded, (seeded, wrt, arrays[sources:])
    cotangents, recorded = pull(*args) if noted is None else noted.of(pull, *args)
    return (*cotangents, recorded)


py_function = Op(
    "py_function",
    _infer_call,
    _kernel_call,
    ByRegions(),
    effect=Effect.WORLD,
    raises=(Exception,),
    is_portable=False,
)
py_function_forward = Op(
    "py_function_forward",
    _infer_forward,
    _kernel_forward,
    ByRegions(),
    effect=Effect.WORLD,
    is_portable=False,
)
py_pull = Op("py_pull", _infer_pull, _kernel_pull, ByRegions(), is_portable=False)
py_pull_forward = Op(
    "py_pull_forward", _infer_pull_forward, _kernel_pull_forward, ByRegions(), is_portable=False
)

# The recorded form, which gives a handle, of each operation
FORWARD = {
    py_function: py_function_forward,
    py_function_forward: py_function_forward,
    py_pull: py_pull_forward,
    py_pull_forward: py_pull_forward,
}
HOST_CALLS = frozenset({py_function, py_function_forward})


def sources_of(node: Node) -> list[int]:
    """Return the positions of the operands that a node's handle can differentiate by."""
    return _floats(node.operands)


def targets_of(node: Node) -> list[int]:
    """Return the positions of the results that a node's handle takes cotangents of."""
    return _floats(node.results)


def _floats(values: Sequence[Value]) -> list[int]:
    return [k for k, value in enumerate(values) if is_differentiable(value.type)]
