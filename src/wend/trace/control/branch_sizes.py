"""Sizes that differ between the paths of a branch in a loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wend.eager.dispatch import apply
from wend.eager.promotion import as_array
from wend.ir.builder import new_symbol
from wend.ir.types import Dim
from wend.ops import shaping
from wend.trace.control.tensor_list import is_list
from wend.trace.recording.arguments import leaf_type
from wend.trace.recording.recording import Recording

_REPEATED = "before", "after", "body"  # names of the regions of loops and maps


def with_common_sizes(
    outer: Recording, regions: Sequence[Recording], arms: Sequence[Sequence[Any]]
) -> list[list[Any]]:
    """Return the leaves of both arms, those of the first with symbols for sizes that differ.

    Outside loops sizes stay, since a trace for one path (`capture.state.paths`) knows them.
    """
    first, second = arms
    if not _is_repeated(outer):
        return [list(first), list(second)]
    with regions[0].active():
        first = [_resized(*pair) for pair in zip(first, second, strict=True)]
    return [first, list(second)]


def _is_repeated(recording: Recording | None) -> bool:
    while recording is not None and recording.is_region:
        if recording.b.name in _REPEATED:
            return True
        recording = recording.parent
    return False


def _resized(leaf: Any, other: Any) -> Any:
    if is_list(leaf) or is_list(other):
        return leaf
    type, other_type = leaf_type(leaf).type, leaf_type(other).type
    if type.shape is None or type.rank != other_type.rank:
        return leaf
    pairs = zip(type.dims, other_type.dims, strict=True)
    dims = tuple([new_symbol() if _are_known_to_differ(a, b) else a for a, b in pairs])
    resized = type.with_shape(dims)
    return leaf if resized == type else apply(shaping.refine, as_array(leaf), type=resized)


def _are_known_to_differ(size: Dim, other: Dim) -> bool:
    return isinstance(size, int) and isinstance(other, int) and size != other
