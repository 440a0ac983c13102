"""Draws of NumPy's generators that native code makes without Python.

The library behind `numpy.random` has a function for each distribution, which takes a bit generator
and parameters. It gives the numbers that the method gives, and leaves the bit generator in the same
state. Methods check their parameters before: so do draws of parameters that only the run knows.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from wend.capture.builtins.draws import python_draws
from wend.capture.builtins.draws.parameters import as_double, as_int64, is_integer, is_real
from wend.eager.dispatch import Staged, any_staged
from wend.ir.dtypes import FLOAT64, INT64
from wend.ir.types import TensorType
from wend.numpy import elementwise as ew
from wend.numpy.numbers import signbit
from wend.numpy.operands import require, staged
from wend.ops.effects import POLAR, NumberDraw

# By method: the function, and its parameters with the values that they have if they are left out
_DISTRIBUTIONS: dict[str, tuple[str, dict[str, float]]] = {
    "random": ("random_standard_uniform", {}),
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
# Those of `RandomState` beside `uniform` and `randint`; it has algorithms of its own
_OF_RANDOM_STATE: dict[str, tuple[str, dict[str, float]]] = {
    **dict.fromkeys(("random", "random_sample", "rand"), _DISTRIBUTIONS["random"]),
    **dict.fromkeys(("standard_normal", "randn"), (POLAR, {})),
    "normal": (POLAR, {"loc": 0.0, "scale": 1.0}),
}
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
    if not (is_valid and is_static) or has_options or (is_old and _legacy_offset() is None):
        return None
    numbers = {key: x for key, x in bound.items() if key not in ("size", "dtype", "method")}
    if name in ("integers", "randint"):
        return _bounded(numbers, is_old) if result.dtype == INT64 else None
    dtype = INT64 if name == "poisson" else FLOAT64
    if result.dtype != dtype or not all(map(is_real, numbers.values())):
        return None
    if name == "uniform":
        return _uniform(numbers, is_old)
    distributions = _OF_RANDOM_STATE if is_old else _DISTRIBUTIONS
    if name not in distributions:
        return None
    function, defaults = distributions[name]
    parameters = []
    for key, default in defaults.items():
        x = as_double(numbers.get(key, default))
        if isinstance(numbers.get(key), Staged):
            if key in _NOT_NEGATIVE:
                is_negative = ew.logical_and(signbit(x), ew.logical_not(ew.isnan(x)))
                x = require(x, is_negative, ValueError, f"{key} < 0")
            elif key not in _FREE:
                return None
        parameters.append(x)
    return NumberDraw(function, parameters, is_legacy=is_old)


def _uniform(numbers: Mapping[str, Any], is_old: bool) -> NumberDraw:
    low, high = numbers.get("low", 0.0), numbers.get("high", 1.0)
    is_known = not any_staged([low, high])  # and valid
    low, high = as_double(low), as_double(high)
    width = high - low
    if not is_known:
        text = "Range exceeds valid bounds" if is_old else "high - low range exceeds valid bounds"
        width = require(width, ew.logical_not(ew.isfinite(width)), OverflowError, text)
        if not is_old:
            width = require(width, signbit(width), ValueError, "high - low < 0")
    return NumberDraw("random_uniform", [low, width], is_legacy=is_old)


def _bounded(numbers: Mapping[str, Any], is_old: bool) -> NumberDraw | None:
    """Return the draw of integers below a bound, or up to it."""
    low, high = numbers.get("low"), numbers.get("high")
    is_closed = numbers.get("endpoint", False)
    if high is None:
        low, high = 0, low
    if not isinstance(is_closed, bool) or not (is_integer(low) and is_integer(high)):
        return None
    is_known = not any_staged([low, high])  # and valid
    low, high = as_int64(low), as_int64(high)
    if not is_known:
        is_empty = ew.greater(low, high) if is_closed else ew.greater_equal(low, high)
        for is_zero, text in (
            (ew.equal(low, 0), "high < 0" if is_closed else "high <= 0"),
            (ew.not_equal(low, 0), "low > high" if is_closed else "low >= high"),
        ):
            high = require(high, ew.logical_and(is_empty, is_zero), ValueError, text)
    width = high - low - (0 if is_closed else 1)  # of 64 bits without a sign, as it wraps
    return NumberDraw(_BOUNDED, [low, staged(width)], is_legacy=is_old)


def _is_dtype(bound: Mapping[str, Any], dtype: np.dtype) -> bool:
    """Return whether a method is to give numbers of a dtype, which may be that of its example."""
    declared = bound.get("dtype")
    return declared is None or (not isinstance(declared, Staged) and np.dtype(declared) == dtype)


def address_of(generator: Any) -> np.uint64:
    """Return the address that draws of a generator take; 0 for one that they do not know.

    It is that of the bit generator; of the state of normal numbers of a `RandomState`; or of the
    state of a `Random` of Python.
    """
    if python_draws.is_known(generator):
        return np.uint64(id(generator) + (python_draws.offset() or 0))
    bits = _bit_generator(generator)
    if bits is None:
        return np.uint64(0)
    if isinstance(generator, np.random.RandomState):
        return np.uint64(id(generator) + (_legacy_offset() or 0))
    return np.uint64(_pointer(bits.capsule, b"BitGenerator"))


@cache
def _legacy_offset() -> int | None:
    """Return where `RandomState` has the state of its normal numbers; None if it is not found.

    That is the address of its own copy of the bit generator, whether a number is left of a pair,
    and that number.
    """
    sample = np.random.RandomState(0)
    state: Any = sample.get_state()
    sample.set_state((*state[:3], 1, 1.25))
    words = (ctypes.c_uint64 * (np.random.RandomState.__basicsize__ // 8)).from_address(id(sample))
    bits = ctypes.c_uint64.from_address(_pointer(sample._bit_generator.capsule, b"BitGenerator"))
    for k, word in enumerate(words[:-2]):
        place, odd = divmod(word - id(sample), 8)
        if not odd and 0 <= place < len(words) and words[place] == bits.value:
            left = ctypes.c_int32.from_buffer(words, 8 * k + 8).value
            number = ctypes.c_double.from_buffer(words, 8 * k + 16).value
            return 8 * k if (left, number) == (1, 1.25) and _is_polar() else None
    return None


def _is_polar() -> bool:
    """Return whether normal numbers of `RandomState` are, to the bit, those of the polar method."""
    normal, uniform = np.random.RandomState(1), np.random.RandomState(1)
    for _ in range(20):
        r = 0.0
        while not 0.0 < r < 1.0:
            x, y = (2.0 * uniform.random_sample() - 1.0 for _ in range(2))
            r = x * x + y * y
        factor = math.sqrt(-2.0 * math.log(r) / r)
        if [normal.standard_normal(), normal.standard_normal()] != [factor * y, factor * x]:
            return False
    return True


def lock_of(generator: Any) -> Any:
    """Return the lock that a generator holds while it draws; None if it has none."""
    return getattr(_bit_generator(generator), "lock", None)


def _bit_generator(generator: Any) -> Any:
    return getattr(generator, "bit_generator", None) or getattr(generator, "_bit_generator", None)


_pointer = ctypes.pythonapi["PyCapsule_GetPointer"]
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
