"""The first trip of a loop, recorded apart from the others because it differs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wend.capture.heap.locations import UNBOUND
from wend.capture.stage.branches import StagedIf
from wend.capture.stage.placeholders import placeholders
from wend.capture.state.optional_value import optional_values
from wend.capture.state.state import State, is_carried
from wend.capture.syntax.names import RETURN_VALUE
from wend.eager.promotion import cast
from wend.numpy import shaping
from wend.trace.control.tensor_list import is_list
from wend.trace.recording.arguments import leaf_type
from wend.trace.recording.recording import Recording
from wend.trace.state.merged_texts import holds_choice, with_choices


class FirstTrip(StagedIf):
    """The branch `if test: body(), and the rest of the loop`.

    Without a trip a number that the body makes an array of is broadcast to it, and None that it
    makes a number or an array of is an optional value after the loop. What has a structure of
    another kind is unbound then, as what only the body binds is.
    """

    def __init__(self, test: Any, state: State, kind: str) -> None:
        live = [name for name in state.variables if name not in state.not_live]
        super().__init__(test, state, live, kind=kind)

    def _merge_pair(self, name: str, pair: list[Any]) -> list[Any] | None:
        if pair[0] is None and name != RETURN_VALUE:
            pair = optional_values(pair, placeholders)
        if any(map(holds_choice, pair)) and all(value is not UNBOUND for value in pair):
            pair = with_choices(pair, [end.region.active for end in self.ends])
        is_array = [value is not UNBOUND and is_carried(value) for value in pair]
        return None if is_array == [False, True] else super()._merge_pair(name, pair)

    def _with_common_shapes(
        self, regions: Sequence[Recording], flat: list[list[Any]]
    ) -> list[list[Any]]:
        without, after = flat
        with regions[0].active():
            entered = [_like(*pair) for pair in zip(without, after, strict=True)]
        return [entered, after]


def _like(start: Any, end: Any) -> Any:
    """Return what enters a loop with the type that an iteration gives it, if it has values."""
    if is_list(start) or is_list(end):
        return start
    old, new = leaf_type(start), leaf_type(end)
    if not new.weak and np.can_cast(old.type.dtype, new.type.dtype):
        start = cast(start, new.type.dtype)
    if old.type.shape == () and new.type.shape:
        start = shaping.broadcast_to(start, new.type.shape)
    return start
