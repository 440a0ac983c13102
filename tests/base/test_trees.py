"""Pytrees: None is an empty node, dict keys are sorted, and differences are told by path (D18)."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from wend.base import trees


class Pair(NamedTuple):
    left: Any
    right: Any


def test_none_is_an_empty_node_and_keys_are_sorted() -> None:
    leaves, treedef = trees.flatten({"b": 1, "a": (None, 2)})
    assert leaves == [2, 1]
    assert trees.unflatten(treedef, leaves) == {"a": (None, 2), "b": 1}


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
    ],
)
def test_first_difference(expected, found, message):
    assert trees.first_difference(expected, found, "c") == message
