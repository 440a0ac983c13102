"""How large results are said to be is how large they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trace.sizes.test_integers import N, value

import wend
import wend.numpy as wnp
from wend.trace.sizes.integers import constant, symbolic
from wend.trace.sizes.result_sizes import reshape_sizes, slice_size

BOUND = st.none() | st.integers(-5, 5)


@given(st.integers(-5, 5), st.integers(-5, 5))
def test_cut(start: int, stop: int) -> None:
    found = slice_size(constant(start), constant(stop), symbolic(N))
    for n in range(8):
        assert value(found, {N: n}) == len(range(n)[start:stop])


@given(BOUND, BOUND, st.sampled_from([None, 1, 2, 3, -1, -2]))
def test_slices(start: int | None, stop: int | None, step: int | None) -> None:
    """Of equal sizes and bounds they are one size; and it is NumPy's."""
    spec = wend.TensorSpec([None, 2])

    @wend.function(input_signature=[spec], backend="numpy")
    def fun(x):
        part, again = x[start:stop:step], (x + 1.0)[start:stop:step]
        assert part.type.shape == again.type.shape
        return part * again

    for n in range(7):
        x = np.arange(2.0 * n).reshape(n, 2)
        np.testing.assert_array_equal(fun(x), x[start:stop:step] * (x + 1)[start:stop:step])


def test_reshaped() -> None:
    n, two, left = symbolic(N), constant(2), constant(-1)
    assert reshape_sizes([n, constant(6)], [n, left]) == [n, constant(6)]
    assert reshape_sizes([n, two], [left, constant(1)]) == [n.times(two), constant(1)]
    assert reshape_sizes([n], [left, two]) == [None, two]
    assert reshape_sizes(None, [n, left]) == [n, None]


KEEP = {
    "arange": lambda x: wnp.arange(len(x)),
    "arange from": lambda x: wnp.arange(2, len(x) + 2),
    "roll": lambda x: wnp.roll(x, 2),
    "parts": lambda x: wnp.concatenate([x[1:], x[:1]]),
    "halves": lambda x: wnp.concatenate([x[len(x) // 2 :], x[: len(x) // 2]]),
    "pad": lambda x: wnp.pad(x, 2)[2:-2],
    "twice": lambda x: wnp.repeat(x, 2)[::2],
    "tile": lambda x: wnp.tile(x, 3)[: len(x)],
    "ravel": lambda x: wnp.ravel(wnp.stack([x, x], axis=1))[: len(x)],
    "reshape": lambda x: wnp.reshape(wnp.reshape(x, (len(x), 1)), (-1,)),
    "linspace": lambda x: wnp.linspace(0.0, 1.0, len(x)),
    "eye": lambda x: wnp.eye(len(x)) @ x,
    "zeros": lambda x: wnp.zeros(len(x)),
    "masked": lambda x: wnp.where(x > 0, x, 0.0),
    "flip": lambda x: x[::-1],
    "diff": lambda x: wnp.concatenate([wnp.diff(x), x[:1]]),
}


@pytest.mark.parametrize("name", KEEP)
def test_sizes_that_are_kept(name: str) -> None:
    """Where the sizes are seen to be one, nothing has to be broadcast when it runs."""

    @wend.function(input_signature=[wend.TensorSpec([None])], backend="numpy")
    def fun(x):
        found = KEEP[name](x)
        assert found.type.shape == x.type.shape
        return x + found

    for n in (0, 1, 2, 7):
        x = np.linspace(-1.0, 2.0, n)
        with np.errstate(all="ignore"):
            assert fun(x).shape == (n,)
    ops = [node.op.name for node in fun.concrete_functions()[0].graph.nodes]
    assert ("broadcast_shapes" in ops) == (name == "eye")  # which compares two lines


# In narrow dtypes sums wrap, and casts to them cut: their results are sizes of their own.
WRAPPED = {
    "cast": lambda n: (wnp.zeros(n.astype(np.uint8)), wnp.ones(n)),
    "mul": lambda n: (wnp.zeros(np.uint8(n) * np.uint8(2)), wnp.ones(2 * n)),
    "add": lambda n: (wnp.zeros(n.astype(np.int8) + 1), wnp.ones(n + 1)),
    "sub": lambda n: (wnp.arange(600)[np.uint8(n) - np.uint8(n + 1) :], wnp.ones(601)[: n + 1]),
    "neg": lambda n: (wnp.arange(600)[: -n.astype(np.int8)], wnp.ones(600)[:-n]),
    "of 32 bits": lambda n: (wnp.zeros(np.int32(n) * np.int32(2**30) // 2**29), wnp.ones(2 * n)),
}


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("name", WRAPPED)
def test_sizes_in_narrow_dtypes(name: str, backend: str) -> None:
    """Native code that took them for equal would read beyond the shorter array."""
    pair = WRAPPED[name]
    fun = wend.function(lambda n: wnp.add(*pair(n)), backend=backend)
    for n in map(np.int64, (1, 3, 127, 128, 255, 256, 300)):
        with np.errstate(over="ignore"):
            try:
                expected = np.add(*pair(n))
            except ValueError:
                with pytest.raises(ValueError, match=r"broadcast|negative"):
                    fun(n)
                continue
        np.testing.assert_array_equal(fun(n), expected)


def test_masks_of_one_array_are_one_size() -> None:
    @wend.function(input_signature=[wend.TensorSpec([None])] * 2, backend="numpy")
    def fun(x, y):
        mask = x > y
        assert x[mask].type.shape == y[mask].type.shape
        assert x[mask].type.shape != x[y > 0].type.shape
        return x[mask] - y[mask]

    x, y = np.arange(6.0), np.array([3.0, -1, 7, 2, 9, 0])
    np.testing.assert_array_equal(fun(x, y), (x - y)[x > y])


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_negative_size_stands_for_what_is_left(backend: str) -> None:
    """As for NumPy; so it is another one than that of `arange`."""
    fun = wend.function(
        lambda x, k: (wnp.reshape(x, (k, 2)) + 1.0, wnp.arange(k), wnp.reshape(x, (k, 2))),
        backend=backend,
    )
    x = np.arange(6.0)
    for k in (3, -1, -3):
        found, positions, again = fun(x, k)
        np.testing.assert_array_equal(found, x.reshape(3, 2) + 1)
        np.testing.assert_array_equal(again, x.reshape(3, 2))
        assert len(positions) == max(k, 0)
    with pytest.raises(ValueError, match="cannot reshape array of size 6 into shape"):
        fun(x, 4)
    both = wend.function(lambda x, k, m: wnp.reshape(x, (k, m)), backend=backend)
    for given_x in (x, x[:1], x[:0]):
        with pytest.raises(ValueError, match="can only specify one unknown dimension"):
            both(given_x, -1, -2)
