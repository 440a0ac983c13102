"""Pytrees: None is an empty node, dict keys keep their order, differences are told by path."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from typing import Any, NamedTuple

import numpy as np
import pytest

from wend.base import trees


class Pair(NamedTuple):
    left: Any
    right: Any


def test_none_is_an_empty_node_and_keys_keep_their_order() -> None:
    leaves, treedef = trees.flatten({"b": 1, "a": (None, 2)})
    assert leaves == [1, 2]
    assert [*trees.unflatten(treedef, leaves).items()] == [("b", 1), ("a", (None, 2))]
    assert trees.described({"b": 1, "a": 2}) == "{'b': *, 'a': *}"
    assert trees.tree_map(lambda x, y: x - y, {"b": 5, "a": 1}, {"a": 1, "b": 2}) == {
        "b": 3,
        "a": 0,
    }


@pytest.mark.parametrize(
    "others",
    [
        [{"a": 1, "b": 2}, {"b": 2, "a": 1}],
        [{1: 0}, {1.0: 0}, {True: 0}, {np.int64(1): 0}],
        [[{(1,): 0}], [{(1.0,): 0}]],
        [defaultdict(list, a=1, b=2), defaultdict(list, b=2, a=1), defaultdict(set, a=1, b=2)],
        [OrderedDict(a=1, b=2), OrderedDict(b=2, a=1), {"a": 1, "b": 2}],
        [deque([1], 2), deque([1], 3), deque([1])],
    ],
)
def test_order_and_class_of_keys_are_part_of_the_structure(others: list[Any]) -> None:
    structures = [trees.flatten(other)[1] for other in others]
    for k, a in enumerate(structures):
        assert trees.is_same_structure(a, trees.flatten(others[k])[1])
        assert not any(trees.is_same_structure(a, b) for b in structures if b is not a)


def test_paths_are_what_python_would_write() -> None:
    _, treedef = trees.flatten({"h": [1, Pair(2, 3)], "k": 4})
    assert trees.paths(treedef, "carry") == [
        "carry['h'][0]",
        "carry['h'][1].left",
        "carry['h'][1].right",
        "carry['k']",
    ]


@pytest.mark.parametrize(
    ("expected", "found", "where"),
    [
        ((1, 2), (1,), "c[1]"),
        ((1,), (1, 2), "c[1]"),
        ({"a": 1}, {"b": 1}, "c['a']"),
        ([1, (2, 3)], [1, [2, 3]], "c[1]"),
        ((1, None), (1, 2), "c[1]"),
        (1, (1,), "c"),
    ],
)
def test_the_first_difference_is_named_by_path(expected: Any, found: Any, where: str) -> None:
    said = trees.first_difference(expected, found, "c")
    assert said is not None
    assert said.startswith(where)


@pytest.mark.parametrize("tree", [1, None, (1, {"a": [2]}), Pair(1, (2,))])
def test_equal_structures_do_not_differ(tree: Any) -> None:
    assert trees.first_difference(tree, tree) is None


def test_named_tuples():
    _, treedef = trees.flatten(Pair(1, {"x": 2}))
    assert trees.paths(treedef, "p") == ["p.left", "p.right['x']"]
    assert trees.described(Pair(1, None)) == "Pair(left=*, right=None)"


@pytest.mark.parametrize(
    ("expected", "found", "message"),
    [
        (1, 2, None),
        ((1, {"a": 2}), (3, {"a": 4}), None),
        ((1, 2), (1,), "c[1] is missing"),
        ((1,), (1, 2), "c[1] is not expected"),
        ({"a": 1}, {"b": 1}, "c['a'] is missing"),
        ((1, [2, 3]), (1, (2, 3)), "c[1]: a list against a tuple"),
        ((1, None), (1, 2), "c[1]: None against an array or number"),
        ({"a": {"b": (1,)}}, {"a": {"b": 1}}, "c['a']['b']: a tuple against an array or number"),
        (Pair(1, 2), (1, 2), "c: a Pair against a tuple"),
        (
            [{"a": 1, "b": 2}],
            [{"b": 1, "a": 2}],
            "c[0]: a dict in the order 'a', 'b' against a dict in the order 'b', 'a'",
        ),
        ({1: 2}, {1.0: 2}, "c[1] is missing"),
    ],
)
def test_first_difference(expected, found, message):
    assert trees.first_difference(expected, found, "c") == message
