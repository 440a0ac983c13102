"""Arrays that are put together or padded: each part is made where it belongs."""

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

ONE_NEST: dict[str, Callable[[Any], Any]] = {
    "rolled": lambda x: wnp.roll(x, 3, axis=0),
    "two parts": lambda x: wnp.concatenate([wnp.sin(x), x[:3] * 2.0]),
    "parts beside each other": lambda x: wnp.concatenate([wnp.sin(x), x[:, :4]], axis=1),
    "a part and numbers": lambda x: wnp.concatenate([wnp.zeros((2, 30)), x, x[:1] + 1.0]),
    "stacked": lambda x: wnp.stack([x + 1.0, x * 2.0, x - 3.0]),
    "stacked last": lambda x: wnp.stack([x + 1.0, wnp.sin(x), x], axis=-1),
    "rows stacked": lambda x: wnp.stack([x[0] * x[1], x[1] - x[2]]),
    "of a transpose": lambda x: wnp.concatenate([x.T[:20], x[:, :20] * 2.0]),
    "looked up": lambda x: wnp.concatenate([x[wnp.arange(5)] * 2.0, x[-3:]]),
    "padded": lambda x: wnp.pad(x * 2.0, ((1, 2), (0, 3)), constant_values=-1.5),
    "padded on one side": lambda x: wnp.pad(wnp.exp(x), ((0, 0), (4, 0))),
    "padded flags": lambda x: wnp.pad(x > 0.0, 2, constant_values=True),
}


@pytest.mark.parametrize("name", ONE_NEST)
def test_is_one_nest(name: str) -> None:
    assert len(nests(ONE_NEST[name], X)) == 1


@pytest.mark.sampled
@pytest.mark.parametrize("name", ONE_NEST)
def test_of_unknown_sizes(name: str) -> None:
    for spec in ((None, 30), (20, None), (None, None)):
        run = ONE_NEST[name]
        same(run, X, input_signature=[wend.TensorSpec(spec, np.float64)])
    same(run, X[:3], input_signature=[wend.TensorSpec((None, None), np.float64)])


@pytest.mark.parametrize("name", ["rolled", "two parts", "stacked", "stacked last", "padded"])
def test_of_nothing(name: str) -> None:
    for x in (X[:0], X[:, :0]):
        same(ONE_NEST[name], x)
        same(ONE_NEST[name], x, input_signature=[wend.TensorSpec((None, None), np.float64)])


@pytest.mark.sampled
@pytest.mark.parametrize("name", ONE_NEST)
def test_gradients(name: str) -> None:
    def total(x: Any) -> Any:
        return wnp.sum(ONE_NEST[name](x) ** 2)

    if name != "padded flags":
        for fun in (wend.grad(total), wend.grad(lambda x: wnp.sum(wend.grad(total)(x) ** 2))):
            same(fun, X)


def test_no_part_is_made_elsewhere() -> None:
    def takes(fun: Callable[..., Any]) -> int:
        text = NATIVE.text(traced(fun, X, optimize=True))  # type: ignore[attr-defined]
        return text.count("= call noalias ptr @wend.take")

    assert all(takes(ONE_NEST[name]) == 1 for name in ("rolled", "two parts", "stacked", "padded"))


def test_what_others_want_is_stored() -> None:
    """A part that is read elsewhere, twice, or otherwise than as it is."""

    def fun(x: Any) -> Any:
        y = wnp.exp(x)
        return wnp.concatenate([y, y]), wnp.concatenate([y[::-1], y * 2.0]), y

    same(fun, X)
    same(lambda x: wnp.concatenate([wnp.exp(x)] * 2), X)
    same(lambda x: (lambda s: wnp.concatenate([x * s[:, None], x * 2.0]))(wnp.sum(x * x, 1)), X)


def test_parts_that_depend_on_each_other() -> None:
    def fun(x: Any) -> Any:
        a = wnp.sin(x)
        b = wnp.cos(a[1:]) * 2.0
        return wnp.concatenate([a * 3.0, b]), wnp.stack([x[0] + 1.0, wnp.sin(x[0] + 1.0)])

    same(fun, X)


def test_what_is_read_is_not_written_meanwhile() -> None:
    def fun(x: Any) -> Any:
        x = x + 0.0
        y = wnp.concatenate([x[1:], x[:1] * 2.0])
        x[0] = 7.0
        return y * 2.0, x

    same(fun, X)

    def turned(x: Any) -> Any:
        for _ in range(5):
            x = wnp.concatenate([x[1:], x[:1]]) * 0.5 + wnp.pad(x[1:-1], ((1, 1), (0, 0)))
        return x

    same(turned, X)


def test_arrays_that_do_not_fit() -> None:
    specs = [wend.TensorSpec((None, None), float)] * 2
    same(lambda x, y: wnp.concatenate([x * 2.0, y[1:]]), X, X[:, :7], input_signature=specs)


@pytest.mark.parametrize("dtype", ["f4", "i8", "u1", "?", "c16", "f2"])
def test_kinds(dtype: str) -> None:
    x = (X * 10).astype(dtype)
    same(lambda x: (wnp.roll(x, 2), wnp.stack([x, x[::-1]]), wnp.pad(x, 1)), x)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads(threads: int) -> None:
    x = np.random.default_rng(2).normal(size=(300, 1000))
    with wend.config(threads=threads):
        same(lambda x: wnp.concatenate([wnp.sin(x), wnp.exp(x[:100])]), x)
        same(lambda x: (wnp.stack([x + 1.0, x * 2.0]), wnp.roll(x, 1, axis=1)), x)
