"""`wend.numpy.elementwise` beside NumPy."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wend
import wend.numpy as wnp
from tests.helpers.samples import between
from tests.helpers.traced import (
    REAL_DTYPES,
    arrays,
    assert_alike,
    broadcastable,
    check,
    outcome,
    scalars,
    slope,
)
from wend.numpy import elementwise

UFUNCS = sorted(
    name
    for name in vars(wnp)
    if isinstance(getattr(np, name, None), np.ufunc) and name not in ("matmul", "vecdot")
)
UNARY = [name for name in UFUNCS if getattr(np, name).nin == 1]
BINARY = [name for name in UFUNCS if getattr(np, name).nin == 2]
OTHERS = ["real", "imag", "where", "clip"]
# Built of several operations, so with a rounding more
ULPS = {"hypot": 16, "logaddexp": 64, "tan": 16}

BINARY_OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
]  # fmt: skip
UNARY_OPERATORS = [operator.neg, operator.pos, operator.abs, operator.invert]


def named(name: str) -> Callable[..., Any]:
    return lambda module, *xs: getattr(module, name)(*xs)


def is_unheld(y: Any, dtype: np.dtype) -> bool:
    """A negative int beside an unsigned array: an error only if its value is known."""
    return type(y) is int and y < 0 and dtype.kind == "u"


def has_no_order(name: str, *xs: Any) -> bool:
    """How complex NaNs are ordered depends in NumPy on whether they are arrays or scalars."""
    is_complex = any(np.asarray(x).dtype.kind == "c" for x in xs)
    return is_complex and name[0] in "gl" and any(np.isnan(x).any() for x in xs)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", UNARY)
@given(x=arrays())
def test_unary(name: str, x: np.ndarray) -> None:
    check(named(name), x, ulps=ULPS.get(name, 8))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", BINARY)
@given(xs=broadcastable(2))
def test_binary(name: str, xs: Any) -> None:
    if has_no_order(name, *xs):
        return
    check(named(name), *xs, ulps=ULPS.get(name, 8))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", BINARY)
@given(x=arrays(), y=scalars, swap=st.booleans())
def test_binary_with_a_python_scalar(name: str, x: np.ndarray, y: Any, swap: bool) -> None:
    args = (y, x) if swap else (x, y)
    if has_no_order(name, x, y):
        return
    ulps = ULPS.get(name, 8)
    check(lambda m, x: getattr(m, name)(*((y, x) if swap else (x, y))), x, ulps=ulps)
    if not is_unheld(y, x.dtype):
        check(named(name), *args, ulps=ulps)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("function", BINARY_OPERATORS)
@given(xs=broadcastable(2))
def test_binary_operators(function: Any, xs: Any) -> None:
    if not has_no_order(function.__name__, *xs):
        check(lambda _, x, y: function(x, y), *xs)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("function", BINARY_OPERATORS)
@given(x=arrays(), y=scalars, swap=st.booleans(), is_traced=st.booleans())
def test_operators_with_a_python_scalar(
    function: Any, x: np.ndarray, y: Any, swap: bool, is_traced: bool
) -> None:
    if has_no_order(function.__name__, x, y) or (function is operator.pow and y == 0.5):
        return  # x**0.5 is np.sqrt of arrays, np.power of scalars

    def call(_: Any, x: Any, *ys: Any) -> Any:
        other = ys[0] if ys else y
        return function(other, x) if swap else function(x, other)

    check(call, x, *([y] if is_traced and not is_unheld(y, x.dtype) else []))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("function", BINARY_OPERATORS)
@given(xs=broadcastable(2), swap=st.booleans())
def test_operators_with_a_plain_array(function: Any, xs: Any, swap: bool) -> None:
    x, y = xs
    if not has_no_order(function.__name__, x, y):
        check(lambda _, x: function(y, x) if swap else function(x, y), x)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("function", BINARY_OPERATORS)
@given(x=scalars, y=scalars)
def test_operators_of_two_python_scalars(function: Any, x: Any, y: Any) -> None:
    """As NumPy's default dtypes, not Python's numbers: ints wrap, 1 / 0 is inf (D4).

    Python counts with its bools as integers: True + True is 2. Complex numbers have
    no order, and no shift a negative count.
    """
    given = x, y
    orders = operator.lt, operator.le, operator.gt, operator.ge
    if complex in map(type, given) and function in orders:
        with pytest.raises(TypeError) as pythons:
            function(*given)
        with pytest.raises(TypeError, match=re.escape(str(pythons.value))):
            wend.function(function)(*given)
        return
    if (
        function in (operator.lshift, operator.rshift)
        and {*map(type, given)} <= {bool, int}
        and y < 0
    ):
        with pytest.raises(ValueError, match="negative shift count"):
            wend.function(function)(*given)
        return
    if function not in (operator.and_, operator.or_, operator.xor):
        x, y = (int(n) if type(n) is bool else n for n in (x, y))
    expected = outcome(lambda: function(np.asarray(x), np.asarray(y)))
    assert_alike(outcome(lambda: wend.function(function)(*given)), expected)


@pytest.mark.parametrize("function", UNARY_OPERATORS)
@given(x=arrays())
def test_unary_operators(function: Any, x: np.ndarray) -> None:
    check(lambda _, x: function(x), x)


@given(x=arrays())
def test_parts_of_complex_numbers(x: np.ndarray) -> None:
    for name in ("real", "imag"):
        check(named(name), x)
        check(lambda _, x, name=name: getattr(x, name), x)


@given(xs=broadcastable(3))
def test_where(xs: Any) -> None:
    check(named("where"), *xs)


@given(xs=broadcastable(2), y=scalars)
def test_where_with_a_python_scalar(xs: Any, y: Any) -> None:
    check(lambda m, c, x: m.where(c, x, y), *xs)
    check(lambda m, c, y: m.where(c, y, xs[1]), xs[0], y)


@given(xs=broadcastable(3, st.sampled_from(REAL_DTYPES)))
def test_clip(xs: Any) -> None:
    check(named("clip"), *xs, signs=False)


@given(x=arrays(), low=scalars, high=scalars)
def test_clip_to_python_scalars(x: np.ndarray, low: Any, high: Any) -> None:
    check(lambda m, x: m.clip(x, low, high), x, signs=False)
    check(lambda m, x: m.clip(x, None, high), x, signs=False)
    check(lambda m, x: m.clip(x, a_min=low, a_max=None), x, signs=False)


def test_shapes_that_do_not_broadcast() -> None:
    for name in ("add", "where", "hypot", "power", "arctan2", "logical_and"):
        args = (np.ones(3), np.ones(4), *([np.ones(4)] if name == "where" else []))
        check(named(name), *args)


@pytest.mark.parametrize("name", ["hypot", "logaddexp", "square", "power", "where", "clip"])
def test_gradient(name: str) -> None:
    x, y = between(0.5, 2, 2, 3), between(0.4, 1.5, 3, seed=1)
    given = {
        "square": (lambda x: wnp.square(x), x),
        "where": (lambda x, y: wnp.where(x > 1, x * y, y), x, y),
        "clip": (lambda x: wnp.clip(x * x, 0.7, 2.2), x),
    }
    slope(*given.get(name, (getattr(elementwise, name), x, y)))


def test_a_graft_has_the_value_of_the_first_and_the_derivatives_of_the_second() -> None:
    def grafted(x: Any) -> Any:
        return elementwise.graft(3 * x, x**3)

    assert wend.function(grafted)(2.0) == 6
    for derivative in (wend.grad, lambda f: lambda x: wend.jvp(f, (x,), (1.0,))[1]):
        assert derivative(grafted)(2.0) == 12
        assert derivative(wend.grad(grafted))(2.0) == 12
