"""Assignment to a variable: takes the variable's old value and gives its new one.

A variable's value is thus an ordinary value, and orders the stores: each takes the one before,
and the last is a result of its graph (D16). A read is the value itself.
"""

from __future__ import annotations

from typing import Any

from wend.base.errors import TypeMismatchError
from wend.base.zero import ZERO
from wend.ir.graph import Node
from wend.ir.op import Effect, Explicit, Op
from wend.ir.types import TensorType, accepts
from wend.runtime.storage import Storage


def _infer_store(previous: TensorType, value: TensorType, *, variable: Storage) -> TensorType:
    if not accepts(previous, value):
        raise TypeMismatchError(f"a variable that holds {previous} cannot hold {value}")
    return previous


def _kernel_store(previous: Any, value: Any, *, variable: Storage) -> Any:
    variable.put(value)
    return value


def _pull_back_store(b: Any, node: Node, cts: tuple[Any, ...]) -> tuple[Any, Any]:
    return ZERO, cts[0]


def _jvp_store(b: Any, node: Node, tangents: tuple[Any, ...]) -> Any:
    return (tangents[1],)


# Stores `value` in a variable; `previous` is its value before
store = Op(
    "store",
    _infer_store,
    _kernel_store,
    Explicit(_pull_back_store, _jvp_store),
    effect=Effect.STATE,
)
