"""Arrays that ops are tried on: empty, 0-d, non-contiguous, with odd numbers, of every dtype."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

_NUMBERS = {
    "f": [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-3, 700.0],
    "i": [0, 1, -1, 2, -3, 7, 100],
    "u": [0, 1, 2, 3, 7, 100],
    "b": [False, True],
}


def numbers(dtype: np.dtype) -> np.ndarray:
    """The numbers of a dtype that are worth trying."""
    if dtype.kind == "c":
        parts = [np.nan, np.inf, 0.0, -0.0, 1.0, -2.5]
        array = np.empty(len(parts) ** 2, dtype)
        array.real, array.imag = zip(*itertools.product(parts, parts), strict=True)
        return array
    given = list(_NUMBERS[dtype.kind])
    if dtype.kind in "iu":
        given += [np.iinfo(dtype).min, np.iinfo(dtype).max]
    return np.array(given, dtype)


def arrays(dtype: np.dtype) -> list[np.ndarray]:
    """An empty one, a 0-d one, a vector of odd numbers, and one that is not contiguous."""
    odd = numbers(dtype)
    block = np.resize(odd, (4, 6))[::-2, ::2].T
    return [np.empty((0, 3), dtype), np.array(odd[-1]), odd, block]


def tuples(dtypes: Collection[np.dtype], arity: int) -> list[tuple[Any, ...]]:
    """Operands of one type, for every dtype; of odd numbers, every one with every other."""
    return [operands for dtype in sorted(dtypes, key=str) for operands in _of(dtype, arity)]


def _of(dtype: np.dtype, arity: int) -> Iterator[tuple[Any, ...]]:
    for array in arrays(dtype):
        if array.ndim == 1 and arity == 2:
            x, y = np.meshgrid(array, array)
            yield x, np.ascontiguousarray(y)
        else:
            yield (array,) * arity


def between(low: float, high: float, *shape: int, seed: int = 0) -> np.ndarray:
    """Well-spread floats between two bounds, in no order, none of them equal."""
    count = int(np.prod(shape))
    order = np.random.default_rng(seed + count).permutation(count)
    place = (order + 0.1 + 0.13 * (seed % 7)) / max(count, 1)
    return (low + (high - low) * place).reshape(shape)


def complexes(*shape: int, seed: int = 0) -> np.ndarray:
    """Complex numbers away from branch cuts and from the axes."""
    return between(0.3, 0.8, *shape, seed=seed) + 1j * between(0.2, 0.9, *shape, seed=seed + 1)
