"""`np.mgrid`, `np.ogrid`, `np.r_` and `np.c_` in compiled functions, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend

GRIDS = [
    lambda n, x: np.mgrid[0:n, 0:3],
    lambda n, x: np.mgrid[0:n, x:3:2j],
    lambda n, x: np.mgrid[0:x],
    lambda n, x: np.mgrid[1:n:2],
    lambda n, x: np.mgrid[x:4:5j],
    lambda n, x: np.mgrid[-1:x, -n:n, 0:2],
    lambda n, x: np.mgrid[0:n:1j],
    lambda n, x: np.mgrid[n:0:-1, :3],
    lambda n, x: np.mgrid[0:n,],
    lambda n, x: np.mgrid[0:2, 0:3] * x,
    lambda n, x: np.ogrid[0:n, 0:3],
    lambda n, x: np.ogrid[0:x:0.5, x : x + 2 : 3j],
    lambda n, x: np.ogrid[x:4:5j],
    lambda n, x: np.ogrid[0:n:3j, 1:n],
    lambda n, x: np.r_[0:x:3j, n, 2:n],
]


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("fun", GRIDS)
def test_traced_ends(fun: Any, backend: str) -> None:
    with wend.config(backend=backend):
        compiled = wend.function(fun)
        for args in ((3, 2.5), (5, 1.25), (3, np.float32(1.5)), (np.int64(4), 3.0)):
            actual, expected = compiled(*args), fun(*args)
            assert type(actual) is type(expected)
            for a, b in zip(actual, expected, strict=True):
                np.testing.assert_array_equal(a, b, strict=True)


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize(
    ("fun", "arguments"),
    [
        (lambda n, m: np.mgrid[0:n, 0:m], [(-2, 2), (2, -1), (-1, -1), (0, 2), (-0.5, 2)]),
        (lambda n, m: np.mgrid[n:0:-1, 0:m], [(-2, 2), (2, -3)]),
        (lambda n, m: np.mgrid[0:m, 0 : n + 0.5 : 0.5, 0:2:3j], [(-1, 2), (-0.75, 2)]),
        (lambda n, m: np.mgrid[0:n,], [(-1, 2)]),
        (lambda n, m: np.mgrid[0:n], [(-1, 2)]),
        (lambda n, m: np.ogrid[0:n, 0:m], [(-1, 2)]),
    ],
)
def test_negative_sizes(fun: Any, arguments: Any, backend: str) -> None:
    compiled = wend.function(fun, backend=backend)
    for args in arguments:
        try:
            expected = fun(*args)
        except ValueError as error:
            with pytest.raises(ValueError, match=str(error)):
                compiled(*args)
        else:
            for a, b in zip(compiled(*args), expected, strict=True):
                np.testing.assert_array_equal(a, b, strict=True)


def test_gradient_with_respect_to_an_end() -> None:
    def fun(x: Any) -> Any:
        return np.sum(np.mgrid[x:4:5j, 0:3] ** 2)

    assert wend.grad(fun)(1.0) == pytest.approx(
        (fun(1.0 + 1e-6) - fun(1.0 - 1e-6)) / 2e-6, rel=1e-6
    )


def test_their_results_are_arrays_of_the_trace() -> None:
    def fun(x: Any) -> Any:
        grid, line = np.mgrid[0:2, 0:3].astype(float), np.r_[1.0, 2.0]
        grid[0, 1] = x
        line[0] = x
        whole = np.mgrid[0:2, 0:3]
        whole[1, 0, 0] = x
        return grid, line, whole

    for actual, expected in zip(wend.function(fun)(2.5), fun(2.5), strict=True):
        np.testing.assert_array_equal(actual, expected, strict=True)
