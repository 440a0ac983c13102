"""A line that says how far a long computation is; nothing where nobody watches."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """Give a function that shows a text in place of the one before, on a terminal's stderr.

    It is drawn by rich where that is installed.
    """
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    try:
        from rich.console import Console
    except ImportError:
        try:
            yield _write_line
        finally:
            _write_line("")
    else:
        with Console(stderr=True).status("") as status:
            yield lambda text: status.update(text)


def _write_line(text: str) -> None:
    """Put a text in place of the line, cut to its width."""
    width = shutil.get_terminal_size().columns - 1
    print(f"\r{text[:width]}\x1b[K", end="", file=sys.stderr, flush=True)
