"""`items[k]` of a list or tuple at a traced index, and `items[k] = value` of a list."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from wend.base.errors import ConcreteValueError, listed
from wend.eager import raising
from wend.eager.checking import checked
from wend.eager.dispatch import Staged, read
from wend.eager.promotion import PYTHON_SCALARS, cast, is_scalar, is_weak, result_dtype
from wend.ir.graph import Value
from wend.numpy import elementwise as ew
from wend.numpy import shaping
from wend.numpy.slices import as_position
from wend.trace.aliasing.may_alias import record_merge
from wend.trace.control.listed_texts import is_item
from wend.trace.control.tensor_list import TensorList
from wend.trace.recording.arguments import (
    LeafType,
    common_value,
    is_array_leaf,
    leaf_type,
    leaf_type_with_flags,
)
from wend.trace.recording.recording import Recording, current
from wend.trace.state.text_choice import TextChoice, chosen, is_choice, is_option, is_text, united
from wend.trace.state.variable import Variable

# Whether Python would run an enclosing loop that cannot be recorded as one node: the indices that
# the loop counts are concrete then.
python_may_run: ContextVar[bool] = ContextVar("wend_python_may_run", default=False)


class TracedRow:
    """A list of a list of lists, at a traced index: one of the rows, which are all of one length.

    Attributes:
        rows: the lists, as they are when the row is read.
        index: which of them.
    """

    def __init__(self, rows: list[list[Any]], index: Any) -> None:
        self.rows, self.index = rows, index

    def item(self, key: Any) -> Any:
        """Return `rows[index][key]`."""
        return item_at([item_at(row, key) for row in self.rows], self.index)

    def set_item(self, key: Any, value: Any) -> None:
        """Run `rows[index][key] = value`: each item of the column is the value or remains."""
        if not is_traced_integer(key):
            column = [row[key] for row in self.rows]
            set_item_at(column, self.index, value)
            for row, item in zip(self.rows, column, strict=True):
                row[key] = item
            return
        count, length = len(self.rows), len(self.rows[0])
        items = [item for row in self.rows for item in row]
        raising.may_raise("rows[k][l] = value", (IndexError,))
        first = _inside(self.index, count, "list index out of range")
        second = _inside(key, length, "list assignment index out of range")
        set_item_at(items, first * length + second, value)
        for k, row in enumerate(self.rows):
            row[:] = items[k * length : (k + 1) * length]


def row_at(rows: Any, index: Any) -> TracedRow | None:
    """Return a list of lists at a traced index; None if it is no list of rows of numbers."""
    if not is_at_traced_index(rows, index) or not 0 < len(rows) <= _MAX_STORED:
        return None
    are_rows = all(type(row) is list for row in rows) and len({*map(id, rows)}) == len(rows)
    if not are_rows or len({*map(len, rows)}) != 1 or not rows[0]:
        return None
    if not all(is_weak(item) or is_scalar(item) for row in rows for item in row):
        return None
    counts_trips = python_may_run.get() and depends_on_carry(read(index))
    return None if counts_trips else TracedRow([*rows], index)


def known_position(items: Sequence[Any], index: Any) -> Any | None:
    """Return a traced index as a position, with a check that the run has such an item.

    None if the index is no integer, or counts the trips of a loop that Python may run.
    """
    if not is_traced_integer(index) or (python_may_run.get() and depends_on_carry(read(index))):
        return None
    return _inside(index, len(items), f"{type(items).__name__} index out of range")


def _inside(index: Any, count: int, text: str) -> Any:
    """Return a position as one from the start, with a check that it is one of `count`."""
    index = _checked_position(index, count, text)
    return ew.where(index < 0, index + count, index)


def _checked_position(index: Any, count: int, text: str) -> Any:
    """Return a position, with a check that it is one of `count`; Python's error has this text."""
    index = _position(index)
    is_outside = ew.logical_or(index < -count, index >= count)
    if raising.divert(lambda: is_outside, IndexError, lambda: text):
        return index
    raising.may_raise("items[k]", (IndexError,))
    return checked(index, (is_outside, IndexError, text))


def item_at(items: Any, index: Any) -> Any:
    """Return the item at an index, which may be traced if all items have the same type.

    Items have the same type if they are arrays and numbers that fit one dtype and shape. They may
    not be containers: mutating the result would have to mutate one of the items.
    """
    recording = current()
    if type(items) is TracedRow:
        return items.item(index)
    if recording is not None and type(items) is list and _is_traced_slice(index):
        return _part(items, index)
    if recording is None or not is_traced_integer(index):
        return items[index]
    if _are_tuples_of_one_length(items):  # immutable: the item may be a new one
        columns = map(type(items), zip(*items, strict=True))
        return tuple(item_at(column, index) for column in columns)
    index_value = read(index)
    if _are_texts(items):
        return _text_at(items, index)
    is_of_arrays = bool(items) and all(map(_is_array, items))
    if not is_of_arrays or (python_may_run.get() and depends_on_carry(index_value)):
        return _row_at(items, index)
    types = [leaf_type(item) for item in items]
    dtype = result_dtype(*items)
    if not all(_fits(type, types[0], dtype) for type in types):
        return _concrete_lookup(items, index, types)
    weak = all(type.weak for type in types)
    index = _checked_position(index, len(items), f"{type(items).__name__} index out of range")
    with raising.checked():
        return _item_at(items, index, dtype, weak=weak)


def _is_traced_slice(index: Any) -> bool:
    """Return whether an index is a slice between bounds that only the run knows."""
    return isinstance(index, slice) and any(map(is_traced_integer, (index.start, index.stop)))


def _part(items: list[Any], index: slice) -> Any:
    """Return the items of a slice whose bounds are traced, in a list of unknown length."""
    bounds = [bound for bound in (index.start, index.stop) if is_traced_integer(bound)]
    counts_trips = python_may_run.get() and any(depends_on_carry(read(bound)) for bound in bounds)
    if counts_trips or not items or not all(map(is_item, items)) or not _are_of_one_type(items):
        return items[index]  # raises the error of an unknown number
    return TensorList.of(items, items[-1:]).part(index)


def _are_of_one_type(items: Sequence[Any]) -> bool:
    if _are_tuples_of_one_length(items):
        return all(map(_are_of_one_type, zip(*items, strict=True)))
    if not all(map(_is_array, items)) or not _are_alike(items[1:], items[0]):
        return False
    types = [leaf_type(item) for item in items]
    return len({(type.type.dtype, type.weak) for type in types}) == 1


def _are_texts(items: Sequence[Any]) -> bool:
    """Return whether items are texts of which a number may choose, and not only None."""
    texts = [x for x in items if is_text(x) or is_choice(x)]
    return bool(texts) and all(is_option(x) or is_choice(x) for x in items)


def _text_at(items: Sequence[Any], index: Any) -> TextChoice:
    """Return the text at a traced index: of a list of texts, the run chooses one."""
    options = united(items)
    numbers = [chosen(x, options).index for x in items]
    kind = tuple if isinstance(items, tuple) else list
    return TextChoice(item_at(kind(numbers), index), options)


def _set_text_at(items: list[Any], index: Any, value: Any) -> None:
    options = united([*items, value])
    numbers = [chosen(x, options).index for x in items]
    set_item_at(numbers, index, chosen(value, options).index)
    items[:] = [TextChoice(number, options) for number in numbers]


def is_at_traced_index(items: Any, index: Any) -> bool:
    """Return whether `items[index] = value` is a store into a list that the trace knows."""
    return type(items) is list and current() is not None and is_traced_integer(index)


def set_item_at(items: list[Any], index: Any, value: Any) -> None:
    """Run `items[index] = value` of a list for a traced index: each item is the value or remains.

    Raises:
        ConcreteValueError: Python needs the index, since the items are not of one type, or many.
    """
    recording = current()
    assert recording is not None
    if items and type(value) is tuple and _are_tuples_of_one_length([value, *items]):
        columns = [[*column] for column in zip(*items, strict=True)]
        for column, part in zip(columns, value, strict=True):
            set_item_at(column, index, part)
        items[:] = zip(*columns, strict=True)
        return
    if _are_texts([value, *items]):
        _set_text_at(items, index, value)
        return
    is_of_arrays = bool(items) and all(map(_is_array, (value, *items)))
    counts_trips = python_may_run.get() and depends_on_carry(read(index))
    if counts_trips or not is_of_arrays or len(items) > _MAX_STORED or not _are_alike(items, value):
        items[index] = value  # raises the error of an unknown number, or takes its known value
        return
    index, count, text = _position(index), len(items), "list assignment index out of range"
    raising.may_raise("items[k] = value", (IndexError,))
    is_outside = ew.logical_or(index < -count, index >= count)
    _set_item_at(items, checked(index, (is_outside, IndexError, text)), value, recording)


def _set_item_at(items: list[Any], index: Any, value: Any, recording: Recording) -> None:
    position = ew.where(index < 0, index + len(items), index)
    for k, item in enumerate(items):
        weak = leaf_type(item).weak and leaf_type(value).weak
        chosen = read(ew.where(ew.equal(position, k), value, item))
        items[k] = recording.wrap(recording.lift(chosen), weak=weak)


def _are_alike(items: Sequence[Any], value: Any) -> bool:
    """Return whether items and a value are numbers of one dtype, and no arrays without axes."""
    types, dtype = [leaf_type(x) for x in (value, *items)], result_dtype(value, *items)
    are_numbers = all(type.type.dims == () and type.zero_dim is False for type in types)
    return are_numbers and all(_fits(type, types[0], dtype) for type in types)


_MAX_STORED = 256  # items of a list that a store at a traced index may reach


def _item_at(items: Sequence[Any], index: Any, dtype: np.dtype, *, weak: bool) -> Any:
    recording = current()
    assert recording is not None
    index_value = read(index)
    result = recording.wrap(_stack(recording, items, dtype)[index_value].value, weak=weak)
    types = [leaf_type_with_flags(item) for item in items]
    result.writeable = common_value(type.writeable for type in types)
    result.zero_dim = common_value(type.zero_dim for type in types)
    record_merge([result], [[item] for item in items], recording)
    return result


def _are_tuples_of_one_length(items: Sequence[Any]) -> bool:
    lengths = {len(item) for item in items if type(item) is tuple}
    return all(type(item) is tuple for item in items) and len(lengths) == 1 and lengths != {0}


def is_traced_integer(x: Any) -> bool:
    """Return whether Python takes a traced value as an index."""
    if not isinstance(x, Staged) or x.type.shape != ():
        return False
    return x.type.dtype.kind in "iu" or (x.type.dtype == np.bool_ and x.weak)


def _position(index: Any) -> Any:
    if index.type.dtype == np.bool_:
        return shaping.astype(index, int)
    return as_position(index, of_list=True) if index.type.dtype == np.uint64 else index


def _is_array(item: Any) -> bool:
    return is_array_leaf(item) and not isinstance(item, Variable)


def _fits(type: LeafType, first: LeafType, dtype: np.dtype) -> bool:
    return type.type.dims == first.type.dims and (type.weak or type.type.dtype == dtype)


def _row_at(rows: Sequence[Any], index: Any) -> Any:
    """Return `rows[index]` for an index that Python needs to know."""
    try:
        return rows[index]
    except ConcreteValueError as error:
        if all(type(row) in (list, tuple) for row in rows) and len({*map(len, rows)}) > 1:
            error.add_note(
                "the rows have different lengths; put them in arrays, filled up to one length, and "
                "their lengths in another: for k in range(lengths[i]): rows[i, k]"
            )
        raise


def _concrete_lookup(items: Sequence[Any], index: Any, types: Sequence[LeafType]) -> Any:
    try:
        return items[index]
    except ConcreteValueError as error:
        item_types = dict.fromkeys(str(type.type) for type in types)
        error.add_note(f"the items are not of one dtype and shape: {listed(item_types)}")
        raise


def _stack(recording: Recording, items: Sequence[Any], dtype: np.dtype) -> Any:
    are_numbers = [type(item) in PYTHON_SCALARS for item in items]
    if all(are_numbers):
        return recording.wrap(recording.b.constant(np.array(items, dtype)))
    lifted = [
        item if is_number else recording.wrap(recording.lift(item))
        for item, is_number in zip(items, are_numbers, strict=True)
    ]
    return shaping.stack([cast(item, dtype) for item in lifted])


def depends_on_carry(index: Any) -> bool:
    """Return whether an index depends on the carry of an enclosing loop."""
    worklist: list[tuple[Value, Any]] = [(index.value, index.recording)]
    seen = set()
    while worklist:
        value, recording = worklist.pop()
        if value in seen:
            continue
        seen.add(value)
        if value.node is not None:
            worklist += [(operand, recording) for operand in value.node.operands]
        elif recording.is_region:
            outer = recording.outer_value(value)
            if outer is None:
                return True
            worklist.append((outer, recording.parent))
    return False
