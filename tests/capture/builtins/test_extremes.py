"""`min` and `max` with `key=` of things that are no arrays."""

from __future__ import annotations

import dataclasses
import operator
from typing import Any

import pytest

import wend
from wend.base.errors import AliasError, StructureError
from wend.testing import check_grads


class Particle:
    def __init__(self, mass: Any, speed: Any) -> None:
        self.mass, self.speed = mass, speed


@dataclasses.dataclass
class Record:
    mass: Any
    speed: Any


def of_three(extreme: Any, kind: Any, x: Any) -> Any:
    items = [kind(x * x, 3.0 * x), kind(x + 1.0, x), kind(2.0, x**3)]
    return extreme(items, key=lambda p: p.mass).speed


def in_a_loop(x: Any) -> Any:
    items = [Particle(x, 2.0), Particle(x + 1.0, 3.0)]
    total = 0.0
    for k in range(4):
        total += max(items, key=lambda p: (p.mass - k) ** 2).speed
    return total


PROGRAMS = {
    "least of objects": lambda x: of_three(min, Particle, x),
    "greatest of objects": lambda x: of_three(max, Particle, x),
    "least of records": lambda x: of_three(min, Record, x),
    "greatest of records": lambda x: of_three(max, Record, x),
    "ties": lambda x: max([Particle(x, 1.0), Particle(x, 2.0)], key=lambda p: p.mass).speed,
    "arguments": lambda x: min(Particle(x, 1.0), Particle(1.0, x), key=lambda p: p.mass).speed,
    "functions": lambda x: max(abs, operator.neg, key=lambda fun: fun(x))(x),
    "strings": lambda x: max("ab", "c", key=lambda s: len(s) * (x - 1.0)),
    "None": lambda x: max([x, None], key=lambda v: 1.0 if v is None else v) is None,
    "in a loop": in_a_loop,
}


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_the_extreme_is_that_of_python(program: Any, backend: str) -> None:
    function = wend.function(program, backend=backend)
    for x in (-2.5, 0.5, 1.2, 1.7, 3.0):
        assert function(x) == program(x), x


@pytest.mark.parametrize("extreme", [min, max])
def test_derivatives_are_those_of_the_object_chosen(extreme: Any) -> None:
    function = wend.function(lambda x: of_three(extreme, Particle, x))
    for x in (0.5, 1.2, 3.0):
        check_grads(function, (x,), order=2)


def test_a_change_of_the_object_chosen_is_refused() -> None:
    @wend.function
    def changed(x: Any) -> Any:
        items = [Particle(x, 1.0), Particle(2.0 * x, 2.0)]
        best = min(items, key=lambda p: p.mass)
        best.mass = 100.0
        return items[0].mass

    with pytest.raises(AliasError, match=r"copy\.copy"):
        changed(1.0)


@pytest.mark.parametrize("kind", [Particle, Record])
def test_sorting_objects_is_refused(kind: Any) -> None:
    @wend.function
    def lightest(x: Any) -> Any:
        items = [kind(x, 1.0), kind(x - 1.0, 2.0)]
        return sorted(items, key=operator.attrgetter("mass"))[0].speed

    with pytest.raises(StructureError, match=r"objects in an order[\s\S]*wnp\.argsort"):
        lightest(1.0)
