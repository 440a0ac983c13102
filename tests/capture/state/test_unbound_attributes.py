"""Attributes that some runs bind are read like such names: not at all."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import pytest

import wend
from wend.base.errors import StructureError
from wend.capture.state.unbound import UnboundError


class Thing:
    def __init__(self) -> None:
        self.k = 2.0

    @functools.cached_property
    def cached(self) -> float:
        return self.k

    @functools.cached_property
    def doubled(self) -> Any:
        return self.k * 2.0


class Slotted:
    __slots__ = ("q",)


def _set_if(thing: Any, x: Any) -> None:
    if x > 1.0:
        thing.q = 5.0


def by_getattr(x):
    thing = Thing()
    _set_if(thing, x)
    return getattr(thing, "q", -1.0)


def by_getattr_of_a_slot(x):
    thing = Slotted()
    _set_if(thing, x)
    return getattr(thing, "q", -1.0)


def by_hasattr(x):
    thing = Thing()
    if x > 1.0:
        thing.q = 5.0
    return 1.0 if hasattr(thing, "q") else 2.0


def by_vars(x):
    thing = Thing()
    _set_if(thing, x)
    return x * len(vars(thing))


def by_dict(x):
    thing = Thing()
    _set_if(thing, x)
    return x * ("q" in thing.__dict__)


def by_except(x):
    thing = Thing()
    _set_if(thing, x)
    try:
        return thing.q
    except AttributeError:
        return -1.0


def after_a_loop(x):
    thing = Thing()
    while x < 3.0:
        thing.q = x
        x = x + 1.0
    return getattr(thing, "q", -1.0)


def deleted_on_one_path(x):
    thing = Thing()
    thing.q = x
    if x > 1.0:
        del thing.q
    return 1.0 if hasattr(thing, "q") else 2.0


def missing_in_a_loop_and_bound_in_its_branch(x):
    thing = Thing()
    y = 0.0
    while x < 10.0:
        y += getattr(thing, "q", 1.0)
        if x > 5.0:
            thing.q = y
        x = x + 1.0
    return y


def missing_in_a_branch_of_a_loop(x):
    thing = Thing()
    y = 0.0
    for k in range(10):
        if k > x:
            y += getattr(thing, "q", 1.0)
            thing.q = y
    return y


def missing_in_a_method_of_a_loop(x):
    def get(thing, x):
        thing.q = getattr(thing, "q", 0.0) + x
        return thing.q

    thing = Thing()
    for _ in range(3):
        x = x + get(thing, x)
    return x


def missing_by_except_in_a_loop(x):
    thing = Thing()
    while x < 10.0:
        try:
            thing.q = thing.q + 1.0
        except AttributeError:
            thing.q = 0.0
        x = x + 1.0 + thing.q
    return x


def cached_on_one_path(x):
    thing, y = Thing(), 0.0
    if x > 1.0:
        y = thing.cached
    thing.k = 10.0
    return y + thing.cached


def cached_in_a_loop(x):
    thing = Thing()
    while x < 10.0:
        x = x + thing.doubled
        thing.k = thing.k + x
    return x


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize(
    "fun",
    [
        by_getattr,
        by_getattr_of_a_slot,
        by_hasattr,
        by_vars,
        by_dict,
        by_except,
        after_a_loop,
        deleted_on_one_path,
        missing_in_a_loop_and_bound_in_its_branch,
        missing_in_a_branch_of_a_loop,
        missing_in_a_method_of_a_loop,
        missing_by_except_in_a_loop,
        cached_on_one_path,
        cached_in_a_loop,
    ],
    ids=lambda fun: fun.__name__,
)
def test_refused_or_as_in_python(fun, backend):
    for x in (0.0, 1.0, 2.0, 5.0):
        with (
            wend.config(backend=backend),
            contextlib.suppress(UnboundError, StructureError),
        ):
            assert wend.function(fun)(x) == fun(x)


def bound_on_both_paths(x):
    thing = Thing()
    if x > 1.0:
        thing.q = 5.0
    else:
        thing.q = x
    return getattr(thing, "q", -1.0) + hasattr(thing, "q") + thing.__dict__["q"]


def bound_again(x):
    thing = Thing()
    _set_if(thing, x)
    thing.q = x
    return thing.q + hasattr(thing, "q")


def of_another_name(x):
    thing = Thing()
    _set_if(thing, x)
    return x + hasattr(thing, "k") + hasattr(thing, "z") + getattr(thing, "z", 2.0)


def first_bound_and_not_asked_for(x):
    thing = Thing()
    while x < 10.0:
        thing.q = x
        x = x + thing.q + 1.0
    return x


def asked_for_before_the_loop(x):
    thing = Thing()
    if not hasattr(thing, "q"):
        thing.q = x
    while x < 10.0:
        thing.q = thing.q + x
        x = x + thing.q + 1.0
    return x + thing.q


def asked_for_another_object(x):
    thing, other = Thing(), Thing()
    while x < 10.0:
        thing.q = x + hasattr(other, "q")
        x = x + thing.q + 1.0
    return x


def cached_before_the_branch(x):
    thing = Thing()
    y = thing.cached
    if x > 1.0:
        y = y + thing.cached
    thing.k = 10.0
    return y + thing.cached


@pytest.mark.parametrize(
    "fun",
    [
        bound_on_both_paths,
        bound_again,
        of_another_name,
        first_bound_and_not_asked_for,
        asked_for_before_the_loop,
        asked_for_another_object,
        cached_before_the_branch,
    ],
    ids=lambda fun: fun.__name__,
)
def test_as_in_python(fun):
    compiled = wend.function(fun)
    for x in (0.0, 1.0, 2.0, 5.0):
        assert compiled(x) == fun(x)


def test_what_it_says():
    with pytest.raises(UnboundError, match=r"`Thing.q` is read at .*, but it is bound only on one"):
        wend.function(by_hasattr)(1.0)
    with pytest.raises(UnboundError, match=r"`thing.q` is found missing at .*, and bound in"):
        wend.function(missing_in_a_loop_and_bound_in_its_branch)(1.0)


# Functions with a cache
def test_a_cache_that_one_path_fills():
    def counted(x):
        count, y = 0, 0

        @functools.lru_cache
        def one(k):
            nonlocal count
            count += 1
            return k

        if x > 1.0:
            y = one(1)
        one(1)
        return y + count

    with pytest.raises(wend.WendError, match="`one` fills its cache"):
        wend.function(counted).get_concrete_function(0.0)
    traced = wend.function(counted)
    assert [traced(x) for x in (0.0, 2.0, 0.0)] == [counted(x) for x in (0.0, 2.0, 0.0)]


@functools.lru_cache
def _squared(k: int) -> int:
    return k * k


def test_a_cache_of_a_closed_function():
    def fun(x):
        y = 0.0
        if x > 1.0:
            y = x * _squared(3)
        return y + _squared(3)

    compiled = wend.function(fun)
    assert [compiled(x) for x in (0.0, 2.0)] == [9.0, 27.0]


def test_a_cache_filled_before():
    def fun(x):
        y = 0.0

        @functools.lru_cache
        def scaled(k):
            return k * len(names)

        names = ["a"]
        scaled(2)
        names.append("b")
        if x > 1.0:
            y = x * scaled(2)
        return y + scaled(2)

    compiled = wend.function(fun)
    assert [compiled(x) for x in (0.0, 2.0)] == [fun(0.0), fun(2.0)]
