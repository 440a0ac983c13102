"""Zero: a cotangent known to be zero, without shape or dtype.

While a graph is built it stands for an absent cotangent; when a graph runs, it is the value
of a `maybe<T>` that nothing was added to.
"""

from __future__ import annotations

from typing import Final


class Zero:
    """The type of `ZERO`, the one symbolic zero."""

    __slots__ = ()
    _instance: Zero | None = None

    def __new__(cls) -> Zero:
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __repr__(self) -> str:
        return "ZERO"


ZERO: Final = Zero()
