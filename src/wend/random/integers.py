"""Integers drawn from a key, each exactly as likely."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from wend.base.errors import TypeMismatchError
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged
from wend.eager.promotion import cast, tensor_type
from wend.ir.dtypes import INTEGERS
from wend.numpy import elementwise as ew
from wend.numpy import reducing
from wend.numpy.operands import staged
from wend.ops.random import UINT64
from wend.random.floats import spread
from wend.random.keys import checked, draw, draw_again
from wend.trace.control.loops import while_loop


def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = np.int64) -> Any:
    """Integers from minval up to, not including, maxval; each exactly as likely.

    Args:
        key: a key.
        shape: sizes, which may be traced.
        minval: an integer or an array that broadcasts to `shape`.
        maxval: as `minval`. Where it is not above `minval` all are `minval`, if that is only
            known when the function runs.
        dtype: a dtype of integers.

    Raises:
        ValueError: there is no integer between the bounds, or the dtype does not hold them.

    Example:
        >>> import wend
        >>> wend.random.randint(wend.random.key(0), (5,), 0, 10)
        array([9, 8, 9, 6, 3])
    """
    wanted = np.dtype(dtype)
    if wanted not in INTEGERS:
        raise TypeMismatchError(f"randint{at(user_source())} makes integers, not {wanted}")
    first, stop = _plain(minval), _plain(maxval)
    if first is None or stop is None:
        low, span, excess = _of_arrays(minval, maxval, shape, wanted)
    else:
        low, span, excess = _of_numbers(first, stop, wanted)
    with np.errstate(over="ignore"):  # modulo 2⁶⁴ is meant
        return cast(low + _below(checked(key), shape, span, excess), wanted)


def _plain(bound: Any) -> int | None:
    """A bound as an int, if Python knows it."""
    if isinstance(bound, (Staged, np.ndarray, list, tuple)):
        return None
    try:
        return operator.index(bound)
    except TypeError:
        raise TypeMismatchError(
            f"bounds of randint{at(user_source())} are integers, not {bound!r:.60}"
        ) from None


def _of_numbers(low: int, high: int, dtype: np.dtype) -> tuple[Any, Any, Any]:
    if low >= high:
        where = at(user_source())
        raise ValueError(f"randint{where}: no integer is from {low} up to, not including, {high}")
    limits = np.iinfo(dtype)
    if low < limits.min or high - 1 > limits.max:
        where = at(user_source())
        raise ValueError(f"randint{where}: {dtype} does not hold the integers from {low} to {high}")
    span = high - low
    # A span of 2⁶⁴, which is all there are, is as good as none.
    word = None if span == 2**64 else np.uint64(span)
    return np.uint64(low % 2**64), word, np.uint64(2**64 % span)


def _of_arrays(minval: Any, maxval: Any, shape: Any, dtype: np.dtype) -> tuple[Any, Any, Any]:
    bounds = [staged(bound) for bound in (minval, maxval)]
    for bound in bounds:
        found = tensor_type(bound)
        if found.dtype.kind not in "iu":
            where = at(user_source())
            raise TypeMismatchError(f"bounds of randint{where} are integers, not {found}")
    low, high = (spread(bound, shape, dtype) for bound in bounds)
    is_some = ew.less(low, high)
    if not isinstance(is_some, Staged) and not np.all(is_some):
        raise ValueError(f"randint{at(user_source())}: a bound is not below the other")
    low, high = cast(low, UINT64), cast(high, UINT64)
    with np.errstate(over="ignore"):
        span = ew.where(is_some, high - low, np.uint64(1))
        return low, span, (~span + np.uint64(1)) % span


def _below(key: Any, shape: Any, span: Any, excess: Any) -> Any:
    """Words modulo `span`, drawn again while they are among the first 2⁶⁴ mod span.

    The others are as many for each remainder.
    """
    words = draw(key, shape)
    if span is None:
        return words
    if not isinstance(excess, Staged) and not np.any(excess):
        return words % span

    def is_refused(carry: Any) -> Any:
        return reducing.any(ew.less(carry[1], excess))

    def redrawn(carry: Any) -> Any:
        attempt, words = carry
        again = draw_again(key, words, attempt)
        return attempt + 1, ew.where(ew.less(words, excess), again, words)

    carry: Any = (1, words)
    if isinstance(is_refused(carry), Staged):
        carry = while_loop(is_refused, redrawn, carry)
    else:
        while is_refused(carry):
            carry = redrawn(carry)
    return carry[1] % span
