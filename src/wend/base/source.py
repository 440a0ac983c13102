"""Where in the user's code something was written."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import lru_cache
from types import FrameType

import numpy as np

# Frames below this folder are wend's own; the user's line is the first one outside.
# The programs of the demo, and of the doctor, are what a user would write.
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
PROGRAMS = tuple(
    os.path.join(PACKAGE, "cli", name) for name in ("demo.py", "dopri.py", "doctor.py")
)
# Nor is a line in these what a user has written, though they may call back.
_BESIDE = os.path.dirname(os.path.dirname(os.path.abspath(np.__file__)))
LIBRARIES = tuple(os.path.join(_BESIDE, name) + os.sep for name in ("numpy", "scipy"))


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


@lru_cache(4096)
def _is_users(file: str) -> bool:
    return not is_own(file) and not file.startswith(LIBRARIES)


def user_source() -> Source | None:
    """Return the innermost line on the stack that is the user's, or None."""
    frame = user_frame()
    if frame is None:
        return None
    return Source(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def user_frame() -> FrameType | None:
    """Return the innermost frame on the stack that is the user's, or None."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not _is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def raised_at(error: BaseException) -> Source | None:
    """Return the innermost line of the user's that an error has passed, or None."""
    entry, found = error.__traceback__, None
    while entry is not None:
        code = entry.tb_frame.f_code
        if _is_users(code.co_filename):
            found = Source(code.co_filename, entry.tb_lineno, code.co_name)
        entry = entry.tb_next
    return found


def at(source: Source | None) -> str:
    """` at file.py:12`, or nothing where the line is unknown; for messages."""
    return f" at {source.short}" if source is not None else ""
