"""The functions that compiled programs of another system call."""

from __future__ import annotations

import itertools

from wend.interop.flat_function import FlatFunction


class NumberedFunctions:
    """Functions by the numbers that compiled programs hold.

    The other system does not tell when it drops a program, so an entry stays for each function
    that was compiled into one.
    """

    def __init__(self) -> None:
        self._functions: dict[int, FlatFunction] = {}
        self._numbers = itertools.count()

    def number_of(self, function: FlatFunction) -> int:
        """Return the number of a function; it gets one at the first request."""
        if function.number is None:
            number = next(self._numbers)
            self._functions[number] = function  # before another thread may read the number
            function.number = number
        return function.number

    def __getitem__(self, number: int) -> FlatFunction:
        return self._functions[number]
