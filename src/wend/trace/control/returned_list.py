"""Lists that grow in a loop or branch, as results: the graph returns them as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wend.base import trees
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
        columns = [
            array.tolist() if type.weak else list(array)
            for array, type in zip(arrays, types, strict=True)
        ]
        items = [trees.unflatten(item, row) for row in zip(*columns, strict=True)]
        if holds_texts(item):
            items = [trees.map_parts(ReturnedText, text_of, x) for x in items]
        return items if kind is list else kind(items)
    recording = current()
    if recording is None or not all(isinstance(array, Tracer) for array in arrays):
        return ReturnedList(arrays, item, types, kind)
    lists = [recording.wrap(recording.b.list_unstack(recording.lift(x))) for x in arrays]
    return (TensorList if kind is list else TensorDeque)(lists, listed_item(item), [*types])


trees.register_node(ReturnedList, _flatten, _unflatten)
