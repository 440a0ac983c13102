"""Texts of messages about values that no traced test can choose between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wend.base import trees
from wend.base.errors import explain
from wend.base.instances import is_replaceable
from wend.capture.state import unbound
from wend.capture.state.merged_instances import differing_attribute, is_mergeable
from wend.capture.state.optional_value import OptionalValue
from wend.capture.state.state import is_carried
from wend.eager.promotion import tensor_type
from wend.trace.control.listed_texts import NUMBER_TEXTS
from wend.trace.state.text_choice import TextChoice


def return_cure(returned: Sequence[Any]) -> str:
    """Return the cure for results that the two paths of a branch return."""
    what = "a value" if any(value is None for value in returned) else "arrays of the same structure"
    return f"return {what} on both paths."


def keys_of(value: dict[Any, Any]) -> str:
    """Return a text of the keys of a dict."""
    return f"the keys {list(value)!r:.40}" if value else "no keys"


def cure_of(pair: Sequence[Any], alternative: str = "") -> str:
    """Return the cure for values of which no traced test can choose one."""
    if all(isinstance(value, list) for value in pair):  # the items of a list or deque
        return (
            "a length may depend on a traced test only by append and pop() of a list: use one, and "
            "count the items that are taken from its start."
        )
    if all(isinstance(value, dict) for value in pair):
        return "a list that grows there needs a variable of its own: put it into the dict later."
    if all(isinstance(value, str) for value in pair):
        return NUMBER_TEXTS
    if all(map(callable, pair)):
        return "call it on both paths: `g(x) if test else h(x)`."
    if any(value is None for value in pair) and any(map(is_carried, pair)):
        return (
            "start it as a number that stands for None, and compare with that: -1 for a position, "
            "np.nan for a value."
        )
    return f"only arrays and numbers can depend on a traced test{alternative}."


def difference_of_instances(label: str, then: Any, other: Any) -> str | None:
    """Return how the instances that two paths leave differ, with a cure; None if they do not."""
    if (attribute := differing_attribute(then, other)) is not None:
        name, *pair = attribute
        is_of_texts = all(isinstance(value, str) for value in pair)
        what = f"`{label}` has another `{name}` on each path: "
        cure = "keep the text in a variable of its own." if is_of_texts else cure_of(pair)
    elif type(then) is not type(other) and is_mergeable(then) and is_mergeable(other):
        what, pair = f"`{label}` is ", [then, other]
        cure = "make objects of one class on both paths."
    else:
        return None
    return explain(
        f"{what}{described(pair[0])} if the test holds, else {described(pair[1])}.", cure=cure
    )


def described(value: Any) -> str:
    """Return a text of a value that cannot depend on a test."""
    if isinstance(value, unbound.BoundInRun):
        return described(value.value)
    if value is None:
        return "None"
    if isinstance(value, OptionalValue):
        return f"{described(value.value)}, or None"
    if isinstance(value, TextChoice):
        return value.described()
    if is_carried(value):
        (leaf, *others) = trees.flatten(value)[0] or [None]
        if leaf is value and not others:
            return str(tensor_type(leaf))
        return f"a {type(value).__name__} of {len(value)} items"
    if is_replaceable(value):  # its `__repr__` would run when the function is traced
        return f"an object of `{type(value).__name__}`"
    name = getattr(value, "__name__", None)
    return f"{value!r:.40}" if name is None else f"`{name}`"
