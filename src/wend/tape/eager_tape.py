"""A tape outside traces: a share in the recording of its thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wend.base.errors import explain
from wend.eager.dispatch import Staged, recorder
from wend.eager.promotion import tensor_type
from wend.ir.graph import Value
from wend.ir.types import TensorType
from wend.ops import shaping
from wend.runtime.array_boundary import HOST
from wend.tape.backward import backward_slice, pull_back
from wend.tape.eager_recording import EagerRecording
from wend.tape.errors import TapeError
from wend.tape.recorded_array import Recorded
from wend.tape.recorded_value import RecordedValue
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.recording import current


class EagerTape:
    """Follows what is computed from the values that it watches, while it records.

    Args:
        watches_variables: whether it watches the trainable variables that are read.
    """

    def __init__(self, watches_variables: bool = True) -> None:
        here = current()
        self.recording = here if isinstance(here, EagerRecording) else EagerRecording()
        self.bit = self.recording.new_bit()
        self.watches_variables = watches_variables
        self.watched: dict[int, Any] = {}  # variables that it was told to watch
        self.first_read: dict[int, tuple[Any, RecordedValue]] = {}

    def __del__(self) -> None:
        self.recording.live &= ~self.bit

    # Recording
    def enter(self) -> None:
        """Take part in the recording, which is that of the thread from now on."""
        recording = self.recording
        if not recording.tapes:
            recording.before = current()
            recorder.set(recording)
        recording.tapes[self.bit] = self
        self.resume()

    def leave(self) -> None:
        recording = self.recording
        self.pause()
        if recording.tapes.pop(self.bit, None) is not None and not recording.tapes:
            recorder.set(recording.before)

    def pause(self) -> None:
        self.recording.listening &= ~self.bit

    def resume(self) -> None:
        self.recording.listening |= self.bit

    def can_enter(self) -> bool:
        """Whether this thread records where the tape does, or nowhere."""
        return current() in (None, self.recording)

    def check_here(self) -> None:
        """A gradient of what has run cannot become part of a graph."""
        here = current()
        if here is not None and not isinstance(here, EagerRecording):
            raise TapeError(
                explain(
                    f"gradient: the tape was opened outside {here.role}.",
                    cure="open the tape in the function whose gradient it gives.",
                )
            )

    # What it follows
    def watch(self, x: Any, *, weak: bool = False) -> Recorded:
        """A recorded array; of a plain one a copy, which stays the caller's to change."""
        if isinstance(x, Recorded) and x.value.owner is self.recording:
            x.value.tapes |= self.bit
            return x
        number = np.array(x)[()]
        type = TensorType(number.dtype, number.shape)
        return Recorded(
            RecordedValue(type, number, self.recording, self.bit), self.recording, weak=weak
        )

    def watch_apart(self, x: Any, *, weak: bool = False) -> Recorded:
        """A recorded array that only this tape follows as itself: other uses of `x` are not it."""
        if not isinstance(x, Staged):
            return self.watch(x, weak=weak)
        b = self.recording.b
        value = b.emit(shaping.refine, self.recording.lift(x), type=tensor_type(x))
        assert isinstance(value, RecordedValue)
        value.tapes |= self.bit
        return Recorded(value, self.recording, weak=weak)

    def watch_variable(self, variable: Any) -> None:
        self.watched[id(variable)] = variable

    def watches(self, variable: Any) -> bool:
        is_watched = self.watches_variables and variable.trainable
        return is_watched or id(variable) in self.watched

    def value_of(self, x: Any) -> Value | None:
        """The value of an array that it follows.

        Raises:
            LeakedValueError: it is of a trace that is over.
        """
        if isinstance(x, Tracer) and not isinstance(x, Recorded):
            raise x.leaked()
        if not isinstance(x, Recorded) or x.value.owner is not self.recording:
            return None
        mine, listening = self.recording, self.recording.listening
        self.resume()  # a part whose array has changed is taken again
        try:
            with mine.active():
                value = mine.lift(x)
        finally:
            mine.listening = listening
        return value if value.tapes & self.bit else None  # type: ignore[attr-defined]

    def value_of_variable(self, variable: Any) -> Value | None:
        """What a variable held when it was first read under this tape."""
        found = self.first_read.get(id(variable))
        return None if found is None else found[1]

    # Gradients
    def builder(self) -> Any:
        """Where backward operations run: recorded by the tapes that are open here, if any."""
        here = current()
        return (here if isinstance(here, EagerRecording) else EagerRecording()).b

    def pull_back(
        self, seeds: Sequence[tuple[Value, Any]], sources: Sequence[Value]
    ) -> list[Any | None]:
        """The cotangents of values; plain arrays where no tape records them."""
        b = self.builder()
        lifted = [(target, b.owner.lift(ct)) for target, ct in seeds]
        found = pull_back(b, self.bit, lifted, sources)
        results = [None if ct is None else b.owner.wrap(ct) for ct in found]
        plain = [value.concrete for value in sources if isinstance(value, RecordedValue)]
        return HOST.own(results, plain)

    def release(self, targets: Sequence[Value]) -> None:
        """Let go of what was recorded for it alone."""
        self.recording.live &= ~self.bit
        self.first_read.clear()
        for node in backward_slice(targets, self.bit):
            node.forget(self.recording.live)
