"""`items[k]` where Python has the items, a list or a tuple, and only the run knows k."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from wend.base import trees
from wend.capture.state import is_carried
from wend.eager.dispatch import Staged, read
from wend.eager.promotion import cast, result_dtype, tensor_type
from wend.numpy import shaping
from wend.trace.arguments import leaf_type
from wend.trace.choices import settle
from wend.trace.recording import Recording, current

# Whether Python runs a loop around, which knows k then, if it cannot be recorded as one node
python_may_run: ContextVar[bool] = ContextVar("wend_python_may_run", default=False)


def item_at(items: Sequence[Any], position: Any) -> Any:
    """The item of a list or tuple at a position, which may be traced if the items are all alike.

    Items are alike if they have one structure, with arrays of one dtype and shape in each place.
    """
    recording = current()
    if recording is None or python_may_run.get() or not _is_traced_integer(position):
        return items[position]
    found = _rows(items)
    if found is None:
        return items[position]  # the error is that of a number that is not known
    treedef, rows = found
    results = [_chosen(recording, column, read(position)) for column in zip(*rows, strict=True)]
    settle(results, rows, recording)
    return trees.unflatten(treedef, results)


def _is_traced_integer(x: Any) -> bool:
    return isinstance(x, Staged) and x.type.shape == () and x.type.dtype.kind in "iu"


def _rows(items: Sequence[Any]) -> tuple[trees.TreeDef, list[Sequence[Any]]] | None:
    """The structure of the items, and the arrays in each, if they are all alike."""
    if not items or not all(map(is_carried, items)):
        return None
    rows, treedefs = zip(*map(trees.flatten, items), strict=True)
    if any(treedef != treedefs[0] for treedef in treedefs):
        return None
    return (treedefs[0], [*rows]) if all(map(_are_alike, zip(*rows, strict=True))) else None


def _are_alike(column: Sequence[Any]) -> bool:
    dtype, dims = result_dtype(*column), tensor_type(column[0]).dims
    types = [leaf_type(leaf) for leaf in column]
    return all(t.type.dims == dims and (t.weak or t.type.dtype == dtype) for t in types)


def _chosen(recording: Recording, column: Sequence[Any], position: Any) -> Any:
    dtype = result_dtype(*column)
    if any(isinstance(leaf, (Staged, np.ndarray)) for leaf in column):
        lifted = [recording.wrap(recording.lift(leaf)) for leaf in column]
        stacked = shaping.stack([cast(leaf, dtype) for leaf in lifted])
    else:
        stacked = recording.wrap(recording.b.constant(np.array(column, dtype)))
    # Not a part of what has been stacked, but one of the items
    is_weak = all(leaf_type(leaf).weak for leaf in column)
    return recording.wrap(stacked[position].value, weak=is_weak)
