"""Choices drawn from a key: events, categories, orders. They have no derivatives."""

from __future__ import annotations

import math
import operator
from typing import Any

from numpy.lib.array_utils import normalize_axis_index

from wend.base.errors import ShapeError, TypeMismatchError
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged, any_staged
from wend.eager.promotion import cast, tensor_type
from wend.ir.dtypes import FLOAT64
from wend.numpy import elementwise as ew
from wend.numpy import indexing, ranges, reducing, searching, shaping
from wend.numpy.operands import staged, strong
from wend.random.floats import gumbel, spread, unit
from wend.random.integers import randint
from wend.random.keys import as_shape, checked, draw


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Any:
    """True with probability `p`.

    Args:
        key: a key.
        p: a number or an array that broadcasts to `shape`. The result has no derivative in it.
        shape: sizes; None: those of `p`.

    Example:
        >>> import wend
        >>> wend.random.bernoulli(wend.random.key(0), 0.9, (3,))
        array([ True,  True,  True])
    """
    p = strong(p)
    shape = shaping.shape(p) if shape is None else shape
    return ew.less(unit(key, shape), spread(p, shape))


def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None) -> Any:
    """Positions along an axis, each with a probability in proportion to exp(logits).

    Args:
        key: a key.
        logits: logarithms of what the probabilities are in proportion to. The result has no
            derivative in them.
        axis: the axis of the categories.
        shape: the result's; it ends in the shape of `logits` without `axis`. None: that alone.

    Example:
        >>> import wend
        >>> import numpy as np
        >>> wend.random.categorical(wend.random.key(0), np.log([0.1, 0.9]), shape=(4,))
        array([1, 1, 1, 1])
    """
    logits = cast(strong(logits), FLOAT64)
    place = normalize_axis_index(axis, shaping.rank_of(logits))
    sizes = shaping.shape(logits)
    batch = (*sizes[:place], *sizes[place + 1 :])
    wanted = batch if shape is None else as_shape(shape)
    lead = len(wanted) - len(batch)
    if lead < 0 or not all(map(_may_be, wanted[lead:], batch)):
        raise ShapeError(
            f"categorical{at(user_source())}: the shape {wanted} does not end in {batch}, which "
            "that of the logits is without their axis"
        )
    noise = gumbel(key, (*wanted[:lead], *sizes))
    return reducing.argmax(noise + logits, axis=lead + place)


def _may_be(wanted: Any, size: Any) -> bool:
    return any_staged([wanted, size]) or wanted == size


def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Any:
    """An array's parts along an axis in random order; of an integer n: 0, 1, … n − 1 so.

    Args:
        key: a key.
        x: an array or an integer, plain or traced.
        axis: the axis along which to change places.
        independent: give each line along the axis an order of its own.

    Example:
        >>> import wend
        >>> wend.random.permutation(wend.random.key(0), 5)
        array([0, 2, 1, 4, 3])
    """
    x = staged(x)
    if not shaping.rank_of(x):
        x = ranges.arange(_count(x, "permutation"))
    place = normalize_axis_index(axis, shaping.rank_of(x))
    sizes = shaping.shape(x)
    words = draw(checked(key), sizes if independent else sizes[place])
    if independent:
        return indexing.take_along_axis(x, reducing.argsort(words, axis=place), place)
    return indexing.take(x, reducing.argsort(words), place)


def _count(n: Any, name: str) -> Any:
    if tensor_type(n).dtype.kind not in "iu":
        raise TypeMismatchError(
            f"{name}{at(user_source())} takes an integer or an array, not {tensor_type(n)}"
        )
    return n if isinstance(n, Staged) else as_shape(n)[0]


def choice(
    key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0
) -> Any:
    """Parts of an array along an axis, drawn at random; of an integer n: of 0, 1, … n − 1.

    Args:
        key: a key.
        a: an array or an integer, plain or traced; the result has derivatives in an array.
        shape: how many, sizes of ints where `replace` is False.
        replace: whether one may be drawn again.
        p: probabilities, or what they are in proportion to; None: each is as likely.
        axis: the axis along which to draw.

    Example:
        >>> import wend
        >>> wend.random.choice(wend.random.key(0), 10, (3,), replace=False)
        array([0, 2, 9])
    """
    a = staged(a)
    is_number = not shaping.rank_of(a)
    place = 0 if is_number else normalize_axis_index(axis, shaping.rank_of(a))
    count = _count(a, "choice") if is_number else shaping.shape(a)[place]
    weights = None if p is None else cast(staged(p), FLOAT64)
    if weights is not None and not (
        shaping.rank_of(weights) == 1 and _may_be(shaping.shape(weights)[0], count)
    ):
        raise ShapeError(
            f"choice{at(user_source())}: p holds a number for each of {count}, found "
            f"{tensor_type(weights)}"
        )
    if not replace:
        index = _some_of(key, count, weights, shape)
    elif weights is None:
        index = randint(key, shape, 0, count)
    else:
        heights = reducing.cumsum(weights)
        # 1 − unit is in (0, 1], so nothing of probability 0 is found.
        index = searching.searchsorted(heights, heights[-1] * (1 - unit(key, shape)))
    return index if is_number else indexing.take(a, index, place)


def _some_of(key: Any, count: Any, weights: Any, shape: Any) -> Any:
    """The first of a random order."""
    sizes = as_shape(shape)
    if any_staged(sizes):
        raise TypeMismatchError(
            f"choice{at(user_source())} without replacement takes a shape of ints"
        )
    wanted = math.prod(operator.index(size) for size in sizes)
    if not isinstance(count, Staged) and wanted > count:
        raise ValueError(
            f"choice{at(user_source())}: {wanted} are drawn of {count} without replacement"
        )
    if weights is None:
        order = permutation(key, count)
    else:
        # The order of exponentials of these rates, in logarithms
        order = reducing.argsort(-gumbel(key, (count,)) - ew.log(weights))
    return shaping.reshape(order[:wanted], sizes)
