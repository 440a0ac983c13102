"""Keys, and the bits that they stand for."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from wend.base.errors import ShapeError, TypeMismatchError, explain
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged, any_staged, apply, recorder
from wend.eager.promotion import cast, tensor_type
from wend.numpy import shaping
from wend.numpy.operands import staged
from wend.ops import creating
from wend.ops import random as ops
from wend.ops import shaping as shaping_ops
from wend.ops.random import UINT64

# The last word of the counter says what the bits are for, so that no two uses share them.
_DRAW, _SPLIT, _FOLD = 0, 1, 2


def key(seed: Any) -> Any:
    """The key of a seed, u64[2].

    Args:
        seed: an integer, plain or traced; a plain one may have up to 128 bits.

    Example:
        >>> import wend
        >>> wend.random.key(7)
        array([7, 0], dtype=uint64)
    """
    if isinstance(seed, Staged):
        word = _word(staged(seed), "a seed")
        return shaping.concatenate([shaping.reshape_1(word), _fixed([0])])
    try:
        number = operator.index(seed)
    except TypeError:
        raise TypeMismatchError(f"a seed is an integer, not {seed!r:.60}") from None
    if not -(2**63) <= number < 2**128:
        raise TypeMismatchError(f"a seed has up to 128 bits; {number} has more")
    low, high = number % 2**64, max(number, 0) >> 64
    return np.array([low, high], UINT64)


def split(key: Any, num: Any = 2) -> Any:
    """New keys, independent of each other and of what is drawn from `key` itself.

    Args:
        key: a key.
        num: how many, or a tuple of sizes; may be traced.

    Returns:
        u64[num, 2].

    Example:
        >>> import wend
        >>> first, second = wend.random.split(wend.random.key(0))
        >>> bool((first == second).all())
        False
    """
    return draw(checked(key), (*as_shape(num), 2), _counter(_SPLIT))


def fold_in(key: Any, data: Any) -> Any:
    """The key of one key and an integer, such as the number of a step.

    Example:
        >>> import wend
        >>> key = wend.random.key(0)
        >>> keys = [wend.random.fold_in(key, step) for step in range(3)]
    """
    return draw(checked(key), (2,), _counter(_FOLD, word=_word(staged(data), "what is folded in")))


def bits(key: Any, shape: Any = (), dtype: Any = np.uint64) -> Any:
    """Random bits as unsigned integers; those of uint64 are what `numpy.random.Philox` gives.

    Example:
        >>> import wend
        >>> wend.random.bits(wend.random.key(0), (2,))
        array([ 213000021201967259, 4455796210202625458], dtype=uint64)
    """
    wanted = np.dtype(dtype)
    if wanted.kind != "u":
        raise TypeMismatchError(f"bits{at(user_source())} are unsigned integers, not {wanted}")
    words = draw(checked(key), shape)
    return words if wanted == UINT64 else cast(words >> 64 - 8 * wanted.itemsize, wanted)


# For the functions that draw
def checked(key: Any) -> Any:
    """The key as an operand.

    Raises:
        TypeMismatchError: it is none.
    """
    found = tensor_type(staged(key))
    if found == ops.KEY:
        return staged(key)
    is_many = found.dtype == UINT64 and found.rank == 2
    raise TypeMismatchError(
        explain(
            f"a key is {ops.KEY}, found {found}{at(user_source())}.",
            cure="draw from one key at a time: first, second = wend.random.split(key)."
            if is_many
            else "make one of a seed with wend.random.key(seed).",
        )
    )


def as_shape(shape: Any) -> tuple[Any, ...]:
    """A shape of sizes that may be traced; one size is that of a vector.

    Raises:
        ShapeError: a size is negative.
    """
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    sizes = tuple(s if isinstance(s, Staged) else operator.index(s) for s in sizes)
    if any(not isinstance(size, Staged) and size < 0 for size in sizes):
        raise ShapeError(f"a shape has no negative sizes, found {sizes}{at(user_source())}")
    return sizes


def draw(key: Any, shape: Any, counter: Any = None) -> Any:
    """Bits of a shape, u64."""
    counter = _counter(_DRAW) if counter is None else counter
    sizes = as_shape(shape)
    if not any_staged(sizes):
        return apply(ops.random_bits, key, counter, shape=sizes)
    given = shaping.concatenate([shaping.reshape_1(shaping.as_size(size)) for size in sizes])
    declared = tuple(map(shaping.declared_size, sizes))
    return apply(ops.random_bits, key, counter, given, shape=declared)


def draw_again(key: Any, like: Any, attempt: Any) -> Any:
    """Bits of the shape of others, for those that were refused."""
    counter = _counter(_DRAW, attempt=cast(attempt, UINT64))
    known = tensor_type(like)
    if known.is_static:
        return apply(ops.random_bits, key, counter, shape=known.dims)
    given = apply(shaping_ops.shape_of, like)
    return apply(ops.random_bits, key, counter, given, shape=known.shape)


def _counter(purpose: int, *, word: Any = None, attempt: Any = None) -> Any:
    """A Philox counter; the first two words count the blocks of one draw."""
    if word is None and attempt is None:
        return _fixed([0, 0, 0, purpose])
    zero = _fixed([0])
    words = [zero if x is None else shaping.reshape_1(x) for x in (word, attempt)]
    return shaping.concatenate([words[0], zero, words[1], _fixed([purpose])])


def _fixed(words: list[int]) -> Any:
    """Words that never change: a constant of the graph, where one is recorded."""
    array = np.array(words, UINT64)
    array.flags.writeable = False
    current = recorder.get()
    if current is None:
        return array
    return current.emit(creating.constant, (), {"value": array})[0]


def _word(number: Any, role: str) -> Any:
    """An integer as one u64; negative ones in two's complement."""
    found = tensor_type(number)
    if found.dtype.kind not in "iu" or found.shape != ():
        raise TypeMismatchError(f"{role} is one integer, not {found}{at(user_source())}")
    if type(number) is int:
        return np.uint64(number % 2**64)
    return cast(number, UINT64)
