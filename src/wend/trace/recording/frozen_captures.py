"""Captures by value: what a function reads from outside is what it was when it was traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wend.base.errors import TypeMismatchError, explain
from wend.ir.graph import Value
from wend.ops.build import Build


class FrozenCaptures:
    """The constants that stand for arrays and variables from outside in one trace.

    An array that has been changed since it was last read becomes another constant: what Python
    would have seen at that point of the program.
    """

    def __init__(self, b: Build, name: str) -> None:
        self.b, self.name = b, name
        # The array is kept, so its id stays its own; with it what it held.
        self._known: dict[int, tuple[Any, np.ndarray, Value]] = {}

    def array(self, array: Any) -> Value:
        """The constant for an array."""
        _, then, value = self._known.get(id(array), (None, None, None))
        if value is not None and then is not None and _is_same(then, np.asarray(array)):
            return value
        value = self.b.constant(array)
        assert value.node is not None
        self._known[id(array)] = array, value.node.attrs["value"], value
        return value

    def variable(self, variable: Any, is_assigned: Callable[[Any], bool]) -> Value:
        """The constant for what a variable holds.

        Raises:
            TypeMismatchError: a trace around this one has assigned to it (`is_assigned`): what it
                holds there is known only when that runs.
        """
        if is_assigned(variable):
            raise TypeMismatchError(
                explain(
                    f"{self.name} captures by value {_named(variable)}, which the function around "
                    "it has assigned to: what it holds is known only when that runs.",
                    cure="pass what it holds as an argument, or leave out capture_by_value.",
                )
            )
        return self.array(variable.concrete)

    def assigned(self, variable: Any) -> Exception:
        """The error for an assignment."""
        return TypeMismatchError(
            explain(
                f"{self.name} assigns to {_named(variable)}, but captures by value: variables are "
                "constants there.",
                cure="return the new value and assign it outside, or leave out capture_by_value.",
            )
        )


def _is_same(then: np.ndarray, now: np.ndarray) -> bool:
    """Whether an array holds what it did, to the bit: −0 is not 0, and NaN is itself."""
    return then.shape == now.shape and then.tobytes() == now.tobytes()


def _named(variable: Any) -> str:
    return f"Variable {variable.name!r}" if variable.name else repr(variable)
