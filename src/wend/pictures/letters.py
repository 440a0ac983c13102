"""Texts of pictures: how wide they are, cut to a width, and escaped."""

from __future__ import annotations

import html
import unicodedata

TITLE, SMALL = 12.0, 10.0  # sizes of letters, in pixels
_PER_SIZE = 0.602  # how wide a letter of the fonts with equal letters is


def width(text: str, size: float = TITLE) -> float:
    """How wide a text is, in a font whose letters are equally wide."""
    cells = sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
    return cells * size * _PER_SIZE


def cut(text: str, most: int) -> str:
    """A text on one line, of at most so many letters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def escaped(text: str) -> str:
    """A text as XML holds it; what XML cannot hold is shown as a question mark."""
    return html.escape(
        "".join(letter if _is_allowed(letter) else "\N{REPLACEMENT CHARACTER}" for letter in text)
    )


def _is_allowed(letter: str) -> bool:
    return letter in "\t\n\r" or (
        letter >= " " and not "\ud800" <= letter <= "\udfff" and letter not in "\ufffe\uffff"
    )
