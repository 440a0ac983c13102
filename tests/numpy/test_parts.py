"""Positions of every integer dtype, at its limits, mean what they mean to NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from tests.helpers.arrays import flat, quiet

X = np.arange(300.0)
INTEGERS = [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]
ENDS = [np.dtype(np.int8), np.dtype(np.uint64)]


def _assigned(x: Any, k: Any) -> Any:
    x[k] = -1.0
    return x


def _added(x: Any, k: Any) -> Any:
    x[k] += 1.0
    return x


def _put(x: Any, k: Any, mode: str = "raise") -> Any:
    np.put(x, k, -1.0, mode)
    return x


def _put_along(x: Any, k: Any) -> Any:
    np.put_along_axis(x, k, -1.0, 0)
    return x


# Of one position
NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "getitem": lambda x, k: x[k],
    "setitem": _assigned,
    "iadd": _added,
    "from": lambda x, k: x[k:],
    "up to": lambda x, k: x[:k],
    "row": lambda x, k: x.reshape(2, 150)[:, k],
    "take": lambda x, k: np.take(x, k),
    "take clip": lambda x, k: np.take(x, k, mode="clip"),
    "take wrap": lambda x, k: np.take(x, k, mode="wrap"),
    "put": _put,
    "put clip": lambda x, k: _put(x, k, "clip"),
    "choose": lambda x, k: np.choose(k, [x, x + 1]),
    "choose wrap": lambda x, k: np.choose(k, [x, x + 1, x + 2], mode="wrap"),
    "choose clip": lambda x, k: np.choose(k, [x, x + 1], mode="clip"),
    "roll": lambda x, k: np.roll(x, k),
}
# Of an array of positions
ARRAYS: dict[str, Callable[[Any, Any], Any]] = {
    "getitem": lambda x, k: x[k],
    "setitem": _assigned,
    "take": lambda x, k: np.take(x, k),
    "take wrap": lambda x, k: np.take(x, k, mode="wrap"),
    "take clip": lambda x, k: np.take(x, k, mode="clip"),
    "take_along_axis": lambda x, k: np.take_along_axis(x, k, 0),
    "put": _put,
    "put_along_axis": _put_along,
    "choose": lambda x, k: np.choose(k, [x[:1], x[1:2]]),
    "choose wrap": lambda x, k: np.choose(k, [x[:1], x[1:2], x[2:3]], mode="wrap"),
    "choose clip": lambda x, k: np.choose(k, [x[:1], x[1:2], x[2:3]], mode="clip"),
    "add.at": lambda x, k: _add_at(x, k),
    "searchsorted": lambda x, k: np.searchsorted(x, k),
    "bincount": lambda x, k: np.bincount(k % 5),
}


def _add_at(x: Any, k: Any) -> Any:
    np.add.at(x, k, 1.0)
    return x


def outcome(run: Callable[..., Any], k: Any) -> Any:
    try:
        return [np.array(x) for x in flat(quiet(lambda: run(X.copy(), k)))]
    except Exception as error:
        return error


def check(call: Any, compiled: Any, k: Any, where: str) -> None:
    expected, found = outcome(call, k), outcome(compiled, k)
    if isinstance(expected, Exception):
        kind = next(c for c in type(expected).__mro__ if c.__module__ == "builtins")
        assert isinstance(found, kind), f"{where}: {found!r}, in NumPy {expected!r}"
        return
    assert isinstance(found, list), f"{where}: {found!r}"
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == y.dtype, where
        np.testing.assert_array_equal(x, y, where)


def limits(dtype: np.dtype, name: str) -> list[Any]:
    info = np.iinfo(dtype)
    numbers = [dtype.type(k) for k in (info.min, info.max, 0, 1, 100, info.max - 1)]
    # NumPy wraps by adding the size until it fits, without end for such numbers.
    return [k for k in numbers if "wrap" not in name or abs(int(k)) < 2**17]


# All dtypes by the interpreter; natively those at the ends, and the others in the long run.
WAYS = [
    pytest.param(
        dtype,
        backend,
        marks=[pytest.mark.slow] if backend == "native" and dtype not in ENDS else [],
    )
    for dtype in INTEGERS
    for backend in ("numpy", "native")
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("dtype", "backend"), WAYS)
@pytest.mark.parametrize("name", NUMBERS)
def test_of_a_number(name: str, dtype: np.dtype, backend: str) -> None:
    compiled = wend.function(NUMBERS[name])
    with wend.config(backend=backend):
        for k in limits(dtype, name):
            if int(k) >= 2**63 and "take" not in name:
                continue  # beyond every size: positions are 64-bit integers
            check(NUMBERS[name], compiled, k, f"{name} {k!r}")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("dtype", "backend"), WAYS)
@pytest.mark.parametrize("name", ARRAYS)
def test_of_an_array(name: str, dtype: np.dtype, backend: str) -> None:
    compiled = wend.function(ARRAYS[name])
    with wend.config(backend=backend):
        for k in limits(dtype, name):
            check(ARRAYS[name], compiled, np.array([1, k], dtype), f"{name} {k!r}")


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_slices_beside_a_position_have_sizes_of_their_own(backend: str) -> None:
    spec = [wend.TensorSpec((None, None, None), float), wend.TensorSpec((), np.int64)]
    fun = wend.function(lambda x, i: x[1:, i, 2:], input_signature=spec, backend=backend)
    x = np.arange(90.0).reshape(5, 2, 9)
    np.testing.assert_array_equal(fun(x, np.int64(1)), x[1:, 1, 2:])
