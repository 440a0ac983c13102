"""`np.pad` in all modes, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
from wend.testing import check_grads

MODES = ["constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect"]
OPTIONS: list[dict[str, Any]] = [
    {"constant_values": ((1, 2), (3, 4.7))},
    {"constant_values": (5, -6)},
    {"mode": "linear_ramp", "end_values": ((1, 2), (3, -4))},
    {"mode": "linear_ramp", "end_values": 2},
    {"mode": "mean", "stat_length": 2},
    {"mode": "maximum", "stat_length": ((1, 2), (3, 9))},
    {"mode": "median", "stat_length": (1, 3)},
]
X = np.random.default_rng(0).normal(size=(3, 4)).round(3)
BACKENDS = pytest.mark.parametrize("backend", ["numpy", "native"])


def check(fun: Any, backend: str, *args: Any) -> None:
    actual, expected = wend.function(fun, backend=backend)(*args), fun(*args)
    np.testing.assert_allclose(actual, expected, rtol=1e-6)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)


@pytest.mark.sampled(3)
@BACKENDS
@pytest.mark.parametrize("mode", [*MODES, "symmetric", "wrap"])
def test_modes(mode: str, backend: str) -> None:
    for x in (X, (X * 40).astype(np.int64), X.astype(np.float32)):
        for widths in (1, ((1, 0), (0, 2)), ((2, 3), (1, 1)), 0):
            check(lambda x, w=widths: np.pad(x, w, mode), backend, x)
    if mode not in ("edge", "reflect", "symmetric", "wrap"):  # they ask for known sizes
        mask = np.array([True, False, True])
        check(lambda x, m: np.pad(x[m], ((1, 2), (0, 1)), mode), backend, X, mask)


@BACKENDS
@pytest.mark.parametrize("options", OPTIONS, ids=map(str, range(len(OPTIONS))))
def test_options(options: dict[str, Any], backend: str) -> None:
    for x in (X, (X * 40).astype(np.int64)):
        check(lambda x: np.pad(x, ((1, 0), (2, 2)), **options), backend, x)


@BACKENDS
def test_widths_by_axis(backend: str) -> None:
    check(lambda x: np.pad(x, [(1, 1), (0, 2)]), backend, X)
    if np.lib.NumpyVersion(np.__version__) >= "2.2.0":
        check(lambda x: np.pad(x, {0: 1, -1: (0, 2)}, "mean"), backend, X)
    shape = wend.function(lambda x: np.pad(x, 1, "empty"), backend=backend)(X).shape
    assert shape == (5, 6)


@pytest.mark.sampled(4)
@BACKENDS
@pytest.mark.parametrize("mode", MODES)
def test_gradients(mode: str, backend: str) -> None:
    weights = np.cos(np.arange(30.0)).reshape(5, 6)
    with wend.config(backend=backend):
        check_grads(lambda x: np.sum(np.pad(x, 1, mode) ** 2 * weights), (X,), order=2)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.pad(x, 1, "maximum", stat_length=0),
        lambda x: np.pad(x, 1, "nothing"),
        lambda x: np.pad(x, 1, "mean", end_values=2),
        lambda x: np.pad(x, -1, "mean"),
        lambda x: np.pad(x, (1, 2, 3), "mean"),
    ],
)
def test_errors(fun: Any) -> None:
    with pytest.raises((TypeError, ValueError)) as expected:
        fun(X)
    with pytest.raises(type(expected.value)) as caught:
        wend.function(fun)(X)
    assert str(caught.value).split("\n")[0] == str(expected.value).split("\n")[0]
