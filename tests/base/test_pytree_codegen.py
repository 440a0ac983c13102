"""Pytrees taken apart and put together by code made for their structure."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wend.base import trees
from wend.base.pytree_codegen import compile_flatten, compile_unflatten


@dataclass(eq=False)
class Plain:
    a: Any
    b: Any


@dataclass(eq=False, slots=True)
class Slotted:
    c: Any


@dataclass(eq=False)
class Both(Slotted):
    d: Any = None


keys = st.one_of(st.text(max_size=3), st.integers(), st.tuples(st.integers()))
structures = st.recursive(
    st.sampled_from([0.5, None]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(keys, inner, max_size=3),
        st.builds(Plain, inner, inner),
        st.builds(Slotted, inner),
        st.builds(Both, inner, inner),
    ),
    max_leaves=10,
)


def numbered(tree: Any) -> Any:
    found = trees.flatten_deep(tree)[1]
    return trees.unflatten(found, range(found.num_leaves))


@given(structures)
def test_leaves_are_those_of_trees_and_give_the_tree_again(tree: Any) -> None:
    leaves, _ = trees.flatten_deep(numbered(tree))
    take, build = compile_flatten(numbered(tree)), compile_unflatten(numbered(tree))
    assert take is not None
    assert build is not None
    assert take(numbered(tree)) == tuple(leaves)
    assert repr(build(leaves)) == repr(numbered(tree))


@given(structures, structures)
def test_another_structure_is_none_or_has_containers_for_leaves(tree: Any, other: Any) -> None:
    take = compile_flatten(numbered(tree))
    assert take is not None
    found = take(other)
    same = trees.is_same_structure(trees.flatten_deep(tree)[1], trees.flatten_deep(other)[1])
    if same:
        assert found is not None
    elif found is not None:
        assert any(x is None or isinstance(x, (tuple, list, dict, Plain, Slotted)) for x in found)


Pair = namedtuple("Pair", "a b")


class Reversed(namedtuple("Reversed", "a b")):
    """A named tuple with another order of its items."""

    __slots__ = ()

    def __iter__(self) -> Any:
        return iter((self[1], self[0]))


class Checked(namedtuple("Checked", "a b")):
    """A named tuple whose constructor does more than keep its items."""

    __slots__ = ()

    def __new__(cls, a: Any, b: Any) -> Any:
        raise AssertionError("no code of the user's runs")


def test_named_tuples() -> None:
    take, build = compile_flatten([Pair(1, (0,))]), compile_unflatten([Pair(1, (0,))])
    assert take is not None
    assert build is not None
    assert take([Pair("x", ("y",))]) == ("y", "x")
    assert type(build(["y", "x"])[0]) is Pair
    assert build(["y", "x"]) == [Pair("x", ("y",))]
    for other in ([("x", ("y",))], [Pair("x", "y")], [Reversed("x", ("y",))]):
        assert take(other) is None
    checked = compile_unflatten(tuple.__new__(Checked, (0, 1)))
    assert checked is not None
    assert type(checked([2, 3])) is Checked


@pytest.mark.parametrize("tree", [Reversed(0, 1), OrderedDict(a=0), {0}, 10**30, [0, -(10**30)]])
def test_other_containers_are_left_to_others(tree: Any) -> None:
    assert compile_flatten(tree) is None
    assert compile_unflatten(tree) is None


def test_keys_are_told_by_order_and_class() -> None:
    class Text(str):
        pass

    take = compile_flatten({"a": 0, 1: 1, "b": 2})
    assert take is not None
    assert take({"a": 5, 1: 6, "b": 7}) == (5, 6, 7)
    assert take({str(b"a", "ascii"): 5, 1: 6, "b": 7}) == (5, 6, 7)
    for other in (
        {1: 6, "a": 5, "b": 7},
        {"a": 5, 1.0: 6, "b": 7},
        {"a": 5, True: 6, "b": 7},
        {Text("a"): 5, 1: 6, "b": 7},
        {"a": 5, 1: 6, "c": 7},
        {"a": 5, 1: 6},
    ):
        assert take(other) is None


def test_subclasses_are_other_structures() -> None:
    take = compile_flatten(({"a": 0}, 1))
    assert take is not None
    assert take(({"a": 5}, 6)) == (5, 6)
    for other in (
        (OrderedDict(a=5), 6),
        Pair({"a": 5}, 6),
        [{"a": 5}, 6],
        ({"b": 5}, 6),
        ({"a": 5, "b": 7}, 6),
        ({"a": 5}, 6, 7),
        None,
        5,
    ):
        assert take(other) is None


def test_instances_are_told_by_class_attributes_and_static_leaves() -> None:
    take = compile_flatten(Plain(0, [1]), {0: lambda x: x == "text"})
    assert take is not None
    assert take(Plain("text", [2])) == ("text", 2)
    more, less = Plain("text", [2]), Plain("text", [2])
    more.c = 1  # type: ignore[attr-defined]
    del less.b
    for other in (Plain("other", [2]), more, less, Slotted("text"), Both("text", [2])):
        assert take(other) is None
    take = compile_flatten(Slotted(0))
    empty = object.__new__(Slotted)
    assert take is not None
    assert take(empty) is None
    assert compile_flatten(empty) is None
