"""How large results are said to be is how large they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trace.sizes.test_integers import N, value

import wend
import wend.numpy as wnp
from wend.ir.types import symbols
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


def test_masks_that_are_computed_alike_are_one_size() -> None:
    def same(x, y, c):
        parts = [x[x > c], y[x > c], x[~(np.abs(x) < 2 * c)], x[~(np.abs(x) < 2 * c)]]
        sizes = [part.type.shape for part in parts]
        assert sizes[0] == sizes[1] != sizes[2] == sizes[3]

        def body(k, z):  # in a loop, as around it; and with what changes there, not
            assert z[x > c].type.shape == sizes[0] != z[z > c].type.shape == x[z > c].type.shape
            return z + 1.0

        return wend.fori_loop(0, 3, body, y)

    x = np.linspace(-1.0, 1.0, 9)
    wend.function(same)(x, x, 0.3)

    def changed(x, c):
        y = x.copy()
        first = y[y > c].type.shape
        y[0] = 1.0
        assert y[y > c].type.shape != first
        return y

    wend.function(changed)(x, 0.3)


def test_what_masks_of_the_size_of_a_trip_select_changes_with_the_trip() -> None:
    """The array that the loop carries has a size of its own at each test."""

    def parts(x, c, n):
        part = x[np.broadcast_to(c > 0, x.shape)]
        i = 1
        while i < n:
            first = x[:i]
            part = first[np.broadcast_to(c > 0, first.shape)]
            i = i + 1
        return part

    number, count = wend.TensorSpec(()), wend.TensorSpec((), np.int64)
    fun = wend.function(parts, input_signature=[wend.TensorSpec([None]), number, count])
    x = np.arange(6.0)
    for c, n in [(1.0, 0), (1.0, 1), (1.0, 4), (1.0, 9), (-1.0, 0), (-1.0, 4)]:
        np.testing.assert_array_equal(fun(x, c, n), parts(x, c, n))


def test_an_array_of_the_shape_of_another_has_its_size() -> None:
    def shapes(n, x):
        for y in (np.arange(n), np.zeros(n), x[x > 0], np.linspace(0.0, 1.0, n), x[: n - 7]):
            assert np.zeros(y.shape).type.shape == y.type.shape
            assert np.ones((len(y), 2)).type.shape == (*y.type.shape, 2)
        return x

    wend.function(shapes)(3, np.linspace(-1.0, 1.0, 9))


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


@pytest.mark.parametrize("size", [12, None])
@given(
    st.tuples(st.integers(-3, 12), st.integers(-3, 14), st.sampled_from([1, 2, 3, 5, -1, -2])),
    st.tuples(st.integers(-2, 3), st.integers(-2, 6)),
    st.sampled_from([0, 1]),
)
def test_slices_at_the_numbers_of_a_loop(
    size: int | None, numbers: tuple[int, int, int], bounds: tuple[int, int], cut: int
) -> None:
    """Whatever is known of their sizes, they have the elements that Python's have."""
    (start, stop, step), (first, last) = numbers, bounds

    def fun(x, n):
        total = 0.0
        for i in range(start, stop, step) if n is None else range(start, n, abs(step)):
            part = x[i + first : i + last]
            total = total + np.sum(part * np.arange(len(part))) + len(part)
        return total

    spec = [wend.TensorSpec([size]), wend.TensorSpec([], int)]
    known = wend.function(lambda x: fun(x, None), input_signature=spec[:1])
    traced = wend.function(fun, input_signature=spec)
    for count in (12,) if size else (0, 1, 5, 12):
        x = np.arange(1.0, count + 1)
        assert known(x) == fun(x, None)
        for n in (0, stop, count - cut):
            assert traced(x, n) == fun(x, n)


def windows(x):
    total = np.zeros(3)
    for i in range(x.shape[0] - 2):
        total = total + x[i : i + 3]
    return total


def blocks(x):
    total = np.zeros(4)
    for i in range(0, 24, 4):
        total = total + x[i : i + 4]
    return total


def backwards(x):
    total = np.zeros(3)
    for i in range(22, 0, -1):
        total = total + x[i - 1 : i + 2]
    return total


def inner_loop(x):
    total = np.zeros(2)
    for i in range(20):
        for j in range(i, 20):
            total = total + x[i : i + 2] * x[j + 2 : j + 4]
    return total


@pytest.mark.parametrize("fun", [windows, blocks, backwards, inner_loop])
def test_sizes_that_loops_over_ranges_tell(fun) -> None:
    compiled, x = wend.function(fun), np.arange(24.0)
    np.testing.assert_allclose(compiled(x), fun(x))
    (concrete,) = compiled.concrete_functions()
    values = [value for node in concrete.graph.walk() for value in node.results]
    assert not any(symbols(value.type) for value in values)


@pytest.mark.parametrize("numbers", [range(10**18), range(10**18, -5, -7)])
def test_loops_over_long_ranges_are_traced_at_once(numbers: range) -> None:
    @wend.function
    def fun(x):
        total = 0.0
        for i in numbers:
            if x[i % 3] > 2:
                break
            total, x = total + x[0], x + 1.0
        return total

    assert fun(np.zeros(3)) == 3.0
