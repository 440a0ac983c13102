"""Functions of whole pytrees."""

from __future__ import annotations

import collections
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wend
from wend.base.errors import StructureError

TREES = st.recursive(
    st.integers() | st.none() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(TREES)
def test_unflatten_is_the_inverse_of_flatten(tree):
    leaves, structure = wend.tree.flatten(tree)
    assert leaves == wend.tree.leaves(tree)
    assert structure == wend.tree.structure(tree)
    assert wend.tree.unflatten(structure, leaves) == tree


@given(TREES)
def test_map_keeps_the_structure(tree):
    mapped = wend.tree.map(lambda a, b: (a, b), tree, tree)
    assert wend.tree.leaves(mapped) == [x for leaf in wend.tree.leaves(tree) for x in (leaf, leaf)]
    assert wend.tree.map(lambda leaf: leaf, tree) == tree


def test_map_gives_the_parts_of_a_deeper_tree():
    assert wend.tree.map(lambda a, b: (a, b), [1, 2], [(3, 4), {"k": 5}]) == [
        (1, (3, 4)),
        (2, {"k": 5}),
    ]


def test_named_tuples_and_ordered_dicts():
    Point = collections.namedtuple("Point", "x y")
    assert wend.tree.map(lambda v: v + 1, Point(1, [2])) == Point(2, [3])
    doubled = wend.tree.map(lambda v: 2 * v, collections.OrderedDict(b=1, a=2))
    assert list(doubled.items()) == [("b", 2), ("a", 4)]


@pytest.mark.parametrize(
    ("other", "where"),
    [
        ([1], "tree[1] is missing"),
        ((1, 2), "tree: a list against a tuple"),
        ({"a": 1}, "tree: a list against a dict"),
        (3.0, "tree: a list against an array or number"),
    ],
)
def test_another_structure_is_named(other, where):
    with pytest.raises(StructureError, match="To fix it: give pytrees of one structure") as error:
        wend.tree.map(operator.add, [1, 2], other)
    assert where in str(error.value)


def test_the_order_of_keys_is_part_of_the_structure():
    with pytest.raises(StructureError, match="order"):
        wend.tree.map(operator.add, {"a": 1, "b": 2}, {"b": 1, "a": 2})


def test_another_number_of_leaves():
    structure = wend.tree.structure((1, {"a": 2}))
    with pytest.raises(StructureError, match=r"1 leaves for \(\*, \{'a': \*\}\), which has 2"):
        wend.tree.unflatten(structure, [1])


def test_in_a_traced_function():
    step = wend.function(lambda p, g: wend.tree.map(lambda x, d: x - 0.5 * d, p, g))
    moved = step({"w": np.ones(2), "b": 2.0}, {"w": np.ones(2), "b": 4.0})
    assert moved["w"].tolist() == [0.5, 0.5]
    assert moved["b"] == 0.0
    assert step.trace_count == 1
