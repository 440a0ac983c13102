"""By positions along an axis, where masks hold, convolutions, neighbours: as the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.backends.native.emit.array.test_sorting import bits_of, numbers, sizes
from tests.backends.native.test_cases import assert_close, outcome
from tests.helpers.shares import sized

from wend.backends.native.backend import BACKEND as NATIVE
from wend.backends.numpy.backend import BACKEND as NUMPY
from wend.ir import TABLE
from wend.ir.graph import Graph
from wend.ir.types import Symbol, TensorType
from wend.ops.build import Build

SEEDS = st.integers(0, 2**32 - 1)


def graph_of(name: str, arrays: list[np.ndarray], known: bool, **attrs: Any) -> Graph:
    b = Build(name)
    types = [
        TensorType(x.dtype, x.shape if known else tuple(Symbol(f"s{n}") for n in x.shape))
        for x in arrays
    ]
    return b.finish(b.emit_node(TABLE[name], [*map(b.param, types)], **attrs).results)


def check(name: str, arrays: list[np.ndarray], known: bool, **attrs: Any) -> None:
    graph = graph_of(name, arrays, known, **attrs)
    assert not NATIVE.compile(graph).host_nodes, name
    expected, found = outcome(NUMPY, graph, arrays), outcome(NATIVE, graph, arrays)
    if isinstance(expected, tuple) and isinstance(expected[0], type):
        assert found == expected
    else:
        assert_close(found, expected, name)


@given(
    dtype=st.sampled_from(["f8", "f4", "i1", "u2", "i8", "?"]),
    places=st.sampled_from(["i8", "i4", "u1", "i1"]),
    length=st.integers(0, 5),
    count=st.integers(0, 6),
    others=st.lists(st.integers(0, 3), max_size=2),
    axis=st.integers(0, 2),
    known=st.booleans(),
    reach=st.sampled_from([0, 0, 1]),
    seed=SEEDS,
)
@settings(max_examples=sized(15, 40), deadline=None)
def test_along_an_axis(
    dtype: str,
    places: str,
    length: int,
    count: int,
    others: list[int],
    axis: int,
    known: bool,
    reach: int,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    axis %= len(others) + 1
    x = rng.integers(0, 2 if dtype == "?" else 9, sizes(length, others, axis)).astype(dtype)
    shape = sizes(count, others, axis)
    low = 0 if places[0] == "u" else -length
    # `reach`: positions that are not there, which are NumPy's errors
    given = rng.integers(low - reach * (low < 0), max(length + reach, low + 1), shape)
    given = given.astype(places)
    values = rng.integers(0, 2 if dtype == "?" else 9, shape).astype(dtype)
    check("take_along", [x, given], known, axis=axis)
    check("set_along", [x, values, given], known, axis=axis)
    check("add_along", [x, values, given], known, axis=axis)


@given(shape=st.lists(st.integers(0, 9), min_size=1, max_size=3), known=st.booleans(), seed=SEEDS)
@settings(max_examples=sized(12, 30), deadline=None)
def test_where_a_mask_holds(shape: list[int], known: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    check("nonzero", [rng.random(shape) < rng.choice([0.0, 0.3, 1.0])], known)


@given(
    dtype=st.sampled_from(["f8", "f4", "i1", "i8", "u4"]),
    size=st.tuples(st.integers(0, 40), st.sampled_from([0, 1, 2, 7, 3000])),
    swapped=st.booleans(),
    known=st.booleans(),
    seed=SEEDS,
)
@settings(max_examples=sized(12, 30), deadline=None)
def test_convolutions(
    dtype: str, size: tuple[int, int], swapped: bool, known: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x, y = (rng.integers(0, 9, n).astype(dtype) for n in (size[::-1] if swapped else size))
    if known and not (x.size and y.size):
        return  # the shape rule refuses it
    check("convolve", [x, y], known)


@given(
    dtype=st.sampled_from(["f8", "f4", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]),
    alone=st.booleans(),
    seed=SEEDS,
)
@settings(max_examples=sized(15, 40), deadline=None)
def test_of_two_numbers(dtype: str, alone: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = () if alone else (50,)
    x, y = (numbers(rng, np.dtype(dtype), shape) for _ in range(2))
    names = ["nextafter", "fmod"] if dtype[0] == "f" else ["fmod_int", "gcd", "lcm"]
    for name in names:
        graph = graph_of(name, [x, y], True)
        run = NATIVE.compile(graph)
        assert not run.host_nodes
        with np.errstate(all="ignore"):
            (found,), (expected,) = run([x, y]), NUMPY.compile(graph)([x, y])
        found, expected = (np.where(np.isnan(v), 0, v) for v in (found, expected))
        np.testing.assert_array_equal(
            bits_of(np.atleast_1d(found)), bits_of(np.atleast_1d(expected)), err_msg=name
        )
    check("signbit" if dtype[0] == "f" else "bit_count", [x], True)
