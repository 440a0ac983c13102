"""Keys, and the bits that they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import wend
from tests.helpers.threads import in_threads
from wend import random

WORDS = st.integers(0, 2**64 - 1)
KEY = random.key(11)


@given(low=WORDS, high=WORDS, count=st.integers(0, 50))
def test_bits_are_those_of_numpy(low: int, high: int, count: int) -> None:
    key = np.array([low, high], np.uint64)
    expected = np.random.Philox(key=key).random_raw(count)
    found = random.bits(key, count)
    assert found.dtype == np.uint64
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8"])
def test_smaller_bits_are_the_first_of_the_greater(dtype: str) -> None:
    found = random.bits(KEY, (4, 5), dtype)
    width = 8 * found.dtype.itemsize
    assert found.dtype == dtype
    assert np.array_equal(found, random.bits(KEY, (4, 5)) >> np.uint64(64 - width))


def test_floats_are_those_of_numpy() -> None:
    theirs = np.random.Generator(np.random.Philox(key=KEY)).random(100)
    assert np.array_equal(random.uniform(KEY, 100), theirs)


@pytest.mark.parametrize("seed", [0, 7, -1, 2**63, 2**64 + 3, np.int32(-5), np.uint8(200)])
def test_keys_of_seeds(seed: Any) -> None:
    key = random.key(seed)
    assert key.dtype == np.uint64
    assert key.tolist() == [int(seed) % 2**64, max(int(seed), 0) >> 64]


def test_traced_seeds_make_the_same_keys() -> None:
    for seed in (0, -7, np.uint32(9), np.int8(-1)):
        assert np.array_equal(wend.function(random.key)(seed), random.key(seed))


def test_the_first_keys_do_not_depend_on_how_many_there_are() -> None:
    assert np.array_equal(random.split(KEY, 5)[:2], random.split(KEY))
    assert np.array_equal(random.split(KEY, (2, 3)).reshape(6, 2), random.split(KEY, 6))


def test_no_two_keys_are_alike() -> None:
    keys = [KEY, *random.split(KEY, 100), *(random.fold_in(KEY, i) for i in range(-50, 50))]
    keys += [*random.split(random.split(KEY)[0], 100), *map(random.key, range(100, 200))]
    assert len({tuple(key.tolist()) for key in keys}) == len(keys)


def test_what_split_keys_draw_is_independent() -> None:
    keys = [KEY, *random.split(KEY, 4), random.fold_in(KEY, 0), random.fold_in(KEY, 1)]
    streams = np.stack([random.normal(key, 20_000) for key in keys])
    gaps = np.corrcoef(streams) - np.eye(len(keys))
    assert np.abs(gaps).max() < 4 / np.sqrt(20_000)
    first = np.array([random.normal(key) for key in random.split(KEY, 2000)])
    assert scipy.stats.kstest(first, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 4 / np.sqrt(2000)


def test_a_traced_number_folds_in_the_same() -> None:
    fold_in = wend.function(random.fold_in)
    for number in (0, 5, -3, 2**62, np.uint8(9)):
        assert np.array_equal(fold_in(KEY, number), random.fold_in(KEY, number))


def test_threads_do_not_share_what_they_draw_with() -> None:
    expected = [random.bits(key, 2000) for key in random.split(KEY, 8)]
    found: list[Any] = [None] * 8

    def work(i: int) -> None:
        for _ in range(20):
            found[i] = random.bits(random.split(KEY, 8)[i], 2000)

    in_threads(8, work)
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
