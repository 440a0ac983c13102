"""What Python values are in the key of a trace."""

from __future__ import annotations

import array
import collections
import ctypes
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import functools
import gc
import pathlib
import types
import weakref
from typing import Any

import numpy as np
import pytest

import wend
from wend.base import keys
from wend.base.keys import ByIdentity, NotKeyedError, is_equal, key_of, weak_parts


def test_values_are_told_by_type_and_value():
    assert key_of(1) == key_of(1)
    assert len({key_of(v) for v in (1, 1.0, True, np.float32(1), "1", 1 + 0j)}) == 6
    assert len({key_of(v) for v in ((1,), (1.0,), (True,), frozenset({1}))}) == 4
    assert key_of(float("nan")) == key_of(float("nan"))
    assert key_of(np.float32("nan")) == key_of(np.float32("nan"))
    assert key_of(0.0) != key_of(-0.0)
    assert key_of((float("nan"),)) == key_of((float("nan"),))


def test_objects_are_held_weakly():
    class Thing:
        pass

    thing = Thing()
    key = key_of((thing, 1))
    assert key == key_of((thing, 1))
    assert [held.reference() for held in weak_parts(key)] == [thing]
    again = key_of(Thing())
    del thing
    gc.collect()
    assert key != key_of((Thing(), 1))
    assert repr(next(weak_parts(again))) == "an object that is gone"


def test_what_equals_another_is_held():
    @dataclasses.dataclass(frozen=True)
    class Options:
        n: int

    fun = wend.function(lambda x, o: x * o.n, static_argnums=1)
    assert [fun(1.0, Options(2)), fun(1.0, Options(2)), fun(1.0, Options(3))] == [2, 2, 3]
    assert fun.trace_count == 2


@dataclasses.dataclass
class Unhashable:
    n: int


def test_what_has_no_hash_is_told_by_identity():
    fun = wend.function(lambda x, o: x * o.n, static_argnums=1)
    a, b = Unhashable(2), Unhashable(2)
    assert [fun(1.0, a), fun(2.0, a), fun(1.0, b)] == [2, 4, 2]
    assert fun.trace_count == 2
    reference = weakref.ref(a)
    concrete = fun.concrete_functions()[0]
    assert concrete.structured_input_signature[0][1] is a
    del a
    gc.collect()
    assert reference() is None
    assert (len(fun.concrete_functions()), fun.trace_count) == (1, 2)
    assert fun.explain().endswith("and 1 whose arguments are gone")
    assert concrete.structured_input_signature[0][1] is None


def test_what_has_no_hash_and_changes_is_refused():
    fun = wend.function(lambda x, o: x, static_argnums=1)
    for value in ([1], {"a": 1}, {1}, np.ones(2), bytearray(2), (1, [2])):
        with pytest.raises(TypeError, match=r"argument o is \w+, which has no hash"):
            fun(1.0, value)


def test_what_has_no_hash_and_no_weak_reference_is_refused():
    class Slotted:
        __slots__ = ()
        __hash__ = None

    with pytest.raises(TypeError, match="argument o is Slotted, which has no hash"):
        wend.function(lambda x, o: x)(1.0, Slotted())


def test_t73_static_values():
    for values, expected in [
        ((float("nan"), float("nan"), 0.0, -0.0), [1, 1, 2, 3]),
        (("a", "b", "a"), [1, 2, 2]),
        ((1, 1.0, True, 1), [1, 2, 3, 3]),
        ((None, (1, 2), [3][0], None), [1, 2, 3, 3]),
    ]:
        fun = wend.function(lambda x, s: x, static_argnames="s")
        found = []
        for value in values:
            fun(1.0, value)
            found.append(fun.trace_count)
        assert found == expected


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: Any


@dataclasses.dataclass(frozen=True)
class Partly:
    name: str
    a: Any = dataclasses.field(compare=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Slots:
    a: Any


class AllEqual:
    """Equal to every other of its class."""

    def __init__(self, a: Any) -> None:
        self.a = a

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AllEqual)

    def __hash__(self) -> int:
        return 1


class Text(str):
    a: Any = None


class Whole(int):
    a: Any = None


class Pair(tuple):
    a: Any = None


class Money(decimal.Decimal):
    a: Any = None


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


Point = collections.namedtuple("Point", "x y")


def with_attribute(value: Any, a: Any) -> Any:
    value.a = a
    return value


def bits(text: str) -> Any:
    return np.array([int(text, 16)], np.uint64).view(np.float64)[0].item()


ALL_DIFFERENT = [
    [1, 1.0, True, 1 + 0j, np.int64(1), np.float64(1), np.bool_(True), Level.LOW, Whole(1), "1"],
    [0.0, -0.0, 0, 0j, complex(0.0, -0.0), complex(-0.0, 0.0), np.float64(-0.0), np.float64(0.0)],
    [bits("7ff8000000000000"), bits("fff8000000000000"), np.float64("nan"), complex("nan")],
    [(1,), (1.0,), (True,)],
    [Pair((1,)), Pair((1.0,)), (1,), Point(1, 2), Point(1, 2.0), Point(True, 2), (1, 2)],
    [frozenset({1}), frozenset({1.0}), frozenset({True}), (1,)],
    [range(0), range(1, 1), range(0, 4, 3), range(0, 5, 3)],
    [slice(1), slice(1.0), slice(None)],
    [Frozen(1), Frozen(1.0), Frozen(True), Frozen(-0.0), Frozen(0.0), Slots(1), Partly("", 1)],
    [Frozen((2,)), Frozen((2.0,)), Frozen(Frozen(2)), Frozen(Frozen(2.0)), Slots(2), Slots(2.0)],
    [Partly("k", 1.0), Partly("k", 5.0), Partly("k", 1), Partly("l", 1.0)],
    [AllEqual(1), AllEqual(2), AllEqual(1.0), AllEqual((1,)), AllEqual("1"), AllEqual(None)],
    [Text("t"), with_attribute(Text("t"), 1), with_attribute(Text("t"), 2), "t", np.str_("t")],
    [with_attribute(Whole(1), 1), with_attribute(Whole(1), 1.0), Whole(1), 1],
    [with_attribute(Pair("t"), 1), with_attribute(Pair("t"), 2), Pair("t"), ("t",)],
    [decimal.Decimal(text) for text in ("1.5", "1.50", "NaN", "-NaN")],
    [decimal.Decimal("0"), decimal.Decimal("-0"), decimal.Decimal("0.0"), fractions.Fraction(0)],
    [fractions.Fraction(1, 2), fractions.Fraction(1, 3), 0.5],
    [np.datetime64("2020"), np.datetime64("2020-01"), np.datetime64("2020-01-01")],
    [np.dtype("f4"), np.dtype("f8"), np.dtype("<i4"), np.dtype(">i4")],
    [
        dt.datetime(2020, 1, 1, 12, tzinfo=dt.UTC),
        dt.datetime(2020, 1, 1, 13, tzinfo=dt.timezone(dt.timedelta(hours=1))),
    ],
    [pathlib.PureWindowsPath("A"), pathlib.PureWindowsPath("a"), pathlib.PurePosixPath("a")],
    [Level.LOW, Level.HIGH, 1, 2],
    [b"a", "a", ("a",)],
    [len, max, [].append, [].append],
]


@pytest.mark.parametrize("values", ALL_DIFFERENT)
def test_what_code_can_tell_apart_has_different_keys(values: list[Any]) -> None:
    keys = [key_of(value) for value in values]
    assert len({*keys}) == len(values)
    assert keys == [key_of(value) for value in values]


def test_equal_values_have_one_key() -> None:
    for make in (
        lambda: Frozen((2, "a", -0.0, Slots(None))),
        lambda: Partly("k", 1.0),
        lambda: AllEqual(1.5),
        lambda: with_attribute(Text("tu"), 5),
        lambda: decimal.Decimal("1.50"),
        lambda: fractions.Fraction(1, 3),
        lambda: pathlib.PurePosixPath("a", "b"),
        lambda: dt.date(2020, 1, 1),
        lambda: Point(1, "a"),
        lambda: frozenset({"a", 2}),
        lambda: float("nan"),
        lambda: SELF.method,
    ):
        assert key_of(make()) == key_of(make())
        assert hash(key_of(make())) == hash(key_of(make()))


class Owner:
    def method(self) -> None: ...


SELF = Owner()


def test_what_pickles_by_no_value_is_told_by_identity() -> None:
    one, other = Money("1.5"), Money("1.5")
    assert key_of(one) == key_of(one) != key_of(other)
    partial = functools.partial(max, 1)
    assert key_of(partial) == key_of(partial) != key_of(functools.partial(max, 1))
    reference = weakref.ref(Owner)
    assert key_of(reference) == key_of(reference)
    loop = AllEqual(None)
    loop.a = loop
    assert key_of(loop) == key_of(loop) != key_of(AllEqual(None))


class Lending:
    def __init__(self) -> None:
        self.__array_interface__ = np.ones(2).__array_interface__


class Convertible:
    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.ones(2)


@pytest.mark.parametrize(
    "value",
    [
        *(array.array("d", [1.0]), memoryview(b"ab"), (ctypes.c_double * 2)(1, 2)),
        *(Lending(), Convertible()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_lends_its_memory_has_no_key(value: Any) -> None:
    for holder in (value, (value,)):
        with pytest.raises(NotKeyedError):
            key_of(holder)
    with pytest.raises(TypeError, match=r"pass np\.asarray\(a\), which is traced"):
        wend.function(lambda a: 1.0)(value)


class Items(list): ...


@pytest.mark.parametrize(
    ("value", "cure"),
    [
        (Items([1.0]), r"pass list\(a\): Items, a subclass of list, is no pytree"),
        (collections.Counter("a"), r"pass dict\(a\): Counter, a subclass of dict, is no pytree"),
        ({1.0}, "pass a frozenset"),
        (collections.UserList([1.0]), "lists and dicts of these"),
        (types.MappingProxyType({"a": 1.0}), "lists and dicts of these"),
        ({"a": 1.0}.values(), "lists and dicts of these"),
    ],
)
def test_containers_that_are_no_pytrees_are_refused_by_name(value: Any, cure: str) -> None:
    with pytest.raises(TypeError, match=f"argument a is {type(value).__name__}") as error:
        wend.function(lambda a: 1.0)(value)
    error.match(cure)


def test_is_equal() -> None:
    for values in ALL_DIFFERENT[:10]:
        for k, value in enumerate(values):
            assert [is_equal(value, other) for other in values] == [
                j == k for j in range(len(values))
            ]
    assert is_equal(Unhashable([1, {"a": (2.0,)}]), Unhashable([1, {"a": (2.0,)}]))
    assert not is_equal(Unhashable([1, {"a": (2.0,)}]), Unhashable([1, {"a": (2,)}]))
    assert not is_equal({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert not is_equal(np.ones(2), np.ones(2))
    x = np.ones(2)
    assert is_equal([Frozen(x), (x,)], [Frozen(x), (x,)])
    assert not is_equal(Frozen(x), Frozen(x.copy()))


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_traces_are_told_by_all_that_they_see(backend: str) -> None:
    def by_class(c, x):
        return x if isinstance(c.a, int) else -x

    def by_sign(c, x):
        return np.copysign(x, c.a)

    def scaled(c, x):
        return x * c.a

    def by_text(c, x):
        return x * len(str(c))

    for fun, values in [
        (by_class, [Frozen(1), Frozen(1.0), Frozen(True)]),
        (by_sign, [Frozen(0.0), Frozen(-0.0)]),
        (scaled, [Partly("k", 1.0), Partly("k", 5.0)]),
        (scaled, [AllEqual(2.0), AllEqual(3.0)]),
        (scaled, [with_attribute(Text("a"), 1.0), with_attribute(Text("a"), 50.0)]),
        (by_text, [decimal.Decimal("1.5"), decimal.Decimal("1.50")]),
    ]:
        captured = wend.function(fun, backend=backend, static_argnames="c")
        as_tree = wend.function(fun, backend=backend)  # its numbers are traced
        for _ in range(3):
            for value in values:
                assert captured(value, 2.0) == as_tree(value, 2.0) == fun(value, 2.0)
        assert captured.trace_count == len(values)


def test_identity():
    a = Unhashable(1)
    assert ByIdentity(a) == ByIdentity(a) != ByIdentity(Unhashable(1))
    assert ByIdentity(a) != a


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: object
    b: object = 1.0


def test_the_key_of_a_frozen_object_is_kept_as_long_as_the_object():
    value = Frozen((1.0, Frozen("x")), frozenset({2}))
    before = len(keys._frozen_keys)
    assert key_of(value)[1] is key_of(value)[1]
    assert key_of(value) == key_of(Frozen((1.0, Frozen("x")), frozenset({2})))
    assert key_of(value) != key_of(Frozen((1, Frozen("x")), frozenset({2})))
    assert len(keys._frozen_keys) > before
    del value
    gc.collect()
    assert len(keys._frozen_keys) == before


def test_the_key_of_an_object_that_holds_what_may_change_is_not_kept():
    @dataclasses.dataclass(unsafe_hash=True)
    class Open:
        n: int

    inner = Open(1)
    value = Frozen(inner)
    before = key_of(value)
    inner.n = 2
    assert key_of(value) != before
