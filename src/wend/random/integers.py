"""Uniformly distributed integers, without modulo bias."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from wend.base.errors import TypeMismatchError
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged
from wend.eager.promotion import cast, tensor_type, wrapped
from wend.ir.dtypes import INTEGERS
from wend.numpy import elementwise as ew
from wend.numpy import reducing
from wend.numpy.operands import staged
from wend.ops.random import UINT64
from wend.random.floats import broadcast_parameter
from wend.random.keys import check_key, draw, redraw
from wend.trace.control.loops import while_loop


def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = np.int64) -> Any:
    """Draw integers uniformly from [minval, maxval).

    Args:
        key: a key.
        shape: sizes, which may be traced.
        minval: an integer or an array that broadcasts to `shape`.
        maxval: as `minval`. Where a bound known only at run time is not above `minval`, the result
            is `minval`.
        dtype: a dtype of integers.

    Raises:
        ValueError: there is no integer between the bounds, or the dtype does not hold them.

    Example:
        >>> import wend
        >>> wend.random.randint(wend.random.key(0), (5,), 0, 10)
        array([9, 8, 9, 6, 3])
    """
    integer_dtype = np.dtype(dtype)
    if integer_dtype not in INTEGERS:
        raise TypeMismatchError(f"randint{at(user_source())} makes integers, not {integer_dtype}")
    first, stop = _static_bound(minval), _static_bound(maxval)
    if first is None or stop is None:
        low, span, excess = _ranges_of_arrays(minval, maxval, shape, integer_dtype)
    else:
        low, span, excess = _range_of_numbers(first, stop, integer_dtype)
    with np.errstate(over="ignore"):  # arithmetic modulo 2⁶⁴
        return cast(low + _uniform_below(check_key(key), shape, span, excess), integer_dtype)


def _static_bound(bound: Any) -> int | None:
    """Return a bound as an int if it is a Python number, else None."""
    if isinstance(bound, (Staged, np.ndarray, list, tuple)):
        return None
    try:
        return operator.index(bound)
    except TypeError:
        raise TypeMismatchError(
            f"bounds of randint{at(user_source())} are integers, not {bound!r:.60}"
        ) from None


def _range_of_numbers(low: int, high: int, dtype: np.dtype) -> tuple[Any, Any, Any]:
    if low >= high:
        where = at(user_source())
        raise ValueError(f"randint{where}: no integer is from {low} up to, not including, {high}")
    limits = np.iinfo(dtype)
    if low < limits.min or high - 1 > limits.max:
        where = at(user_source())
        raise ValueError(f"randint{where}: {dtype} does not hold the integers from {low} to {high}")
    span = high - low
    # A span of 2⁶⁴ covers all words, so None stands for it.
    span_word = None if span == 2**64 else np.uint64(span)
    return np.uint64(low % 2**64), span_word, np.uint64(2**64 % span)


def _ranges_of_arrays(
    minval: Any, maxval: Any, shape: Any, dtype: np.dtype
) -> tuple[Any, Any, Any]:
    bounds = [staged(bound) for bound in (minval, maxval)]
    for bound in bounds:
        bound_type = tensor_type(bound)
        if bound_type.dtype.kind not in "iu":
            where = at(user_source())
            raise TypeMismatchError(f"bounds of randint{where} are integers, not {bound_type}")
    low, high = (broadcast_parameter(bound, shape, dtype) for bound in bounds)
    is_nonempty = ew.less(low, high)
    if not isinstance(is_nonempty, Staged) and not np.all(is_nonempty):
        raise ValueError(f"randint{at(user_source())}: a bound is not below the other")
    low, high = wrapped(low, UINT64), wrapped(high, UINT64)
    with np.errstate(over="ignore"):
        span = ew.where(is_nonempty, high - low, np.uint64(1))
        return low, span, (~span + np.uint64(1)) % span


def _uniform_below(key: Any, shape: Any, span: Any, excess: Any) -> Any:
    """Draw words modulo `span`, redrawing those among the first 2⁶⁴ mod span.

    Each remainder then has the same number of words.
    """
    words = draw(key, shape)
    if span is None:
        return words
    if not isinstance(excess, Staged) and not np.any(excess):
        return words % span

    def has_rejected(carry: Any) -> Any:
        return reducing.any(ew.less(carry[1], excess))

    def redraw_rejected(carry: Any) -> Any:
        attempt, words = carry
        redrawn = redraw(key, words, attempt)
        return attempt + 1, ew.where(ew.less(words, excess), redrawn, words)

    carry: Any = (1, words)
    if isinstance(has_rejected(carry), Staged):
        carry = while_loop(has_rejected, redraw_rejected, carry)
    else:
        while has_rejected(carry):
            carry = redraw_rejected(carry)
    return carry[1] % span
