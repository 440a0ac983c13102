"""Guards as checks on objects: they hold exactly as long as the guards do."""

from __future__ import annotations

import math
import types

import numpy as np
import pytest

from wend.backends.fastcall import MISSING, GuardCheck
from wend.capture.guards.checks import attribute_checks
from wend.capture.guards.guards import guard_argument, guard_uncaptured, record_guards

RATE = 0.5
PAIR = [1.0, [2.0, 3]]
TABLE = {"a": 1.0, "b": (1, [2])}
NAMES = {"x", "y"}
OPTIONS = types.SimpleNamespace(rate=2.0, deep=types.SimpleNamespace(k=1.0))


class Loud:
    """Its attributes may run code."""

    rate = 1.0

    def __getattribute__(self, name):
        return object.__getattribute__(self, name)


LOUD = Loud()


def reads_all(x):
    return x * RATE, PAIR, TABLE, NAMES, OPTIONS.rate, OPTIONS.deep.k, LOUD.rate


def recorded(fun, owner=MISSING):
    with record_guards() as recorder:
        if owner is not MISSING:
            guard_argument(owner, "owner")
        guard_uncaptured(fun, owner)
    return recorder.finished()


def holds(check):
    """Return whether a check holds, by its definition."""
    owner, key, expected = check.owner, check.key, check.expected
    match check.kind:
        case "dict":
            return owner.get(key, MISSING) is expected
        case "attribute":
            return getattr(owner, key, MISSING) is expected
        case "part":
            return getattr(owner, key) is expected
        case "cell":
            try:
                return owner.cell_contents is expected
            except ValueError:
                return expected is MISSING
        case "bytes":
            return True  # nobody changes the array here
        case "items":
            return len(owner) == len(expected) and all(map(lambda a, b: a is b, owner, expected))
        case "entries":
            flat = [x for entry in owner.items() for x in entry]
            return len(flat) == len(expected) and all(map(lambda a, b: a is b, flat, expected))
        case "call":
            return owner() is expected
    raise AssertionError(check.kind)


def test_the_kinds_and_their_order():
    checks = recorded(reads_all).checks()
    assert {check.kind for check in checks} == {
        *("dict", "attribute", "items", "entries", "call", "part")
    }
    assert all(map(holds, checks))
    names = globals()
    assert checks.count(GuardCheck("dict", names, "OPTIONS", OPTIONS)) == 1  # two reads use it
    deep = checks.index(GuardCheck("attribute", OPTIONS, "deep", OPTIONS.deep))
    assert checks[deep + 1] == GuardCheck("attribute", OPTIONS.deep, "k", 1.0)


class Items:
    """A list as `monkeypatch.setitem` takes it."""

    def __init__(self, items):
        self.items = items

    def get(self, index, default):
        return self.items[index]

    def __setitem__(self, index, value):
        self.items[index] = value


def set_item(patch, items, index, value):
    patch.setitem(Items(items), index, value)


CHANGES = {
    "a global": lambda patch: patch.setitem(globals(), "RATE", 0.25),
    "a global that goes": lambda patch: patch.delitem(globals(), "RATE"),
    "an item": lambda patch: set_item(patch, PAIR, 0, 5.0),
    "an inner item": lambda patch: set_item(patch, PAIR[1], 1, 4),
    "the class of an item": lambda patch: set_item(patch, PAIR[1], 1, 3.0),
    "an entry": lambda patch: patch.setitem(TABLE, "a", 2.0),
    "a new entry": lambda patch: patch.setitem(TABLE, "c", 2.0),
    "an item in a tuple": lambda patch: set_item(patch, TABLE["b"][1], 0, 3),
    "a set": lambda patch: patch.setitem(globals(), "NAMES", {"x"}),
    "an attribute": lambda patch: patch.setattr(OPTIONS.deep, "k", 2.0),
    "a link": lambda patch: patch.setattr(OPTIONS, "deep", types.SimpleNamespace(k=2.0)),
    "a class attribute": lambda patch: patch.setattr(Loud, "rate", 2.0),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_fails_a_check_and_a_guard(name, monkeypatch):
    guards = recorded(reads_all)
    checks = guards.checks()
    CHANGES[name](monkeypatch)
    assert not all(map(holds, checks))
    assert guards.changes()
    assert guards.checks() is None
    monkeypatch.undo()
    assert guards.changes() == []
    assert all(map(holds, guards.checks()))


def test_an_equal_object_is_checked_anew(monkeypatch):
    guards = recorded(reads_all)
    checks = guards.checks()
    monkeypatch.setitem(globals(), "RATE", float("0.5"))
    assert not all(map(holds, checks))
    assert guards.changes() == []
    assert all(map(holds, guards.checks()))


class Model:
    training = True


def test_closures_and_parameters():
    rate, array, model = 2.0, np.ones(2), Model()

    def fun(self, x):
        return x * rate * array if self.training else x

    guards = recorded(fun, model)
    checks = guards.checks()
    assert {check.kind for check in checks} == {"cell", "attribute", "bytes", "part"}
    assert all(map(holds, checks))
    model.training = False
    assert not all(map(holds, checks))


class Answering:
    def __getattr__(self, name):
        raise AttributeError(name)


class Computing:
    @property
    def rate(self):
        raise AttributeError


def test_absent_attributes():
    check = GuardCheck("attribute", OPTIONS, "absent", MISSING)
    assert [*attribute_checks(OPTIONS, "absent", MISSING)] == [check]
    for owner in (Model, math):
        assert None not in attribute_checks(owner, "absent", MISSING)
    # Python code may run to find these.
    module = types.ModuleType("module")
    module.__getattr__ = lambda name: 1.0
    for owner in (Answering(), module, Loud()):
        assert [*attribute_checks(owner, "absent", MISSING)] == [None]
    assert [*attribute_checks(Computing(), "rate", MISSING)] == [None]


class Methods:
    def plain(self):
        pass

    @classmethod
    def of_class(cls):
        pass

    @staticmethod
    def static():
        pass

    @property
    def computed(self):
        pass


def test_methods_and_getters():
    owner = Methods()
    for name, function in (("plain", Methods.plain), ("of_class", Methods.of_class.__func__)):
        held = vars(Methods)[name]
        assert [*attribute_checks(owner, name, held)] == [
            GuardCheck("method", owner, name, function)
        ]
    static = vars(Methods)["static"]
    expected = GuardCheck("attribute", owner, "static", Methods.static)
    assert [*attribute_checks(owner, "static", static)] == [expected]
    assert [*attribute_checks(owner, "computed", Methods.computed)] == [
        GuardCheck("type", owner, None, Methods),
        GuardCheck("attribute", Methods, "computed", Methods.computed),
    ]
    assert [*attribute_checks(Methods, "plain", Methods.plain)] == [
        GuardCheck("attribute", Methods, "plain", Methods.plain)
    ]
