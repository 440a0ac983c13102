"""Keys, and the random bits that they determine."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from wend.base.errors import ShapeError, TypeMismatchError, explain
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged, any_staged, apply, recorder
from wend.eager.promotion import cast, tensor_type, wrapped
from wend.numpy import shaping
from wend.numpy.operands import staged
from wend.ops import creating
from wend.ops import random as ops
from wend.ops import shaping as shaping_ops
from wend.ops.random import UINT64

# The last word of the counter is the purpose of the bits, so that no two uses share them.
_DRAW, _SPLIT, _FOLD = 0, 1, 2


def key(seed: Any) -> Any:
    """Return the key of a seed, u64[2].

    Args:
        seed: an integer, plain or traced; a plain one may have up to 128 bits.

    Example:
        >>> import wend
        >>> wend.random.key(7)
        array([7, 0], dtype=uint64)
    """
    if isinstance(seed, Staged):
        word = _word(staged(seed), "a seed")
        return shaping.concatenate([shaping.as_vector(word), _fixed([0])])
    try:
        number = operator.index(seed)
    except TypeError:
        raise TypeMismatchError(f"a seed is an integer, not {seed!r:.60}") from None
    if not -(2**63) <= number < 2**128:
        raise TypeMismatchError(f"a seed has up to 128 bits; {number} has more")
    low, high = number % 2**64, max(number, 0) >> 64
    return np.array([low, high], UINT64)


def split(key: Any, num: Any = 2) -> Any:
    """Split a key into new keys.

    They are independent of each other and of what is drawn from `key` itself.

    Args:
        key: a key.
        num: the number of keys, or a tuple of sizes; may be traced.

    Returns:
        u64[num, 2].

    Example:
        >>> import wend
        >>> first, second = wend.random.split(wend.random.key(0))
        >>> bool((first == second).all())
        False
    """
    return draw(check_key(key), (*as_shape(num), 2), _counter(_SPLIT))


def fold_in(key: Any, data: Any) -> Any:
    """Derive a key from a key and an integer, such as the number of a step.

    Example:
        >>> import wend
        >>> key = wend.random.key(0)
        >>> keys = [wend.random.fold_in(key, step) for step in range(3)]
    """
    return draw(
        check_key(key), (2,), _counter(_FOLD, word=_word(staged(data), "what is folded in"))
    )


def bits(key: Any, shape: Any = (), dtype: Any = np.uint64) -> Any:
    """Draw random bits as unsigned integers; uint64 yields those of `numpy.random.Philox`.

    Example:
        >>> import wend
        >>> wend.random.bits(wend.random.key(0), (2,))
        array([ 213000021201967259, 4455796210202625458], dtype=uint64)
    """
    uint_dtype = np.dtype(dtype)
    if uint_dtype.kind != "u":
        raise TypeMismatchError(f"bits{at(user_source())} are unsigned integers, not {uint_dtype}")
    words = draw(check_key(key), shape)
    return (
        words if uint_dtype == UINT64 else cast(words >> 64 - 8 * uint_dtype.itemsize, uint_dtype)
    )


# For the samplers
def check_key(key: Any) -> Any:
    """Return the key as an operand.

    Raises:
        TypeMismatchError: it is not a key.
    """
    key_type = tensor_type(staged(key))
    if key_type == ops.KEY:
        return staged(key)
    is_many = key_type.dtype == UINT64 and key_type.rank == 2
    raise TypeMismatchError(
        explain(
            f"a key is {ops.KEY}, found {key_type}{at(user_source())}.",
            cure="draw from one key at a time: first, second = wend.random.split(key)."
            if is_many
            else "make one of a seed with wend.random.key(seed).",
        )
    )


def as_shape(shape: Any) -> tuple[Any, ...]:
    """Return a shape as a tuple of sizes, which may be traced; a single size makes a vector.

    Raises:
        ShapeError: a size is negative.
    """
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    sizes = tuple(s if isinstance(s, Staged) else operator.index(s) for s in sizes)
    if any(not isinstance(size, Staged) and size < 0 for size in sizes):
        raise ShapeError(f"a shape has no negative sizes, found {sizes}{at(user_source())}")
    return sizes


def draw(key: Any, shape: Any, counter: Any = None) -> Any:
    """Draw random bits of a shape, as u64."""
    counter = _counter(_DRAW) if counter is None else counter
    sizes = as_shape(shape)
    if not any_staged(sizes):
        return apply(ops.random_bits, key, counter, shape=sizes)
    runtime_shape = shaping.concatenate(
        [shaping.as_vector(shaping.as_size(size)) for size in sizes]
    )
    declared = tuple(map(shaping.dim_of_size, sizes))
    return apply(ops.random_bits, key, counter, runtime_shape, shape=declared)


def redraw(key: Any, like: Any, attempt: Any) -> Any:
    """Draw bits of the same shape again, to replace rejected ones."""
    counter = _counter(_DRAW, attempt=cast(attempt, UINT64))
    known = tensor_type(like)
    if known.is_static:
        return apply(ops.random_bits, key, counter, shape=known.dims)
    runtime_shape = apply(shaping_ops.shape_of, like)
    return apply(ops.random_bits, key, counter, runtime_shape, shape=known.shape)


def _counter(purpose: int, *, word: Any = None, attempt: Any = None) -> Any:
    """Return a Philox counter; its first two words count the blocks of one draw."""
    if word is None and attempt is None:
        return _fixed([0, 0, 0, purpose])
    zero = _fixed([0])
    words = [zero if x is None else shaping.as_vector(x) for x in (word, attempt)]
    return shaping.concatenate([words[0], zero, words[1], _fixed([purpose])])


def _fixed(words: list[int]) -> Any:
    """Return constant words: a constant node while recording, else an array."""
    array = np.array(words, UINT64)
    array.flags.writeable = False
    current = recorder.get()
    if current is None:
        return array
    return current.emit(creating.constant, (), {"value": array})[0]


def _word(number: Any, role: str) -> Any:
    """Return an integer as one u64, in two's complement."""
    number_type = tensor_type(number)
    if number_type.dtype.kind not in "iu" or number_type.shape != ():
        raise TypeMismatchError(f"{role} is one integer, not {number_type}{at(user_source())}")
    if type(number) is int:
        return np.uint64(number % 2**64)
    return wrapped(number, UINT64)
