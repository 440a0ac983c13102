"""Captures by value: outer arrays and variables become constants of the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wend.base.errors import TypeMismatchError, explain
from wend.ir.graph import Value
from wend.ops.build import Build


class FrozenCaptures:
    """The constants for the outer arrays and variables that one trace reads.

    An array that changes between two reads becomes two constants, so each read sees the
    contents that Python would have seen.
    """

    def __init__(self, b: Build, name: str) -> None:
        self.b, self.name = b, name
        # By id: the array, kept alive so that the id stays unique, its contents, its constant.
        self._constants: dict[int, tuple[Any, np.ndarray, Value]] = {}

    def array(self, array: Any) -> Value:
        """Return the constant for an array."""
        _, contents, value = self._constants.get(id(array), (None, None, None))
        if (
            value is not None
            and contents is not None
            and _is_identical(contents, np.asarray(array))
        ):
            return value
        value = self.b.constant(array)
        assert value.node is not None
        self._constants[id(array)] = array, value.node.attrs["value"], value
        return value

    def variable(self, variable: Any, is_assigned: Callable[[Any], bool]) -> Value:
        """Return the constant for the value of a variable.

        Raises:
            TypeMismatchError: an enclosing trace has assigned to it (`is_assigned`), so its value
                is only known at run time.
        """
        if is_assigned(variable):
            raise TypeMismatchError(
                explain(
                    f"{self.name} captures by value {_describe(variable)}, which the function "
                    "around it has assigned to: what it holds is known only when that runs.",
                    cure="pass what it holds as an argument, or leave out capture_by_value.",
                )
            )
        return self.array(variable.concrete)

    def assignment_error(self, variable: Any) -> Exception:
        """Return the error for an assignment to a variable."""
        return TypeMismatchError(
            explain(
                f"{self.name} assigns to {_describe(variable)}, but captures by value: variables "
                "are constants there.",
                cure="return the new value and assign it outside, or leave out capture_by_value.",
            )
        )


def _is_identical(old: np.ndarray, new: np.ndarray) -> bool:
    """Return whether two arrays are equal bit for bit: −0 differs from 0, NaN equals itself."""
    return old.shape == new.shape and old.tobytes() == new.tobytes()


def _describe(variable: Any) -> str:
    return f"Variable {variable.name!r}" if variable.name else repr(variable)
