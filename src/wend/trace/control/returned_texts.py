"""Texts in results: part of the structure, as they are the same in every run of a trace."""

from __future__ import annotations

from typing import Any

from wend.base import trees
from wend.base.marked_text import has_marks


class ReturnedText:
    """A text in a result; rebuilding the result gives the text itself."""

    def __init__(self, text: str | bytes) -> None:
        self.text = text


def returned_text(text: str | bytes) -> Any:
    """Return a node without leaves for a text.

    One that shows traced values stays, and is refused: only the run could write it.
    """
    is_known = type(text) in (str, bytes) and not (isinstance(text, str) and has_marks(text))
    return ReturnedText(text) if is_known else text


trees.register_node(ReturnedText, lambda value: ((), value.text), lambda text, children: text)
