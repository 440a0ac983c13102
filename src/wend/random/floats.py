"""Samples of continuous distributions, as floats.

Derivatives with respect to the parameters follow from reparametrization.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.errors import TypeMismatchError
from wend.base.source import at, user_source
from wend.eager.dispatch import apply
from wend.eager.promotion import cast
from wend.ir.dtypes import FLOAT64, FLOATS
from wend.numpy import shaping, special
from wend.numpy.operands import staged
from wend.ops import random as ops
from wend.random.keys import as_shape, check_key, draw


def check_float_dtype(dtype: Any, name: str) -> np.dtype:
    """Return a float dtype.

    Raises:
        TypeMismatchError: it is another dtype.
    """
    checked: np.dtype = np.dtype(dtype)
    if checked not in FLOATS:
        where = at(user_source())
        raise TypeMismatchError(f"{name}{where} makes float16, float32 or float64, not {checked}")
    return checked


def unit_uniform(key: Any, shape: Any, dtype: np.dtype = FLOAT64) -> Any:
    """Draw floats in [0, 1): multiples of the precision of the dtype, equally likely."""
    digits = np.finfo(dtype).nmant + 1
    whole = cast(draw(check_key(key), shape) >> 64 - digits, dtype)
    return whole * 2.0**-digits


def _open_unit_uniform(key: Any, shape: Any) -> Any:
    """Draw floats in (0, 1): the midpoints of 2⁵² equal intervals, symmetric about 1/2."""
    whole = cast(draw(check_key(key), shape) >> 12, FLOAT64)
    return (whole + 0.5) * 2.0**-52


def broadcast_parameter(x: Any, shape: Any, dtype: np.dtype = FLOAT64) -> Any:
    """Cast a parameter of a distribution to `dtype` and broadcast it to `shape`."""
    x = cast(staged(x), dtype)
    return shaping.broadcast_to(x, as_shape(shape)) if shaping.rank_of(x) else x


def uniform(
    key: Any, shape: Any = (), dtype: Any = np.float64, minval: Any = 0.0, maxval: Any = 1.0
) -> Any:
    """Draw floats uniformly from [minval, maxval).

    Args:
        key: a key.
        shape: sizes, which may be traced.
        dtype: a dtype of floats.
        minval: a number or an array that broadcasts to `shape`; the result has derivatives in it.
        maxval: as `minval`.

    Example:
        >>> import wend
        >>> wend.random.uniform(wend.random.key(0))
        np.float64(0.011546754286331562)
    """
    float_dtype = check_float_dtype(dtype, "uniform")
    samples = unit_uniform(key, shape, float_dtype)
    if type(minval) in (int, float) and type(maxval) in (int, float) and (minval, maxval) == (0, 1):
        return samples
    low, high = (
        broadcast_parameter(minval, shape, float_dtype),
        broadcast_parameter(maxval, shape, float_dtype),
    )
    return low + (high - low) * samples


def normal(key: Any, shape: Any = (), dtype: Any = np.float64) -> Any:
    """Draw floats from the standard normal distribution.

    Scale and shift them for another normal distribution. A smaller dtype yields the same numbers,
    rounded.

    Example:
        >>> import wend
        >>> import numpy as np
        >>> key = wend.random.key(0)
        >>> noise = wend.random.normal(key, (1000,))
        >>> slope = wend.grad(lambda mean, deviation: (mean + deviation * noise).mean(), 1)
        >>> bool(np.isclose(slope(1.0, 2.0), noise.mean()))
        True
    """
    float_dtype = check_float_dtype(dtype, "normal")
    return cast(special.ndtri(_open_unit_uniform(key, shape)), float_dtype)


def exponential(key: Any, shape: Any = (), dtype: Any = np.float64) -> Any:
    """Draw floats from the exponential distribution of rate 1."""
    float_dtype = check_float_dtype(dtype, "exponential")
    return cast(apply(ops.exponential_quantile, unit_uniform(key, shape)), float_dtype)


def gumbel(key: Any, shape: Any = (), dtype: Any = np.float64) -> Any:
    """Draw floats from the standard Gumbel distribution."""
    float_dtype = check_float_dtype(dtype, "gumbel")
    return cast(apply(ops.gumbel_quantile, _open_unit_uniform(key, shape)), float_dtype)
