"""Rows of `wend.ops.random`."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from tests.helpers.cases import Case
from tests.helpers.samples import between

WORD, FIELD = 2**64, 2**64 - 1


def block(counter: int, key: list[int]) -> list[int]:
    """Philox4x64-10 as in the paper, section 3.3, on Python's integers."""
    c = [counter >> 64 * i & FIELD for i in range(4)]
    k = list(key)
    for _ in range(10):
        low, high = 0xD2E7470EE14C6C93 * c[0], 0xCA5A826395121157 * c[2]
        c = [high >> 64 ^ c[1] ^ k[0], high & FIELD, low >> 64 ^ c[3] ^ k[1], low & FIELD]
        k = [(k[0] + 0x9E3779B97F4A7C15) % WORD, (k[1] + 0xBB67AE8584CAA73B) % WORD]
    return c


def philox(key: Any, counter: Any, *seeded: Any, shape: Any) -> Any:
    sizes = tuple(seeded[0].tolist()) if seeded else shape
    start = sum(word << 64 * i for i, word in enumerate(counter.tolist()))
    count = int(np.prod(sizes, dtype=int))
    words: list[int] = []
    while len(words) < count:
        start = (start + 1) % 2**256
        words += block(start, key.tolist())
    return np.array(words[:count], np.uint64).reshape(sizes)[()]


def words(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.uint64)


KEYS = [
    (words(0, 0), words(0, 0, 0, 0)),
    (words(1, 2), words(FIELD, 0, 0, 1)),
    (words(FIELD, 5)[::-1], words(FIELD, FIELD, FIELD, FIELD)),
]

CASES = [
    *(
        Case("random_bits", philox, KEYS, attrs={"shape": shape})
        for shape in ((), (0,), (1,), (7,), (2, 3), (2, 0, 3))
    ),
    Case(
        "random_bits",
        lambda key, counter, size, shape: philox(key, counter, size, shape=shape),
        [(*KEYS[1], np.array([2, 3]))],
        attrs={"shape": (2, 3)},
    ),
    *(
        Case(op, law.ppf, [(np.linspace(0.1, 0.9, 5),)], [(between(0.1, 0.9, 4),)], exact=False)
        for op, law in {
            "exponential_quantile": stats.expon,
            "gumbel_quantile": stats.gumbel_r,
        }.items()
    ),
]
