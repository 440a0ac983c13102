"""The limit of a loop's tape: it stops before its records take more than `config(tape_limit=…)`."""

from __future__ import annotations

from collections.abc import Sequence

from wend.base.errors import TapeLimitError, explain
from wend.base.memory import shown_size
from wend.base.source import at
from wend.ir.graph import Value
from wend.ir.types import ListType, MaybeType, TensorType, Type
from wend.ops import effects
from wend.ops.build import Build
from wend.ops.control import WhileParts

_HEADER_BYTES = 16  # of a list: its length and address


def limited(
    b: Build, trips: Value, records: Sequence[Value], others: Sequence[Type], w: WhileParts
) -> Value:
    """Return a number of trips, checked: so many trips with such records stay within the limit.

    Args:
        b: the builder.
        trips: the number of trips.
        records: what a region of the loop records in a trip.
        others: the types of what its other region records.
        w: the parts of the loop.
    """
    fixed = sum(known_bytes(value.type) for value in records) + sum(map(known_bytes, others))
    size = b.integer(fixed)
    for value in records:
        size = _with_unknown_bytes(b, size, value)
    is_over = b.gt(b.mul(trips, size), b.integer(w.limit))
    text = explain(
        f"the tape of the loop{at(w.source)} would take more than tape_limit="
        f"{shown_size(w.limit)} after {{}} trips.",
        cure='give the loop memory="thin" or wend.Checkpoints(slots), or raise the limit.',
    )
    error = effects.error_name(TapeLimitError)
    return b.emit(effects.checked, trips, is_over, errors=(error,), texts=(text,))


def known_bytes(type: Type) -> int:
    """Return the bytes of a record, as far as its type tells them."""
    if isinstance(type, TensorType):
        return type.nbytes or 0
    return _HEADER_BYTES if isinstance(type, ListType) else 0


def _with_unknown_bytes(b: Build, size: Value, value: Value) -> Value:
    """Add to a size what only the run knows of that of a value."""
    type = value.type
    if isinstance(type, ListType) and isinstance(type.element, (TensorType, ListType)):
        return b.add(size, b.mul(b.list_len(value), b.integer(known_bytes(type.element) or 8)))
    if isinstance(type, MaybeType) or not isinstance(type, TensorType):
        return size
    if type.nbytes is not None or type.shape is None:
        return size
    elements = b.reduce_prod(b.shape_of(value), axes=(0,))
    return b.add(size, b.mul(elements, b.integer(type.dtype.itemsize)))
