"""Everything that a variable holds is looked through."""

from __future__ import annotations

import functools
import types
from collections import ChainMap, OrderedDict, UserList, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import attrs
import numpy as np
import pytest

from wend.trace.aliasing.referrers import is_held

Pair = namedtuple("Pair", "p q")


@dataclass(frozen=True, slots=True)
class Frozen:
    p: Any


@attrs.define
class Attrs:
    p: Any


class Object:
    def __init__(self, p: Any) -> None:
        self.p = p

    def get(self) -> Any:
        return self.p


def with_default(x: Any) -> Any:
    return lambda x=x: x


def local_class(x: Any) -> Any:
    class Local:
        p = x

    return Local


def object_array(x: Any) -> Any:
    array = np.empty(1, object)
    array[0] = x
    return array


HOLDERS: list[Callable[[Any], Any]] = [
    *(lambda x: (x, 1), lambda x: [x], lambda x: {"p": x}, lambda x: {Frozen(id(x)): x}),
    *(lambda x: OrderedDict(p=x), lambda x: deque([x]), lambda x: ChainMap({"p": x})),
    *(
        lambda x: Pair(x, 1),
        Frozen,
        Attrs,
        Object,
        lambda x: UserList([x]),
        lambda x: Object(x).get,
    ),
    *(lambda x: types.SimpleNamespace(p=x), lambda x: types.MappingProxyType({"p": x})),
    *(lambda x: functools.partial(len, x), lambda x: lambda: x, with_default, local_class),
    *(lambda x: iter([x]), lambda x: (y for y in [x]), object_array),
]


@pytest.mark.parametrize("number", range(len(HOLDERS)))
def test_holders_are_looked_through(number: int) -> None:
    outer = HOLDERS[number]
    for inner in HOLDERS:
        x = [1.0]
        held, other = outer(inner(x)), outer(inner([1.0]))
        assert is_held(held, lambda value, x=x: value is x)
        assert not is_held(other, lambda value, x=x: value is x)


def test_depth() -> None:
    x: list[Any] = [1.0]
    held = functools.reduce(lambda inner, _: Object(inner), range(30), x)
    assert is_held(held, lambda value: value is x)


def test_cycles_end() -> None:
    a, x = Object(None), [1.0]
    a.p = [a]
    assert not is_held(a, lambda value: value is x)


def test_what_is_excluded() -> None:
    x = [1.0]
    holder = Object(x)
    assert not is_held([holder], lambda value: value is x, excluding=holder)
    assert is_held([holder, x], lambda value: value is x, excluding=holder)
