"""Rows of a few elements, unrolled: vectors hold elements of many rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.backends.native.fusion.test_fuse import same
from tests.helpers.graphs import traced

import wend
import wend.numpy as wnp
from wend.backends.native.backend import BACKEND
from wend.backends.native.jit.llvm import engine

RNG = np.random.default_rng(6)


def scaled(x: Any) -> Any:
    return x / wnp.sqrt(wnp.sum(x * x, axis=-1, keepdims=True) + 0.5)


def softmax(x: Any) -> Any:
    e = wnp.exp(x - wnp.max(x, axis=-1, keepdims=True))
    return e / wnp.sum(e, axis=-1, keepdims=True)


def pulls(x: Any) -> Any:
    away = x[:, None, :] - x[None, :, :]
    squares = wnp.sum(away * away, axis=2) + 0.01
    return wnp.sum(away * (squares**-1.5)[:, :, None], axis=1)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "a sum": lambda x: wnp.sum(x * x, axis=-1),
    "a sum of what is in memory": lambda x: wnp.exp(wnp.sum(x, axis=-1)) * 2.0,
    "extremes": lambda x: wnp.max(x * 2.0, axis=-1) - wnp.min(x - 1.0, axis=-1),
    "a product": lambda x: wnp.prod(x + 0.5, axis=-1) + 1.0,
    "whether any": lambda x: wnp.any(x * 2.0 > 1.5, axis=-1),
    "scaled": scaled,
    "softmax": softmax,
    "sums of rows and columns": lambda x: (wnp.sum(scaled(x), axis=0), scaled(x)),
    "means and deviations": lambda x: (x - wnp.mean(x, axis=-1, keepdims=True)) / wnp.std(x + 1.0),
    "pulls": pulls,
    "into a part": lambda x: wnp.zeros((x.shape[0] + 1, x.shape[1])).at[1:].set(scaled(x)),
    "joined": lambda x: wnp.concatenate([scaled(x), x * 2.0], axis=0),
    "turned": lambda x: wnp.sum((x.T * x.T).T, axis=-1) * 0.5,
}
SHAPES = [
    (0, 3),
    (1, 3),
    (7, 3),
    (8, 1),
    (9, 3),
    (17, 2),
    (19, 5),
    (33, 7),
    (40, 8),
    (40, 9),
    (9, 0),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name: str) -> None:
    for rows, columns in SHAPES:
        x = RNG.uniform(-1.0, 1.0, (rows, columns))
        if name == "into a part":  # of NumPy's arrays there is no `at`
            x = wnp.asarray(x)
        same(FUNCTIONS[name], x)
        if rows:
            x = np.array(x)
            x[0, columns // 2 :] = np.nan
            same(FUNCTIONS[name], x)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_of_unknown_numbers_of_rows(name: str) -> None:
    signature = [wend.TensorSpec((None, 3), np.float64)]
    for rows in (0, 1, 8, 19):
        same(FUNCTIONS[name], RNG.uniform(-1.0, 1.0, (rows, 3)), input_signature=signature)


@pytest.mark.parametrize("name", ["a sum", "scaled", "softmax", "pulls", "a product"])
def test_gradients(name: str) -> None:
    def total(x: Any) -> Any:
        return wnp.sum(FUNCTIONS[name](x) * 1.5)

    slope = wend.grad(total)
    for fun in (slope, wend.grad(lambda x: wnp.sum(slope(x) ** 2))):
        same(fun, RNG.uniform(-1.0, 1.0, (11, 3)))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int16])
def test_other_dtypes(dtype: Any) -> None:
    x = RNG.integers(-9, 9, (21, 3)).astype(dtype)
    same(lambda x: wnp.sum(x * x, axis=-1) + 1, x)
    same(lambda x: wnp.max(x + 1, axis=-1) * wnp.sum(x, axis=-1), x)


def test_axes_of_which_two_are_short() -> None:
    x = RNG.normal(size=(13, 2, 3))
    same(lambda x: wnp.sum(x * x, axis=(1, 2)) * 2.0, x)
    same(lambda x: x / wnp.sum(x, axis=(1, 2), keepdims=True), x)


def test_sums_have_the_bits_of_numpys() -> None:
    for columns in range(1, 9):
        x = RNG.normal(size=(50, columns)) * 10.0 ** RNG.integers(-9, 9, (50, columns))
        found = wend.function(lambda x: wnp.sum(x, axis=-1) * 1.0 + 0.0)(x)
        assert found.tobytes() == (np.sum(x, axis=-1) + 0.0).tobytes(), columns


def test_the_order_of_sums_does_not_depend_on_the_number_of_rows() -> None:
    x = RNG.normal(size=(70, 3))
    fun = wend.function(lambda x: wnp.sum(x * x * 1.5, axis=-1))
    whole = fun(x)
    for rows in (8, 9, 31, 64):
        assert fun(x[:rows]).tobytes() == whole[:rows].tobytes()


def test_threads_give_the_same_bits() -> None:
    x = RNG.normal(size=(30_000, 3))
    found = []
    for threads in (1, 2):
        with wend.config(threads=threads):
            found.append(wend.function(scaled)(x).tobytes())
    assert found[0] == found[1]


def test_functions_of_rows_are_in_vectors() -> None:
    def lengths(x: Any) -> Any:
        return 1.0 / wnp.sqrt(wnp.sum(x * x, axis=-1))

    module = str(engine().optimized(BACKEND.text(traced(lengths, np.ones((64, 3)), optimize=True))))
    assert "x double> @llvm.sqrt" in module


@pytest.mark.parametrize("columns", [4, 7, 8])
def test_sums_of_short_rows_are_in_vectors(columns: int) -> None:
    """Unrolling, which short functions have, would leave no loop to vectorize."""

    def moments(r: Any, x: Any) -> Any:
        return wnp.sum(r * x[:, None], axis=0)

    arguments = np.ones((400, columns)), np.ones(400)
    text = str(engine().optimized(BACKEND.text(traced(moments, *arguments, optimize=True))))
    assert "x double>" in text
