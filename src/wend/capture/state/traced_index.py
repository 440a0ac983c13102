"""`items[k]` where Python has the items, a list or a tuple, and only the run knows k."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from wend.base.errors import ConcreteValueError, listed
from wend.eager.dispatch import Staged, read
from wend.eager.promotion import PYTHON_SCALARS, cast, result_dtype
from wend.ir.graph import Value
from wend.numpy import shaping
from wend.trace.aliasing.may_alias import settle
from wend.trace.recording.arguments import LeafType, is_array_leaf, leaf_type
from wend.trace.recording.recording import Recording, current
from wend.trace.state.variable import Variable

# Whether Python runs one of the loops around if it cannot be recorded as one node: then it knows
# the positions that the loop counts
python_may_run: ContextVar[bool] = ContextVar("wend_python_may_run", default=False)


def item_at(items: Sequence[Any], position: Any) -> Any:
    """The item of a list or tuple at a position, which may be traced if the items are all alike.

    They are alike if they are arrays and numbers that one dtype and shape fits. A container may be
    none of them: who changes what the result is would change one of the items.
    """
    recording = current()
    if recording is None or not _is_traced_integer(position):
        return items[position]
    number = read(position)
    is_of_arrays = bool(items) and all(map(_is_array, items))
    if not is_of_arrays or (python_may_run.get() and _is_counted(number)):
        return items[position]  # the error is that of a number that is not known
    types = [leaf_type(item) for item in items]
    dtype = result_dtype(*items)
    if not all(_fits(type, types[0], dtype) for type in types):
        return _refused(items, position, types)
    weak = all(type.weak for type in types)
    result = recording.wrap(_stacked(recording, items, dtype)[number].value, weak=weak)
    settle([result], [[item] for item in items], recording)
    return result


def _is_traced_integer(x: Any) -> bool:
    return isinstance(x, Staged) and x.type.shape == () and x.type.dtype.kind in "iu"


def _is_array(item: Any) -> bool:
    return is_array_leaf(item) and not isinstance(item, Variable)


def _fits(type: LeafType, first: LeafType, dtype: np.dtype) -> bool:
    return type.type.dims == first.type.dims and (type.weak or type.type.dtype == dtype)


def _refused(items: Sequence[Any], position: Any, types: Sequence[LeafType]) -> Any:
    try:
        return items[position]
    except ConcreteValueError as error:
        found = dict.fromkeys(str(type.type) for type in types)
        error.add_note(f"the items are not of one dtype and shape: {listed(found)}")
        raise


def _stacked(recording: Recording, items: Sequence[Any], dtype: np.dtype) -> Any:
    are_numbers = [type(item) in PYTHON_SCALARS for item in items]
    if all(are_numbers):
        return recording.wrap(recording.b.constant(np.array(items, dtype)))
    lifted = [
        item if is_number else recording.wrap(recording.lift(item))
        for item, is_number in zip(items, are_numbers, strict=True)
    ]
    return shaping.stack([cast(item, dtype) for item in lifted])


def _is_counted(position: Any) -> bool:
    """Whether a position depends on what a loop around carries."""
    todo: list[tuple[Value, Any]] = [(position.value, position.recording)]
    seen = set()
    while todo:
        value, recording = todo.pop()
        if value in seen:
            continue
        seen.add(value)
        if value.node is not None:
            todo += [(operand, recording) for operand in value.node.operands]
        elif recording.is_region:
            outer = recording.outer_value(value)
            if outer is None:
                return True
            todo.append((outer, recording.parent))
    return False
