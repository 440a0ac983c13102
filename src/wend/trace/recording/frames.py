"""Frame states: the contents of the arguments where an operation may fail (D36)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from wend.ir.graph import Node, Value
from wend.ops.frame_states import ELEMENT, frame_state
from wend.trace.arrays.concrete_array import ConcreteTracedArray
from wend.trace.arrays.tracer import Tracer

if TYPE_CHECKING:
    from wend.trace.recording.recording import Recording


class FrameStates:
    """Records the frame states of one recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._last: dict[int, Value] = {}  # the operands of the last frame state
        self._constants: dict[Hashable, Value] = {}

    def save(self) -> None:
        """Record what the arguments hold here."""
        self.emit(self.contents())

    def save_before(self, node: Node) -> None:
        """Record what the arguments hold before the last node."""
        nodes = self._recording.b.nodes
        last = nodes.pop()
        assert last is node
        self.save()
        nodes.append(node)

    def contents(self) -> dict[int, Value]:
        """Return the contents of the arguments that may be changed here, by number."""
        recording = self._recording
        if recording.runs_now():
            return {}
        contents = {k: recording.lift(ref) for k, ref in changed_arguments(recording).items()}
        if recording.element is not None:
            contents[ELEMENT] = recording.lift(recording.element)
        return contents | self.containers()

    def containers(self) -> dict[int, Value]:
        """Return what changed lists, dicts and instances of the caller hold here, by number."""
        recording = self._recording
        containers = recording.function().containers
        if containers is None:
            return {}
        return {k: self.lifted(x) for k, x in containers.now(recording)}

    def lifted(self, x: Any) -> Value:
        """Return the value of what a container holds; equal constants are one.

        A small array whose elements are known stays so: it is copied.
        """
        is_known = isinstance(x, ConcreteTracedArray) and x.nbytes <= _MAX_CONSTANT_BYTES
        if isinstance(x, (Tracer, np.ndarray)) and not is_known:
            return self._recording.lift(x)
        array = np.array(x)
        key = array.dtype, array.shape, array.tobytes()
        if key not in self._constants:
            self._constants[key] = self._recording.b.constant(array)
        return self._constants[key]

    def emit(self, contents: dict[int, Value]) -> None:
        """Append a frame state; equal ones in a row are one."""
        if not contents or contents == self._last:
            return
        recording = self._recording
        operands = [recording.world(), *contents.values()]
        state = recording.b.emit_node(frame_state, operands, written=tuple(contents))
        recording.set_world(state.results[0])
        self._last = contents

    def restart(self) -> None:
        """Forget the last frame state: what follows is recorded again."""
        self._last, self._constants = {}, {}


# Larger arrays are captured
_MAX_CONSTANT_BYTES = 4096


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
