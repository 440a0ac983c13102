"""What is checked of a kernel; docs/npbench.md is written by what these find."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import wend
from tests.helpers.graphs import names
from tests.programs.npbench.kernel import Kernel, run

STEP = 1e-6


def quiet(fun: Any, *args: Any) -> Any:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fun(*args)


def check_values(kernel: Kernel, dtype: str) -> None:
    """What it returns and what it leaves in its arguments are what NumPy gives."""
    expected = quiet(run, kernel.fun, kernel.fresh(dtype))
    found = quiet(run, kernel.compiled(), kernel.fresh(dtype))
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        mine, theirs = np.asarray(mine), np.asarray(theirs)
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        if mine.dtype.kind not in "fc":
            np.testing.assert_array_equal(mine, theirs)
            continue
        far = 1e5 * np.finfo(mine.dtype).eps
        np.testing.assert_allclose(mine, theirs, rtol=far, atol=far)


def check_something_happens(kernel: Kernel) -> None:
    """Its results are finite somewhere and not what the arguments were: the check can fail."""
    before = kernel.fresh(kernel.dtypes[0])
    after = quiet(run, kernel.fun, kernel.fresh(kernel.dtypes[0]))
    returned, left = after[: len(after) - len(before)], after[len(after) - len(before) :]
    moved = [b for a, b in zip(before, left, strict=True) if not np.array_equal(a, b)]
    assert [*returned, *moved]
    assert all(np.any(np.isfinite(x) & (np.asarray(x) != 0)) for x in [*returned, *moved])


def _is_float(x: Any) -> bool:
    return np.asarray(x).dtype.kind in "fc"


def _direction(rng: np.random.Generator, x: Any) -> Any:
    """Where to go from an argument: of a symmetric matrix to another one."""
    along = rng.normal(size=np.shape(x))
    symmetric = np.ndim(x) == 2 and np.shape(x)[0] == np.shape(x)[1] and np.array_equal(x, x.T)
    return along + along.T if symmetric else along


def check_gradient(kernel: Kernel) -> None:
    """The gradient of a weighted sum of all its results, in all floats, by central differences."""
    args = kernel.fresh("f8")
    rng = np.random.default_rng(7)
    results = quiet(run, kernel.fun, kernel.fresh("f8"))
    weights = [rng.normal(size=np.shape(y)) if _is_float(y) else None for y in results]
    wrt = [k for k, arg in enumerate(args) if _is_float(arg)]

    def scalar(*xs: Any) -> Any:
        given = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
        for k, x in zip(wrt, xs, strict=True):
            given[k] = x.copy() if isinstance(args[k], np.ndarray) else x
        total = 0.0
        for y, weight in zip(run(kernel.fun, given), weights, strict=True):
            if weight is not None:
                total = total + np.sum(np.real(y * weight))
        return total

    start = [args[k] for k in wrt]
    gradient = quiet(wend.grad(scalar, argnums=tuple(range(len(wrt)))), *start)
    along = [_direction(rng, x) for x in start]
    ends = [
        quiet(scalar, *(x + sign * STEP * a for x, a in zip(start, along, strict=True)))
        for sign in (1, -1)
    ]
    measured = (ends[0] - ends[1]) / (2 * STEP)
    found = sum(np.sum(np.real(g * a)) for g, a in zip(gradient, along, strict=True))
    assert measured != 0
    np.testing.assert_allclose(found, measured, rtol=1e-4)


def loop_nodes(kernel: Kernel) -> int:
    """How many loops its graph holds, at any depth."""
    fun = kernel.compiled()
    graph = fun.get_concrete_function(*kernel.fresh(kernel.dtypes[0])).graph
    return names(graph).count("while")
