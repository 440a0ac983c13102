"""Parts of a tape that leave memory: a loop spills its records by segments (D31).

    spill(values…) {limit, loop, memory}       → handle
    unspill(handle) {index, type, is_stacked}  → one of the values

A handle is a `SpoolSegment` of a spool; for `memory="offload"` it is arrays of the host's memory.
Only `autodiff/rule_spill.py` emits these operations, inside of `scheduled` calls, so they have no
derivative.
"""

from __future__ import annotations

import tempfile
from typing import Any

from wend.base.config import settings
from wend.base.errors import SpillError, TypeMismatchError, explain
from wend.ir.op import Op, no_gradient
from wend.ir.types import HOST, HostType, ListType, TensorType, Type, fresh
from wend.runtime.spool import SpoolSegment, current_spool


def is_stacked(type: Type) -> bool:
    """Return whether values of a type are lists that are written as one array."""
    element = type.element if isinstance(type, ListType) else None
    return isinstance(element, TensorType) and element.is_static


def is_spilled(type: Type) -> bool:
    """Return whether a record of a type leaves memory; numbers stay."""
    is_array = isinstance(type, TensorType) and type.shape != ()
    return is_array or isinstance(type, ListType)


def _infer_spill(*values: Type, limit: int, loop: str, memory: str) -> HostType:
    return HOST


def _kernel_spill(*values: Any, limit: int, loop: str, memory: str) -> SpoolSegment:
    folder = settings().spill_dir or tempfile.gettempdir()
    try:
        return current_spool(folder, limit).put(values)
    except OSError as error:
        raise _error(loop, f"could not be written to {folder!r}", error) from error


# The segment of the values. `limit`: the bytes of the whole tape that may be in memory; `loop`: the
# place of the loop in a message; `memory`: its policy.
spill = Op(
    "spill", _infer_spill, _kernel_spill, no_gradient(), raises=(SpillError,), is_portable=False
)


def _infer_unspill(handle: Type, *, index: int, type: Type, is_stacked: bool, loop: str) -> Type:
    if handle != HOST:
        raise TypeMismatchError(f"the operand must be a segment, not {handle}")
    if not is_stacked:
        return type
    assert isinstance(type, ListType) and isinstance(type.element, TensorType)
    return type.element.with_shape((fresh(), *type.element.dims))


def _kernel_unspill(
    segment: SpoolSegment, *, index: int, type: Type, is_stacked: bool, loop: str
) -> Any:
    try:
        return segment.read(index)
    except OSError as error:
        raise _error(loop, "could not be read back", error) from error


# The value at an index, of a type; a list whose items have been stacked is an array of them
unspill = Op(
    "unspill",
    _infer_unspill,
    _kernel_unspill,
    no_gradient(),
    raises=(SpillError,),
    is_portable=False,
)

SEGMENTS = frozenset({spill, unspill})


def _error(loop: str, what: str, error: OSError) -> SpillError:
    return SpillError(
        explain(
            f"the tape of the loop{loop} {what}: {error.strerror or error}.",
            cure='use config(spill_dir=…) with a folder that has room, or memory="thin".',
        )
    )
