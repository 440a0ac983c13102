"""Checks of the operands of functional control flow: functions, predicates, integers, arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wend.base.errors import TypeMismatchError, explain
from wend.eager.promotion import tensor_type
from wend.ir.dtypes import BOOL
from wend.ir.types import ListType
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.arguments import is_array_leaf


def check_functions(**functions: Any) -> None:
    """Refuse arguments that are not callable; keywords are their names."""
    for role, function in functions.items():
        if not callable(function):
            raise TypeError(f"{role} must be callable, not {function!r}")


def check_leaves(where: str, leaves: Sequence[Any], paths: Sequence[str]) -> None:
    """Refuse leaves that are neither arrays nor numbers."""
    for leaf, path in zip(leaves, paths, strict=True):
        if isinstance(leaf, Tracer) and isinstance(leaf.value.type, ListType):
            raise TypeMismatchError(
                explain(
                    f"{where}: {path.partition('[<')[0]} is a list that grows in a loop or branch.",
                    cure="pass an array of its items: wnp.stack(out).",
                )
            )
        if not is_array_leaf(leaf):
            raise TypeMismatchError(
                f"{where}: {path} must be an array or a number, not {type(leaf).__name__}"
            )


def check_integer(x: Any, what: str) -> None:
    """Refuse a bound, limit or index that is no integer scalar."""
    if not is_array_leaf(x):
        raise TypeMismatchError(f"{what} must be an integer scalar, not {x!r:.60}")
    type = tensor_type(x)
    if type.dtype.kind not in "iu" or type.shape != ():
        raise TypeMismatchError(f"{what} must be an integer scalar, not {type}")


def check_predicate(predicate: Any, where: str) -> None:
    """Refuse a predicate that is no bool scalar."""
    if not is_array_leaf(predicate):
        raise TypeMismatchError(f"{where}: the predicate must be a bool scalar, not {predicate!r}")
    type = tensor_type(predicate)
    if type.dtype != BOOL:
        raise TypeMismatchError(
            explain(
                f"{where}: the predicate must be a bool scalar, not {type}.",
                cure="compare it, for example with != 0.",
            )
        )
    if type.shape != ():
        raise TypeMismatchError(
            explain(
                f"{where}: the predicate must be a bool scalar, not {type}.",
                cure="reduce it with .all() or .any(), or .item() for one element.",
            )
        )


def check_unroll(unroll: Any, name: str) -> None:
    """Check how many trips a caller wants at once: a bool, or a positive int.

    Raises:
        ValueError: it is something else.
    """
    if not isinstance(unroll, int) or (unroll < 1 and unroll is not False):
        raise ValueError(f"{name}: unroll must be a bool or a positive int, not {unroll!r}")
