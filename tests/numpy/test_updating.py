"""`x[key] = value`: NumPy's result for all kinds of keys, and its cost for one element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.ir.types import TensorType
from wend.testing import check_grads

I, J = np.array([2, 0, 2]), np.array([1, 1, -1])
MASK = I > 0
KEYS = [
    *(0, -1, np.int8(1), (1, 2), (1,), (-1, -2), (1, ...), (..., 1)),
    *((0, slice(None)), (slice(None), 1), (None, 1), ...),
    *(I, (I, J), (I, 1), (0, I), (I, slice(None)), (slice(1, 3), I), [0, 2]),
    *(np.array([[0, 1], [2, 2]]), np.array([], int), MASK, True),
]
WRONG = [5, (0, 5), (I, np.array([1, 2])), (0, slice(None), slice(None))]


def put(x: Any, value: Any, *key: Any) -> Any:
    x = x.copy()
    x[key] = value
    return x


def result(x: np.ndarray, value: Any, key: Any) -> np.ndarray:
    x = x.copy()
    x[key] = value
    return x


def is_staged(key: Any) -> bool:
    entries = key if isinstance(key, tuple) else (key,)
    return all(
        isinstance(e, (int, np.integer, np.ndarray)) and not isinstance(e, bool) for e in entries
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_known_and_traced_keys(key: Any, backend: str) -> None:
    x = np.arange(12.0).reshape(3, 4)
    shape = x[key].shape
    known = wend.function(lambda x, value: x.at[key].set(value), backend=backend)
    traced = wend.function(put, backend=backend)
    entries = [np.asarray(e) for e in (key if isinstance(key, tuple) else (key,))]
    for value in (np.float64(7), np.arange(1.0, 1 + np.prod(shape)).reshape(shape)):
        expected = result(x, value, key)
        np.testing.assert_array_equal(known(x, value), expected)
        if is_staged(key):
            np.testing.assert_array_equal(traced(x, value, *entries), expected)


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("key", [k for k in KEYS if is_staged(k) and k is not MASK], ids=str)
def test_of_sizes_that_are_not_known(key: Any, backend: str) -> None:
    traced = wend.function(put, backend=backend)
    entries = [np.asarray(e) for e in (key if isinstance(key, tuple) else (key,))]
    for shape in ((3, 4), (5, 6), (4, 7)):
        x = np.random.default_rng(0).normal(size=shape)
        np.testing.assert_array_equal(traced(x, 7.0, *entries), result(x, 7.0, key))
    assert traced.trace_count == 2


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("key", WRONG, ids=str)
def test_wrong_keys(key: Any, backend: str) -> None:
    x = np.arange(12.0).reshape(3, 4)
    with pytest.raises(IndexError):
        result(x, 1.0, key)
    with pytest.raises(IndexError):
        wend.function(lambda x: x.at[key].set(1.0), backend=backend)(x)
    with pytest.raises(IndexError):
        wend.function(lambda x: x.at[key].add(1.0), backend=backend)(x)


LARGE = (2**63, 2**70, -(2**63) - 1, (0, 2**64), np.uint64(2**63), (slice(None), -(2**70)))


@pytest.mark.parametrize("key", LARGE, ids=str)
def test_integers_beyond_64_bits(key: Any) -> None:
    """They raise the error of NumPy, in its words."""
    x = np.arange(12.0).reshape(3, 4)
    with pytest.raises((IndexError, OverflowError)) as expected:
        x[key]
    for fun in (lambda x: x[key], lambda x: x.at[key].set(1.0), lambda x: x.at[key].add(1.0)):
        for backend in ("numpy", "native"):
            with pytest.raises(expected.type) as raised:
                wend.function(fun, backend=backend)(x)
            assert str(raised.value) == str(expected.value)


@pytest.mark.parametrize("known", [True, False])
def test_one_element_costs_the_same_in_arrays_of_any_size(known: bool) -> None:
    """Neither the program nor its gradient makes positions of the whole array."""

    def fill(x: Any, n: Any) -> Any:
        x = x.copy()
        for i in range(n):
            x[i % 3] = x[i % 2] * 0.5 + 1
        return wnp.sum(x * x)

    function = wend.function(fill)
    for size in (5,) if known else (5, 6):
        function(np.ones(size), 2)
    concrete = function.concrete_functions()[-1]
    for graph in (concrete.graph, concrete.forward_graph, concrete.backward_graph):
        bodies = [
            n
            for node in graph.walk()
            if node.op.name == "while"
            for r in node.regions
            for n in r.walk()
        ]
        assert "iota" not in {node.op.name for node in bodies}
    grad = wend.grad(lambda x: function(x, 7))
    x = np.linspace(0.1, 1, 6)
    step = 1e-6 * np.eye(6)
    slopes = [(function(x + e, 7) - function(x - e, 7)) / 2e-6 for e in step]
    np.testing.assert_allclose(grad(x), slopes, rtol=1e-6, atol=1e-8)


def part_of_a_matrix(x, i, n, v):
    x = x.copy()
    x[1 : n - 1, i] = v[: n - 2]
    x[i, :n] += 1.0
    x[n:, i] *= 2.0
    x[-n:, -i:] = v[3] * v[2]
    x[..., i] -= x[i, ...]
    x[i:n, 2] = x[2, i:n]
    x[i:n:2, :n] = x[i : i + 1, 1 : n + 1]
    return x


def part_of_a_block(x, i, n, v):
    x = x.copy()
    x[1:n, i, :] = x[i, 1:n, :] * v[0]
    x[:, 1:n, i] += x[i, 0, i]
    x[..., i:n] = x[..., i : i + 1]
    x[n - 1, i:, 0] = v[1]
    x[::-1, i, :n] *= v[2]
    x[i] += x[:, i, :]
    x[1, :, i - 3] = x[2, i - 2]
    return x


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize(
    ("fun", "shape"),
    [(part_of_a_matrix, (6, 6)), (part_of_a_block, (5, 5, 5)), (part_of_a_block, (4, 4, 4))],
)
def test_parts_named_by_numbers_and_slices_of_the_run(fun, shape, backend):
    compiled = wend.function(fun, backend=backend)
    x, v = np.arange(float(np.prod(shape))).reshape(shape), np.linspace(0.5, 1.5, 8)
    for i in (-5, -1, 0, 1, 3):
        for n in (2, 3, 4):
            try:
                expected = fun(x, i, n, v)
            except (IndexError, ValueError) as error:
                with pytest.raises(type(error)):
                    compiled(x, i, n, v)
            else:
                np.testing.assert_array_equal(compiled(x, i, n, v), expected)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_parts_of_no_numbers(backend):
    def fun(x, i, n):
        x = x.copy()
        x[:, i:n] = 2.0
        return x, x[:n, i]

    x = np.ones((3, 0))
    with pytest.raises(IndexError, match="out of bounds"):
        wend.function(fun, backend=backend)(x, 0, 2)
    found, _ = wend.function(fun, backend=backend)(np.ones((3, 2)), 1, 1)
    assert (found == 1.0).all()


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_columns_of_a_loop_have_derivatives(backend):
    def swept(x, n):
        x = x.copy()
        for j in range(1, n):
            x[1:, j] = x[:-1, j - 1] * x[1:, j] + x[0, j] * x[1:n, j - 1].sum()
        return (x * x).sum()

    x = np.random.default_rng(3).standard_normal((5, 5))
    with wend.config(backend=backend):
        check_grads(lambda x: swept(x, 4), (x,), order=2 if backend == "numpy" else 1)
        slope = wend.grad(wend.function(swept))(x, 4)
    unrolled = wend.grad(lambda x: swept(x, 4))(x)
    np.testing.assert_allclose(slope, unrolled, rtol=1e-12)


def test_what_a_column_costs_does_not_depend_on_the_matrix():
    def first(x, j, n):
        x[:n, j] += 1.0
        return x[:, j]

    graph = wend.function(first).get_concrete_function(np.ones((50, 60)), 2, 3).graph
    nodes = [node for node in graph.nodes if isinstance(node.results[0].type, TensorType)]
    sizes = {v.type.dims for node in nodes for v in node.results}
    large = {dims for dims in sizes if np.prod([d for d in dims if isinstance(d, int)]) > 60}
    assert large == {(50, 60)}  # the matrix itself
    made = [node.op.name for node in nodes if node.results[0].type.dims in large]
    assert made == ["set_part"]  # once, though Python puts back what it has added to


def test_a_part_of_a_row_is_cut_from_the_row():
    def first(x, i, n):
        return x[i, 1:-1], x[i, :n]

    graph = wend.function(first).get_concrete_function(np.ones((50, 60)), 2, 3).graph
    sizes = [v.type.dims for node in graph.nodes for v in node.results]
    assert all(len(dims) < 2 for dims in sizes)


MASKED = {
    "scalar": (lambda x, m: x.__setitem__(m, 7.0), False),
    "vector": (lambda x, m: x.__setitem__(m, x[m] * 2.0), True),
    "rows": (lambda x, m: x.__setitem__(m[:, 0], x[0]), True),
    "element of rows": (lambda x, m: x.__setitem__((m[:, 0], 1), 3.0), True),
}


@pytest.mark.parametrize(("change", "has_positions"), MASKED.values(), ids=MASKED)
def test_masked_assignments_need_no_table_of_all_positions(change, has_positions) -> None:
    """A number is selected where the mask holds; other values go to the positions of the mask."""

    def masked(x, m):
        change(x, m)
        return x + 1

    x, m = np.arange(12.0).reshape(4, 3), np.arange(12).reshape(4, 3) % 5 < 2
    function = wend.function(masked)
    expected, changed = masked(y := x.copy(), m), x.copy()
    np.testing.assert_array_equal(function(changed, m), expected)
    np.testing.assert_array_equal(changed, y)
    nodes = [*function.get_concrete_function(x, m).graph.walk()]
    names = [node.op.name for node in nodes]
    assert ("nonzero" in names) is has_positions
    assert "iota" not in names
    assert all(node.attrs["value"].size == 1 for node in nodes if node.op.name == "constant")


# Values that do not fit: NumPy's words. Of sizes that only the run knows, those of masks are so.
NEGATIVE = np.array([-1.0, 2, 3, 4])
MISFITS: dict[str, tuple[Any, Any]] = {
    "a slice": (slice(0, 2), np.ones(3)),
    "a row": (slice(None), np.ones((2, 3))),
    "positions": (np.array([0, 1]), np.ones(3)),
    "a mask": (NEGATIVE > 0, np.ones(2)),
    "more than a mask takes": (NEGATIVE > 0, np.ones(4)),
    "nothing": (NEGATIVE > 0, np.ones(0)),
    "axes": (NEGATIVE > 0, np.ones((3, 1))),
}


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize(
    ("misfit", "is_sized"),
    [
        *((misfit, True) for misfit in MISFITS),
        *((misfit, False) for misfit in ("a mask", "more than a mask takes", "nothing", "axes")),
    ],
)
def test_values_that_do_not_fit(misfit: str, is_sized: bool, backend: str) -> None:
    key, value = MISFITS[misfit]
    spec = None if is_sized else wend.TensorSpec([None] * value.ndim)
    signature = None if spec is None else [wend.TensorSpec([4]), spec]
    fun = wend.function(lambda x, v: put(x, v, key), input_signature=signature, backend=backend)
    with pytest.raises((ValueError, TypeError)) as expected:
        put(NEGATIVE, value, key)
    with pytest.raises(type(expected.value)) as actual:
        fun(NEGATIVE, value)
    assert str(actual.value).split(" at test_")[0] == str(expected.value)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_mask_takes_one_number_or_one_for_each_true_element(backend: str) -> None:
    spec = wend.TensorSpec([None])
    fun = wend.function(
        lambda x, v: put(x, v, x > 0), input_signature=[spec, spec], backend=backend
    )
    for value in (np.ones(1), np.arange(3.0)):
        np.testing.assert_array_equal(fun(NEGATIVE, value), put(NEGATIVE, value, NEGATIVE > 0))
    np.testing.assert_array_equal(fun(-np.ones(2), np.ones(0)), -np.ones(2))
    slope = wend.grad(lambda v: (fun(NEGATIVE, v) ** 2).sum())
    np.testing.assert_array_equal(slope(np.arange(3.0)), 2 * np.arange(3.0))
    np.testing.assert_array_equal(slope(np.ones(1)), [6.0])
