"""`wend.numpy.joining`, `rearranging`, `ranges` and `matrices` beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import wend
import wend.numpy as wnp
from tests.helpers.arrays import NUMPY
from tests.helpers.drawn import ALL, FLOATS, REAL, axes, check, drawn, few, spread

SIZED = st.tuples(st.integers(1, 3), st.integers(1, 3))


@pytest.mark.parametrize("name", ["hstack", "vstack", "dstack", "column_stack"])
@few
@given(x=drawn(ALL), y=drawn(REAL))
def test_stacks(name: str, x: np.ndarray, y: np.ndarray) -> None:
    check(lambda m, x: getattr(m, name)([x, x]), x)
    check(lambda m, x, y: getattr(m, name)((x, y)), x, y)


@pytest.mark.parametrize("name", ["atleast_1d", "atleast_2d", "atleast_3d"])
@few
@given(x=drawn(ALL), y=drawn(REAL))
def test_at_least(name: str, x: np.ndarray, y: np.ndarray) -> None:
    check(lambda m, x, y: getattr(m, name)(x, y), x, y)


@few
@given(x=drawn(shape=(2, 3)), y=drawn(shape=(2, 3)), axis=axes)
def test_append_and_block(x: np.ndarray, y: np.ndarray, axis: Any) -> None:
    check(lambda m, x, y: m.append(x, y, axis), x, y)
    check(lambda m, x, y: m.block([[x, y], [y, x]]), x, y)
    check(lambda m, x, y: m.block([x, y]), x, y)


@few
@given(x=drawn(dims=(1, 3)), parts=st.integers(1, 4) | st.just([1, 2]), axis=st.integers(-2, 2))
def test_splits(x: np.ndarray, parts: Any, axis: int) -> None:
    check(lambda m, x: m.array_split(x, parts, axis), x)
    if NUMPY >= (2, 1):  # 2.0 has none to compare with
        check(lambda m, x: m.unstack(x, axis=axis), x)
    for name in ("hsplit", "vsplit", "dsplit"):
        check(lambda m, x, name=name: getattr(m, name)(x, parts), x)


@few
@given(x=drawn(ALL), by=st.integers(-4, 4), axis=axes)
def test_roll(x: np.ndarray, by: int, axis: Any) -> None:
    check(lambda m, x: m.roll(x, by, axis), x)
    check(lambda m, x, by: m.roll(x, by, axis), x, np.int64(by))


@few
@given(x=drawn(dims=(0, 2)), count=st.integers(0, 3), axis=axes)
def test_repeat_and_tile(x: np.ndarray, count: int, axis: Any) -> None:
    check(lambda m, x: m.repeat(x, count, axis), x)
    check(lambda m, x, n: m.repeat(x, n, axis), x, np.int64(count))
    check(lambda m, x: m.tile(x, (count, 2)), x)
    check(lambda m, x: m.resize(x, (2, count)), x)


@few
@given(x=drawn(dims=(2, 3)), k=st.integers(-5, 5))
def test_turns(x: np.ndarray, k: int) -> None:
    check(lambda m, x: m.rot90(x, k), x)
    check(lambda m, x: m.rot90(x, k, (1, 0)), x)
    check(lambda m, x: m.fliplr(x), x)
    check(lambda m, x: m.rollaxis(x, -1, k), x)


@few
@given(x=drawn(ALL, dims=(2, 3)), k=st.integers(-3, 3))
def test_triangles_and_diagonals(x: np.ndarray, k: int) -> None:
    check(lambda m, x: m.tril(x, k), x)
    check(lambda m, x: m.triu(x, k), x)
    check(lambda m, x: m.diagonal(x, k), x)
    check(lambda m, x: m.diagonal(x, k, -1, 0), x)
    check(lambda m, x: m.trace(x, k), x)
    check(lambda m, x: m.linalg.trace(x, offset=k), x)
    if x.ndim == 2:
        check(lambda m, x: m.diag(x, k), x)
        check(lambda m, x: m.diag(x[0] if len(x) else x.ravel(), k), x)
        check(lambda m, x: m.diagflat(x, k), x)
        check(lambda m, x: m.triu_indices_from(x, k), x)


@few
@given(x=drawn(REAL, shape=st.integers(1, 3)), count=st.none() | st.integers(0, 4))
def test_vander(x: np.ndarray, count: Any) -> None:
    if x.dtype.kind != "u":
        check(lambda m, x: m.vander(x, count), x)
        check(lambda m, x: m.vander(x, count, increasing=True), x)


@few
@given(x=drawn(ALL), y=drawn(ALL))
def test_kron_and_inner(x: np.ndarray, y: np.ndarray) -> None:
    check(lambda m, x, y: m.kron(x, y), x, y)
    if x.ndim and x.shape[-1:] == y.shape[-1:]:
        check(lambda m, x, y: m.inner(x, y), x, y)


@few
@given(
    x=drawn(["f8", "i4", "c16"], shape=(2, 3)),
    y=drawn(["f8", "i4"], shape=st.sampled_from([(3,), (2, 3)])),
)
def test_cross(x: np.ndarray, y: np.ndarray) -> None:
    check(lambda m, x, y: m.cross(x, y), x, y)
    check(lambda m, x, y: m.cross(x, y, axisc=0), x, y)


@few
@given(xs=spread(3), sparse=st.booleans(), indexing=st.sampled_from(["xy", "ij"]))
def test_meshgrid(xs: Any, sparse: bool, indexing: str) -> None:
    xs = [np.ravel(x) for x in xs]
    check(lambda m, *xs: m.meshgrid(*xs, sparse=sparse, indexing=indexing), *xs)
    check(lambda m, x: m.meshgrid(x, sparse=sparse, indexing=indexing), xs[0])


@few
@given(
    start=drawn(["f4", "f8", "i8"], shape=()),
    stop=drawn(["f4", "f8", "i8"], shape=()),
    step=st.sampled_from([1, 0.5, -1, 2]),
)
def test_arange(start: Any, stop: Any, step: Any) -> None:
    if NUMPY < (2, 4):  # which takes an array of one number for it
        assume(np.ndim(start) == np.ndim(stop) == 0)
    call = lambda m, a, b: m.arange(a, b, step)  # noqa: E731 - two checks of it
    check(call, start[()], stop[()], through=False)
    check(lambda m, b: m.arange(b), stop[()], through=False)


@few
@given(
    xs=spread(2, ["f4", "f8", "i8"]),
    num=st.integers(0, 5),
    endpoint=st.booleans(),
    axis=st.sampled_from([0, -1]),
)
def test_linspace(xs: Any, num: int, endpoint: bool, axis: int) -> None:
    check(lambda m, a, b: m.linspace(a, b, num, endpoint, axis=axis), *xs)
    check(lambda m, a, b: m.linspace(a, b, num, dtype=int), *xs)
    check(lambda m, a, b: m.logspace(a, b, num, endpoint, axis=axis), *xs, ulps=512)


@few
@given(n=st.integers(0, 3), k=st.integers(0, 3))
def test_made_of_traced_sizes(n: int, k: int) -> None:
    sizes = np.int64(n), np.int64(k)
    for name in ("zeros", "ones"):
        check(lambda m, n, k, name=name: getattr(m, name)((n, 2, k)), *sizes, through=False)
    check(lambda m, n, k: m.full((n, k), k), *sizes, through=False)
    check(lambda m, n, k: m.eye(n, k, 1), *sizes, through=False)
    check(lambda m, n, k: m.identity(n), *sizes, through=False)


def test_sizes_that_only_the_run_knows() -> None:
    """Shapes of masked arrays go through."""
    f = wend.function(lambda x: wnp.tile(wnp.roll(x[x > 0], 1), 2))
    x = np.array([1.0, -2.0, 3.0, 4.0])
    np.testing.assert_array_equal(f(x), np.tile(np.roll(x[x > 0], 1), 2))
    grad = wend.grad(lambda x: wnp.sum(wnp.diag(x[x > 0]) @ wnp.ones(3) * wnp.arange(3)))(x)
    np.testing.assert_array_equal(grad, [0, 0, 1, 2])


@few
@given(x=drawn(FLOATS))
def test_captured_arrays_are_read_when_it_runs(x: np.ndarray) -> None:
    held = np.array(x)
    f = wend.function(lambda y: wnp.flip(wnp.kron(held, y)))
    f(np.float64(2.0))
    held += 1
    np.testing.assert_array_equal(f(np.float64(2.0)), np.flip(np.kron(held, 2.0)))
