"""Random bits in native code: the words of NumPy's Philox."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.helpers.shares import sized

import wend
from wend.backends.native.backend import BACKEND as NATIVE
from wend.backends.native.scalarize.draws import expand_draws
from wend.backends.numpy.backend import BACKEND as NUMPY
from wend.ops.build import Build
from wend.ops.random import COUNTER, KEY, random_bits

WORDS = st.sampled_from([0, 1, 2**64 - 1, 2**63]) | st.integers(0, 2**64 - 1)


@given(
    key=st.tuples(WORDS, WORDS),
    counter=st.tuples(WORDS, WORDS, WORDS, WORDS),
    count=st.integers(0, 9) | st.just(1001),
)
@settings(deadline=None, max_examples=sized(20, 60))
def test_the_words_of_numpy(key: tuple[int, ...], counter: tuple[int, ...], count: int) -> None:
    b = Build("bits")
    graph = b.finish([b.emit(random_bits, b.param(KEY), b.param(COUNTER), shape=(count,))])
    args = [np.array(words, np.uint64) for words in (key, counter)]
    run = NATIVE.compile(graph)
    assert not run.host_nodes
    expected = NUMPY.compile(graph)(args)[0]
    np.testing.assert_array_equal(run(args)[0], expected)
    in_registers = expand_draws(graph)
    assert (random_bits in in_registers.ops) == (count not in range(1, 9))
    np.testing.assert_array_equal(NUMPY.compile(in_registers)(args)[0], expected)


def test_a_shape_of_the_run() -> None:
    draw = wend.function(lambda key, n: wend.random.bits(key, (n, 2)), backend="native")
    key = wend.random.key(3)
    for n in (0, 3, 5):
        np.testing.assert_array_equal(draw(key, n), wend.random.bits(key, (n, 2)))
    assert "runs in Python" not in str(draw.explain())
    with pytest.raises(wend.WendError, match="no negative sizes"):
        draw(key, -1)


@pytest.mark.parametrize("name", ["normal", "uniform", "exponential", "gumbel"])
def test_draws_in_a_loop_are_those_of_python(name: str) -> None:
    sample = getattr(wend.random, name)

    def total(key, n):
        sum = 0.0
        for _ in range(n):
            key, now = wend.random.split(key)
            sum = sum + sample(now) + sample(now, (3,))[2]
        return sum

    run = wend.function(total, backend="native")
    key = wend.random.key(5)
    assert run(key, 50) == total(key, 50)
    assert "runs in Python" not in str(run.explain())
