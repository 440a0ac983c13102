"""Zero: a cotangent known to be zero, without shape or dtype.

In a graph under construction it stands for an absent cotangent; at run time it is the value of a
`maybe<T>` that nothing was added to.
"""

from __future__ import annotations

from typing import Final


class Zero:
    """The type of `ZERO`, the only symbolic zero."""

    __slots__ = ()
    _instance: Zero | None = None

    def __new__(cls) -> Zero:
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __repr__(self) -> str:
        return "ZERO"


ZERO: Final = Zero()
