"""Draws of NumPy's generators that native code makes without Python.

The library behind `numpy.random` has a function for each distribution, which takes a bit generator
and parameters. It gives the numbers that the method gives, and leaves the bit generator in the same
state. Methods check their parameters before: so do draws of parameters that only the run knows.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from wend.eager.dispatch import Staged, any_staged
from wend.eager.promotion import cast, tensor_type
from wend.ir.dtypes import FLOAT64, INT64
from wend.ir.types import TensorType
from wend.numpy import elementwise as ew
from wend.numpy.numbers import signbit
from wend.numpy.operands import require, staged
from wend.ops.effects import NumberDraw

# By method: the function, and its parameters with the values that they have if they are left out
_DISTRIBUTIONS: dict[str, tuple[str, dict[str, float]]] = {
    **dict.fromkeys(("random", "random_sample", "rand"), ("random_standard_uniform", {})),
    "standard_normal": ("random_standard_normal", {}),
    "standard_exponential": ("random_standard_exponential", {}),
    "standard_cauchy": ("random_standard_cauchy", {}),
    "normal": ("random_normal", {"loc": 0.0, "scale": 1.0}),
    "laplace": ("random_laplace", {"loc": 0.0, "scale": 1.0}),
    "logistic": ("random_logistic", {"loc": 0.0, "scale": 1.0}),
    "gumbel": ("random_gumbel", {"loc": 0.0, "scale": 1.0}),
    "lognormal": ("random_lognormal", {"mean": 0.0, "sigma": 1.0}),
    "exponential": ("random_exponential", {"scale": 1.0}),
    "rayleigh": ("random_rayleigh", {"scale": 1.0}),
    "gamma": ("random_gamma", {"shape": np.nan, "scale": 1.0}),
    "standard_gamma": ("random_standard_gamma", {"shape": np.nan}),
    "beta": ("random_beta", {"a": np.nan, "b": np.nan}),
    "chisquare": ("random_chisquare", {"df": np.nan}),
    "standard_t": ("random_standard_t", {"df": np.nan}),
    "pareto": ("random_pareto", {"a": np.nan}),
    "weibull": ("random_weibull", {"a": np.nan}),
    "power": ("random_power", {"a": np.nan}),
    "poisson": ("random_poisson", {"lam": 1.0}),
}
_BOUNDED = "random_bounded_uint64_fill"
# Those whose numbers are the same by the methods of `RandomState`, which has algorithms of its own
_OF_RANDOM_STATE = frozenset({"random_sample", "rand", "uniform", "randint"})
# Parameters that may have any value, or any that is not negative
_FREE, _NOT_NEGATIVE = frozenset({"loc", "mean"}), frozenset({"scale", "sigma"})


def direct_draw(
    generator: Any, name: str, bound: Mapping[str, Any], result: TensorType, *, is_valid: bool
) -> NumberDraw | None:
    """Return how native code draws what a method gives, or None if Python has to draw it.

    Args:
        generator: the generator, which has the method.
        name: the method.
        bound: its arguments by name.
        result: the type of what it gives.
        is_valid: whether it takes the arguments, as far as they are known.

    Raises:
        ValueError, OverflowError: as the method does, perhaps in the run.
    """
    is_old = not isinstance(generator, np.random.Generator)
    is_static = result.shape is not None and result.is_static
    has_options = bound.get("method") not in (None, "zig") or not _is_dtype(bound, result.dtype)
    is_other = is_old and name not in _OF_RANDOM_STATE
    if not (is_valid and is_static) or has_options or is_other:
        return None
    numbers = {key: x for key, x in bound.items() if key not in ("size", "dtype", "method")}
    if name in ("integers", "randint"):
        return _bounded(numbers, is_old) if result.dtype == INT64 else None
    dtype = INT64 if name == "poisson" else FLOAT64
    if result.dtype != dtype or not all(map(_is_real, numbers.values())):
        return None
    if name == "uniform":
        return _uniform(numbers, is_old)
    if name not in _DISTRIBUTIONS:
        return None
    function, defaults = _DISTRIBUTIONS[name]
    parameters = []
    for key, default in defaults.items():
        x = _double(numbers.get(key, default))
        if isinstance(numbers.get(key), Staged):
            if key in _NOT_NEGATIVE:
                is_negative = ew.logical_and(signbit(x), ew.logical_not(ew.isnan(x)))
                x = require(x, is_negative, ValueError, f"{key} < 0")
            elif key not in _FREE:
                return None
        parameters.append(x)
    return NumberDraw(function, parameters)


def _uniform(numbers: Mapping[str, Any], is_old: bool) -> NumberDraw:
    low, high = numbers.get("low", 0.0), numbers.get("high", 1.0)
    is_known = not any_staged([low, high])  # and valid
    low, high = _double(low), _double(high)
    width = high - low
    if not is_known:
        text = "Range exceeds valid bounds" if is_old else "high - low range exceeds valid bounds"
        width = require(width, ew.logical_not(ew.isfinite(width)), OverflowError, text)
        if not is_old:
            width = require(width, signbit(width), ValueError, "high - low < 0")
    return NumberDraw("random_uniform", [low, width])


def _bounded(numbers: Mapping[str, Any], is_old: bool) -> NumberDraw | None:
    """Return the draw of integers below a bound, or up to it."""
    low, high = numbers.get("low"), numbers.get("high")
    is_closed = numbers.get("endpoint", False)
    if high is None:
        low, high = 0, low
    if not isinstance(is_closed, bool) or not (_is_integer(low) and _is_integer(high)):
        return None
    is_known = not any_staged([low, high])  # and valid
    low, high = (cast(staged(_known(x, INT64)), INT64) for x in (low, high))
    if not is_known:
        is_empty = ew.greater(low, high) if is_closed else ew.greater_equal(low, high)
        for is_zero, text in (
            (ew.equal(low, 0), "high < 0" if is_closed else "high <= 0"),
            (ew.not_equal(low, 0), "low > high" if is_closed else "low >= high"),
        ):
            high = require(high, ew.logical_and(is_empty, is_zero), ValueError, text)
    width = high - low - (0 if is_closed else 1)  # of 64 bits without a sign, as it wraps
    return NumberDraw(_BOUNDED, [low, staged(width)], is_masked=is_old)


def _is_dtype(bound: Mapping[str, Any], dtype: np.dtype) -> bool:
    """Return whether a method is to give numbers of a dtype, which may be that of its example."""
    declared = bound.get("dtype")
    return declared is None or (not isinstance(declared, Staged) and np.dtype(declared) == dtype)


def _known(x: Any, dtype: np.dtype) -> Any:
    return x if isinstance(x, Staged) else dtype.type(x)


def _double(x: Any) -> Any:
    return cast(staged(_known(x, FLOAT64)), FLOAT64)


def _is_real(x: Any) -> bool:
    """Return whether a parameter is one real number."""
    if not isinstance(x, (bool, int, float, np.generic, Staged)):
        return False
    type = tensor_type(x)
    return type.shape == () and type.dtype.kind in "biuf"


def _is_integer(x: Any) -> bool:
    """Return whether a parameter is one integer of 64 bits."""
    if not _is_real(x) or tensor_type(x).dtype.kind not in "bi":
        return False
    return isinstance(x, Staged) or abs(operator.index(x)) < 2**62


def address_of(generator: Any) -> np.uint64:
    """Return the address of the bit generator of a generator; 0 for one without."""
    bits = _bit_generator(generator)
    return np.uint64(0 if bits is None else _pointer(bits.capsule, b"BitGenerator"))


def lock_of(generator: Any) -> Any:
    """Return the lock that a generator holds while it draws; None if it has none."""
    return getattr(_bit_generator(generator), "lock", None)


def _bit_generator(generator: Any) -> Any:
    return getattr(generator, "bit_generator", None) or getattr(generator, "_bit_generator", None)


_pointer = ctypes.pythonapi["PyCapsule_GetPointer"]
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
