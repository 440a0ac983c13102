"""`np.mgrid`, `np.ogrid`, `np.r_`, `np.c_` and `np.ix_` in compiled functions, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
from wend.testing import check_grads

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


@pytest.mark.sampled(3)
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


A = np.arange(12.0).reshape(3, 4)
MASK = np.array([True, False, True])
MESHES = [
    lambda i, j: np.ix_(i, j),
    lambda i, j: np.ix_(i),
    lambda i, j: np.ix_(i, [0, 1], [], MASK),
    lambda i, j: np.ix_(MASK, i),
    lambda i, j: np.ix_(i, range(len(j)), (0, j[0])),
    lambda i, j: np.ix_(np.unique(i), j > 0),
    lambda i, j: np.ix_(range(i[0]), j),
]


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("fun", MESHES)
def test_open_meshes(fun: Any, backend: str) -> None:
    compiled = wend.function(fun, backend=backend)
    for args in (([2, 0], [1, 3, 1]), ([1], [0, 2])):
        i, j = map(np.array, args)
        actual, expected = compiled(i, j), fun(i, j)
        assert type(actual) is type(expected)
        for a, b in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(a, b, strict=True)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_parts_of_open_meshes_are_read_and_written(backend: str) -> None:
    def run(a: Any, i: Any, mask: Any) -> Any:
        b = a.copy()
        b[np.ix_(i, mask)] += a[np.ix_(i, mask)] ** 2
        b[np.ix_(mask[:3], i)] = 0
        return b

    args = A, np.array([2, 0]), np.array([True, False, True, True])
    with wend.config(backend=backend):
        np.testing.assert_array_equal(wend.function(run)(*args), run(*args), strict=True)
        check_grads(lambda a: run(a, *args[1:]), (A,), order=2)


def test_open_meshes_take_vectors_only() -> None:
    for bad in (A, np.float64(1.0), 2):
        with pytest.raises(ValueError, match=r"^Cross index must be 1 dimensional$"):
            wend.function(lambda i, bad=bad: np.ix_(i, bad))(np.array([0]))
