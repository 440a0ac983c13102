"""Reductions over the last axes and others: what is reduced is never in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.backends.native.fusion.test_fuse import nests, same

import wend
import wend.numpy as wnp

X = np.random.default_rng(3).normal(size=(20, 30, 71))

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "a sum": lambda x: wnp.sum(x * x, axis=(0, 2)),
    "the largest": lambda x: wnp.max(wnp.abs(x), axis=(0, 2)),
    "whether all, in axes of one": lambda x: wnp.all(x < 9.0, axis=(0, 2), keepdims=True),
    "of what is looked up": lambda x: wnp.sum(x[wnp.arange(20) - 20], axis=(0, 2)),
    "three axes": lambda x: wnp.sum(x[None] * x[:, None], axis=(0, 1, 3)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nothing_large_is_between(name: str) -> None:
    first, *rest = nests(FUNCTIONS[name], X)
    assert first.results[0].tensor.dims in ((20, 30), (20, 30, 1), (20, 20, 30))
    assert len(rest) == 1


@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_unknown_sizes(name: str) -> None:
    spec = wend.TensorSpec((None, None, None), np.float64)
    for x in (X, X[:, :0], X[:, :, :0], X[:0]):
        same(FUNCTIONS[name], x, input_signature=[spec])


def test_gradients_of_what_is_broadcast() -> None:
    def fun(x: Any, b: Any) -> Any:
        return wnp.sum(wnp.tanh(x + b) ** 2)

    for shape in ((30, 1), (1, 1, 71), (20, 1, 1), (1, 30, 1)):
        same(wend.grad(fun, argnums=1), X, np.ones(shape))
