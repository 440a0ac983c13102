"""Attributes told by words of objects: any change of what Python would find changes a word."""

from __future__ import annotations

import ctypes
import types
from collections.abc import Callable
from typing import Any

import pytest

from wend.backends.fastcall import MISSING
from wend.backends.native.run.attribute_words import DictItem, Word, words_of_attribute


class Base:
    rate: Any = 1.5

    def run(self) -> float:
        return 1.0


class Plain(Base):
    def __init__(self) -> None:
        self.own = 2.5


class Slotted:
    __slots__ = ("__dict__", "own", "unset")

    def __init__(self) -> None:
        self.own, self.other = 2.5, 3.5


class Guarded(Base):
    @property
    def size(self) -> int:
        return 1


class Hooked:
    def __getattribute__(self, name: str) -> Any:
        return 1.0


def holds(words: list[Word | DictItem]) -> bool:
    """Compare as compiled code does: in order, up to the first that differs."""
    for word in words:
        if isinstance(word, Word):
            address = id(word.owner) + word.offset
            if ctypes.c_size_t.from_address(address).value != word.value:
                return False
        elif word.owner.get(word.key, MISSING) is not word.expected:
            return False
    return True


def fresh() -> tuple[type, Any]:
    """Return a class derived from another, and an instance."""
    derived: type = types.new_class("Derived", (types.new_class("Root", (Plain,)),))
    return derived, derived()


CHANGES: dict[str, tuple[str, Callable[[type, Any], Any]]] = {
    "the item": ("own", lambda cls, x: setattr(x, "own", 3.5)),
    "the item is deleted": ("own", lambda cls, x: delattr(x, "own")),
    "another dict": ("own", lambda cls, x: setattr(x, "__dict__", {"own": 5.5})),
    "a property of the class": ("own", lambda cls, x: setattr(cls, "own", property(lambda s: 1))),
    "a property of a base": (
        "own",
        lambda cls, x: setattr(cls.__mro__[1], "own", property(lambda s: 1)),
    ),
    "another class": ("own", lambda cls, x: setattr(x, "__class__", Plain)),
    "an item hides the class": ("rate", lambda cls, x: setattr(x, "rate", 7.5)),
    "a class attribute": ("rate", lambda cls, x: setattr(cls, "rate", 7.5)),
    "one of a base": ("rate", lambda cls, x: setattr(cls.__mro__[1], "rate", 7.5)),
    "other bases": ("rate", lambda cls, x: setattr(cls, "__bases__", (Plain,))),
    "a method": ("run", lambda cls, x: setattr(cls, "run", lambda self: 2.0)),
    "an item hides the method": ("run", lambda cls, x: setattr(x, "run", len)),
    "a hook": ("rate", lambda cls, x: setattr(cls, "__getattribute__", lambda s, n: 1)),
    "a new attribute": ("absent", lambda cls, x: setattr(x, "absent", 1)),
    "a new attribute of the class": ("absent", lambda cls, x: setattr(cls, "absent", 1)),
    "a hook for what is absent": (
        "absent",
        lambda cls, x: setattr(cls, "__getattr__", lambda s, n: 1),
    ),
}


def expected_of(owner: Any, name: str) -> Any:
    value = getattr(owner, name, MISSING)
    return getattr(value, "__func__", value)


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_shows(what: str) -> None:
    name, change = CHANGES[what]
    cls, x = fresh()
    words = words_of_attribute(x, name, expected_of(x, name))
    assert words is not None
    assert holds(words)
    x.unrelated = 1
    assert holds(words)
    change(cls, x)
    assert not holds(words)


@pytest.mark.parametrize("name", ["rate", "run", "absent"])
def test_attributes_of_classes(name: str) -> None:
    cls, _ = fresh()
    words = words_of_attribute(cls, name, expected_of(cls, name))
    assert words is not None
    assert holds(words)
    cls.__mro__[1].__doc__ = "another state"
    assert not holds(words)
    words = words_of_attribute(cls, name, expected_of(cls, name))
    assert words is not None
    assert holds(words)


def test_slots() -> None:
    x = Slotted()
    for name, expected in ("own", x.own), ("unset", MISSING), ("other", x.other):
        words = words_of_attribute(x, name, expected)
        assert words is not None
        assert holds(words)
        setattr(x, name, 4.5)
        assert not holds(words)


@pytest.mark.parametrize(
    ("owner", "name", "expected"),
    [
        (Plain(), "own", 7.0),  # another value
        (Guarded(), "size", 1),
        (Hooked(), "x", 1.0),
        (types, "FunctionType", types.FunctionType),  # modules look attributes up in their own way
        (Plain, "__name__", "Plain"),  # the metaclass finds it
        (1.5, "real", 1.5),
    ],
)
def test_what_words_cannot_tell(owner: Any, name: str, expected: Any) -> None:
    assert words_of_attribute(owner, name, expected) is None
