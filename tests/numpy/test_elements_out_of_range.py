"""Numbers of the run that a dtype cannot hold, wherever one becomes an element."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from tests.helpers.arrays import quiet

MASK = np.array([True, False])


def changed(change: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes an array, changes it, and returns it."""

    def run(v: Any, dtype: str) -> Any:
        array = np.ones(2, dtype)
        change(array, v)
        return array

    return run


def set_item(a: Any, v: Any) -> None:
    a[0] = v


def set_slice(a: Any, v: Any) -> None:
    a[:] = v


def set_list(a: Any, v: Any) -> None:
    a[:] = [v, 1]


def set_by_mask(a: Any, v: Any) -> None:
    a[MASK] = v


CALLS: dict[str, Callable[..., Any]] = {
    "array": lambda v, d: np.array(v, d),
    "array of a list": lambda v, d: np.array([[v], [1]], d),
    "asarray": lambda v, d: np.asarray([v, 1], d),
    "asanyarray": lambda v, d: np.asanyarray([v, 1], dtype=d),
    "ascontiguousarray": lambda v, d: np.ascontiguousarray([v, 1], dtype=d),
    "asfortranarray": lambda v, d: np.asfortranarray([[v, 1]], dtype=d),
    "fromiter": lambda v, d: np.fromiter([v, 1], dtype=d),
    "full": lambda v, d: np.full(2, v, dtype=d),
    "full_like": lambda v, d: np.full_like(np.zeros(2, d), v),
    "dtype": lambda v, d: np.dtype(d).type(v),
    "arange": lambda v, d: np.arange(v, v + 3, dtype=d),
    "arange of two": lambda v, d: np.arange(v, v + 2, dtype=d),
    "arange of one": lambda v, d: np.arange(v, v + 1, dtype=d),
    "arange of none": lambda v, d: np.arange(v, v, dtype=d),
    "arange with a step": lambda v, d: np.arange(0, 3 * v, v, dtype=d),
    "linspace": lambda v, d: np.linspace(0, v, 4, dtype=d),
    "set": changed(set_item),
    "set a slice": changed(set_slice),
    "set a list": changed(set_list),
    "set by a mask": changed(set_by_mask),
    "fill": changed(lambda a, v: a.fill(v)),
    "put": changed(lambda a, v: np.put(a, [0], v)),
    "put a list": changed(lambda a, v: np.put(a, [0], [v])),
    "put by name": changed(lambda a, v: np.put(a, ind=[0], v=[v])),
    "place": changed(lambda a, v: np.place(a, MASK, [v])),
    "putmask": changed(lambda a, v: np.putmask(a, MASK, v)),
    "copyto": changed(lambda a, v: np.copyto(a, v, casting="unsafe")),
    "insert": lambda v, d: np.insert(np.zeros(2, d), 1, v),
    "append": lambda v, d: np.append(np.zeros(2, d), v),
    "r_": lambda v, d: np.r_[np.zeros(2, d), v],
    "select": lambda v, d: np.select([MASK], [np.ones(2, d)], v),
    "isin": lambda v, d: np.isin(np.array([0, 1], d), v),
    "sum": lambda v, d: np.sum(np.array([1, 2], d), initial=v),
    "max": lambda v, d: np.max(np.array([1, 2], d), initial=v),
    "eye": lambda v, d: np.eye(2, k=v, dtype=d),
}
INTEGERS = (0, 1, 2, 127, 128, 255, 256, -1, -128, -129, 2**40, -(2**40))
FLOATS = (0.0, 1.5, -0.5, -1.5, 127.9, 128.5, 255.9, 256.5, 1e5, -1e5)
EXTREMES = (9.3e18, 1.9e19, -1e19, 1e300, float("inf"), float("-inf"), float("nan"))
CANNOT_BE_BOUNDS = ("arange", "linspace")
DTYPES = ("i1", "u1", "i8", "u8", "f2")


def outcome(run: Callable[..., Any], *args: Any) -> Any:
    try:
        return np.asarray(quiet(lambda: run(*copy.deepcopy(args))))
    except Exception as error:
        return error


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_numbers_fit_or_raise(name: str, dtype: str) -> None:
    call = CALLS[name]
    extremes = () if name.startswith(CANNOT_BE_BOUNDS) else EXTREMES
    with wend.config(backend="numpy"):
        compiled = wend.function(lambda v: call(v, dtype))
        for v in (*INTEGERS, *FLOATS, *extremes):
            expected, result = outcome(call, v, dtype), outcome(compiled, v)
            if isinstance(expected, Exception):
                kind = next(c for c in type(expected).__mro__ if c.__module__ == "builtins")
                assert isinstance(result, kind), f"{v!r}: {result!r}, not {expected!r}"
                if isinstance(expected, OverflowError) and isinstance(v, float):
                    assert str(result).startswith(str(expected)), v
                continue
            assert not isinstance(result, Exception), f"{v!r}: {result!r}, not {expected!r}"
            assert result.dtype == expected.dtype, v
            np.testing.assert_allclose(result, expected, rtol=1e-3, err_msg=repr(v))


# NumPy's scalars: it makes Python numbers of those that are assigned to elements of signed dtypes.
SCALARS = [
    *map(np.int64, INTEGERS),
    *map(np.float64, (*FLOATS, *EXTREMES)),
    *(np.uint8(254), np.int16(-129), np.uint64(2**63), np.uint64(7), np.uint32(2**31)),
    *(np.float32(-1e5), np.float16(200.0), np.float32(np.nan), np.True_, np.array(300)),
]
# How it casts scalars there depends on the function, and so does what it makes of NaN.
MADE_OF_SCALARS = CALLS.keys() - {
    *("arange", "arange of two", "arange of one", "arange of none", "arange with a step"),
    *("linspace", "eye"),
}


def is_listed_cast(v: Any, dtype: str) -> bool:
    """Return whether a cast in C is undefined: see *Corners* in docs/from-numpy.md."""
    if v.dtype.kind != "f" or dtype == "f2":
        return False
    limits = np.iinfo(dtype)
    return not limits.min - 1 < float(v) < limits.max + 1


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(MADE_OF_SCALARS))
def test_scalars_of_numpy_fit_or_raise_where_they_are_assigned(name: str, dtype: str) -> None:
    call = CALLS[name]
    with wend.config(backend="numpy"):
        compiled = wend.function(lambda v: call(v, dtype))
        for v in SCALARS:
            expected, result = outcome(call, v, dtype), outcome(compiled, v)
            if isinstance(expected, Exception):
                kind = next(c for c in type(expected).__mro__ if c.__module__ == "builtins")
                assert isinstance(result, kind), f"{v!r}: {result!r}, not {expected!r}"
                continue
            assert not isinstance(result, Exception), f"{v!r}: {result!r}, not {expected!r}"
            assert result.dtype == expected.dtype, v
            if not is_listed_cast(v, dtype):
                np.testing.assert_array_equal(result, expected, err_msg=repr(v))


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("v", [np.int64(300), np.float64(np.nan), np.uint8(254)])
def test_a_scalar_that_is_known_has_to_fit_as_well(v: Any, backend: str) -> None:
    def in_a_loop(x: Any) -> Any:
        out = np.zeros(3, np.int8)
        for i in range(3):
            out[i] = x[i]
        return out

    def known(x: Any) -> Any:
        out = np.zeros(3, np.int8)
        out[1] = v
        return out

    x = np.array([1, 2, v])
    for fun in (in_a_loop, known):
        with pytest.raises((OverflowError, ValueError)) as expected:
            fun(x)
        with pytest.raises(expected.type) as raised:
            wend.function(fun, backend=backend)(x)
        assert str(raised.value) == str(expected.value)
