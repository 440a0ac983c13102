"""What Python values are in the key of a trace."""

from __future__ import annotations

import dataclasses
import gc
import weakref

import numpy as np
import pytest

import wend
from wend.function.signature.keys import ByIdentity, key_of, weak_parts


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


def test_identity():
    a = Unhashable(1)
    assert ByIdentity(a) == ByIdentity(a) != ByIdentity(Unhashable(1))
    assert ByIdentity(a) != a
