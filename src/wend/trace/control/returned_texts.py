"""Texts in results: part of the structure, as they are the same in every run of a trace."""

from __future__ import annotations

from typing import Any

from wend.base import trees
from wend.base.marked_text import has_marks


class ReturnedText:
    """A text in a result; rebuilding the result gives the text itself."""

    def __init__(self, text: str | bytes) -> None:
        self.text = text


def with_returned_texts(result: Any) -> Any:
    """Return a result with nodes without leaves in place of its texts.

    Texts that show traced values stay, and are refused: only the run could write them.
    """
    return trees.map_instances((str, bytes), _node_of, result)


def _node_of(text: str | bytes) -> Any:
    is_known = type(text) in (str, bytes) and not (isinstance(text, str) and has_marks(text))
    return ReturnedText(text) if is_known else text


trees.register_node(ReturnedText, lambda value: ((), value.text), lambda text, children: text)
