"""Samples of discrete distributions: events, categories, permutations. They have no derivatives."""

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
from wend.random.floats import broadcast_parameter, gumbel, unit_uniform
from wend.random.integers import randint
from wend.random.keys import as_shape, check_key, draw


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Any:
    """Draw bools that are True with probability `p`.

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
    return ew.less(unit_uniform(key, shape), broadcast_parameter(p, shape))


def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None) -> Any:
    """Draw indices along an axis, with probabilities proportional to exp(logits).

    Args:
        key: a key.
        logits: unnormalized log probabilities. The result has no derivative in them.
        axis: the axis of the categories.
        shape: the shape of the result, which must end in the shape of `logits` without `axis`;
            None: only the latter.

    Example:
        >>> import wend
        >>> import numpy as np
        >>> wend.random.categorical(wend.random.key(0), np.log([0.1, 0.9]), shape=(4,))
        array([1, 1, 1, 1])
    """
    logits = cast(strong(logits), FLOAT64)
    category_axis = normalize_axis_index(axis, shaping.rank_of(logits))
    sizes = shaping.shape(logits)
    batch = (*sizes[:category_axis], *sizes[category_axis + 1 :])
    target = batch if shape is None else as_shape(shape)
    sample_rank = len(target) - len(batch)
    if sample_rank < 0 or not all(map(_may_equal, target[sample_rank:], batch)):
        raise ShapeError(
            f"categorical{at(user_source())}: the shape {target} does not end in {batch}, the "
            "shape of the logits without their axis"
        )
    noise = gumbel(key, (*target[:sample_rank], *sizes))
    return reducing.argmax(noise + logits, axis=sample_rank + category_axis)


def _may_equal(expected: Any, size: Any) -> bool:
    return any_staged([expected, size]) or expected == size


def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Any:
    """Permute an array along an axis at random; for an integer n, permute 0, 1, … n − 1.

    Args:
        key: a key.
        x: an array or an integer, plain or traced.
        axis: the axis along which to permute.
        independent: permute each vector along the axis independently.

    Example:
        >>> import wend
        >>> wend.random.permutation(wend.random.key(0), 5)
        array([0, 2, 1, 4, 3])
    """
    x = staged(x)
    if not shaping.rank_of(x):
        x = ranges.arange(_population_size(x, "permutation"))
    axis = normalize_axis_index(axis, shaping.rank_of(x))
    sizes = shaping.shape(x)
    sort_keys = draw(check_key(key), sizes if independent else sizes[axis])
    if independent:
        return indexing.take_along_axis(x, reducing.argsort(sort_keys, axis=axis), axis)
    return indexing.take(x, reducing.argsort(sort_keys), axis)


def _population_size(n: Any, name: str) -> Any:
    if tensor_type(n).dtype.kind not in "iu":
        raise TypeMismatchError(
            f"{name}{at(user_source())} takes an integer or an array, not {tensor_type(n)}"
        )
    return n if isinstance(n, Staged) else as_shape(n)[0]


def choice(
    key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0
) -> Any:
    """Draw a random sample from an array along an axis; for an integer n, from 0, 1, … n − 1.

    Args:
        key: a key.
        a: an array or an integer, plain or traced; the result has derivatives in an array.
        shape: the shape of the sample; its sizes must be ints if `replace` is False.
        replace: whether to sample with replacement.
        p: probabilities, which need not be normalized; None: uniform.
        axis: the axis along which to draw.

    Example:
        >>> import wend
        >>> wend.random.choice(wend.random.key(0), 10, (3,), replace=False)
        array([0, 2, 9])
    """
    a = staged(a)
    is_number = not shaping.rank_of(a)
    axis = 0 if is_number else normalize_axis_index(axis, shaping.rank_of(a))
    count = _population_size(a, "choice") if is_number else shaping.shape(a)[axis]
    weights = None if p is None else cast(staged(p), FLOAT64)
    if weights is not None and not (
        shaping.rank_of(weights) == 1 and _may_equal(shaping.shape(weights)[0], count)
    ):
        raise ShapeError(
            f"choice{at(user_source())}: p must hold one number for each of {count}, found "
            f"{tensor_type(weights)}"
        )
    if not replace:
        index = _sample_without_replacement(key, count, weights, shape)
    elif weights is None:
        index = randint(key, shape, 0, count)
    else:
        cumulative = reducing.cumsum(weights)
        # 1 − unit_uniform is in (0, 1], so elements of probability 0 are never selected.
        index = searching.searchsorted(cumulative, cumulative[-1] * (1 - unit_uniform(key, shape)))
    return index if is_number else indexing.take(a, index, axis)


def _sample_without_replacement(key: Any, count: Any, weights: Any, shape: Any) -> Any:
    """Return the first elements of a random permutation."""
    sizes = as_shape(shape)
    if any_staged(sizes):
        raise TypeMismatchError(
            f"choice{at(user_source())} without replacement takes a shape of ints"
        )
    sample_count = math.prod(operator.index(size) for size in sizes)
    if not isinstance(count, Staged) and sample_count > count:
        raise ValueError(
            f"choice{at(user_source())}: cannot draw {sample_count} of {count} without replacement"
        )
    if weights is None:
        order = permutation(key, count)
    else:
        # Sort exponential variates with the weights as rates, in logarithms.
        order = reducing.argsort(-gumbel(key, (count,)) - ew.log(weights))
    return shaping.reshape(order[:sample_count], sizes)
