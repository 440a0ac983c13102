"""What a terminal shows below all else while something takes long: one line, drawn over and over.

It goes when nobody has anything to say any more, and before anybody else writes: so a print, or an
error, finds a clean line. Drawn by rich where that is installed.
"""

from __future__ import annotations

import atexit
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, TextIO

# A text with rich's name of a style; "": none.
Part = tuple[str, str]

_BETWEEN: Part = ("  ·  ", "dim")


def is_watched() -> bool:
    """Whether a line would be seen."""
    return _is_terminal(sys.stderr)


class Status:
    """The line; who says something stands before those that began later, as in nested loops."""

    def __init__(self) -> None:
        self._told: dict[object, tuple[float, Sequence[Part]]] = {}
        self._lock = threading.RLock()  # a signal's handler may print while a line is drawn
        self._terminal: TextIO | None = None  # where the line is, while there is one
        # These live as long as this: `print` borrows the stream that it writes to.
        self._shy = {"stdout": _Shy(self), "stderr": _Shy(self)}

    def show(self, owner: object, parts: Sequence[Part], began: float) -> None:
        """Let somebody say something else.

        Args:
            owner: who it is.
            parts: what there is to say.
            began: since when he has something to say; what began later is over.
        """
        with self._lock:
            self._told = {k: told for k, told in self._told.items() if told[0] < began}
            self._told[owner] = began, parts
            self._draw()

    def drop(self, owner: object) -> None:
        """Let somebody say nothing any more."""
        with self._lock:
            if self._told.pop(owner, None) is not None:
                self._draw()

    def erase(self) -> None:
        """Make room for what others write."""
        with self._lock:
            self._told.clear()
            if self._terminal is not None:
                _write(self._terminal, "")
                sys.stdout, sys.stderr = _bare(sys.stdout), _bare(sys.stderr)
                self._terminal = None
                atexit.unregister(self.erase)

    def _draw(self) -> None:
        if not self._told:
            self.erase()
            return
        if self._terminal is None and is_watched():
            self._begin()
        if self._terminal is not None:
            told = [part for _, parts in self._told.values() for part in (_BETWEEN, *parts)]
            _write(self._terminal, _text(self._terminal, told[1:]))

    def _begin(self) -> None:
        self._terminal = _bare(sys.stderr)
        for name, shy in self._shy.items():
            stream = _bare(getattr(sys, name))
            if _is_terminal(stream):
                shy.stream = stream
                setattr(sys, name, shy)
        atexit.register(self.erase)


class _Shy:
    """A stream before which the line goes."""

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


def _bare(stream: Any) -> Any:
    return stream.stream if isinstance(stream, _Shy) else stream


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _write(stream: TextIO, text: str) -> None:
    stream.write(f"\r{text}\x1b[K")
    stream.flush()


def _text(stream: TextIO, parts: Sequence[Part]) -> str:
    """Parts as one text, cut to the terminal's width."""
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
    """Give a function that shows a text in place of the one before, while the block runs."""
    owner, began = object(), perf_counter()
    try:
        yield lambda text: status.show(owner, [(text, "")], began)
    finally:
        status.drop(owner)
