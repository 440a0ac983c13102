"""Frame states: the contents of the arguments where an operation may fail (D36)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wend.ir.graph import Node, Value
from wend.ops.frame_states import ELEMENT, frame_state

if TYPE_CHECKING:
    from wend.trace.arrays.tracer import Tracer
    from wend.trace.recording.recording import Recording


class FrameStates:
    """Records the frame states of one recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._last: dict[int, Value] = {}  # the operands of the last frame state

    def save(self) -> None:
        """Record what the arguments hold here."""
        self.emit(self.contents())

    def contents(self) -> dict[int, Value]:
        """Return the contents of the arguments that may be changed here, by number."""
        recording = self._recording
        if recording.runs_now():
            return {}
        contents = {k: recording.lift(ref) for k, ref in changed_arguments(recording).items()}
        if recording.element is not None:
            contents[ELEMENT] = recording.lift(recording.element)
        return contents

    def emit(self, contents: dict[int, Value], before: Node | None = None) -> None:
        """Append a frame state, or put it before the last node; equal ones in a row are one."""
        if not contents or contents == self._last:
            return
        recording = self._recording
        operands = [recording.world(), *contents.values()]
        state = recording.b.emit_node(frame_state, operands, written=tuple(contents))
        if before is not None:
            recording.b.nodes[-2:] = [state, before]
        recording.set_world(state.results[0])
        self._last = contents

    def restart(self) -> None:
        """Forget the last frame state: what follows is recorded again."""
        self._last = {}


def changed_arguments(recording: Recording) -> dict[int, Tracer]:
    """Return the arguments of the enclosing function that may be changed here, by number."""
    function, regions, region = recording.function(), [], recording
    while region is not function and region.parent is not None:
        regions.append(region.mutations)
        region = region.parent
    # Of many arguments few are changed, and this is asked at every operation that may fail.
    refs = [*function.mutations.local_refs()]
    refs += [ref for log in regions for ref in log.outer_refs()]
    numbers = function.argument_numbers() if refs else {}
    changed = {numbers[id(ref)]: ref for ref in refs if id(ref) in numbers}
    return {
        k: changed[k]
        for k in sorted(changed)
        if changed[k].value is not function.b.params[k]
        or any(log.outer_value(changed[k]) is not None for log in regions)
    }
