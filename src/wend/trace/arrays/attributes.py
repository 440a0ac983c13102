"""The class and the attributes of the value that a traced array stands for (D47)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wend.base.errors import AliasError, TypeMismatchError, explain
from wend.base.source import at, user_source
from wend.ir.types import TensorType
from wend.numpy import elementwise as ew
from wend.numpy import numbers, shaping

_PYTHON_TYPES: dict[str, type] = {"f": float, "i": int, "u": int, "b": bool, "c": complex}

# Of the attributes of traced arrays, what a traced Python number keeps for wend's own use
KEPT_BY_NUMBERS = frozenset(
    {"type", "weak", "value", "recording", "zero_dim", "as_weak", "as_zero_dim", "leaked"}
    | {"is_reachable"}
)


def class_of(x: Any) -> type:
    """Return the class of the value that a traced array stands for.

    Raises:
        AliasError: it is a 0-d array in some runs, and a scalar in others.
    """
    type = x.value.type if hasattr(x, "value") else x.type
    if not isinstance(type, TensorType):
        return list
    if type.shape != ():
        return np.ndarray
    if x.weak:
        return _PYTHON_TYPES[type.dtype.kind]
    if x.zero_dim is None:
        raise AliasError(
            explain(
                f"the class of {x!r} is needed{at(user_source())}, and only the run knows whether "
                "it is a 0-d array or a number.",
                cure="make it one of the two before: x[()] is a number, np.array(x) an array.",
            )
        )
    return np.ndarray if x.zero_dim else type.dtype.type


def class_name(x: Any) -> str:
    """Return the name of that class as Python's messages have it."""
    kind = class_of(x)
    return f"{kind.__module__}.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__


def example_of(kind: type) -> Any:
    """Return a value of a class that a traced value or list stands for."""
    if kind is np.ndarray:
        return np.ones(1)
    is_number = issubclass(kind, (int, float, complex, np.generic))
    return kind(1) if is_number else kind()


def example_of_value(x: Any) -> Any:
    """Return a value of the class, rank and dtype of what a traced array stands for."""
    kind = class_of(x)
    return np.ones([1] * (x.type.rank or 0), x.type.dtype) if kind is np.ndarray else kind(1)


def unsized(x: Any) -> str:
    """Return the text of the error that `len(x)` raises for a number."""
    if class_of(x) is np.ndarray:
        return "len() of unsized object"
    return f"object of type {class_name(x)!r} has no len()"


def not_iterable(x: Any) -> str:
    """Return the text of the error that `iter(x)` raises for a number."""
    if class_of(x) is np.ndarray:
        return "iteration over a 0-d array"
    return f"{class_name(x)!r} object is not iterable"


def attribute_of(x: Any, name: str) -> Any:
    """Return an attribute that traced arrays do not have themselves.

    Raises:
        AttributeError: the value has no such attribute either, as Python says.
        TypeMismatchError: the value has it, but it is not traced.
    """
    if name.startswith("_") or name in KEPT_BY_NUMBERS:
        raise AttributeError(name)
    kind = class_of(x)
    if not hasattr(kind, name):
        raise missing(x, name)
    read = _OF_NUMBERS.get(name)
    if read is not None and kind is not np.ndarray:
        return read(x)
    raise TypeMismatchError(
        explain(
            f"`.{name}` of {x!r} is needed{at(user_source())}, and is not traced.",
            cure=_CURES.get(
                name, "use functions of NumPy that are traced, or compute it outside the function."
            ),
        )
    )


_CURES = {
    "view": "convert the numbers by x.astype(dtype); np.frexp and np.signbit tell of their bits.",
}


def missing(x: Any, name: str) -> AttributeError:
    """Return Python's error for an attribute that the value does not have."""
    text = f"{class_name(x)!r} object has no attribute {name!r}"
    return AttributeError(text, name=name, obj=x)


# The attributes of numbers that arrays do not have
def _as_number(x: Any) -> Any:
    """Return a Python number as itself, and a bool as an integer."""
    return shaping.astype(x, np.int64).as_weak() if class_of(x) is bool else x


def _imag(x: Any) -> Any:
    if class_of(x) is complex:
        return ew.imag(x).as_weak()
    return 0.0 if class_of(x) is float else 0


def _is_integer(x: Any) -> Callable[[], Any]:
    if x.type.dtype.kind in "iub":
        return lambda: True
    return lambda: ew.logical_and(ew.isfinite(x), ew.equal(ew.floor(x), x)).as_weak()


def _bit_length(x: Any) -> Callable[[], Any]:
    def bit_length() -> Any:
        bits = shaping.astype(ew.absolute(_as_number(x)), np.uint64)
        for shift in (1, 2, 4, 8, 16, 32):  # ones below the highest one
            bits = ew.bitwise_or(bits, ew.right_shift(bits, np.uint64(shift)))
        return shaping.astype(numbers.bitwise_count(bits), np.int64).as_weak()

    return bit_length


def _bit_count(x: Any) -> Callable[[], Any]:
    return lambda: shaping.astype(numbers.bitwise_count(_as_number(x)), np.int64).as_weak()


def _as_integer_ratio(x: Any) -> Any:
    if x.type.dtype.kind in "iub":
        return lambda: (_as_number(x), 1)
    raise TypeMismatchError(
        explain(
            f"`.as_integer_ratio` of {x!r} is needed{at(user_source())}: its integers are "
            "unbounded in Python, and have 64 bits here.",
            cure="compute it outside the function.",
        )
    )


_OF_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "real": lambda x: ew.real(x).as_weak() if class_of(x) is complex else _as_number(x),
    "imag": _imag,
    "conjugate": lambda x: (
        lambda: ew.conjugate(x).as_weak() if class_of(x) is complex else _as_number(x)
    ),
    "is_integer": _is_integer,
    "as_integer_ratio": _as_integer_ratio,
    "bit_length": _bit_length,
    "bit_count": _bit_count,
    "numerator": _as_number,
    "denominator": lambda x: 1,
    "fromhex": lambda x: float.fromhex,
    "from_bytes": lambda x: int.from_bytes,
}
