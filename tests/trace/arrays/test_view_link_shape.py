"""Assignments to `x.shape` and `x.dtype`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend

pytestmark = pytest.mark.filterwarnings("ignore:Setting the (shape|dtype):DeprecationWarning")


def of_a_promoted_array(n: Any, x: Any) -> Any:
    a = np.arange(6.0)
    a[0] = x
    a.shape = (2, 3)
    return a, a[0]


def after_the_graph_has_read_it(n: Any, x: Any) -> Any:
    a = np.arange(6.0)
    b = a * x
    a.shape = (2, 3)
    return a * b[2], b


def of_a_view_of_a_known_array(n: Any, x: Any) -> Any:
    a = np.arange(6)
    b, c = a[:4], a * x
    b.shape = (2, 2)
    b[0] = 7
    return a * x, b, c


def in_a_branch(n: Any, x: Any) -> Any:
    a = np.arange(6.0)
    if x > 1:
        a.shape = (2, 3)
    return (a * x).ravel()


def in_a_loop(n: Any, x: Any) -> Any:
    a = np.arange(6.0)
    for i in range(n):
        a.shape = (3, 2) if i % 2 else (2, 3)
    return (a * x).ravel()


def of_a_carry(n: Any, x: Any) -> Any:
    a = np.arange(6.0)
    for _ in range(n):
        a = a.reshape(2, 3)
        a.shape = 6
        a = a + x
    return a


def of_a_reshaped_view(n: Any, x: Any) -> Any:
    a = np.arange(6.0) * x
    b = a.reshape(2, 3)
    b.shape = (3, 2)
    b[0] = 7
    a[5] = 8
    return a, b


def of_a_result(n: Any, x: Any) -> Any:
    a = np.arange(6.0) * x
    a.shape = (3, 2)
    a[0] = 7
    return a


def dtype_after_the_graph_has_read_it(n: Any, x: Any) -> Any:
    a = np.arange(6.0)
    b = a * x
    a.dtype = np.int64
    return a + n, b


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize(
    "fun",
    [
        of_a_promoted_array,
        after_the_graph_has_read_it,
        of_a_view_of_a_known_array,
        in_a_branch,
        in_a_loop,
        of_a_carry,
        of_a_reshaped_view,
        of_a_result,
        dtype_after_the_graph_has_read_it,
    ],
)
def test_set_in_place(fun: Any, backend: str) -> None:
    with wend.config(backend=backend):
        compiled = wend.function(fun)
        for args in ((3, 2.5), (2, 0.5), (0, 1.5)):
            actual, expected = compiled(*args), fun(*args)
            if not isinstance(expected, tuple):
                actual, expected = (actual,), (expected,)
            for a, b in zip(actual, expected, strict=True):
                np.testing.assert_array_equal(a, b, strict=True)


def with_a_part_at_a_traced_position(a: Any, n: Any) -> Any:
    b = np.zeros((2, 3))
    part = b[np.argmin(a)]
    b.shape = 6
    b[4] = 1.0
    return part


def with_a_part(a: Any, n: Any) -> Any:
    part = a[0]
    a.shape = 6
    return part


def of_a_part(a: Any, n: Any) -> Any:
    part = a[0]
    part.shape = (3, 1)
    return part


def of_an_argument(a: Any, n: Any) -> Any:
    a.shape = 6
    return a


def dtype_of_a_traced_array(a: Any, n: Any) -> Any:
    b = a * 2
    b.dtype = np.int64
    return b


@pytest.mark.parametrize(
    ("fun", "text"),
    [
        (with_a_part_at_a_traced_position, "is a part of an array that has another shape then"),
        (with_a_part, "is a part of an array that has another shape then"),
        (of_a_part, "is a part of an array that has another shape then"),
        (of_an_argument, r"sets the shape of argument a in place, from \(2, 3\) to \(6,\)"),
        (dtype_of_a_traced_array, "cannot be set in place"),
    ],
)
def test_refused_by_name(fun: Any, text: str) -> None:
    a = np.arange(6.0).reshape(2, 3)
    with pytest.raises((wend.WendError, TypeError), match=text):
        wend.function(fun)(a, 1)
    np.testing.assert_array_equal(a, np.arange(6.0).reshape(2, 3))


def twice_in_a_while(a: Any, n: Any) -> Any:
    b = a * 2
    while n > 0:
        b.shape = (3, 2)
        b.shape = (2, 3)
        n = n - 1
    return b


def once_in_a_loop(a: Any, n: Any) -> Any:
    b = a * 2
    for k in range(n):
        b.shape = 6
        b[k] += 1
    return b


def back_and_forth_in_a_branch(a: Any, n: Any) -> Any:
    b = a * 2
    if n > 0:
        b.shape = (3, 2)
        rows = b.shape[0]
        b[0, 1] = rows
        b.shape = (2, 3)
    return b


@pytest.mark.parametrize(
    "fun", [twice_in_a_while, once_in_a_loop, back_and_forth_in_a_branch], ids=lambda f: f.__name__
)
def test_arrays_from_before_a_loop_or_branch(fun: Any) -> None:
    compiled = wend.function(fun)
    for n in (2, 0, 3):
        a = np.arange(6.0).reshape(2, 3)
        np.testing.assert_array_equal(compiled(a, n), fun(a, n), strict=True)
    with pytest.raises(wend.WendError, match=r"is set at .*, in a loop or branch"):
        wend.function(twice_in_a_while)(np.arange(6.0).reshape(2, 3), np.array(100))
