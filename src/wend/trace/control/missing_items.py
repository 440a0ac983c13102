"""The texts of Python's errors for items that a container does not have."""

from __future__ import annotations


class _Braces:
    """An item that is shown as a field of a format string."""

    def __repr__(self) -> str:
        return "{}"


def text_of_missing(kind: type, method: str) -> str:
    """Return the text of a method's error as a format string; it may have a field for the item."""
    try:
        getattr(kind(), method)(_Braces())
    except ValueError as error:
        return str(error)
    raise AssertionError
