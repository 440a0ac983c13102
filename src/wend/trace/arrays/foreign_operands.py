"""Operands that are neither arrays nor numbers: what NumPy makes of them beside an array."""

from __future__ import annotations

import operator
from collections.abc import Callable
from numbers import Number
from types import FunctionType
from typing import Any

import numpy as np

from wend.base.errors import explain
from wend.base.refusals import refusal
from wend.base.source import at, user_source
from wend.numpy.ufuncs import has_own_ufuncs
from wend.trace.arrays.attributes import example_of_value

SEQUENCES = (list, tuple, range)  # NumPy makes arrays of them
_PRIORITY = -1_000_000.0  # of what has no `__array_priority__` of its own, and of NumPy's scalars


def check_number(x: Any, other: Any) -> None:
    """Raise TypeError for a fraction or decimal, with which Python can compute."""
    if isinstance(other, Number):
        raise refusal(
            TypeError(
                explain(
                    f"{x!r} meets {other!r:.60}{at(user_source())}: traced numbers are int, float "
                    "and complex, and those of NumPy.",
                    cure=f"convert it to a float before: float(…) of the {type(other).__name__}.",
                )
            )
        )


def asks_ufuncs(other: Any) -> bool:
    """Return whether operators of arrays ask an object's own ufuncs (NEP 13)."""
    return has_own_ufuncs(other) and type(other).__array_ufunc__ is not None


# Higher layers set these: the array that an object stands for, an operator, `bool`
as_array: Callable[[Any], Any] = np.asarray
operate: Callable[..., Any] = lambda operation, x, y: operation(x, y)  # noqa: E731
truth_of: Callable[[Any], Any] = bool


def is_taken_as_array(x: Any, other: Any) -> bool:
    """Return whether operators of an array take an object for the array that it gives."""
    kind = type(other)
    return (
        hasattr(kind, "__array__")
        and not hasattr(kind, "__array_ufunc__")
        and not _takes_precedence(x, other)
    )


def _takes_precedence(x: Any, other: Any) -> bool:
    is_scalar = x.type.shape == () and not x.zero_dim
    own_priority = _PRIORITY if is_scalar else 0.0
    priority: float = getattr(other, "__array_priority__", _PRIORITY)
    return priority > own_priority


def check_object(x: Any, other: Any, name: str | None) -> None:
    """Raise TypeError where NumPy would make an array of objects of two operands.

    It does so for each object that does not tell that it takes precedence (`__array_ufunc__ =
    None`, or an `__array_priority__`). A scalar with an object that is no sequence gives what
    Python gives.

    Args:
        x: an array, or a NumPy scalar.
        other: an object that is neither an array nor a number.
        name: the operator's method in the object's class, or None.
    """
    kind = type(other)
    if hasattr(kind, "__array_ufunc__") or _takes_precedence(x, other):
        return
    is_scalar = x.type.shape == ()
    is_sequence = all(is_in_python(kind, method) for method in ("__len__", "__getitem__"))
    is_sequence |= hasattr(kind, "__array_interface__")
    is_taken = name is not None and is_in_python(kind, name)
    if is_sequence or (is_taken and not is_scalar):
        raise _array_of_objects(x, kind)


def _array_of_objects(x: Any, kind: type) -> TypeError:
    return refusal(
        TypeError(
            explain(
                f"{x!r} meets an object of class {kind.__name__}{at(user_source())}: NumPy "
                "would make an array of objects, and compute with each element.",
                cure="make an array of numbers of it before; or write `__array_ufunc__ = None` "
                "in its class, so that its own operator is called.",
            )
        )
    )


def raise_as_numpy(
    x: Any,
    other: Any,
    operation: Callable[[Any, Any], Any],
    asked: str | None,
    *,
    is_left: bool = True,
) -> None:
    """Raise NumPy's error for an operator of an array and an object that is none.

    Nothing is raised where Python asks the object for the result.

    Args:
        x: an array, or a NumPy scalar.
        other: an object that is neither an array nor a number, and that `check_object` let pass.
        operation: Python's operator.
        asked: the operator's method in the object's class that Python asks, or None.
        is_left: whether `x` is the left operand.

    Raises:
        TypeError: NumPy raises it; or NumPy would make an array of objects, which is refused.
        ValueError: NumPy raises it.
    """
    kind = type(other)
    if hasattr(kind, "__array_ufunc__") or _takes_precedence(x, other):
        return
    is_scalar = x.type.shape == () and not x.zero_dim
    is_asked = asked is not None and is_in_python(kind, asked)
    if is_asked and (is_scalar or not is_left or operation is not operator.matmul):
        return
    example = example_of_value(x)
    result = operation(*((example, other) if is_left else (other, example)))
    if isinstance(result, (np.ndarray, np.generic)):
        raise _array_of_objects(x, kind)


def computes_by_items(x: Any, other: Any, name: str) -> bool:
    """Return whether NumPy computes with a scalar's Python number and an object.

    It does so with what it takes as an array of objects, unless the object takes precedence.

    Args:
        x: an array, or a NumPy scalar.
        other: an object that is neither an array nor a number, and that `check_object` let pass.
        name: the operator's method in the object's class that Python asks.
    """
    kind = type(other)
    takes_precedence = hasattr(kind, "__array_ufunc__") or _takes_precedence(x, other)
    return x.type.shape == () and not takes_precedence and is_in_python(kind, name)


def is_in_python(kind: type, name: str) -> bool:
    """Return whether a class has a method that is written in Python."""
    return isinstance(getattr(kind, name, None), FunctionType)


def has_own_equality(other: Any) -> bool:
    """Return whether a class written in Python defines what equals its objects."""
    return is_in_python(type(other), "__eq__") or isinstance(other, np.ndarray)
