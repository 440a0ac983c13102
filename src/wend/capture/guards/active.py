"""The recorder of the trace under way."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

from wend.trace.recording.recording import current

if TYPE_CHECKING:
    from wend.capture.guards.operand_reads import OperandReads
    from wend.capture.guards.recorder import GuardRecorder

recorder_of_trace: ContextVar[GuardRecorder | None] = ContextVar("wend_reading", default=None)


def active_recorder() -> GuardRecorder | None:
    """Return the recorder of the trace under way, if captured code is recorded now."""
    recorder = recorder_of_trace.get()
    if recorder is None:
        return None
    recording = current()
    return None if recording is None or recording.runs_now() else recorder


def operand_reads() -> OperandReads | None:
    """Return the floats that are operands of the trace under way; None if there are none."""
    recorder = active_recorder()
    return recorder.operands if recorder is not None and recorder.operands else None
