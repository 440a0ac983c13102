"""How a call's arguments are taken apart, and what a function may not do to them."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import wend


def appended(x, parts):
    parts.append(x)
    return x


def put(x, parts):
    parts["a"] = x
    return x


def popped(x, parts):
    parts.pop()
    return x


def replaced(x, parts):
    parts[0] = parts[0] + x
    return x


def deep(x, parts):
    parts["a"][1]["b"] = x
    return x


def in_a_branch(x, parts):
    if x > 0:
        parts.append(x)
    return x


def in_a_loop(x, parts):
    while x < 10.0:
        x = x + 1.0
        parts.append(x)
    return x


def in_a_helper(x, parts):
    for k in range(3):
        appended(x * k, parts)
    return x


CHANGES = [
    (appended, [1.0], "parts[1]"),
    (put, {}, "parts['a']"),
    (put, {"a": 1.0}, "parts['a']"),
    (popped, [1.0, 2.0], "parts[1]"),
    (replaced, [1.0], "parts[0]"),
    (deep, {"a": (1.0, {"b": 2.0})}, "parts['a'][1]['b']"),
    (in_a_helper, [1.0], "parts[1]"),
]


@pytest.mark.parametrize(("fun", "parts", "where"), CHANGES)
def test_t99_a_list_or_dict_that_is_changed_is_refused_in_derivatives(fun, parts, where):
    with pytest.raises(ValueError) as error:
        wend.grad(fun)(1.0, parts)
    assert str(error.value) == (
        f"argument parts is changed in place, at {where}: the caller would not see it.\n"
        "  To fix it: change a copy of it, and return that."
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("fun", "parts", "where"), CHANGES)
def test_a_list_or_dict_that_is_changed_is_written_back(fun, parts, where):
    for call in (lambda f, p: f(1.0, p), lambda f, p: f(1.0, parts=p)):
        expected, changed = copy.deepcopy(parts), copy.deepcopy(parts)
        call(fun, expected)
        call(wend.function(fun), changed)
        assert changed == expected


@pytest.mark.parametrize("fun", [in_a_branch, in_a_loop])
def test_t99_a_list_that_grows_in_what_is_recorded(fun):
    with pytest.raises(ValueError) as error:
        wend.grad(fun)(1.0, [1.0])
    assert "`parts` is an argument, which grows there: the caller would not see it." in str(
        error.value
    )


def test_copies_may_be_changed():
    @wend.function
    def fun(x, parts, *more, **named):
        parts = [*parts]
        parts.append(x)
        named.pop("a")
        named["c"] = x
        return parts, more, named

    found = fun(1.0, [2.0], 3.0, a=4.0, b=5.0)
    assert found == ([2.0, 1.0], (3.0,), {"b": 5.0, "c": 1.0})


def test_arrays_in_a_list_are_written_back():
    parts = [np.ones(2)]

    @wend.function
    def fun(x, parts):
        parts[0][0] = x
        return x

    fun(5.0, parts)
    assert parts[0].tolist() == [5.0, 1.0]


def test_t99_what_is_returned_must_be_arrays():
    for value in (object(), np.array(["a"]), {1, object()}):
        with pytest.raises(TypeError, match=r"returns .* at result"):
            wend.function(lambda x, value=value: value)(1.0)
    with pytest.raises(TypeError, match=r"returns object at result\['a'\]\[1\]"):
        wend.function(lambda x: {"a": (x, object())})(1.0)
    assert wend.function(lambda x: None)(1.0) is None


def test_sets_and_exceptions_are_returned_anew():
    constants = wend.function(lambda x: ({1, 2}, frozenset("a"), ValueError("no", 1), x))
    first, second = constants(1.0), constants(2.0)
    assert first[:2] == second[:2] == ({1, 2}, frozenset("a"))
    assert (type(first[2]), first[2].args) == (ValueError, ("no", 1))
    assert first[0] is not second[0]
    assert first[2] is not second[2]


def test_arguments_that_do_not_fit_raise_pythons_error():
    def fun(a, /, b, *, c):
        return a + b + c

    for args, kwargs in (((), {}), ((1.0,), {"c": 1.0}), ((1.0, 2.0), {}), ((1.0,), {"d": 1.0})):
        with pytest.raises(TypeError) as expected:
            fun(*args, **kwargs)
        with pytest.raises(TypeError) as raised:
            wend.function(fun)(*args, **kwargs)
        assert str(raised.value) == str(expected.value)
