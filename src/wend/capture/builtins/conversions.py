"""`float`, `int`, `round` and their kind of traced numbers, with the errors that Python raises."""

from __future__ import annotations

import builtins
import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.base.errors import ConcreteValueError, explain
from wend.base.source import at, user_source
from wend.capture.builtins.rounding import rounded
from wend.capture.stage.truth import truth
from wend.eager.checking import checked, unhandled
from wend.eager.dispatch import Staged, any_staged, apply
from wend.eager.promotion import cast, is_weak, tensor_type
from wend.numpy import elementwise as ew
from wend.numpy import numbers, shaping
from wend.ops import elementwise
from wend.trace.arrays.attributes import class_of
from wend.trace.arrays.provenance import static_advice, with_sources
from wend.trace.arrays.tracer import TracedNumber, Tracer

_INT_END = 2.0**63  # the first float above all 64-bit integers
_ABSENT = object()


def as_weak(result: Any) -> Any:
    """Return a traced scalar as a Python number, which takes the dtype of its operands (D4)."""
    if isinstance(result, Tracer) and result.type.shape == ():
        return result.as_weak()
    return result


def as_scalar(x: Any, convert: Callable[[Any], Any] = float) -> Any:
    """Return the one number of an operand.

    Raises:
        TypeError: it is an array that NumPy does not convert to a Python number, or a complex one.
    """
    type = tensor_type(x)
    if type.shape == ():
        if type.dtype.kind == "c" and is_weak(x):
            convert(1j)  # Python's error
        return x
    sizes = [size if isinstance(size, int) else 2 for size in type.shape or (2,)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        convert(np.ones(sizes))  # NumPy's error, which depends on its version
    return shaping.reshape(x, ())


def to_float(x: Any) -> Any:
    """Return `float(x)`."""
    return as_weak(shaping.astype(as_scalar(x), np.float64))


def to_int(x: Any) -> Any:
    """Return `int(x)`."""
    return _integer(as_scalar(x, builtins.int))


def _integer(x: Any) -> Any:
    """Return a whole number as a Python integer; NaN, infinities and too large ones raise."""
    if tensor_type(x).dtype.kind != "f":
        return as_weak(shaping.astype(x, np.int64))
    number = shaping.astype(x, np.float64)
    fits = ew.logical_and(ew.less(number, _INT_END), ew.greater_equal(number, -_INT_END))
    checks = unhandled(
        number,
        (ew.isnan(number), ValueError, "cannot convert float NaN to integer"),
        (ew.isinf(number), OverflowError, "cannot convert float infinity to integer"),
    )
    too_large = ew.logical_not(fits), OverflowError, "{} as an integer does not fit 64 bits"
    number = checked(number, *checks, too_large)
    return as_weak(shaping.astype(number, np.int64))


def to_bool(x: Any) -> Any:
    """Return `bool(x)`."""
    return as_weak(truth(x))


def to_complex(real: Any = 0.0, imag: Any = _ABSENT) -> Any:
    """Return `complex(real, imag)`: the sign of a zero is that of its part."""
    real = as_scalar(real, builtins.complex) if isinstance(real, Staged) else real
    if imag is _ABSENT:
        return as_weak(shaping.astype(real, np.complex128))
    imag = as_scalar(imag, builtins.complex) if isinstance(imag, Staged) else imag
    parts = real, imag
    if tensor_type(real).dtype.kind == "c":
        parts = real.real, imag + real.imag
    if tensor_type(imag).dtype.kind == "c":
        parts = parts[0] - imag.imag, parts[1].real
    numbers = (cast(x, np.dtype(np.float64)) for x in parts)
    return as_weak(apply(elementwise.complex, *numbers))


def round(x: Any, ndigits: Any = None) -> Any:
    """Return `round(x, ndigits)`."""
    is_known = not isinstance(ndigits, Staged)
    builtins.round(_example(x), ndigits if is_known else _example(ndigits))  # Python's error
    if not is_known:
        error = ConcreteValueError(
            explain(
                f"round{at(user_source())} needs its number of digits, {ndigits!r}, which is known "
                "only at run time.",
                cure=_static_cure(ndigits, "round by np.floor(x * 10.0**n + 0.5) / 10.0**n."),
            )
        )
        raise with_sources(error, ndigits)
    if ndigits is None:
        x = as_scalar(x, builtins.round)
        return _integer(ew.rint(x) if tensor_type(x).dtype.kind == "f" else x)
    ndigits = operator.index(ndigits)
    return rounded(x, ndigits) if is_weak(x) else numbers.round(x, ndigits)


def _example(x: Any) -> Any:
    """Return a value of the class that a traced one stands for."""
    kind = class_of(x)
    return np.ones(1) if kind is np.ndarray else kind(1)


def _static_cure(number: Any, other: str) -> str:
    advice = isinstance(number, Tracer) and static_advice(number.value, number.recording)
    return f"{advice}; or {other}" if advice else other


def floor(x: Any) -> Any:
    """Return `math.floor(x)`."""
    return _integer(ew.floor(_operand(x, math.floor)))


def ceil(x: Any) -> Any:
    """Return `math.ceil(x)`."""
    return _integer(ew.ceil(_operand(x, math.ceil)))


def _operand(x: Any, function: Callable[[Any], Any]) -> Any:
    """Return a number that is rounded; NumPy's integers have no method for it and go by a float."""
    x = as_scalar(x, function)
    return x if is_weak(x) else shaping.astype(x, np.float64)


def trunc(x: Any) -> Any:
    """Return `math.trunc(x)`."""
    math.trunc(_example(x) if isinstance(x, Staged) else x)  # Python's error, if it has none
    return _integer(ew.trunc(as_scalar(x)))


def call_with_integers(callee: Any, args: Any, kwargs: Any) -> Any:
    """Call what may be code in C that takes only Python's integers; a path knows traced ones."""
    try:
        return callee(*args, **kwargs)
    except TypeError as error:
        if str(error) != "an integer is required" or not any_staged((*args, *kwargs.values())):
            raise
    return callee(*map(_as_integer, args), **{k: _as_integer(x) for k, x in kwargs.items()})


def _as_integer(x: Any) -> Any:
    return operator.index(x) if isinstance(x, TracedNumber) else x
