"""Frame states: the contents of the arguments where an operation may fail (D36)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from wend.ir.graph import Node, Value
from wend.ops.frame_states import frame_state
from wend.runtime.partial_writes import ELEMENT
from wend.trace.arrays.concrete_array import ConcreteTracedArray
from wend.trace.arrays.tracer import Tracer

if TYPE_CHECKING:
    from wend.trace.recording.recording import Recording


class FrameStates:
    """Records the frame states of one recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._last: Value | None = None  # the token of the last frame state here
        self._arrays: dict[int, Value] = {}  # what it tells of arrays
        self._constants: dict[Hashable, Value] = {}

    def save(self) -> None:
        """Record what the arguments hold here."""
        recording = self._recording
        if recording.runs_now():
            return
        arrays = {k: recording.lift(ref) for k, ref in changed_arguments(recording).items()}
        if recording.element is not None:
            arrays[ELEMENT] = recording.lift(recording.element)
        base = self._last
        containers = recording.function().containers
        changes: dict[int, Value] | None = None
        if arrays.keys() >= self._arrays.keys():
            changes = {} if containers is None else containers.changes(recording)
        if changes is None:  # what the last one tells does not hold any more
            self._forget()
            changes = {} if containers is None else containers.changes(recording)
        assert changes is not None
        changes = {k: x for k, x in arrays.items() if self._arrays.get(k) is not x} | changes
        if changes or self._last is not base:
            bases = () if self._last is None else (self._last,)
            operands = [recording.world(), *bases, *changes.values()]
            state = recording.b.emit_node(frame_state, operands, written=tuple(changes))
            recording.set_world(state.results[0])
            self._last, self._arrays = state.results[0], arrays

    def save_for_interrupts(self) -> None:
        """Record what the arguments hold here, if they have changed: what an interrupt leaves.

        A loop can be interrupted between its trips, whether or not its operations may fail.
        """
        if changed_arguments(self._recording) or self.containers():
            self.save()

    def save_before(self, node: Node) -> None:
        """Record what the arguments hold before the last node."""
        nodes = self._recording.b.nodes
        last = nodes.pop()
        assert last is node
        self.save()
        nodes.append(node)

    def containers(self) -> dict[int, Value]:
        """Return how containers of the caller have changed since the call, by number."""
        containers = self._recording.function().containers
        return {} if containers is None else containers.all_changes(self._recording)

    def element(self) -> dict[int, Value]:
        """Return the number of the element of `vmap` that is computed here, if there is one."""
        region: Recording | None = self._recording
        while region is not None and region.element is None:
            region = None if region is region.function() else region.parent
        return {} if region is None else {ELEMENT: self._recording.lift(region.element)}

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

    def restart(self) -> None:
        """Forget the last frame state: what follows is recorded again."""
        self._forget()
        self._constants = {}

    def _forget(self) -> None:
        self._last, self._arrays = None, {}
        containers = self._recording.function().containers
        if containers is not None:
            containers.forget(self._recording)


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
