"""Calls with arguments that are part of the signature: compiled code compares them itself."""

from __future__ import annotations

import enum
import gc
import math
import operator
import random
import struct
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend

pytestmark = pytest.mark.filterwarnings("ignore::wend.base.errors.RetraceWarning")


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1


class Name(str):
    __slots__ = ()


class Equal:
    """Equal to all of its class, and told apart by identity."""

    def __init__(self, number: float) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal)

    __hash__ = object.__hash__

    def method(self, x: Any) -> Any:
        return x * self.number


def twice(x: Any) -> Any:
    return x * 2


def thrice(x: Any) -> Any:
    return x * 3


KEPT = [Equal(0.25), Equal(0.5)]
NAN = struct.unpack("d", struct.pack("q", 0x7FF8000000000001))[0]


def fresh(text: str) -> str:
    return "".join([*text])


# What makes a value, a new object where there can be one
TEXTS: list[Callable[[], Any]] = [
    lambda: fresh("km"),
    lambda: fresh("m"),
    lambda: Name("m"),
    lambda: fresh("é€"),
    lambda: b"m",
    lambda: None,
    lambda: ...,
    lambda: Color.RED,
    lambda: Color.BLUE,
    lambda: np.dtype("f4"),
    lambda: np.dtype("f8"),
    lambda: np.dtype("f4").newbyteorder("="),
    lambda: np.dtype([("a", "f4")]),
    lambda: float,
    lambda: np.float32,
    lambda: math,
    lambda: KEPT[0],
    lambda: KEPT[1],
    lambda: Equal(random.random()),
    lambda: range(2),
    lambda: frozenset({"m"}),
]
NUMBERS: list[Callable[[], Any]] = [
    lambda: 1,
    lambda: 1.0,
    lambda: True,
    lambda: 0.0,
    lambda: -0.0,
    lambda: int("1000"),
    lambda: int("1" * 30),
    lambda: float("nan"),
    lambda: NAN,
    lambda: 1j,
    lambda: Level.LOW,
    lambda: np.float64(1),
    lambda: np.int64(1),
    lambda: (1, 2),
    lambda: (1, 2.0),
    lambda: (True, 2),
    lambda: ("m", (None, 1)),
]
CALLED: list[Callable[[], Any]] = [
    lambda: twice,
    lambda: thrice,
    lambda: KEPT[0].method,
    lambda: KEPT[1].method,
    lambda: Equal(random.random()).method,
    lambda: np.negative,
    lambda: operator.neg,
]


def seen(value: Any) -> str:
    """All that a function can see of a value."""
    if type(value) is float:
        return struct.pack("d", value).hex()
    if isinstance(value, tuple):
        return f"({', '.join(map(seen, value))})"
    return f"{type(value).__name__} {value!r} {getattr(value, 'number', '')}"


def weight(value: Any) -> int:
    return hash(seen(value)) % 1009


def check(
    plain: Callable[..., Any], compiled: Any, draw: Callable[[], tuple[Any, ...]], count: int
) -> None:
    """Check that calls in any order, each some times, give what Python gives."""
    for _ in range(count):
        args = draw()
        for _ in range(random.choice([1, 1, 4])):
            assert compiled(*args) == plain(*args)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    random.seed(7)


@pytest.mark.parametrize("makers", [TEXTS, NUMBERS], ids=["texts", "numbers"])
def test_values_are_told_apart_at_each_call(makers: list[Callable[[], Any]]) -> None:
    def fun(x: Any, first: Any, second: Any = None) -> Any:
        return x * weight(first), x + weight(second)

    compiled = wend.function(fun, static_argnames=["first", "second"], backend="native")
    few = random.sample(makers, 6)
    for _ in range(2):
        check(
            fun,
            compiled,
            lambda: (random.random(), random.choice(few)(), random.choice(makers[:3])()),
            60,
        )


@pytest.mark.parametrize("static", [True, False])
def test_each_value_has_a_trace_of_its_own(static: bool) -> None:
    makers = [*TEXTS, *(NUMBERS if static else [])]

    def fun(x: Any, value: Any) -> Any:
        return x + weight(value)

    options = {"static_argnames": "value"} if static else {}
    compiled = wend.function(fun, backend="native", **options)
    kept = [make() for make in makers]
    for value in kept:
        assert [compiled(1.0, value) for _ in range(3)] == [fun(1.0, value)] * 3
    for make in random.choices(makers, k=60):
        value = make()
        assert compiled(1.0, value) == fun(1.0, value)


def test_functions_and_methods_as_arguments() -> None:
    compiled = wend.function(lambda f, x: f(x), backend="native")
    check(
        lambda f, x: f(x),
        compiled,
        lambda: (random.choice(CALLED)(), random.choice([0.5, 2.0])),
        60,
    )


def test_objects_that_are_gone_leave_no_one_in_their_place() -> None:
    compiled = wend.function(lambda x, o: x * o.number, backend="native")
    addresses = set()
    for k in range(12):
        value = Equal(k)
        addresses.add(id(value))
        assert [compiled(2.0, value) for _ in range(3)] == [2.0 * k] * 3
        del value
    assert len(addresses) < 12
    gc.collect()
    assert len(compiled._cache.traces) == 0


def test_objects_are_not_kept() -> None:
    compiled = wend.function(lambda x, o, f: f(x * o.number), backend="native")
    value, gone = Equal(3), []
    reference = weakref.ref(value, gone.append)
    assert [compiled(2.0, value, twice) for _ in range(5)] == [12.0] * 5
    del value
    assert gone == [reference]


def test_attributes_of_arguments_are_read_at_each_call() -> None:
    compiled, value = wend.function(lambda x, o: x * o.number, backend="native"), Equal(3)
    assert [compiled(2.0, value) for _ in range(4)] == [6.0] * 4
    value.number = 5
    assert [compiled(2.0, value) for _ in range(4)] == [10.0] * 4


@pytest.mark.parametrize(
    "make",
    [
        *TEXTS[:2],
        *TEXTS[3:11],
        *TEXTS[13:18],
        lambda: twice,
        lambda: KEPT[0].method,
        lambda: np.sin,
        lambda: abs,
    ],
)
def test_compiled_code_compares_the_common_kinds(make: Callable[[], Any]) -> None:
    compiled = wend.function(lambda x, value: x + 1.0, backend="native")
    for _ in range(12):
        compiled(1.0, make())
    calls = compiled._cache._calls
    before = calls.in_python
    assert [compiled(k, make()) for k in (1.0, 2.0)] == [2.0, 3.0]
    assert calls.in_python == before
    assert compiled._cache.fast_paths.first.is_direct


@pytest.mark.parametrize("make", NUMBERS[:8])
def test_static_numbers_are_compared_by_compiled_code(make: Callable[[], Any]) -> None:
    compiled = wend.function(lambda x, n: x + 1.0, static_argnums=1, backend="native")
    for _ in range(12):
        compiled(1.0, make())
    before = compiled._cache._calls.in_python
    assert compiled(1.0, make()) == 2.0
    assert compiled._cache._calls.in_python == before


def test_static_arguments_by_name_and_in_varargs() -> None:
    def fun(x: Any, axis: Any, *rest: Any, **more: Any) -> Any:
        return x + len(axis) + len(rest) + sum(more.values())

    names = ["axis", "rest", "more"]
    compiled = wend.function(fun, static_argnames=names, backend="native")
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((1.0, (0, 1)), {}),
        ((1.0, (0, 1), "a", (2,)), {}),
        ((1.0, (0, 1), "a", (3,)), {}),
        ((1.0,), {"axis": (0, 1)}),
        ((), {"axis": (0,), "x": 2.0}),
        ((1.0, (0, 1)), {"k": 2, "m": 3}),
        ((1.0, (0, 1)), {"k": 2, "m": 4}),
    ]
    for args, kwargs in calls * 4:
        assert compiled(*args, **kwargs) == fun(*args, **kwargs)
    before = compiled._cache._calls.in_python
    for args, kwargs in calls:
        assert compiled(*args, **kwargs) == fun(*args, **kwargs)
    assert compiled._cache._calls.in_python == before
