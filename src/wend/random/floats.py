"""Floats drawn from a key. Derivatives flow by reparametrisation: in the bounds, the mean, …"""

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
from wend.random.keys import as_shape, checked, draw


def float_dtype(dtype: Any, name: str) -> np.dtype:
    """A dtype of floats.

    Raises:
        TypeMismatchError: it is another.
    """
    found: np.dtype = np.dtype(dtype)
    if found not in FLOATS:
        where = at(user_source())
        raise TypeMismatchError(f"{name}{where} makes float16, float32 or float64, not {found}")
    return found


def unit(key: Any, shape: Any, dtype: np.dtype = FLOAT64) -> Any:
    """Floats in [0, 1): all multiples of the dtype's precision, each as likely."""
    digits = np.finfo(dtype).nmant + 1
    whole = cast(draw(checked(key), shape) >> 64 - digits, dtype)
    return whole * 2.0**-digits


def _inside(key: Any, shape: Any) -> Any:
    """Floats in (0, 1), the middles of 2⁵² equal parts: as far from 0 as from 1."""
    whole = cast(draw(checked(key), shape) >> 12, FLOAT64)
    return (whole + 0.5) * 2.0**-52


def spread(x: Any, shape: Any, dtype: np.dtype = FLOAT64) -> Any:
    """A parameter of a distribution in its dtype, over the shape drawn."""
    x = cast(staged(x), dtype)
    return shaping.broadcast_to(x, as_shape(shape)) if shaping.rank_of(x) else x


def uniform(
    key: Any, shape: Any = (), dtype: Any = np.float64, minval: Any = 0.0, maxval: Any = 1.0
) -> Any:
    """Floats in [minval, maxval), each as likely.

    Args:
        key: a key.
        shape: sizes, which may be traced.
        dtype: a dtype of floats.
        minval: a number or an array that broadcasts to `shape`; it has derivatives.
        maxval: as `minval`.

    Example:
        >>> import wend
        >>> wend.random.uniform(wend.random.key(0))
        np.float64(0.011546754286331562)
    """
    wanted = float_dtype(dtype, "uniform")
    found = unit(key, shape, wanted)
    if type(minval) in (int, float) and type(maxval) in (int, float) and (minval, maxval) == (0, 1):
        return found
    low, high = spread(minval, shape, wanted), spread(maxval, shape, wanted)
    return low + (high - low) * found


def normal(key: Any, shape: Any = (), dtype: Any = np.float64) -> Any:
    """Floats of the standard normal distribution; for another, multiply and add.

    Those of a smaller dtype are the same, rounded.

    Example:
        >>> import wend
        >>> import numpy as np
        >>> key = wend.random.key(0)
        >>> noise = wend.random.normal(key, (1000,))
        >>> slope = wend.grad(lambda mean, deviation: (mean + deviation * noise).mean(), 1)
        >>> bool(np.isclose(slope(1.0, 2.0), noise.mean()))
        True
    """
    wanted = float_dtype(dtype, "normal")
    return cast(special.ndtri(_inside(key, shape)), wanted)


def exponential(key: Any, shape: Any = (), dtype: Any = np.float64) -> Any:
    """Floats of the exponential distribution of rate 1."""
    wanted = float_dtype(dtype, "exponential")
    return cast(apply(ops.exponential_quantile, unit(key, shape)), wanted)


def gumbel(key: Any, shape: Any = (), dtype: Any = np.float64) -> Any:
    """Floats of the standard Gumbel distribution."""
    wanted = float_dtype(dtype, "gumbel")
    return cast(apply(ops.gumbel_quantile, _inside(key, shape)), wanted)
