"""`wend.numpy.selecting`, `searching` and `sets` beside NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wend
from tests.helpers.drawn import ALL, FLOATS, REAL, check, drawn, few, spread


# Choices
@few
@given(xs=spread(2, ALL), mask=drawn(["?"], shape=()))
def test_select(xs: Any, mask: np.ndarray) -> None:
    check(lambda m, c, x, y: m.select([c, x == y], [x, y], 2), mask, *xs)
    check(lambda m, c, x, y: m.select([c], [x, y]), mask, *xs)


@few
@given(x=drawn(FLOATS))
def test_piecewise(x: np.ndarray) -> None:
    check(lambda m, x: m.piecewise(x, [x < 0, x >= 1], [-1, lambda v: v * v]), x)
    check(lambda m, x: m.piecewise(x, [x < 0], [lambda v, k: k * v, 7], 3), x)
    if x.ndim == 1 and x.size:
        check(lambda m, x: m.piecewise(x, x > 0, [1.5]), x)
    check(lambda m, x: m.piecewise(x, [x < 0], [1, 2, 3]), x)


@few
@given(x=drawn(REAL, shape=(2, 3)), mode=st.sampled_from(["raise", "wrap", "clip"]))
def test_choose(x: np.ndarray, mode: str) -> None:
    index = np.array([0, 2, 1])
    check(lambda m, i, x: m.choose(i, [x, x + 1, 3], mode=mode), index, x)
    if mode != "raise":
        check(lambda m, i, x: m.choose(i, [x, x + 1], mode=mode), index, x)


@few
@given(x=drawn(ALL, shape=(2, 3)), mask=drawn(["?"], shape=(3,)), axis=st.sampled_from([1, -1]))
def test_masks(x: np.ndarray, mask: np.ndarray, axis: int) -> None:
    check(lambda m, c, x: m.compress(c, x, axis), mask, x)
    check(lambda m, c, x: m.extract(c, x[0]), mask, x)
    for name in ("flatnonzero", "argwhere", "count_nonzero"):
        check(lambda m, x, name=name: getattr(m, name)(x), x)
    check(lambda m, x: m.count_nonzero(x, axis, keepdims=True), x)


# Searches
@few
@given(
    x=drawn(["f4", "f8", "i4"], shape=st.integers(1, 4), odd=True), v=drawn(["f8", "i4"], odd=True)
)
def test_searchsorted(x: np.ndarray, v: np.ndarray) -> None:
    for side in ("left", "right"):
        check(lambda m, x, v, side=side: m.searchsorted(x, v, side), np.sort(x), v)
    order = np.argsort(x)
    check(lambda m, x, v, order: m.searchsorted(x, v, sorter=order), x, v, order)


@few
@given(
    x=drawn(FLOATS), right=st.booleans(), bins=st.sampled_from([[-1.0, 0, 2], [2.0, 0, -1], [0.5]])
)
def test_digitize(x: np.ndarray, right: bool, bins: Any) -> None:
    check(lambda m, x: m.digitize(x, bins, right), x)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize(
    "bins",
    [[], [1], [1, 1], [0, 1, 1, 3], [3, 1, 1, 0], [2, np.nan], [0, 2, np.nan], [3, np.nan, 1]],
)
def test_digitize_with_traced_bins(bins: Any, right: bool) -> None:
    x = np.array([-1.0, 0, 1, 1.5, 3, 7, np.nan])
    check(lambda m, x, bins: m.digitize(x, bins, right), x, np.array(bins, float))


def positions(digitize: Any, x: np.ndarray, bins: np.ndarray) -> Any:
    """The positions that `digitize` finds, or the text of the error."""
    try:
        return digitize(x, bins)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize(
    "options", [{"backend": "numpy"}, {"backend": "native"}, {"eager": True}], ids=str
)
def test_the_first_step_of_bins_decides_their_direction(options: Any) -> None:
    x = np.array([-1.0, 0, 0.5, 1, 3, np.nan])
    spec = [wend.TensorSpec(x.shape, float), wend.TensorSpec((None,), float)]
    digitize = wend.function(np.digitize, input_signature=spec)
    for count in range(5):
        for bins in map(np.array, itertools.product([0.0, 1.0, 2.0, np.nan], repeat=count)):
            expected = positions(np.digitize, x, bins)
            with wend.config(**options):
                found = positions(digitize, x, bins)
            orders = bins, bins[::-1]
            is_sorted = any(np.array_equal(np.sort(b), b, equal_nan=True) for b in orders)
            # NaN between numbers is no order: what a search finds is unspecified.
            if is_sorted or isinstance(expected, str) or isinstance(found, str):
                np.testing.assert_equal(found, expected, err_msg=str(bins))


@few
@given(x=drawn(["u1", "i4"], shape=st.integers(0, 5)), least=st.integers(0, 4))
def test_bincount(x: np.ndarray, least: int) -> None:
    x = np.abs(x)
    check(lambda m, x: m.bincount(x, minlength=least), x)
    check(lambda m, x, w: m.bincount(x, w, least), x, np.arange(len(x)) / 2)


HISTOGRAMS_OF_TWO = [
    {},
    {"bins": 4, "density": True},
    {"bins": [2, 5], "range": [[-5, 5], [-2.0, 20]]},
    {"bins": [-10.0, 0, 1, 10]},
    {"bins": [[-1.0, 0, 3], 3]},
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("options", HISTOGRAMS_OF_TWO, ids=str)
@few
@given(xs=spread(2, FLOATS))
def test_histogram2d(xs: Any, options: dict[str, Any]) -> None:
    x, y = (x.ravel() for x in xs)
    count = min(len(x), len(y))
    check(lambda m, x, y: m.histogram2d(x, y, **options), x[:count], y[:count])
    options = options | {"weights": np.arange(float(count))}
    check(lambda m, x, y: m.histogram2d(x, y, **options), x[:count], y[:count])


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_bincount_of_any_number(backend: str) -> None:
    spec = wend.TensorSpec([None], np.int64)
    count = wend.function(lambda x: np.bincount(x), input_signature=[spec], backend=backend)
    for numbers in ([1, 2, 2], [], [0]):
        x = np.array(numbers, np.int64)
        np.testing.assert_array_equal(count(x), np.bincount(x))
    with pytest.raises(ValueError, match="no negative elements"):
        count(np.array([1, -1]))


@pytest.mark.parametrize(
    ("function", "dtype", "stored"),
    [
        (lambda x: np.bincount(x), np.int64, 0),
        (lambda x: np.histogram(x, 10)[0], np.float64, 1),
        (lambda x: np.histogram(x, 10, (0.0, 50.0))[0], np.float64, 1),
    ],
)
def test_counting_keeps_few_arrays(function: Any, dtype: Any, stored: int) -> None:
    """What is checked is not copied; bins are stored once."""
    x = np.random.default_rng(0).integers(0, 100, 100_000).astype(dtype)
    run = wend.function(function, backend="native")
    np.testing.assert_array_equal(run(x), function(x))
    (executable,) = run.get_concrete_function(x).compiled.executables()
    assert executable.peak_memory() < (stored + 0.2) * x.nbytes


@few
@given(x=drawn(["f8", "i4"], least=1), density=st.booleans())
def test_histogram(x: np.ndarray, density: bool) -> None:
    check(lambda m, x: m.histogram(x, [-10.0, 0, 1, 10], density=density), x)
    check(lambda m, x: m.histogram(x, 4, (-10, 10), weights=m.abs(x))[0], x)


@few
@given(
    places=st.lists(st.integers(-2, 26), min_size=1, max_size=20),
    bins=st.integers(1, 9),
    limits=st.sampled_from([None, (0.0, 1.2), (0.1, 0.7), (-1, 3)]),
    dtype=st.sampled_from(["f8", "f4", "f2", "i8", "u1"]),
)
def test_histogram_of_numbers_at_edges(
    places: list[int], bins: int, limits: tuple[float, float] | None, dtype: str
) -> None:
    """A quotient that rounds to the next bin is put right by the edges, as in NumPy."""
    x = (np.array(places) * 0.1 * (10 if dtype in ("i8", "u1") else 1)).astype(dtype)
    check(lambda m, x: m.histogram(x, bins, limits), x)
    check(lambda m, x: m.histogram(x, bins, limits, weights=x)[0], x)


@few
@given(
    x=drawn(FLOATS),
    fp=drawn(["f8", "f4", "i4", "c16"], shape=(4,)),
    left=st.sampled_from([None, 0.5]),
    period=st.sampled_from([None, 2.5]),
)
def test_interp(x: np.ndarray, fp: np.ndarray, left: Any, period: Any) -> None:
    xp = np.array([-1.0, 0.5, 1.0, 2.0])
    check(lambda m, x, xp, fp: m.interp(x, xp, fp, left, period=period), x, xp, fp, ulps=512)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i1", "u2"])
def test_histograms_of_selections_that_may_be_empty(dtype: str, backend: str) -> None:
    def counts(x: Any, least: Any) -> Any:
        chosen = x[x > least]
        return (
            *np.histogram(chosen, 3),
            *np.histogram(chosen, 2, weights=chosen),
            *np.histogram(chosen, [0.0, 2.0, 3.0]),
            *np.histogram(x[:0], 2),
        )

    run, x = wend.function(counts, backend=backend), np.array([1, 5, 3, 4], dtype)
    for least in (2, 9):
        for a, b in zip(run(x, least), counts(x, least), strict=True):
            np.testing.assert_allclose(a, b)
            assert (a.dtype, a.shape) == (b.dtype, b.shape)


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("dtype", ["c16", "c8", "i4", "f2"])
def test_weights_of_histograms(dtype: str, backend: str) -> None:
    def counts(x: Any, w: Any) -> Any:
        return (
            *np.histogram(x, 2, weights=w),
            np.histogram(x, [0.0, 1.5, 4.0], weights=w, density=True)[0],
        )

    x, w = np.array([1.0, 2.0, 3.5]), np.array([1 + 1j, 2, 3j]) if dtype[0] == "c" else [1, 0, 2]
    w = np.array(w).astype(dtype)
    for a, b in zip(wend.function(counts, backend=backend)(x, w), counts(x, w), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)


def test_complex_weights_of_counts_are_refused_in_numpys_words() -> None:
    x, w = np.array([1, 0]), np.array([1j, 2.0])
    with pytest.raises(TypeError) as expected:
        np.bincount(x, w)
    with pytest.raises(TypeError) as caught:
        wend.function(lambda x, w: np.bincount(x, w))(x, w)
    assert str(caught.value) == str(expected.value)


# Sets
@few
@given(x=drawn([*REAL, "c16"]))
def test_unique(x: np.ndarray) -> None:
    for name in ("unique_all", "unique_counts", "unique_inverse"):
        check(lambda m, x, name=name: tuple(getattr(m, name)(x)), x)
    check(lambda m, x: m.sort(m.unique_values(x)), x)
    check(lambda m, x: m.unique(x, return_index=True, return_counts=True), x)


@few
@given(x=drawn([*REAL, "c16", "?"], dims=(1, 3)), axis=st.integers(-1, 0))
def test_unique_parts_along_an_axis(x: np.ndarray, axis: int) -> None:
    check(lambda m, x: m.unique(x, axis=axis), x)
    names = ("return_index", "return_inverse", "return_counts")
    check(lambda m, x: m.unique(x, axis=axis, **dict.fromkeys(names, True)), x)


PARTS = {
    "ties in most columns": np.tile([[1, 0, 2, 2, 1], [1, 0, 2, 0, 9], [0, 9, 9, 9, 9]], (4, 1)),
    "one column": np.array([[3.0], [1.0], [3.0]]),
    "no columns": np.zeros((3, 0)),
    "no rows": np.zeros((0, 3)),
    "three axes": np.arange(24).reshape(2, 3, 4) % 2,
    "NaN": np.array([[np.nan, 1.0], [0.0, np.nan], [np.nan, 0.0], [0.0, np.nan], [0.0, 2.0]]),
    "complex": np.array([[1j, 2], [1, 2], [1j, 2], [1j, 1]]),
    "bool": np.array([[True, False], [False, True], [True, False]]),
    "int8": np.array([[-128, 127], [127, -128], [-128, 127]], np.int8),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("x", PARTS.values(), ids=PARTS)
def test_unique_parts(x: Any, backend: str) -> None:
    for axis in range(-x.ndim, x.ndim):
        for options in (
            {},
            {"return_index": True},
            {"return_inverse": True, "return_counts": True},
        ):
            run = wend.function(lambda x, axis=axis, o=options: np.unique(x, axis=axis, **o))
            with wend.config(backend=backend):
                actual, expected = run(x), np.unique(x, axis=axis, **options)
            assert type(actual) is type(expected)
            pairs = zip(actual, expected, strict=True) if options else [(actual, expected)]
            for a, b in pairs:
                np.testing.assert_array_equal(a, b, strict=True)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_rows_of_unknown_number_and_their_gradient(backend: str) -> None:
    def total(x: Any) -> Any:
        rows, counts = np.unique(x[x[:, 0] > 0], axis=0, return_counts=True)
        return (rows.T * counts) @ np.arange(len(rows)), (rows**2).sum()

    x = np.array([[3.0, 1.0], [-1.0, 0.0], [2.0, 5.0], [3.0, 1.0]])
    with wend.config(backend=backend):
        for actual, expected in zip(wend.function(total)(x), total(x), strict=True):
            np.testing.assert_allclose(actual, expected)
        slope = wend.grad(lambda x: total(x)[1])(x)
    np.testing.assert_array_equal(slope, [[6, 2], [0, 0], [4, 10], [0, 0]])


@few
@given(x=drawn(REAL), y=drawn(REAL), invert=st.booleans())
def test_sets_of_two(x: np.ndarray, y: np.ndarray, invert: bool) -> None:
    check(lambda m, x, y: m.isin(x, y, invert=invert), x, y)
    if x.dtype == y.dtype:
        for name in ("union1d", "intersect1d", "setdiff1d"):
            check(lambda m, x, y, name=name: getattr(m, name)(x, y), x, y)


@few
@given(x=drawn(FLOATS, dims=(1, 3), least=1))
def test_unknown_sizes(x: np.ndarray) -> None:
    """Functions of arrays whose sizes only the run tells."""
    check(lambda m, x: m.median(x[x > -9]), x)
    check(lambda m, x: m.diff(x[x > 0]), x)
    check(lambda m, x: m.unique(x[x > 0]), x)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_weights_of_another_length_that_only_the_run_knows(backend: str) -> None:
    def count(n: Any, w: Any) -> Any:
        return np.bincount(n[n > 2], weights=w)

    n = np.array([1, 3, 4, 5])
    run = wend.function(count, backend=backend)
    np.testing.assert_array_equal(run(n, np.arange(3.0)), count(n, np.arange(3.0)))
    for w in (np.ones(1), np.ones(4)):
        with pytest.raises(ValueError, match="don't have the same length"):
            run(n, w)
