"""A status line at the bottom of the terminal, redrawn in place while something takes long.

It is erased when nothing is left to report, and before anything else is written, so that a print
or an error starts on a clean line. It is drawn by rich where that is installed.
"""

from __future__ import annotations

import atexit
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, TextIO

from wend.base.locks import Rank, lock_of

# A text with the name of a rich style; "": none.
Part = tuple[str, str]

_BETWEEN: Part = ("  ·  ", "dim")


def is_watched() -> bool:
    """Return whether the line would be visible."""
    return _is_terminal(sys.stderr)


class Status:
    """The status line; messages are ordered by start time, as in nested loops."""

    def __init__(self) -> None:
        self._messages: dict[object, tuple[float, Sequence[Part]]] = {}
        # Re-entrant: a signal's handler may print while a line is drawn.
        self._lock = lock_of(Rank.STATUS_LINE)
        self._terminal: TextIO | None = None  # where the line is, while there is one
        # Created once and kept: `print` borrows a reference to the stream that it writes to.
        self._streams = {"stdout": _ErasingStream(self), "stderr": _ErasingStream(self)}

    def show(self, owner: object, parts: Sequence[Part], began: float) -> None:
        """Set the message of an owner, which began then; messages of later owners are over."""
        with self._lock:
            self._messages = {
                k: message for k, message in self._messages.items() if message[0] < began
            }
            self._messages[owner] = began, parts
            self._draw()

    def drop(self, owner: object) -> None:
        """Remove the message of an owner."""
        with self._lock:
            if self._messages.pop(owner, None) is not None:
                self._draw()

    def erase(self) -> None:
        """Erase the line, so that others can write."""
        with self._lock:
            self._messages.clear()
            if self._terminal is not None:
                _write(self._terminal, "")
                sys.stdout, sys.stderr = _unwrap(sys.stdout), _unwrap(sys.stderr)
                self._terminal = None
                atexit.unregister(self.erase)

    def _draw(self) -> None:
        if not self._messages:
            self.erase()
            return
        if self._terminal is None and is_watched():
            self._begin()
        if self._terminal is not None:
            line_parts = [
                part for _, parts in self._messages.values() for part in (_BETWEEN, *parts)
            ]
            _write(self._terminal, _text(self._terminal, line_parts[1:]))

    def _begin(self) -> None:
        self._terminal = _unwrap(sys.stderr)
        for name, wrapper in self._streams.items():
            stream = _unwrap(getattr(sys, name))
            if _is_terminal(stream):
                wrapper.stream = stream
                setattr(sys, name, wrapper)
        atexit.register(self.erase)


class _ErasingStream:
    """A stream that erases the status line before each write."""

    stream: TextIO

    def __init__(self, status: Status) -> None:
        self._status = status

    def write(self, text: str) -> int:
        self._status.erase()
        return self.stream.write(text)

    def writelines(self, texts: Iterable[str]) -> None:
        self._status.erase()
        self.stream.writelines(texts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def _unwrap(stream: Any) -> Any:
    return stream.stream if isinstance(stream, _ErasingStream) else stream


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _write(stream: TextIO, text: str) -> None:
    stream.write(f"\r{text}\x1b[K")
    stream.flush()


def _text(stream: TextIO, parts: Sequence[Part]) -> str:
    """Return the parts as one text, cut to the terminal's width."""
    width = shutil.get_terminal_size().columns - 1
    try:
        from rich.console import Console
        from rich.text import Text
    except ImportError:
        return "".join(text for text, _ in parts)[:width]
    text = Text.assemble(*parts, no_wrap=True, end="")
    text.truncate(width, overflow="ellipsis")
    console = Console(file=stream, width=width + 1)
    with console.capture() as capture:
        console.print(text, end="")
    return capture.get()


status = Status()


@contextmanager
def reporting() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a text in place of the previous one, until the block ends."""
    owner, began = object(), perf_counter()
    try:
        yield lambda text: status.show(owner, [(text, "")], began)
    finally:
        status.drop(owner)
