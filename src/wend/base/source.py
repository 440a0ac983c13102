"""Source lines of the user's code."""

from __future__ import annotations

import itertools
import os
import sys
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from functools import lru_cache
from types import CodeType, FrameType

import numpy as np

from wend.base.lazy.dataclass import dataclass

# Frames in files of this folder are wend's own; the user's line is the first one outside.
# The programs of the demo and of the doctor count as user code.
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
PROGRAMS = tuple(
    os.path.join(PACKAGE, "cli", name) for name in ("demo.py", "dopri.py", "doctor.py")
)
# Lines of these libraries are no user code either, though they may call back.
_SITE_PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(np.__file__)))
LIBRARIES = tuple(
    os.path.join(_SITE_PACKAGES, name) + os.sep
    for name in ("numpy", "scipy", "optree", "jax", "torch")
)


# The names of the `wend.name_scope` blocks that are open, joined by slashes
SCOPE: ContextVar[str] = ContextVar("wend_scope", default="")


@dataclass(frozen=True, slots=True)
class Source:
    """A line of the user's code: file, line number, function name, and `wend.name_scope`."""

    file: str
    line: int
    function: str
    scope: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def short(self) -> str:
        """The line with the file's last name only, for messages."""
        return f"{os.path.basename(self.file)}:{self.line}"

    def with_scope(self, text: str | None = None) -> str:
        """Return a text for the line, `short` by default, followed by the scope if it has one."""
        text = self.short if text is None else text
        return f"{text} @{self.scope}" if self.scope else text


def is_wend_file(file: str) -> bool:
    """Return whether code in this file is wend's, not a user's."""
    return file.startswith(PACKAGE) and not file.startswith(PROGRAMS)


@lru_cache(4096)
def is_users_file(file: str) -> bool:
    """Return whether code in this file is a user's: neither wend's nor one of LIBRARIES."""
    return not is_wend_file(file) and not file.startswith(LIBRARIES)


def user_source() -> Source | None:
    """Return the innermost line on the stack that is the user's, or None."""
    frame = user_frame()
    if frame is None:
        return None
    return Source(frame.f_code.co_filename, line_of(frame), frame.f_code.co_name, SCOPE.get())


# Python finds the line of a frame by a walk through a table of its code; for long code the lines
# are searched in a list instead. Code -> the code, where its lines start, and their numbers
_MAX_WALKED_BYTES, _MAX_LINE_TABLES = 2_000, 16
_line_tables: dict[int, tuple[CodeType, list[int], list[int | None]]] = {}


def line_of(frame: FrameType) -> int:
    """Return the line at which a frame is, in a time that does not grow with its code."""
    code = frame.f_code
    if len(code.co_linetable) <= _MAX_WALKED_BYTES:
        return frame.f_lineno
    table = _line_tables.get(id(code))
    if table is None:
        if len(_line_tables) >= _MAX_LINE_TABLES:
            _line_tables.clear()
        entries = [*code.co_lines()]
        table = code, [start for start, _, _ in entries], [line for _, _, line in entries]
        _line_tables[id(code)] = table
    _, starts, lines = table
    return lines[bisect_right(starts, frame.f_lasti) - 1] or frame.f_lineno


def user_frame(frame: FrameType | None = None) -> FrameType | None:
    """Return the innermost frame that is the user's, from a frame on or of the stack, or None."""
    frame = frame or sys._getframe(1)
    while frame is not None and not is_users_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line."""
    where = user_source()
    file, line = (where.file, where.line) if where is not None else (__file__, 1)
    warnings.warn_explicit(text, category, file, line)


# The code that calls the traced function, by its id; frames outside it are not searched. The hash
# of a code is computed from all its constants, each time.
OUTERMOST: set[int] = set()


def frames() -> Iterator[FrameType]:
    """Yield the frames of all code that the current trace has called."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and id(frame.f_code) not in OUTERMOST:
        yield frame
        frame = frame.f_back


def users_frames() -> Iterator[FrameType]:
    """Yield the frames of user code that the current trace has called."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and id(frame.f_code) not in OUTERMOST:
        if not is_wend_file(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def raised_at(error: BaseException) -> Source | None:
    """Return the innermost user line in an error's traceback, or None."""
    entry, innermost = error.__traceback__, None
    while entry is not None:
        code = entry.tb_frame.f_code
        if is_users_file(code.co_filename):
            innermost = Source(code.co_filename, entry.tb_lineno, code.co_name)
        entry = entry.tb_next
    return innermost


def at(source: Source | None) -> str:
    """Return ` at file.py:12`, or nothing where the line is unknown; for messages."""
    return f" at {source.short}" if source is not None else ""


def places(sources: Iterable[Source]) -> str:
    """Return ` at file.py:3, 5-7`: the lines of each file, in order; nothing if there are none."""
    lines: dict[str, set[int]] = {}
    for source in sources:
        lines.setdefault(os.path.basename(source.file), set()).add(source.line)
    texts = [
        f"{name}:{', '.join(_ranges(sorted(file_lines)))}" for name, file_lines in lines.items()
    ]
    return f" at {' and '.join(texts)}" if texts else ""


def _ranges(numbers: Sequence[int]) -> Iterator[str]:
    """Yield consecutive numbers as ranges."""
    for _, group in itertools.groupby(enumerate(numbers), lambda item: item[1] - item[0]):
        run = [number for _, number in group]
        yield f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run))
