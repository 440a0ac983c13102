"""Records are what the standard library makes of the same classes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import weakref
from dataclasses import FrozenInstanceError, field

import pytest

from wend.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """A point."""

    x: float
    y: float = 0.0


@dataclass(slots=True)
class Bag:
    name: str
    items: list[int] = field(default_factory=list)
    size: int = field(init=False)
    limit: int = field(default=3)

    def __post_init__(self) -> None:
        self.size = len(self.items)


@dataclass(frozen=True)
class Loose:
    x: int = 1


@dataclass(frozen=True, slots=True)
class Nothing:
    pass


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Thing:
    x: int


def test_records_are_made_compared_and_shown() -> None:
    assert Point(1.0) == Point(1.0, 0.0) != Point(1.0, 2.0)
    assert Point(x=1.0, y=2.0).y == 2.0
    assert hash(Point(1.0)) == hash(Point(1.0))
    assert {Point(1.0): "found"}[Point(1.0)] == "found"
    assert Point(1.0) != (1.0, 0.0)
    assert repr(Point(1.0)) == "Point(x=1.0, y=0.0)"
    assert Nothing() == Nothing()
    assert hash(Nothing()) == hash(Nothing())
    assert Loose() == Loose(1)


def test_what_is_missing_is_told_by_its_name() -> None:
    with pytest.raises(TypeError, match=r"Point.__init__.. missing 1 required .* 'x'"):
        Point()  # type: ignore[call-arg]


def test_frozen_records_do_not_change() -> None:
    for record in (Point(1.0), Loose()):
        with pytest.raises(FrozenInstanceError, match="'x'"):
            record.x = 2  # type: ignore[misc]
        with pytest.raises(FrozenInstanceError, match="'x'"):
            del record.x  # type: ignore[misc]
    with pytest.raises((AttributeError, TypeError)):
        object.__setattr__(Point(1.0), "z", 1)


def test_defaults_are_made_for_each() -> None:
    one, two = Bag("one"), Bag("two", [1, 2])
    one.items.append(1)
    assert (Bag("three").items, one.size, two.size, two.limit) == ([], 0, 2, 3)
    assert one == Bag("one", [1]) or one.size != 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_records_that_are_not_compared_are_told_apart() -> None:
    one, two = Thing(1), Thing(1)
    assert one != two
    assert len({one, two}) == 2
    assert weakref.ref(one)() is one


def test_they_match_patterns() -> None:
    match Point(1.0, 2.0):
        case Point(x, y):
            assert (x, y) == (1.0, 2.0)


@pytest.mark.parametrize("record", [Point(1.0, 2.0), Loose(3), Bag("a", [1]), Nothing()])
def test_they_are_copied_and_pickled(record: object) -> None:
    assert copy.copy(record) == record
    assert copy.deepcopy(record) == record
    assert pickle.loads(pickle.dumps(record)) == record


def test_the_functions_of_dataclasses_know_them() -> None:
    assert dataclasses.replace(Point(1.0), y=5.0) == Point(1.0, 5.0)
    assert [one.name for one in dataclasses.fields(Bag)] == ["name", "items", "size", "limit"]
    assert dataclasses.asdict(Point(1.0)) == {"x": 1.0, "y": 0.0}
    assert dataclasses.is_dataclass(Point)
    assert [*inspect.signature(Bag).parameters] == ["name", "items", "limit"]
    assert Point.__doc__ == "A point."
