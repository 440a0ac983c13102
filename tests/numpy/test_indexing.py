"""`wend.numpy.indexing` beside NumPy: every form of `x[key]`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import wend
import wend.numpy as wnp
from tests.helpers.arrays import NUMPY
from tests.helpers.samples import between
from tests.helpers.shares import sized
from tests.helpers.traced import arrays, check, outcome, slope
from wend.base.errors import ConcreteValueError
from wend.testing import check_grads

sides = st.integers(-4, 4)
slices = st.builds(
    slice, st.none() | sides, st.none() | sides, st.none() | st.sampled_from([1, 2, -1, -2])
)
index_arrays = hnp.arrays(
    st.sampled_from([np.int64, np.int8, np.uint8]),
    st.sampled_from([(), (1,), (2,), (2, 1), (0,)]),
    elements=st.integers(0, 2),
)
negative_arrays = hnp.arrays(np.int32, st.sampled_from([(1,), (2,)]), elements=st.integers(-4, 3))


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """Tuples of everything NumPy takes; some do not fit."""
    entries: list[Any] = []
    used, dots = 0, False
    while used < len(shape) and draw(st.integers(0, 4)):
        kind = draw(st.sampled_from(["slice", "int", "None", "array", "mask", "dots", "list"]))
        if kind == "None":
            entries.append(None)
        elif kind == "dots" and not dots:
            entries.append(...)
            dots = True
        elif kind == "mask":
            rank = draw(st.integers(1, len(shape) - used))
            sizes = shape[used : used + rank]
            entries.append(draw(hnp.arrays(bool, sizes)))
            used += rank
        else:
            options = {
                "slice": slices,
                "int": sides,
                "list": st.lists(st.integers(0, 2), max_size=2),
            }
            entries.append(draw(options.get(kind, index_arrays | negative_arrays)))
            used += 1
    return entries[0] if len(entries) == 1 and draw(st.booleans()) else tuple(entries)


@given(
    x=arrays(shapes=hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3)),
    data=st.data(),
)
def test_every_form(x: np.ndarray, data: st.DataObject) -> None:
    key = data.draw(keys(x.shape))
    check(lambda m, x: x[key], x, through=False)


@given(
    x=arrays(shapes=hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=3)),
    data=st.data(),
)
def test_traced_positions(x: np.ndarray, data: st.DataObject) -> None:
    """The arrays, masks and ints of the key are arguments of the function as well."""
    key = data.draw(keys(x.shape))
    entries = key if isinstance(key, tuple) else (key,)
    places = [k for k, e in enumerate(entries) if isinstance(e, (np.ndarray, int))]

    def call(_: Any, x: Any, *traced: Any) -> Any:
        filled = list(entries)
        for k, index in zip(places, traced, strict=True):
            filled[k] = index
        return x[tuple(filled)]

    empty = any(
        np.size(e) == 0 or (np.asarray(e).dtype == bool and not np.any(e))
        for e in entries
        if isinstance(e, (np.ndarray, list))
    )
    if empty and isinstance(outcome(lambda: x[key]), IndexError):
        return  # what is out of range is not noticed where nothing is read
    masks = [e for e in entries if isinstance(e, np.ndarray) and e.dtype == bool]
    if masks and "shape mismatch" in str(outcome(lambda: x[key])):
        return  # how many a mask chooses only the run tells, and then it is a ValueError
    check(call, x, *(entries[k] for k in places), through=False)


TABLE = np.arange(12.0).reshape(4, 3)
LISTS = {
    "rows": lambda x, k: x[[k, 1]],
    "elements": lambda x, k: x[[k, 1], [0, -1]],
    "lists of lists": lambda x, k: x[[[k, 1], [2, k]]],
    "beside slices": lambda x, k: x[1:, [k - 1, 0]],
    "of an array of outside": lambda x, k: TABLE[[k, 1], :2] + x[:2, :2],
    "of tuples": lambda x, k: x[[(k, 1)]],
}


@pytest.mark.parametrize("key", LISTS.values(), ids=LISTS)
def test_traced_positions_in_lists(key: Any) -> None:
    x = between(-1, 1, 4, 3)
    for k in (2, -1):
        check(lambda m, x, k: key(x, k), x, np.int64(k), through=False)


def swapped(x: Any, k: Any) -> Any:
    x[[k, 0]] = x[[0, k]]
    x[[0, k], 1] += [0.5, x[k, 0]]
    y = np.arange(5)
    y[[k, 0]] = y[[0, k]]
    return x, y


def lu(x: Any) -> Any:
    """Elimination with a choice of rows."""
    order = np.arange(len(x))
    for k in range(len(x)):
        j = k + np.argmax(np.abs(x[k:, k]))
        x[[k, j]] = x[[j, k]]
        order[[k, j]] = order[[j, k]]
        x[k + 1 :, k] /= x[k, k]
        x[k + 1 :, k + 1 :] -= np.outer(x[k + 1 :, k], x[k, k + 1 :])
    return x, order


def test_rows_are_swapped_at_traced_positions() -> None:
    x = between(-1, 1, 4, 4)
    for fun, args in ((swapped, (2,)), (swapped, (0,)), (lu, ())):
        for found, expected in zip(
            wend.function(fun)(x.copy(), *args), fun(x.copy(), *args), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-12)
    check_grads(lambda x: lu(x.copy())[0], (x,), order=2)


def test_many_examples_of_each_kind() -> None:
    x = np.arange(120).reshape(2, 3, 4, 5)
    i, j = np.array([0, 1, 1]), np.array([[2], [0]])
    mask = x[0, 0] % 3 == 0
    for key in [
        0, -1, (1, -2), slice(None, None, -1), (..., 0), (0, ..., -1), None, (None, 0, None), ...,
        (slice(1, 9), slice(-2, None), slice(3, 0, -2)), (), i, (i, i), (slice(None), i, i),
        (i, slice(None), i), (0, slice(None), i), (slice(None), i, 0), (i, None, j[:, 0:1]),
        (slice(None), j, slice(None), j), (..., i), (i, ...), (0, ..., i), (None, i), (i[:0],),
        (..., mask), (0, 0, mask), x % 7 == 0, (x[:, 0, 0, 0] > 9,),
        (slice(None), [True, False, True]), (0, [2, 1]), ([0, 1], [2, 0]), [], (slice(None), []),
        (np.int8(1), np.uint8(0)), (i, mask[0, :3]),
        (i[0], slice(None), i[1]), (slice(None), np.array(1), None, np.array([0, 1])),
        (slice(1, 2), None, i, 0),
    ]:  # fmt: skip
        check(lambda m, x, key=key: x[key], x, through=False)


@pytest.mark.parametrize(
    "key",
    [2, -3, (0, 3), (0, 0, 0), np.array([0, 2]), (slice(None), [3]), np.ones(3, bool), 1.5, "a",
     np.array([0.5]), (..., ...), np.ones((2, 2), bool), (np.zeros(2, int), np.zeros(3, int)),
     slice(0, 1, 0), slice(0.5, None)],
)  # fmt: skip
def test_keys_that_do_not_fit(key: Any) -> None:
    check(lambda m, x: x[key], between(-1, 1, 2, 3), through=False)


def test_a_traced_position_out_of_range() -> None:
    for k in (3, -4):
        check(lambda m, x, k: x[k], np.arange(3), k, through=False)
        check(lambda m, x, k: m.take(x, k), np.arange(3), np.int64(k))


@pytest.mark.usefixtures("integers_stay_traced")
def test_what_has_to_be_known_says_so() -> None:
    x = np.arange(3)
    with pytest.raises(ConcreteValueError, match="step of a slice"):
        wend.function(lambda x, k: x[::k])(x, np.int64(1))
    with pytest.raises(IndexError, match=r"x\[None\]"):
        wend.function(lambda x: x[True])(x)
    with pytest.raises(IndexError, match=r"x\[None\]"):
        wend.function(lambda x: x[np.bool_(False)])(x)


# Slices whose bounds only the run tells
@given(
    x=arrays(shapes=hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)),
    data=st.data(),
)
def test_traced_bounds(x: np.ndarray, data: st.DataObject) -> None:
    """A slice with traced bounds is what it is in NumPy: clipped, from the end, backwards."""
    count = data.draw(st.integers(1, x.ndim))
    cuts = [data.draw(slices) for _ in range(count)]
    bounds = [b for cut in cuts for b in (cut.start, cut.stop) if b is not None]

    def call(_: Any, x: Any, *given: Any) -> Any:
        left = iter(given)
        key = [
            slice(*(None if b is None else next(left) for b in (c.start, c.stop)), c.step)
            for c in cuts
        ]
        return x[tuple(key)]

    check(call, x, *bounds, through=False)


@given(n=st.integers(0, 4), low=sides, high=sides, data=st.data())
def test_setting_between_traced_bounds(n: int, low: int, high: int, data: st.DataObject) -> None:
    x = np.arange(3.0 * n).reshape(n, 3)
    value = data.draw(
        st.sampled_from([np.float64(2.5), np.array([1.0, 2.0, 3.0]), np.ones((1, 3))])
    )

    def call(_: Any, x: Any, value: Any, low: Any, high: Any) -> Any:
        x = x.copy()
        x[low:high] = value
        x[:high, 1] += 1.5
        x[low:, :2] *= x[low:, 1:]
        return x

    check(call, x, value, low, high, through=False)


def test_bounds_that_are_no_integers() -> None:
    for bound in (1.5, np.array([1, 2])):
        check(lambda m, x, k: x[:k], np.arange(3), bound, through=False)


def test_cuts_between_equal_bounds_have_one_size() -> None:
    """Then nothing is broadcast when it runs, and an array keeps its shape in place."""

    def fun(a, b, k):
        total = a[:k] + b[:k] * a[: k + 0]
        total += a[0 : 2 + k - 2]
        for i in range(2):
            total = total + b[:k] * i
        return total

    compiled = wend.function(fun)
    a, b = np.arange(5.0), np.arange(5.0) + 1
    np.testing.assert_array_equal(compiled(a, b, 3), fun(a, b, 3))
    graph = compiled.get_concrete_function(a, b, 3).graph
    assert "broadcast_shapes" not in [node.op.name for node in graph.walk()]


@pytest.mark.parametrize(
    "function",
    [
        lambda x, k: x[k:] ** 2,
        lambda x, k: x[:k, k:] * x[k:, 1 : k + 1],
        lambda x, k: x[::-1][k::-1] ** 2,
        lambda x, k: x[k, : k + 1] * x[: k + 1, k],
        lambda x, k: x[:k].sum(0) * x[k],
    ],
)
def test_gradients_of_cuts(function: Any) -> None:
    slope(lambda x: function(x, wend.stop_gradient(wnp.argmax(x[0])) * 0 + 1), GRID)


def test_gradients_of_changes_between_traced_bounds() -> None:
    def lower(x: Any) -> Any:
        x = x.copy()
        for i in range(1, 3):
            x[i, :i] = x[:i, i] * x[i, i]
            x[:i, 0] += x[i:, 1].sum() * x[i, :i]
        return x * x

    slope(lower, GRID)


GRID = between(-1, 1, 3, 3)


@given(x=arrays(), axis=st.none() | st.integers(-4, 3), indices=index_arrays | negative_arrays)
def test_take(x: np.ndarray, axis: Any, indices: np.ndarray) -> None:
    if not x.size:
        return  # NumPy does not look at positions then
    check(lambda m, x, k: m.take(x, k, axis), x, indices)
    check(lambda m, x: m.take(x, indices, axis=axis), x)
    check(lambda m, x: x.take(indices, axis), x)
    check(lambda m, k: m.take(x, k, axis=axis), indices, through=False)


@given(
    x=arrays(shapes=hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3)),
    axis=st.integers(-3, 2),
    seed=st.integers(0, 9),
)
def test_take_along_axis(x: np.ndarray, axis: int, seed: int) -> None:
    order = np.argsort(np.random.default_rng(seed).random(x.shape), axis=0)
    check(lambda m, x, k: m.take_along_axis(x, k, axis), x, order)
    check(lambda m, x: m.take_along_axis(x, order[:1], axis=axis), x)


@given(x=arrays())
def test_nonzero(x: np.ndarray) -> None:
    assume(x.ndim or NUMPY >= (2, 1))  # 2.0 warns that an error will come of it
    check(lambda m, x: m.nonzero(x), x)


flat_arrays = st.integers(-2, 8) | hnp.arrays(
    st.sampled_from([np.int64, np.uint8, np.bool_, np.float64]),
    st.sampled_from([(), (3,), (2, 1), (0,)]),
    elements=st.integers(0, 1),
)


@settings(max_examples=sized(10, 25))
@given(
    x=flat_arrays, shape=st.sampled_from([(2, 3), (6,), (2, 1, 4), 3]), order=st.sampled_from("CF")
)
def test_unravel_index(x: Any, shape: Any, order: str) -> None:
    check(lambda m, x: m.unravel_index(x, shape, order), x)


@settings(max_examples=sized(10, 25))
@given(
    x=flat_arrays,
    y=flat_arrays,
    mode=st.sampled_from(["raise", "clip", "wrap", ("clip", "raise"), "other"]),
    order=st.sampled_from("CF"),
)
def test_ravel_multi_index(x: Any, y: Any, mode: Any, order: str) -> None:
    check(lambda m, x, y: m.ravel_multi_index((x, y), (2, 3), mode, order), x, y)


def test_the_position_of_an_extreme_is_used_as_a_key() -> None:
    def halve_peaks(x: np.ndarray, count: int) -> Any:
        x = x.copy()
        for _ in range(count):
            k = np.unravel_index(np.argmax(x), x.shape)
            x[k] = 0.25 * x[k] * x[0, 0]
            x.flat[np.ravel_multi_index(k, x.shape)] += 0.5
        return x.sum()

    x = between(1, 2, 2, 3)
    for count in (0, 1, 3):
        assert wend.function(halve_peaks)(x, count) == pytest.approx(halve_peaks(x, count))
        check_grads(lambda x, count=count: wend.function(halve_peaks)(x, count), (x,))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[1] * x[0, 2],
        lambda x: x[:, ::-2] ** 2,
        lambda x: x[..., None, -1] * x[:, 1:],
        lambda x: x[[0, 0, 1], [2, 2, -1]] ** 2,
        lambda x: x[:, [0, 0, 2]] ** 2,
        lambda x: x[x > 0] ** 2,
        lambda x: x[np.array([True, False])] ** 3,
        lambda x: wnp.take(x, [0, 5, 5]) ** 2,
        lambda x: wnp.take_along_axis(x, np.argsort(x, 1), 1) * np.arange(3),
        lambda x: x[wnp.argmax(x, axis=0), [0, 1, 2]] ** 2,
    ],
)
def test_gradients(function: Any) -> None:
    slope(function, between(-1, 1, 2, 3))


def test_take_from_a_list() -> None:
    rows = np.array([[1, 2], [0, 2], [0, 1]])

    def relax(x: list[float], count: int) -> Any:
        for _ in range(count):
            x = np.take(x, rows).sum(axis=1) / 3
        return np.take([x[0], 2.0], 1) * np.sum(np.take(x, [0, 0, 2]))

    for count in (1, 3):
        found = wend.function(relax)([1.0, 2.0, 4.0], count)
        assert found == pytest.approx(relax([1.0, 2.0, 4.0], count))
        check_grads(lambda *x, count=count: wend.function(relax)(list(x), count), (1.0, 2.0, 4.0))
