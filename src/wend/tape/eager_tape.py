"""Tapes outside of traces; they share the recording of their thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wend.base.errors import TapeError, explain
from wend.eager.dispatch import Staged, recorder
from wend.eager.promotion import tensor_type
from wend.ir.graph import Value
from wend.ir.types import TensorType
from wend.ops import shaping
from wend.runtime.array_boundary import HOST
from wend.tape.backward import backward_slice, pull_back
from wend.tape.eager_recording import EagerRecording
from wend.tape.recorded_array import RecordedArray
from wend.tape.recorded_value import RecordedValue
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.recording import current


class EagerTape:
    """A tape that follows what is computed from the values that it watches, while it records.

    Args:
        watches_variables: whether it watches the trainable variables that are read.
    """

    def __init__(self, watches_variables: bool = True) -> None:
        recording = current()
        self.recording = recording if isinstance(recording, EagerRecording) else EagerRecording()
        self.bit = self.recording.new_bit()
        self.watches_variables = watches_variables
        self.watched: dict[int, Any] = {}  # variables passed to `watch`
        self.first_read: dict[int, tuple[Any, RecordedValue]] = {}

    def __del__(self) -> None:
        self.recording.live_tapes &= ~self.bit

    # Recording
    def enter(self) -> None:
        """Join the thread's recording, and make it the innermost one."""
        recording = self.recording
        if not recording.tapes:
            recording.outer = current()
            recorder.set(recording)
        recording.tapes[self.bit] = self
        self.resume()

    def leave(self) -> None:
        recording = self.recording
        self.pause()
        if recording.tapes.pop(self.bit, None) is not None and not recording.tapes:
            recorder.set(recording.outer)

    def pause(self) -> None:
        self.recording.active_tapes &= ~self.bit

    def resume(self) -> None:
        self.recording.active_tapes |= self.bit

    def can_enter(self) -> bool:
        """Return whether this thread records into the tape's recording, or not at all."""
        return current() in (None, self.recording)

    def check_recording(self) -> None:
        """Refuse to put the gradient of an eager recording into a graph."""
        recording = current()
        if recording is not None and not isinstance(recording, EagerRecording):
            raise TapeError(
                explain(
                    f"gradient: the tape was opened outside {recording.role}.",
                    cure="open the tape in the function whose gradient it gives.",
                )
            )

    # Watching
    def watch(self, x: Any, *, weak: bool = False) -> RecordedArray:
        """Return a recorded array. A plain array is copied, so the caller may still change it."""
        if isinstance(x, RecordedArray) and x.value.owner is self.recording:
            x.value.tapes |= self.bit
            return x
        number = np.array(x)[()]
        type = TensorType(number.dtype, number.shape)
        return RecordedArray(
            RecordedValue(type, number, self.recording, self.bit), self.recording, weak=weak
        )

    def watch_separately(self, x: Any, *, weak: bool = False) -> RecordedArray:
        """Return a recorded array that only this tape follows, apart from other uses of `x`."""
        if not isinstance(x, Staged):
            return self.watch(x, weak=weak)
        b = self.recording.b
        value = b.emit(shaping.refine, self.recording.lift(x), type=tensor_type(x))
        assert isinstance(value, RecordedValue)
        value.tapes |= self.bit
        return RecordedArray(value, self.recording, weak=weak)

    def watch_variable(self, variable: Any) -> None:
        self.watched[id(variable)] = variable

    def watches(self, variable: Any) -> bool:
        is_watched = self.watches_variables and variable.trainable
        return is_watched or id(variable) in self.watched

    def value_of(self, x: Any) -> Value | None:
        """Return the value of an array that it follows, or None.

        Raises:
            LeakedValueError: the array belongs to a trace that has ended.
        """
        if isinstance(x, Tracer) and not isinstance(x, RecordedArray):
            raise x.leaked()
        if not isinstance(x, RecordedArray) or x.value.owner is not self.recording:
            return None
        recording, active_tapes = self.recording, self.recording.active_tapes
        self.resume()  # lifting may take a part again whose array has changed
        try:
            with recording.active():
                value = recording.lift(x)
        finally:
            recording.active_tapes = active_tapes
        return value if value.tapes & self.bit else None  # type: ignore[attr-defined]

    def value_of_variable(self, variable: Any) -> Value | None:
        """Return the value that a variable had when it was first read under this tape."""
        entry = self.first_read.get(id(variable))
        return None if entry is None else entry[1]

    # Gradients
    def builder(self) -> Any:
        """Return the builder of backward operations; open tapes record them."""
        recording = current()
        return (recording if isinstance(recording, EagerRecording) else EagerRecording()).b

    def pull_back(
        self, seeds: Sequence[tuple[Value, Any]], sources: Sequence[Value]
    ) -> list[Any | None]:
        """Return the cotangents of values; plain arrays if no tape records them."""
        b = self.builder()
        lifted = [(target, b.owner.lift(ct)) for target, ct in seeds]
        cts = pull_back(b, self.bit, lifted, sources)
        results = [None if ct is None else b.owner.wrap(ct) for ct in cts]
        plain = [value.concrete for value in sources if isinstance(value, RecordedValue)]
        return HOST.unshare(results, plain)

    def release(self, targets: Sequence[Value]) -> None:
        """Drop what was recorded only for this tape."""
        self.recording.live_tapes &= ~self.bit
        self.first_read.clear()
        for node in backward_slice(targets, self.bit):
            node.forget(self.recording.live_tapes)
