"""Reads at positions that arrays hold, as parts of loop nests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.backends.native.fusion.test_fuse import X, nests, same
from tests.helpers.graphs import traced

import wend
import wend.numpy as wnp
from wend.backends.native.backend import BACKEND as NATIVE

RNG = np.random.default_rng(5)
FAR = RNG.normal(size=(9000, 4))
AT = RNG.integers(-20, 20, 50)
GRID = RNG.integers(-20, 20, (7, 5))

FUNCTIONS: dict[str, tuple[int, Callable[[Any, Any], Any]]] = {
    "rows": (1, lambda x, i: wnp.tanh(x[i] * 2.0) + 1.0),
    "elements": (1, lambda x, i: x[i, i] * x[i, 3]),
    "columns": (2, lambda x, i: x[:, i] * 2.0),
    "of a part, backwards": (1, lambda x, i: x[::-1, 2:][i] * 2.0),
    "a row added up": (1, lambda x, i: wnp.sum(x[i] * x[i], axis=-1)),
    "rows added up": (1, lambda x, i: wnp.sum(x[wnp.reshape(i, (5, 10))] * 0.5, axis=1)),
    "rows less their means": (1, lambda x, i: x[i] - wnp.mean(x[i] * 1.0, axis=1, keepdims=True)),
    "computed": (1, lambda x, i: x[0][wnp.abs(i) - 7] * 2.0),
    "computed, of rows": (2, lambda x, i: x[i - 1] * 2.0),
    "of two kinds": (2, lambda x, i: x[i.astype(wnp.int8)] + x[i]),
    "one of each row": (1, lambda x, i: x[wnp.arange(20), i[:20]] * 2.0),
    "along an axis": (1, lambda x, i: wnp.take_along_axis(x, i[:20, None], 1) * 2.0),
    "along the other": (1, lambda x, i: wnp.take_along_axis(x, i[None, :30], 0) * 2.0),
    "again and again": (1, lambda x, i: x[wnp.broadcast_to(i[:3, None], (3, 4))] * 2.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_count_of_nests(name: str) -> None:
    count, fun = FUNCTIONS[name]
    assert len(nests(fun, X, AT)) == count


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_unknown_sizes(name: str) -> None:
    signature = [wend.TensorSpec((None, None), np.float64), wend.TensorSpec((None,), np.int64)]
    for x in (X, X[:0], X[:, :0]):
        same(FUNCTIONS[name][1], x, AT, input_signature=signature)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name: str) -> None:
    def total(x: Any, i: Any) -> Any:
        return wnp.sum(FUNCTIONS[name][1](x, i) * 1.5)

    for fun in (wend.grad(total), wend.grad(lambda x, i: wnp.sum(wend.grad(total)(x, i) ** 2))):
        same(fun, X, AT)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("bad", [20, -21, 2**62, -(2**63), 2**63 - 1])
@pytest.mark.parametrize("where", [0, 13, 49])
def test_a_position_that_is_not_there(bad: int, where: int) -> None:
    """The error is NumPy's, with the line; of a loop, too, that would write over an operand."""
    at = AT.copy()
    at[where] = bad
    same(lambda x, i: x[i] * 2.0, X, at)
    same(lambda x, i: x[i - 1] * 2.0, X, at)

    def carried(x: Any, y: Any, i: Any) -> Any:
        for _ in range(3):
            y = y * 0.5 + x[i]
        return y

    same(carried, X, np.ones((50, 30)), at)
    with pytest.raises(IndexError, match="out of bounds") as caught:
        wend.function(carried, backend="native")(X, np.ones((50, 30)), at)
    assert any("gather at" in note and "test_gather.py" in note for note in metadata(caught))


def metadata(caught: Any) -> list[str]:
    return getattr(caught.value, "__notes__", [])


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u4", "i8"])
def test_positions_of_every_kind(dtype: str) -> None:
    at = np.abs(AT).astype(dtype) % 20
    same(lambda x, i: x[i] + 1.0, X, at.astype(dtype))


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0), (1,), (1, 1)])
def test_few_positions(shape: tuple[int, ...]) -> None:
    for x in (X, X[:, :0]):
        signature = [
            wend.TensorSpec([None] * rank, kind) for rank, kind in ((2, float), (len(shape), int))
        ]
        same(lambda x, i: wnp.exp(x[i]), x, np.zeros(shape, int))
        same(lambda x, i: wnp.exp(x[i]), x, np.zeros(shape, int), input_signature=signature)


def test_nobody_looks_where_nothing_is_read() -> None:
    """Positions that are repeated over an empty axis are not looked at; those of no axis are."""
    far = np.array([[99]])
    same(lambda x, i: x[wnp.broadcast_to(i, (0, 3))] * 2.0, X[0], far)
    same(lambda x, i: x[wnp.broadcast_to(i, (2, 3))] * 2.0, X[0], far)
    same(lambda x, i: x[i] * 2.0, X[:, :0], far)


def test_what_is_looked_up_in_is_not_written_meanwhile() -> None:
    def shuffled(x: Any, i: Any) -> Any:
        for _ in range(4):
            x = x[i] * 0.5 + x
        return x

    same(shuffled, RNG.normal(size=300), RNG.permutation(300))

    def changed(x: Any, i: Any) -> Any:
        x = x + 0.0
        y = x[i]
        z = x[1]
        x[i[0]] = 7.0
        x[1] = 5.0
        return y * 2.0, z * 2.0, x

    same(changed, X, AT)


def test_positions_may_be_written_over() -> None:
    def fun(x: Any, i: Any) -> Any:
        places = i * 2 % 300
        for _ in range(3):
            places = places + 1 - (x[places - 1] > 0.0)
        return places

    same(fun, RNG.normal(size=310), np.arange(300))


def test_what_is_dear_is_not_looked_at_twice() -> None:
    """Positions that cost more than a few steps are stored; those that cost less computed again."""
    assert len(nests(lambda x, i: x[0][(i + 3) * 1] * 2.0, X, AT)) == 1
    assert len(nests(lambda x, i: x[0][i % 30] * 2.0, X, AT)) == 2


def test_functions_do_not_wait_for_memory() -> None:
    """What may not be in the cache is looked up in a loop of its own."""
    at = RNG.integers(-9000, 9000, 40)
    assert len(nests(lambda x, i: wnp.sum(x[i] * 2.0, axis=1), FAR, at)) == 1
    assert len(nests(lambda x, i: wnp.tanh(x[i] * 2.0), FAR, at)) == 2
    assert len(nests(lambda x, i: wnp.tanh(x[i]) * wnp.sin(x[-i]), FAR.ravel(), at)) == 4


def test_a_row_is_read_where_it_lies() -> None:
    def fun(xs: Any) -> Any:
        y = xs[0] * 0.0
        for k in range(20):
            y = wnp.tanh(y + xs[k])
        return y

    text = NATIVE.text(traced(fun, X, optimize=True))  # type: ignore[attr-defined]
    assert "memcpy" not in text[text.index("define i32 @wend_run") :]
    same(fun, X)
    same(fun, X, input_signature=[wend.TensorSpec((None, None), float)])
    same(lambda xs, k: xs.T[k] * xs[k, :20], X, 30)
    same(lambda xs, k: xs.T[k] * 2.0, X, -31)


def test_a_row_that_is_not_there_is_refused_before_what_follows() -> None:
    said: list[float] = []

    def fun(xs: Any, k: Any) -> Any:
        row = xs[k]
        wend.py_function(lambda: said.append(1.0), [])
        return row * 2.0

    for backend in ("numpy", "native"):
        with pytest.raises(IndexError):
            wend.function(fun, backend=backend)(X, 77)
    assert not said


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads(threads: int) -> None:
    x, at = RNG.normal(size=70_000), RNG.integers(-70_000, 70_000, 200_000)
    with wend.config(threads=threads):
        same(lambda x, i: x[i] * x[i - 0] + x[wnp.abs(i)], x, np.clip(at, -69_999, 69_999))
