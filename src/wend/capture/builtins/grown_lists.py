"""`sorted`, `min` and `max` of lists that have grown, by a key or of tuples of numbers."""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable
from typing import Any

from wend.base import trees
from wend.base.errors import explain
from wend.base.source import at, user_source
from wend.capture.stage.branches import if_value
from wend.capture.state import operands
from wend.numpy import orders
from wend.trace.control.listed_texts import holds_text
from wend.trace.control.tensor_list import ListError, TensorList

Key = Callable[[Any], Any] | None


def is_ordered_here(xs: Any, key: Key) -> bool:
    """Return whether a value is a list that has grown, of several parts, or of numbers by a key."""
    if not isinstance(xs, TensorList):
        return False
    is_of_numbers = xs.treedef.is_leaf() and xs.types[0].type.shape == ()
    return not xs.treedef.is_leaf() or (is_of_numbers and key is not None)


def sorted_list(grown: TensorList, key: Key, *, reverse: bool) -> TensorList:
    """Return the list of its items in order, of a length that only the run knows."""
    keys = grown
    if key is not None:
        keys = operands.call(_keys_of)(grown, key, _checked_key)
    columns = trees.flatten(_checked_key(keys.stack()))[0]
    if any(column.type.rank != 1 for column in columns):
        raise _refusal()
    return grown.part(orders.order_by(columns, reverse=reverse))


def is_sort(method: Any, owner: Any) -> bool:
    """Return whether a method is `list.sort`, and not what a subclass has in its place."""
    is_of_list = isinstance(owner, list) and isinstance(method, types.BuiltinMethodType)
    return (is_of_list or isinstance(owner, TensorList)) and method.__name__ == "sort"


def sort(items: Any, **options: Any) -> None:
    """Put the items of a list in order."""
    if isinstance(items, TensorList):
        items.become(sorted_list(items, options.get("key"), reverse=options.get("reverse", False)))
        return
    own_items = [*list.__iter__(items)]  # past what a subclass defines
    list.__setitem__(items, slice(None), operands.call(sorted)(own_items, **options))


def extreme_item(name: str, grown: TensorList, key: Key, default: dict[str, Any]) -> Any:
    """Return `min` or `max` of a list: the first of the extreme items."""
    find = _smallest if name == "min" else _largest

    def extreme() -> Any:
        return operands.call(find)(grown, key or _itself)

    if default:
        (other,) = default.values()
        return if_value(grown.length() > 0, extreme, lambda: other, None, name)
    grown.check(lambda: grown.length() == 0, ValueError, text_of_empty(name))
    return extreme()


def text_of_empty(name: str) -> str:
    """Return Python's message for `min` or `max` of nothing."""
    try:
        getattr(builtins, name)([])
    except ValueError as error:
        return str(error)
    raise AssertionError


def _itself(item: Any) -> Any:
    return item


def _checked_key(key: Any) -> Any:
    """Return a key, which is a number, or a tuple or list of numbers.

    Raises:
        ListError: it is not.
    """
    leaves, structure = trees.flatten(key, holds_text)
    if (
        any(map(holds_text, leaves))
        or not leaves
        or not (structure.is_leaf() or isinstance(key, (tuple, list)))
    ):
        raise _refusal()
    return key


def _refusal() -> ListError:
    return ListError(
        explain(
            "a list that grows in a loop or branch that is recorded has no numbers, or tuples of "
            f"numbers, to be ordered by{at(user_source())}.",
            cure="sort a list of numbers, or by them: sorted(items, key=lambda item: item[0]).",
        )
    )


# Keys may have effects: these are captured
def _keys_of(items: Any, key: Any, checked: Any) -> Any:
    """Return the keys of all items; `checked` is called with each and returns it."""
    keys = []
    for item in items:  # a loop of the run
        keys.append(checked(key(item)))  # noqa: PERF401
    return keys


# Two loops, not one with a flag: keys of classes of the user are asked for < by min, for > by max.
def _smallest(items: Any, key: Any) -> Any:
    """Return the first item with the smallest key; the items are not empty."""
    best = items[0]
    best_key = key(best)
    for k in range(1, len(items)):
        item = items[k]
        item_key = key(item)
        if item_key < best_key:
            best, best_key = item, item_key
    return best


def _largest(items: Any, key: Any) -> Any:
    """Return the first item with the largest key; the items are not empty."""
    best = items[0]
    best_key = key(best)
    for k in range(1, len(items)):
        item = items[k]
        item_key = key(item)
        if item_key > best_key:
            best, best_key = item, item_key
    return best


CODES = frozenset(f.__code__ for f in (_keys_of, _smallest, _largest))
