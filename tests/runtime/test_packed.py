"""Values as a block of bytes, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.zero import ZERO
from wend.runtime.packed import pack, unpack
from wend.runtime.sequence import Sequence


def plain(value: Any) -> Any:
    return [plain(item) for item in value.items()] if isinstance(value, Sequence) else value


def assert_equal(a: Any, b: Any) -> None:
    if isinstance(a, list):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_equal(x, y)
    elif isinstance(a, (np.ndarray, np.generic)):
        np.testing.assert_array_equal(a, b, strict=True)
        assert type(a) is type(b)
    else:
        assert a is b


def test_any_value_comes_back() -> None:
    rng = np.random.default_rng(0)
    numbers = Sequence.of([*rng.normal(size=5)])
    arrays = Sequence.of([rng.normal(size=(k, 2)) for k in range(4)])
    nested = Sequence.of([numbers, Sequence.of([]), Sequence.of([*np.arange(3)])])
    handle = object()
    values = [
        rng.normal(size=(3, 4))[:, ::2],
        np.float32(1.5),
        np.bool_(True),
        np.array(2 + 1j),
        np.zeros((0, 3)),
        numbers,
        arrays,
        nested,
        Sequence.of([np.float64(1.0), ZERO, handle]),
        ZERO,
        handle,
    ]
    forms, block = pack(values, lambda size: np.full(size, 255, np.uint8))
    copy = block.copy()
    block[:] = 0
    restored = [plain(unpack(form, copy)) for form in forms]
    expected = [plain(x) if not isinstance(x, np.ndarray) or x.shape else x[()] for x in values]
    assert_equal(restored, expected)


def test_nothing_at_all() -> None:
    forms, block = pack([], lambda size: np.empty(size, np.uint8))
    assert (forms, block.nbytes) == ([], 0)
