"""`wend.is_tracing`: whether a function is being recorded."""

from __future__ import annotations

from wend.trace.recording.recording import current


def is_tracing() -> bool:
    """Return whether the code that asks is being recorded rather than run.

    In plain Python, in eager mode and in host calls it is False.

    Example:
        >>> import wend
        >>> wend.is_tracing(), wend.function(lambda: int(wend.is_tracing()))()
        (False, np.int64(1))
    """
    recording = current()
    return recording is not None and not recording.runs_now()
