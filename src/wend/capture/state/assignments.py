"""Assignments of traced values into concrete arrays.

Arrays that calls in captured code create handle this themselves
(`trace/arrays/concrete_array.py`), and so do traced arrays (D7). Left are the arrays that
operators create, and those from outside.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.backends.fastcall import MISSING
from wend.capture.guards.guards import guard_setter
from wend.capture.guards.outside import entered_items, loaded_item, read_missing_item
from wend.capture.heap.container_phis import check_identity, check_listed, check_mutation
from wend.capture.heap.locations import (
    UNBOUND,
    count_log_references,
    evaluate,
    is_write_logged,
    log_write_attribute,
    log_write_contents,
)
from wend.capture.lookups.traced_index import (
    TracedRow,
    is_at_traced_index,
    is_traced_integer,
    item_at,
    known_position,
    row_at,
    set_item_at,
)
from wend.capture.lookups.traced_keys import key_to_read
from wend.capture.state import one_shot_iterators, operands
from wend.eager.dispatch import Staged, any_staged
from wend.ir.types import TensorType
from wend.numpy import parts
from wend.numpy.index_tricks import INDEX_TRICKS, indexed
from wend.trace.arrays.attributes import class_of, example_of
from wend.trace.arrays.concrete_array import (
    ConcreteTracedArray,
    adopt,
    adopt_result,
    promotion_error,
)
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.tensor_list import TensorList
from wend.trace.recording.recording import current
from wend.trace.state import templates
from wend.trace.state.chosen_keys import at_choice, has_choice
from wend.trace.state.text_choice import MOST_OPTIONS, TextChoice, either


def positions(key: Any) -> Any:
    """Return a key of an array, with arrays for the lists and ranges of traced length in it."""
    if type(key) is tuple:
        return tuple(map(positions, key))
    is_stand_in = not isinstance(key, (Staged, np.ndarray)) and hasattr(type(key), "as_array")
    return key.as_array() if is_stand_in else key


def _writable(array: Any, operands: tuple[Any, ...] = ()) -> Any:
    """Return an array that is about to be updated in place, adopted as a concrete traced array.

    Raises:
        TypeMismatchError: the update depends on traced values, and the array is from outside.
    """
    recording = current()
    if recording is None or type(array) is not np.ndarray or not array.ndim:
        return array
    is_data_dependent = any_staged(operands) or any(map(parts.is_staged_key, operands))
    if not (is_data_dependent or recording.is_region):
        return array
    if array.base is not None or sys.getrefcount(
        array
    ) > _SOLE_REFERENCE_COUNT + count_log_references(array):
        raise promotion_error(array)
    return adopt(array)


def _reference_count(array: Any) -> int:
    return sys.getrefcount(array)


def _reference_count_of(target: Any) -> int:
    return _reference_count(target)


def _reference_count_of_variable() -> int:
    array = np.zeros(1)
    return _reference_count_of(array)


# The reference count in `_writable` of an array that one variable alone holds.
_SOLE_REFERENCE_COUNT = _reference_count_of_variable()


def set_item(value: Any, target: Any, key: Any) -> Any:
    """Run `target[key] = value`, `value` evaluated first; return the target's new value."""
    if isinstance(key, slice):
        one_shot_iterators.consume(value)
    if is_at_traced_index(target, key):
        set_item_at(target, key, value)
        return target
    check_identity(key)
    key = _position(target, key)
    target = _writable(target, (value, key))
    operands.set_item(target, key, value)
    return target


def store_item(value: Any, owner: Any, key: Any) -> None:
    """Run `owner[key] = value` for an owner that is no local name; `value` is evaluated first."""
    owner = owner.known() if type(owner) is UnlikeRow else owner
    key = _position(owner, key)
    if type(owner) is TracedRow:
        for row in owner.rows:
            check_listed(row)
        owner.set_item(key, value)
        return
    if type(owner) is ChosenRow:
        owner.set_item(key, value)
        return
    check_mutation(owner)
    if is_at_traced_index(owner, key):
        set_item_at(owner, key, value)
    else:
        operands.set_item(owner, key, value)


def mutated(owner: Any) -> Any:
    """Return a container that is no local name, and is about to lose an item."""
    check_mutation(owner)
    return owner


def store_item_in_place(before: ItemBefore, name: str, value: Any) -> None:
    """Run `owner[key] += value`, or another in-place operator, for such an owner."""
    item = before.item_in(before.target)
    store_item(operands.in_place(name, item, value), before.target, before.key)


class ItemBefore:
    """The item that `target[key] += value` starts from, read before `value` is evaluated.

    Attributes:
        key: the key; one that is an object is asked for its `__index__` again, to store.
        position: what the target takes for it.
        item: the item; `MISSING` if it is a view, which is read when `value` is known.
        target: the target.
    """

    __slots__ = ("item", "key", "position", "target")

    def __init__(self, target: Any, key: Any) -> None:
        self.target, self.key, self.item = target, key, MISSING
        target = target.known() if type(target) is UnlikeRow else target
        self.key = key = key_to_read(target, key)
        self.position = key = _position(target, key)
        traced = _as_traced(target, key)
        if traced is not None and current() is not None:
            item = traced[key]
            is_view = parts.is_basic(key) and not _is_scalar(item)
            self.item = MISSING if is_view else item
        elif isinstance(target, Staged):
            return
        elif not isinstance(target, np.ndarray):
            if type(target) in (list, TracedRow):
                self.item = item_at(target, key)
            else:
                is_chosen = type(target) is ChosenRow
                self.item = (get_item if is_chosen else operands.get_item)(target, key)
        else:
            item = np.ndarray.__getitem__(target, key)
            is_view = isinstance(item, np.ndarray) and np.may_share_memory(item, target)
            self.item = MISSING if is_view else item

    def item_in(self, target: Any) -> Any:
        """Return the item: as it was before, or a view of the array as it is."""
        return target[self.position] if self.item is MISSING else self.item


def _position(owner: Any, key: Any) -> Any:
    """Return the key of an array or sequence with what Python takes for it: an array of a range."""
    if _is_array(owner):
        parts_of_key = map(operands.position, key) if type(key) is tuple else None
        return positions(operands.position(key) if parts_of_key is None else (*parts_of_key,))
    if type(owner) not in _SEQUENCES:
        return key
    key = operands.position(key)
    if isinstance(key, Tracer) and _is_scalar(key) and not is_traced_integer(key):
        items = [] if type(owner) is TracedRow else owner
        items[example_of(class_of(key))]  # raises Python's error
    return key


_SEQUENCES = (list, tuple, str, bytes, range, TracedRow)


def _is_array(x: Any) -> bool:
    return isinstance(x, (Staged, np.ndarray))


def _is_scalar(x: Any) -> bool:
    return isinstance(x.type, TensorType) and x.type.dims == ()


def _as_traced(target: Any, key: Any) -> Any:
    """Return the traced array that an array is, or is to be read as by this key; or None."""
    if isinstance(target, Staged):
        traced = target.read()
        return traced if isinstance(traced, Tracer) and not _is_scalar(traced) else None
    is_read = isinstance(target, ConcreteTracedArray) and parts.is_staged_key(key)
    return target.lazy_ref() if is_read else None


def set_item_in_place(target: Any, key: Any, name: str, value: Any) -> Any:
    """Run `target[key] += value`, or another in-place operator; `key` may be an `ItemBefore`."""
    before = key if type(key) is ItemBefore else None
    if before is None and type(target) is list:
        before = ItemBefore(target, key)
    position = _position(target, key) if before is None else before.position
    key = key if before is None else before.key
    target = _writable(target, (value, position))
    item = operands.get_item(target, position) if before is None else before.item_in(target)
    return set_item(operands.in_place(name, item, value), target, key)


def in_place(target: Any, name: str, value: Any) -> Any:
    """Run `target += value`, or another in-place operator."""
    return operands.in_place(name, _writable(target, (value,)), one_shot_iterators.consume(value))


def get_item(array: Any, key: Any, is_base: bool = False, /) -> Any:
    """Return `array[key]`, also for a concrete array and a traced key."""
    if type(array) is np.ndarray:
        array = entered_items(array)
    kind = type(array)
    if kind is ChosenRow or kind is UnlikeRow:
        return array.item(key)
    key = _position(array, key)
    if issubclass(kind, Staged):
        return array[key]
    key = key_to_read(array, key)
    take: Callable[[Any, Any], Any] | None = None
    if kind in (list, tuple, TracedRow):
        take = item_at
    elif kind is not np.ndarray or array.dtype.hasobject:
        take = operands.get_item
    if isinstance(array, INDEX_TRICKS):
        is_traced = any_staged((key,)) or parts.is_staged_key(key)
        return indexed(array, key) if is_traced else adopt_result(array[key])
    if take is not None and has_choice(key):
        return at_choice(array, functools.partial(get_item, array), key)
    if take is not None:
        check_identity(key)
        try:
            item = take(array, key)
        except (KeyError, IndexError):
            read_missing_item(array, key)
            raise
        return loaded_item(array, key, item, is_base=is_base)
    recording = current()
    if recording is None or type(array) is not np.ndarray or not parts.is_staged_key(key):
        return array[key]
    tracer = recording.wrap(recording.lift(array))
    tracer.link_view(array)  # in NumPy, a write to the item would change the array
    return tracer[key]


templates.item_of = get_item


def get_row(array: Any, key: Any) -> Any:
    """Return `array[key]`, of which only an item is read or stored."""
    chosen = _chosen_row(array, key)
    if chosen is not None:
        return chosen
    key = _position(array, key)
    row = row_at(array, key) or _unlike_row(array, key)
    return get_item(array, key, True) if row is None else row


class UnlikeRow:
    """A list of a list of lists, at a traced index, where the lists are of different lengths.

    Attributes:
        rows: the lists.
        choice: the number of the list.
    """

    def __init__(self, rows: Sequence[Any], choice: TextChoice) -> None:
        self.rows, self.choice = rows, choice

    def item(self, key: Any) -> Any:
        """Return `rows[choice][key]`, which only the list of the run must have."""
        return self.choice.by_branches(lambda k: get_item(self.rows[k], key))

    def known(self) -> Any:
        """Return the list, as this trace is for; raise if only the run knows it."""
        return self.rows[self.choice.index]


def _unlike_row(owner: Any, key: Any) -> UnlikeRow | None:
    """Return a list of different lists at a traced index; None of other items."""
    if type(owner) not in (list, tuple) or not isinstance(key, Staged) or not owner:
        return None
    are_lists = all(type(row) in (list, tuple) or isinstance(row, TensorList) for row in owner)
    if not are_lists or len(owner) > MOST_OPTIONS or all(type(row) is tuple for row in owner):
        return None
    position = known_position(owner, key)
    if position is None:
        return None
    return UnlikeRow([*owner], TextChoice(position, tuple(range(len(owner)))))


class ChosenRow:
    """A list or dict in a dict, at a key that is one of several texts.

    Attributes:
        rows: the lists or dicts, by the text.
        choice: the text.
    """

    def __init__(self, rows: dict[Any, Any], choice: TextChoice) -> None:
        self.rows, self.choice = rows, choice

    def item(self, key: Any) -> Any:
        """Return `rows[choice][key]`."""
        return self.choice.mapped(lambda option: get_item(self.rows[option], key))

    def set_item(self, key: Any, value: Any) -> None:
        """Run `rows[choice][key] = value`: in each row, the item is the value or remains."""
        rows = [*self.rows.values()]
        is_at_index = is_at_traced_index(rows[0], key) and len({*map(len, rows)}) == 1
        if not is_at_index and not all(_has_item(row, key) for row in rows):
            use = "which list or dict is changed is needed"
            cure = "give each of them the item before: {'a': {'n': 0}, 'b': {'n': 0}}."
            store_item(value, self.rows[self.choice.decided(use, cure)], key)
            return
        for option, row in self.rows.items():
            store_item(either(self.choice.is_at(option), value, get_item(row, key)), row, key)


def _chosen_row(owner: Any, key: Any) -> ChosenRow | None:
    """Return a list or dict of a dict at a key that is a choice; None of other items."""
    if type(owner) is ChosenRow and type(key) in (str, int):
        rows = owner.rows
        inner = {k: row[key] for k, row in rows.items() if _has_item(row, key)}
        return ChosenRow(inner, owner.choice) if _are_rows(inner, len(rows)) else None
    if type(key) is not TextChoice or type(owner) is not dict or not isinstance(key.index, Staged):
        return None
    rows = {option: owner[option] for option in key.options if option in owner}
    return ChosenRow(rows, key) if _are_rows(rows, len(key.options)) else None


def _are_rows(rows: dict[Any, Any], count: int) -> bool:
    are_plain = {*map(type, rows.values())} in ({list}, {dict})
    return are_plain and len({*map(id, rows.values())}) == len(rows) == count


def _has_item(row: Any, key: Any) -> bool:
    """Return whether a list or dict has an item at a key of Python, or at each that it may be."""
    if type(key) is TextChoice:
        return type(row) is dict and all(option in row for option in key.options)
    if type(row) is list:
        return type(key) is int and -len(row) <= key < len(row)
    return type(row) is dict and type(key) in (str, int) and key in row


# Targets in the value of an expression: `items[0].x = v`, `of()[0] += v`
def note_attribute_write(owner: Callable[[], Any], name: str, label: str) -> None:
    """Note that an attribute is about to be written, and guard what its setter reads."""
    if not is_write_logged():
        return
    target = evaluate(owner)
    if isinstance(target, Staged) or (name == "flat" and type(target) is ConcreteTracedArray):
        return  # it records its changes
    if target is not UNBOUND:
        guard_setter(target, name)
    log_write_attribute(owner, name, label)


def set_item_of(value: Any, owner: Any, key: Any) -> None:
    """Run `owner[key] = value`, with `value` evaluated first."""
    log_write_contents(lambda: owner, f"a {type(owner).__name__}.", is_store=True)
    operands.set_item(owner, _position(owner, key), value)


def change_item(owner: Any, key: Any, operator: str, value: Callable[[], Any]) -> None:
    """Run `owner[key] += value`, or another in-place operator."""
    before = ItemBefore(owner, key)
    set_item_of(operands.in_place(operator, before.item_in(owner), value()), owner, before.key)
