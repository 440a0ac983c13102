"""Lists that grow in a loop or branch, as results: the graph returns them as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wend.base import trees
from wend.runtime.sequence import Sequence as ListValue
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.listed_texts import holds_texts, listed_item, returned_item, text_of
from wend.trace.control.tensor_list import TensorDeque, TensorList
from wend.trace.recording.arguments import LeafType
from wend.trace.recording.recording import current
from wend.trace.state.text_choice import ReturnedText


class ReturnedList:
    """A list whose length only the run knows, as arrays of its items.

    In a call that is recorded it becomes a traced list again; in a run, a list of Python.

    Attributes:
        arrays: for each array of an item, the array of all of them.
        item: the structure of an item.
        types: the types of its arrays.
        kind: `list` or `deque`.
    """

    def __init__(
        self,
        arrays: Sequence[Any],
        item: trees.TreeDef,
        types: Sequence[LeafType],
        kind: type = list,
    ) -> None:
        self.arrays, self.item, self.types, self.kind = [*arrays], item, types, kind


def returned_list(grown: TensorList) -> ReturnedList:
    """Return a traced list as arrays."""
    arrays = trees.flatten(grown.stack())[0]
    return ReturnedList(arrays, returned_item(grown.treedef), tuple(grown.types), grown.KIND)


def _flatten(value: ReturnedList) -> tuple[Any, Any]:
    return tuple(value.arrays), (value.item, tuple(value.types), value.kind)


def _unflatten(metadata: Any, arrays: Any) -> Any:
    item, types, kind = metadata
    if all(isinstance(array, np.ndarray) for array in arrays):
        return _items(arrays, item, types, kind)
    recording = current()
    if recording is None or not all(isinstance(array, Tracer) for array in arrays):
        return ReturnedList(arrays, item, types, kind)
    lists = [recording.wrap(recording.b.list_unstack(recording.lift(x))) for x in arrays]
    return (TensorList if kind is list else TensorDeque)(lists, listed_item(item), [*types])


def _items(
    arrays: Sequence[np.ndarray], item: trees.TreeDef, types: Sequence[LeafType], kind: type
) -> Any:
    """Return the list whose items have these arrays as their columns."""
    columns = [
        array.tolist() if type.weak else list(array)
        for array, type in zip(arrays, types, strict=True)
    ]
    items = [trees.unflatten(item, row) for row in zip(*columns, strict=True)]
    if holds_texts(item):
        items = [trees.map_parts(ReturnedText, text_of, x) for x in items]
    return items if kind is list else kind(items)


trees.register_node(ReturnedList, _flatten, _unflatten)


class ListState:
    """A traced list in a frame state: its lists, which nothing stacks until an error is raised.

    Attributes:
        lists: for each array of an item, the list of all of them.
        item, types, kind: as in a `ReturnedList`.
    """

    def __init__(
        self, lists: Sequence[Any], item: trees.TreeDef, types: Sequence[LeafType], kind: type
    ) -> None:
        self.lists, self.item, self.types, self.kind = [*lists], item, types, kind


def list_state(grown: TensorList) -> ListState:
    """Return what a frame state holds of a traced list."""
    return ListState(grown.lists, returned_item(grown.treedef), grown.types, grown.KIND)


def _flatten_state(value: ListState) -> tuple[Any, Any]:
    return tuple(value.lists), (value.item, tuple(value.types), value.kind)


def _unflatten_state(metadata: Any, lists: Any) -> Any:
    item, types, kind = metadata
    if all(isinstance(x, ListValue) for x in lists):
        arrays = [np.array([*x], type.type.dtype) for x, type in zip(lists, types, strict=True)]
        return _items(arrays, item, types, kind)
    if not all(isinstance(x, Tracer) for x in lists):
        return ListState(lists, item, types, kind)
    return (TensorList if kind is list else TensorDeque)(lists, listed_item(item), [*types])


trees.register_node(ListState, _flatten_state, _unflatten_state)
