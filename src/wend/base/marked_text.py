"""Invisible marks that tell the text of a traced value from any other text.

Python code that wend does not see joins texts freely: a dataclass writes its fields, a list its
items. A mark survives this. It starts and ends with a character that shows nothing (a variation
selector that no script uses), and holds a number.
"""

from __future__ import annotations

import re

_START, _END = "\U000e01ee", "\U000e01ef"
_ZERO = 0xE01E0
_DIGITS = "".join(chr(_ZERO + digit) for digit in range(10))
_TO_DIGITS = {_ZERO + digit: str(digit) for digit in range(10)}
_FROM_DIGITS = {ord(text): code for code, text in _TO_DIGITS.items()}
_MARKED = re.compile(f"{_START}([^{_START}{_END}{_DIGITS}]*)([{_DIGITS}]+){_END}")
_MARK_CHARACTERS = re.compile(f"[{_START}{_END}{_DIGITS}]")


def mark(text: str, number: int) -> str:
    """Return a text with the mark of a number."""
    return f"{_START}{text}{str(number).translate(_FROM_DIGITS)}{_END}"


def has_marks(text: str) -> bool:
    """Return whether a text has a mark, or what is left of one."""
    return not str.isascii(text) and _MARK_CHARACTERS.search(text) is not None


def split_marks(text: str) -> list[str | tuple[str, int]]:
    """Return the parts of a text: plain texts, and each marked text with its number.

    Raises:
        ValueError: a mark is not whole.
    """
    literal, *fields = _MARKED.split(text)
    parts: list[str | tuple[str, int]] = [literal]
    for shown, digits, following in zip(fields[::3], fields[1::3], fields[2::3], strict=True):
        parts += [(shown, int(digits.translate(_TO_DIGITS))), following]
    if any(isinstance(part, str) and _MARK_CHARACTERS.search(part) for part in parts):
        raise ValueError("a mark is not whole")
    return [part for part in parts if part]


def without_marks(text: str) -> str:
    """Return a text as it is shown."""
    return _MARK_CHARACTERS.sub("", str.__str__(text))
