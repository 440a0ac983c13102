"""What a Python value was: told by what it is for data, by identity for the rest."""

from __future__ import annotations

import copy
import gc
import math
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers.traces import at_trace

import wend
from wend.backends.fastcall import MISSING
from wend.capture.heap.snapshots import short_repr, snapshot

ATOMS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.binary(max_size=3)
)
DATA = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.text(max_size=2), inner, max_size=3),
    ),
    max_leaves=6,
)


@given(DATA)
def test_data_is_what_equals_it(value):
    assert snapshot(value).matches(value)
    if not isinstance(value, (list, dict)):  # whose insides may be deeper than one looks
        assert not snapshot(value).matches([value])
    assert not snapshot(value).matches(MISSING)


@given(st.one_of(ATOMS, st.lists(ATOMS, max_size=5), st.dictionaries(st.text(), ATOMS, max_size=5)))
def test_copies_are_the_same_data(value):
    assert snapshot(value).matches(copy.deepcopy(value))


@given(st.lists(ATOMS, min_size=1, max_size=5), st.integers(0, 4), ATOMS)
def test_an_item_that_changes_is_noticed(values, k, new):
    k %= len(values)
    known, of_dict = snapshot(values), snapshot(dict(enumerate(values)))
    changed = [*values]
    changed[k] = new
    same = type(new) is type(values[k]) and (
        new == values[k] or (isinstance(new, float) and math.isnan(new) and math.isnan(values[k]))
    )
    assert known.matches(changed) == same
    assert of_dict.matches(dict(enumerate(changed))) == same


def test_types_are_apart():
    for one, other in [(1, 1.0), (1, True), (0.5, np.float64(0.5)), ([1], (1,)), ({1}, [1])]:
        assert not snapshot(one).matches(other)
        assert not snapshot(other).matches(one)
    assert snapshot(math.nan).matches(float("nan"))


class Thing:
    pass


@pytest.mark.parametrize("value", [Thing(), np.ones(2), Thing, math, len, lambda: 0])
def test_the_rest_is_told_by_identity(value):
    assert snapshot(value).matches(value)
    if not isinstance(value, (type, type(math), type(len), type(lambda: 0))):
        assert not snapshot(value).matches(copy.deepcopy(value))
    assert snapshot([value]).matches([value])


def test_objects_are_not_kept_alive():
    thing = Thing()
    known, inside = snapshot(thing), snapshot({"a": [thing]})
    reference = weakref.ref(thing)
    del thing
    gc.collect()
    assert reference() is None
    assert not known.matches(Thing())
    assert not inside.matches({"a": [Thing()]})


def test_what_is_traced_has_no_mark():
    found = []
    note = at_trace(found)

    @wend.function
    def fun(x):
        note([snapshot(x), snapshot([x]), snapshot({"a": (x,)})])
        return x

    fun(1.0)
    assert found == [[None, None, None]]


def test_texts_run_nothing_of_objects():
    class Loud:
        def __repr__(self):
            raise ZeroDivisionError

    assert short_repr([Loud(), {"a": (Loud(),)}, {1}]) == "[a Loud, {'a': (a Loud,)}, {1}]"
    assert (short_repr(()), short_repr({}), short_repr(set())) == ("()", "{}", "set()")
    assert short_repr([[[[1]]]]) == "[[[a list]]]"


def test_texts():
    known = {
        "0.5": 0.5,
        "[1, 2]": [1, 2],
        "an array of shape (2,)": np.ones(2),
        "a Thing": Thing(),
        "class Thing": Thing,
        "module math": math,
        "function short_repr": short_repr,
    }
    for text, value in known.items():
        assert str(snapshot(value)) == short_repr(value) == text
    assert short_repr(np.float64(0.5)) == "0.5"
    assert short_repr("a" * 100) == "'" + "a" * 36 + "..."
