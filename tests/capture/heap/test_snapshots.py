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

import wend
from wend.capture.heap.snapshots import MISSING, mark, short

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
    assert mark(value).holds(value)
    if not isinstance(value, (list, dict)):  # whose insides may be deeper than one looks
        assert not mark(value).holds([value])
    assert not mark(value).holds(MISSING)


@given(st.one_of(ATOMS, st.lists(ATOMS, max_size=5), st.dictionaries(st.text(), ATOMS, max_size=5)))
def test_copies_are_the_same_data(value):
    assert mark(value).holds(copy.deepcopy(value))


@given(st.lists(ATOMS, min_size=1, max_size=5), st.integers(0, 4), ATOMS)
def test_an_item_that_changes_is_noticed(values, k, new):
    k %= len(values)
    known, of_dict = mark(values), mark(dict(enumerate(values)))
    changed = [*values]
    changed[k] = new
    same = type(new) is type(values[k]) and (
        new == values[k] or (isinstance(new, float) and math.isnan(new) and math.isnan(values[k]))
    )
    assert known.holds(changed) == same
    assert of_dict.holds(dict(enumerate(changed))) == same


def test_types_are_apart():
    for one, other in [(1, 1.0), (1, True), (0.5, np.float64(0.5)), ([1], (1,)), ({1}, [1])]:
        assert not mark(one).holds(other)
        assert not mark(other).holds(one)
    assert mark(math.nan).holds(float("nan"))


class Thing:
    pass


@pytest.mark.parametrize(
    "value", [Thing(), np.ones(2), Thing, math, len, lambda: 0, list(range(99))]
)
def test_the_rest_is_told_by_identity(value):
    assert mark(value).holds(value)
    if not isinstance(value, (type, type(math), type(len), type(lambda: 0))):
        assert not mark(value).holds(copy.deepcopy(value))
    assert mark([value]).holds([value])


def test_objects_are_not_kept_alive():
    thing = Thing()
    known, inside = mark(thing), mark({"a": [thing]})
    reference = weakref.ref(thing)
    del thing
    gc.collect()
    assert reference() is None
    assert not known.holds(Thing())
    assert not inside.holds({"a": [Thing()]})


def test_what_is_traced_has_no_mark():
    found = []

    @wend.function
    def fun(x):
        found.extend([mark(x), mark([x]), mark({"a": (x,)})])
        return x

    fun(1.0)
    assert found == [None, None, None]


def test_texts_run_nothing_of_objects():
    class Loud:
        def __repr__(self):
            raise ZeroDivisionError

    assert short([Loud(), {"a": (Loud(),)}, {1}]) == "[a Loud, {'a': (a Loud,)}, {1}]"
    assert (short(()), short({}), short(set())) == ("()", "{}", "set()")
    assert short([[[[1]]]]) == "[[[a list]]]"


def test_texts():
    known = {
        "0.5": 0.5,
        "[1, 2]": [1, 2],
        "an array of shape (2,)": np.ones(2),
        "a Thing": Thing(),
        "class Thing": Thing,
        "module math": math,
        "function short": short,
    }
    for text, value in known.items():
        assert str(mark(value)) == short(value) == text
    assert short(np.float64(0.5)) == "0.5"
    assert short("a" * 100) == "'" + "a" * 36 + "..."
