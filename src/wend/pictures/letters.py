"""Text in pictures: its width, truncation and XML escaping."""

from __future__ import annotations

import html
import unicodedata

TITLE, SMALL = 12.0, 10.0  # font sizes, in pixels
_ADVANCE_PER_SIZE = 0.602  # width of a letter in monospaced fonts, per font size


def width(text: str, size: float = TITLE) -> float:
    """Return the width of a text in a monospaced font."""
    cells = sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
    return cells * size * _ADVANCE_PER_SIZE


def cut(text: str, max_length: int) -> str:
    """Return a text on one line, truncated to `max_length` letters."""
    line = " ".join(text.split())
    return line if len(line) <= max_length else line[: max_length - 1] + "…"


def escaped(text: str) -> str:
    """Return a text escaped for XML; characters that XML does not allow are replaced."""
    return html.escape(
        "".join(letter if _is_xml_char(letter) else "\N{REPLACEMENT CHARACTER}" for letter in text)
    )


def _is_xml_char(letter: str) -> bool:
    return letter in "\t\n\r" or (
        letter >= " " and not "\ud800" <= letter <= "\udfff" and letter not in "\ufffe\uffff"
    )
