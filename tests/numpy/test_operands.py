"""What NumPy refuses is refused with an error of its class: at once, and by compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
from tests.helpers.arrays import quiet
from tests.helpers.bad_calls import BAD_CALLS


def error_of(call: Any, args: Any) -> Exception:
    try:
        quiet(lambda: call(*(x.copy() if isinstance(x, np.ndarray) else x for x in args)))
    except Exception as error:
        return error
    raise AssertionError("no error")


@pytest.mark.parametrize(("call", "args"), BAD_CALLS, ids=range(len(BAD_CALLS)))
def test_the_class_is_numpys(call: Any, args: Any) -> None:
    expected = error_of(call, args)
    kinds = (c for c in type(expected).__mro__ if c.__module__ == "builtins")
    is_linalg = isinstance(expected, np.linalg.LinAlgError)
    kind = np.linalg.LinAlgError if is_linalg else next(kinds)
    for options in ({"backend": "numpy"}, {"backend": "native"}, {"eager": True}):
        with wend.config(**options):
            error = error_of(wend.function(call), args)
        assert isinstance(error, kind), f"{options}: {error!r}, in NumPy {expected!r}"


def entry(v: Any, x: Any) -> None:
    v[0] = x


def part(v: Any, x: Any) -> None:
    v[:2] = x


def whole(v: Any, x: Any) -> None:
    v[...] = x


def selected(v: Any, x: Any) -> None:
    v[v != 0] = x


def positions(v: Any, x: Any) -> None:
    v[[0, 1]] = x


WRITES = {
    **{f.__name__: f for f in (entry, part, whole, selected, positions)},
    "fill": lambda v, x: v.fill(x),
    "put": lambda v, x: np.put(v, 0, x),
    "place": lambda v, x: np.place(v, v != 0, x),
    "putmask": lambda v, x: np.putmask(v, v != 0, x),
    "fill_diagonal": lambda v, x: np.fill_diagonal(v[:, None] * v, x),
    "put_along_axis": lambda v, x: np.put_along_axis(v, np.array([0]), x, 0),
    "insert": lambda v, x: np.copyto(v, np.insert(v, 0, x)[:3]),
}
PUT = [
    *("a", "1", "1.5", "", " 1 ", "nan", b"a", np.str_("2"), ["a", 1], ["1", "2"], ["1"]),
    *(None, [None, 1], object(), {}, {1, 2}, len, ..., slice(1), np.timedelta64(1)),
    *([1], [1, 2], (1,), [[1], [2]], range(2), 1j, [1j], np.longdouble(1)),
    *([300], [1, -1], [2.7, 1], 300, [1e3], range(255, 257), [True, 2**70]),
]
# NumPy takes the truth of a list there.
LISTED = {("?", write) for write in ("entry", "fill")}


def outcome(f: Any, v: np.ndarray) -> Any:
    try:
        return quiet(lambda: f(v.copy()))
    except Exception as error:
        return error


@pytest.mark.sampled
@pytest.mark.parametrize("options", [{"backend": "numpy"}, {"eager": True}], ids=str)
@pytest.mark.parametrize("dtype", ["f8", "i8", "u1", "?", "c16"])
@pytest.mark.parametrize("write", WRITES)
def test_what_is_put_in_is_converted_as_by_numpy(write: str, dtype: str, options: Any) -> None:
    v, put = np.array([3, 1, 2]).astype(dtype), WRITES[write]
    for x in PUT:
        if (dtype, write) in LISTED and isinstance(x, (list, tuple, range)):
            continue

        def f(v: Any, x: Any = x) -> Any:
            put(v, x)
            return v

        expected = outcome(f, v)
        with wend.config(**options):
            found = outcome(wend.function(lambda v: f(v)), v)
        if isinstance(expected, Exception):
            kind = next(c for c in type(expected).__mro__ if c.__module__ == "builtins")
            assert isinstance(found, kind), f"{x!r}: {found!r}, in NumPy {expected!r}"
        else:
            assert not isinstance(found, Exception), f"{x!r}: {found!r}"
            np.testing.assert_array_equal(found, expected, err_msg=repr(x))
            assert found.dtype == expected.dtype
