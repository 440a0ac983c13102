"""Instances of dataclasses that loops and branches replace: `b = replace(b, …)`."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import attrs
import numpy as np
import pytest

import wend
from wend.base.errors import AliasError, StructureError
from wend.capture.heap import container_phis


@dataclass(frozen=True)
class Ball:
    x: Any
    v: Any


@dataclass
class Open:
    x: Any
    v: Any
    name: str = "ball"


@dataclass(slots=True)
class Slotted:
    x: Any
    v: Any


@attrs.define(frozen=True)
class Attrs:
    x: Any
    v: Any


class Pair(NamedTuple):
    x: Any
    v: Any


class Plain:
    def __init__(self, x: Any, v: Any) -> None:
        self.x = x
        self.v = v


class PlainSlotted:
    __slots__ = ("v", "x")

    def __init__(self, x: Any, v: Any) -> None:
        self.x, self.v = x, v


class WithTexts(Plain):
    def __repr__(self) -> str:
        return f"WithTexts({self.x}, {self.v})"


class WithOperators(Plain):
    def __init__(self, x: Any, v: Any) -> None:
        self.x, self.v = x, v

    def __add__(self, other: Any) -> WithOperators:
        return WithOperators(self.x + other.x, self.v + other.v)

    def __mul__(self, k: Any) -> WithOperators:
        return WithOperators(self.x * k, self.v * k)


ORDINARY = [Plain, PlainSlotted, WithTexts, WithOperators]


@dataclass(frozen=True)
class World:
    ball: Ball
    time: Any
    law: Any = abs


def _replaced(b, **fields):
    if isinstance(b, tuple):
        return b._replace(**fields)
    if isinstance(b, (Plain, PlainSlotted)):
        return type(b)(fields.get("x", b.x), fields.get("v", b.v))
    return attrs.evolve(b, **fields) if isinstance(b, Attrs) else replace(b, **fields)


def _while(b):
    while b.x > -3.0:
        b = _replaced(b, x=b.x + b.v, v=b.v - 0.25)
    return b


def _for(b):
    for k in range(7):
        b = _replaced(b, x=b.x + b.v * k)
        b = _replaced(b, v=b.v - 0.25)
    return b


def _branch_in_loop(b):
    for _ in range(9):
        if b.x > 1.0:
            b = _replaced(b, x=b.x - 0.5)
        elif b.v > 0.0:
            b = _replaced(b, v=-b.v, x=b.x + 1.0)
        if b.x < -20.0:
            break
    return b


def _first_bound(b):
    for k in range(4):
        best = _replaced(b, x=b.x * k)
        if best.x > 2.0:
            break
    return best


def _returned(b):
    for _ in range(5):
        b = _replaced(b, x=b.x * 2.0)
        if b.x > 5.0:
            return b
    return _replaced(b, v=-b.v)


def _copy_is_kept(b):
    first = b
    for _ in range(3):
        last, b = b, _replaced(b, x=b.x + b.v)
    return first, last, b


def _in_a_tuple(b):
    both = b, 0.0
    while both[0].x > -1.0:
        both = _replaced(both[0], x=both[0].x + both[0].v, v=both[0].v - 0.3), both[1] + 1.0
    return both


@pytest.mark.sampled(9)
@pytest.mark.parametrize("cls", [Ball, Open, Slotted, Attrs, Pair, *ORDINARY])
@pytest.mark.parametrize(
    "fun",
    [_while, _for, _branch_in_loop, _first_bound, _returned, _copy_is_kept, _in_a_tuple],
)
@pytest.mark.parametrize("kind", [float, np.array, lambda x: np.full(1, x)])
def test_a_loop_replaces_an_instance(cls, fun, kind):
    start = cls(kind(1.5), kind(0.75))
    result, expected = wend.function(fun)(start), fun(start)
    for a, b in zip(_leaves(result), _leaves(expected), strict=True):
        assert type(a) is type(b) or np.asarray(a) == np.asarray(b)
        if cls is not Attrs or not dataclasses.is_dataclass(a):
            np.testing.assert_allclose(a, b)


def _leaves(value):
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in _leaves(part)]
    if isinstance(value, (Ball, Open, Slotted, Attrs, Plain, PlainSlotted)):
        return [value.x, value.v]
    return [value]


def test_the_class_and_its_static_fields_stay():
    def fun(x):
        b = Open(x, 0.0, name="first")
        while b.x < 10.0:
            b = replace(b, x=b.x * 2.0)
        return b.x, b.name, type(b) is Open

    assert wend.function(fun)(1.0) == fun(1.0)


def test_instances_within_instances():
    def fun(x):
        w = World(Ball(x, 1.0), 0.0)
        while w.time < 5.0:
            w = replace(w, ball=replace(w.ball, x=w.law(w.ball.x - 1.0)), time=w.time + 1.0)
        return w.ball, w.time

    assert wend.function(fun)(2.5) == fun(2.5)


def test_attributes_that_hold_one_are_replaced():
    class Simulation:
        def __init__(self, x):
            self.ball, self.steps = Ball(x, 0.5), 0

        def run(self):
            while self.ball.x < 4.0:
                self.ball = replace(self.ball, x=self.ball.x + self.ball.v)
                self.steps += 1

    def fun(x):
        s = Simulation(x)
        s.run()
        return s.ball, s.steps

    assert wend.function(fun)(1.0) == fun(1.0)


def test_the_caller_keeps_its_instance():
    start = Open(1.0, 0.5)

    def fun(b):
        for _ in range(3):
            b = replace(b, x=b.x + b.v)
        return b

    assert wend.function(fun)(start) == Open(2.5, 0.5)
    assert start == Open(1.0, 0.5)


def test_the_gradient_is_that_of_the_unrolled_loop():
    def fun(x, n):
        b = Ball(x, 0.3)
        for _ in range(n):
            b = replace(b, x=b.x + b.v * np.sin(b.x), v=0.9 * b.v)
        return b.x

    h = 1e-6
    expected = (fun(1.2 + h, 6) - fun(1.2 - h, 6)) / (2 * h)
    np.testing.assert_allclose(wend.grad(fun)(1.2, 6), expected, rtol=1e-8)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("cls", ORDINARY)
def test_objects_of_ordinary_classes(cls, backend):
    def fun(x, n):
        b = cls(x, 0.3)
        for _ in range(n):
            if b.x > 2.0:
                b = cls(b.x * 0.5, b.v + 0.1)
            b = cls(b.x + b.v * np.sin(b.x), 0.9 * b.v)
            b.v = b.v * 1.1
        b.x = b.x * 1.5
        return b.x * b.v

    for n in (0, 1, 6):
        traced = wend.function(fun, backend=backend)
        assert traced(1.2, np.int64(n)) == pytest.approx(fun(1.2, n), rel=1e-14)
        slope = (fun(1.2 + 1e-6, n) - fun(1.2 - 1e-6, n)) / 2e-6
        np.testing.assert_allclose(wend.grad(traced)(1.2, np.int64(n)), slope, rtol=1e-7)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_operators_make_the_next_object(backend):
    def fun(x, n):
        position, velocity = WithOperators(x, 0.0), WithOperators(0.5, 1.0)
        for _ in range(n):
            velocity = velocity + position * -0.1
            position = position + velocity * 0.2
        return position.x * position.v

    for n in (0, 5):
        traced = wend.function(fun, backend=backend)
        assert traced(1.2, np.int64(n)) == pytest.approx(fun(1.2, n), rel=1e-14)


def test_an_object_that_a_branch_replaces():
    def fun(x):
        b = Plain(x, 1.0)
        if x > 2.0:
            b = Plain(x * 3.0, 2.0)
        return b.x * b.v

    traced = wend.function(fun)
    assert [traced(x) for x in (1.5, 4.0)] == [fun(x) for x in (1.5, 4.0)]


def test_one_that_was_merged_is_changed_where_nobody_else_holds_it():
    def fun(x):
        b = Open(x, 0.0)
        for _ in range(3):
            b = replace(b, x=b.x + 1.0)
            b.v = b.x * 2.0
        b.x = -b.x
        return b

    assert wend.function(fun)(1.0) == fun(1.0)


@pytest.mark.parametrize("make", [Open, *ORDINARY])
def test_a_change_that_another_holder_may_see_is_refused(make):
    def fun(x):
        b = make(x, 0.0)
        other = b
        while b.v < x:
            b = _replaced(b, v=b.v + 1.0)
        b.x = 5.0
        return other.x, b.v

    with pytest.raises(AliasError, match="`b` is changed"):
        wend.function(fun)(1.0)


@pytest.mark.parametrize("make", [Open, *ORDINARY])
def test_a_change_in_the_loop_that_another_holder_may_see_is_refused(make):
    def fun(x):
        b = make(x, 0.0)
        other = b
        while b.v < x:
            b.x = 5.0
            b = _replaced(b, v=b.v + 1.0)
        return other.x, b.v

    with pytest.raises(AliasError, match="`b` is changed"):
        wend.function(fun)(1.0)


@pytest.mark.parametrize("make", [Open, *ORDINARY])
def test_a_change_through_the_other_name_is_refused(make):
    def fun(x):
        b = make(x, 0.0)
        other = b
        while b.v < x:
            b = _replaced(b, v=b.v + 1.0)
        other.x = 5.0
        return other.x, b.v

    with pytest.raises(AliasError, match="`other` is changed"):
        wend.function(fun)(1.0)


@pytest.mark.parametrize("make", [Ball, *ORDINARY])
def test_whether_it_is_the_first_one_is_refused(make):
    def fun(x):
        b = first = make(x, 0.0)
        while b.v < x:
            b = _replaced(b, v=b.v + 1.0)
        return 1.0 if b is first else 2.0

    with pytest.raises(AliasError, match="known only at run time"):
        wend.function(fun)(1.0)


def test_lists_in_fields_are_refused():
    def fun(x):
        b = Open([x, x], 0.0)
        while b.v < x:
            b = replace(b, v=b.v + 1.0)
        return b.v

    with pytest.raises(StructureError, match="`b` changes in the loop"):
        wend.function(fun)(1.0)


def test_texts_that_change_are_refused():
    def fun(x):
        b = Open(x, 0.0)
        while b.v < x:
            b = replace(b, name=b.name + "!", v=b.v + 1.0)
        return b.v

    with pytest.raises(StructureError, match="`b` changes its structure"):
        wend.function(fun)(1.0)


@pytest.mark.parametrize("make", [Open, lambda x, v: [x, v], *ORDINARY])
def test_what_inner_branches_merge_may_be_one_of_outside(make):
    def fun(x, y):
        b = make(x, 0.5)
        other = b
        if y < x:
            b = make(0.5 * x, 2.0)
        elif y > 1.0:
            b = make(y, x)
        if isinstance(b, list):
            b[1] = 1.0
        else:
            b.v = 1.0
        return other

    with pytest.raises(AliasError, match="`b` is changed"):
        wend.function(fun)(0.3, 0.5)


OF_THE_MODULE = Open(1.0, 0.5)


def test_an_instance_that_a_module_holds_is_not_changed():
    def fun(x):
        b = OF_THE_MODULE
        while b.v < x:
            b = replace(b, v=b.v + 1.0)
        b.x = 5.0
        return b

    with pytest.raises(AliasError, match="`OF_THE_MODULE` holds"):
        wend.function(fun)(0.0)


def test_who_holds_a_list_is_looked_for_once_at_each_change(monkeypatch):
    counts = Counter()

    def count(name):
        function = getattr(container_phis, name)

        def counted(*args):
            counts[name] += 1
            return function(*args)

        monkeypatch.setattr(container_phis, name, counted)

    count("find_holder")
    count("check_mutation")

    def fun(x):
        out = [x]
        for k in range(6):
            if x > k:
                out = [*out, x * k] if x > k + 0.5 else [x, *out[1:], x * k]
            else:
                out = [*out[1:], x, 0.0]
        out.append(x)
        return out

    assert wend.function(fun)(2.25) == fun(2.25)
    assert 0 < counts["find_holder"] <= counts["check_mutation"]
