"""Where in the user's code something was written."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from types import FrameType

# Frames below this folder are wend's own; the user's line is the first one outside.
# The demo's programs, in `cli`, are what a user would write.
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
PROGRAMS = os.path.join(PACKAGE, "cli") + os.sep


@dataclass(frozen=True, slots=True)
class Source:
    """A line of the user's code: file, line number and function name."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def short(self) -> str:
        """The line with the file's last name only, for messages."""
        return f"{os.path.basename(self.file)}:{self.line}"


def is_own(file: str) -> bool:
    """Whether code in this file is wend's, not a user's."""
    return file.startswith(PACKAGE) and not file.startswith(PROGRAMS)


def user_source() -> Source | None:
    """Return the innermost line on the stack that is not wend's own, or None."""
    frame = user_frame()
    if frame is None:
        return None
    return Source(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def user_frame() -> FrameType | None:
    """Return the innermost frame on the stack that is not wend's own, or None."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def at(source: Source | None) -> str:
    """` at file.py:12`, or nothing where the line is unknown; for messages."""
    return f" at {source.short}" if source is not None else ""
