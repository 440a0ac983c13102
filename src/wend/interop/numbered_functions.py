"""The functions that compiled programs of another system call."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterator
from typing import Any

from wend.interop.flat_function import FlatFunction


class NumberedFunctions:
    """Functions by the numbers that programs hold."""

    def __init__(self) -> None:
        self._functions: dict[int, weakref.ref[FlatFunction]] = {}
        self._of_programs: dict[int, FlatFunction] = {}
        self._numbers = itertools.count()

    def number_of(self, function: FlatFunction) -> int:
        """Return the number of a function, for a compiled program.

        The other system does not tell when it drops a program, so the function is kept.
        """
        number = self.passing_number_of(function)
        self._of_programs[number] = function
        return number

    def passing_number_of(self, function: FlatFunction) -> int:
        """Return the number of a function, for a call by who holds it.

        It gets one at the first request.
        """
        if function.number is None:
            number = next(self._numbers)

            def forget(_: Any) -> None:
                del self._functions[number]

            # Before another thread may read the number
            self._functions[number] = weakref.ref(function, forget)
            function.number = number
        return function.number

    def __getitem__(self, number: int) -> FlatFunction:
        function = self._functions[number]()
        assert function is not None
        return function

    def __iter__(self) -> Iterator[int]:
        return iter([*self._functions])
