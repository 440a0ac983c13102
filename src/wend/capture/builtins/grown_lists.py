"""`sorted`, `min` and `max` of lists that have grown, by a key or of tuples of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dis import get_instructions
from typing import Any

from wend.base import trees
from wend.base.errors import explain
from wend.base.source import at, user_source
from wend.numpy import orders
from wend.trace.control import scan
from wend.trace.control.tensor_list import ListError, TensorList

Key = Callable[[Any], Any] | None


def has_parts(xs: Any) -> bool:
    """Return whether a value is a list that has grown, whose items are no single numbers."""
    return isinstance(xs, TensorList) and not xs.treedef.is_leaf()


def sorted_list(grown: TensorList, key: Key, *, reverse: bool) -> TensorList:
    """Return the list of its items in order, of a length that only the run knows."""
    items = trees.flatten(grown.stack())[0]
    keys = items if key is None else _keys(grown, items, key)
    if any(column.type.rank != 1 for column in keys):
        raise _refusal()
    return grown.part(orders.order_by(keys, reverse=reverse))


def sort(grown: TensorList, *, key: Key = None, reverse: bool = False) -> None:
    """Put the items in order."""
    grown.become(sorted_list(grown, key, reverse=reverse))


def extreme_item(name: str, grown: TensorList, key: Key) -> Any:
    """Return `min` or `max` of a list: the first of the extreme items."""
    grown.check(lambda: grown.length() == 0, ValueError, _text_of_empty(name))
    return sorted_list(grown, key, reverse=name == "max").item_at(0)


def _keys(grown: TensorList, items: Any, key: Callable[[Any], Any]) -> list[Any]:
    """Return the keys of all items, which a loop computes: an array for each number of a key."""

    def of_row(row: Any) -> Any:
        result = key(grown.item_of(row))
        leaves, structure = trees.flatten(result)
        if not leaves or not (structure.is_leaf() or isinstance(result, (tuple, list))):
            raise _refusal()
        return tuple(leaves)

    return [*scan.map(of_row, tuple(items))]


_STORES = ("STORE_GLOBAL", "STORE_DEREF", "STORE_SUBSCR", "STORE_ATTR")


def checked_key(key: Any, args: Sequence[Any]) -> Any:
    """Return a key, unless it changes something, and the number of items only the run knows.

    Its loop carries nothing from one item to the next.

    Raises:
        ListError: it assigns to an item, an attribute or a variable of another function.
    """
    code = getattr(key, "__code__", None)
    if code is None or not any(isinstance(x, TensorList) for x in args):
        return key
    if any(
        x.opname in _STORES and x.argval not in code.co_cellvars for x in get_instructions(code)
    ):
        raise _refusal("its key changes something, and would be called once for all items.")
    return key


def _text_of_empty(name: str) -> str:
    try:
        {"min": min, "max": max}[name](())
    except ValueError as error:
        return str(error)
    raise AssertionError


def _refusal(cause: str | None = None) -> ListError:
    return ListError(
        explain(
            "a list that grows in a loop or branch that is recorded has no numbers, or tuples of "
            f"numbers, to be ordered by{at(user_source())}.",
            cause,
            cure="sort a list of numbers, or by them: sorted(items, key=lambda item: item[0]).",
        )
    )
