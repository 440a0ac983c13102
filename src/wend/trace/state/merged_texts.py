"""Texts that the paths of a branch, or the trips of a loop, leave: choices of the run."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from wend.base import trees
from wend.trace.recording.arguments import is_array_leaf
from wend.trace.state.text_choice import chosen, is_choice, is_option, is_text, united

Scope = Callable[[], AbstractContextManager[Any]]


def with_choices(values: Sequence[Any], scopes: Sequence[Scope]) -> list[Any]:
    """Return the values of several paths with choices in place of texts.

    Texts become choices if they differ, and in containers of one structure, too, which hold
    nothing but arrays and numbers then. Other values remain.

    Args:
        values: what the paths leave.
        scopes: for each value, what it is computed in.
    """
    texts, choices = [[*map(part, values)] for part in (is_option, is_choice)]
    if all(map(operator.or_, texts, choices)):
        is_same = all(texts) and all(type(x) is type(values[0]) and x == values[0] for x in values)
        if all(x is None for x in values) or is_same:
            return [*values]
        options = united(values)
        choices_of_all = []
        for value, scope in zip(values, scopes, strict=True):
            with scope():
                choices_of_all.append(chosen(value, options))
        return choices_of_all
    kinds = {type(x) for x in values}
    is_container = kinds <= _CONTAINERS or all(map(trees.is_namedtuple, kinds))
    if len(kinds) != 1 or not is_container or not all(map(holds_options, values)):
        return [*values]
    return _with_choices_inside(values, scopes)


_CONTAINERS = {tuple, list, dict, OrderedDict}


def _with_choices_inside(values: Sequence[Any], scopes: Sequence[Scope]) -> list[Any]:
    kind = type(values[0])
    is_dict = issubclass(kind, dict)
    items = [[*(x.items() if is_dict else enumerate(x))] for x in values]
    keys = [[key for key, _ in pairs] for pairs in items]
    if any(other != keys[0] for other in keys):
        return [*values]
    columns = []
    for column in zip(*([item for _, item in pairs] for pairs in items), strict=True):
        if all(is_text(x) for x in column):
            options = united(column)
            columns.append([chosen(x, options) for x in column])
        else:
            columns.append(with_choices(column, scopes))
    rows = [*zip(*columns, strict=True)]
    if is_dict:
        return [kind(zip(keys[0], row, strict=True)) for row in rows]
    return [*map(kind._make if trees.is_namedtuple(kind) else kind, rows)]


def holds_choice(x: Any) -> bool:
    """Return whether a choice is among the leaves of a value."""
    return any(map(is_choice, trees.flatten(x, is_choice)[0]))


def holds_options(x: Any) -> bool:
    """Return whether a text or a choice is among the leaves of a value."""
    leaves, _ = trees.flatten(x, is_choice)
    return any(is_choice(leaf) or is_text(leaf) for leaf in leaves)


def is_other_choice(x: Any, other: Any) -> bool:
    """Return whether a value has choices where another has texts or choices of fewer."""
    return holds_options(x) and trees.flatten(x)[1] != trees.flatten(other)[1]


def may_become_choices(values: Sequence[Any]) -> bool:
    """Return whether values are graph values with choices in place of their texts."""
    if all(is_choice(x) or is_option(x) for x in values):
        return any(map(holds_options, values))
    if len({*map(type, values)}) > 1 or not all(map(holds_options, values)):
        return False
    leaves = [leaf for x in values for leaf in trees.flatten(x, is_choice)[0]]
    return all(is_choice(x) or is_option(x) or is_array_leaf(x) for x in leaves)
