"""`x[key] = value`: NumPy's result for all kinds of keys, and its cost for one element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp

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
