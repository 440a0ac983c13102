"""Loops over ranges near the ends of 64 bits end: with Python's numbers, or an error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wend

LARGEST = 2**63 - 1
STEPS = (1, -1, 2, -2, 7, -7, 2**62, -(2**62), LARGEST, -LARGEST)


def count_and_last(first, end, step):
    count = last = 0
    for i in range(first, end, step):
        count, last = count + 1, i
    return count, last


def with_step(step):
    def run(first, end):
        count = last = 0
        for i in range(first, end, step):
            count, last = count + 1, i
        return count, last

    return wend.function(run)


ANY_STEP = wend.function(count_and_last)
WITH_STEP = {step: with_step(step) for step in STEPS}


@given(
    st.sampled_from(STEPS),
    st.sampled_from([0, LARGEST, -LARGEST - 1]),
    st.integers(0, 30),
    st.integers(-30, 30),
)
def test_ranges_near_the_ends_of_64_bits(step, base, inside, length):
    first = max(min(base + inside, LARGEST), -LARGEST - 1)
    end = max(min(first + length, LARGEST), -LARGEST - 1)
    expected = count_and_last(first, end, step)
    assert tuple(map(int, ANY_STEP(first, end, step))) == expected
    is_past = not -(2**63) <= end - (step > 0) + step + (step < 0) < 2**63
    if not is_past:
        assert tuple(map(int, WITH_STEP[step](first, end))) == expected
        return
    with pytest.raises(OverflowError, match="would not fit 64 bits"):
        WITH_STEP[step](first, end)
