"""Variables of loops over lanes, in stack slots that LLVM promotes to registers."""

from __future__ import annotations

from collections.abc import Sequence

from wend.backends.native.target.writer import Writer
from wend.base.lazy.dataclass import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class StackVariable:
    """A variable of a loop.

    Attributes:
        w: the writer of the function.
        type: its LLVM type.
        address: where it is.
    """

    w: Writer
    type: str
    address: str

    @staticmethod
    def of(w: Writer, type: str, start: str) -> StackVariable:
        """Emit a variable and its first value."""
        variable = StackVariable(w, type, w.allocate(type))
        variable.store(start)
        return variable

    def load(self) -> str:
        """Emit its value."""
        return self.w.define(f"load {self.type}, ptr {self.address}")

    def store(self, value: str) -> None:
        """Emit an assignment."""
        self.w.do(f"store {self.type} {value}, ptr {self.address}")


@dataclass(frozen=True, eq=False, slots=True)
class StackVariables:
    """The variables of the values of a loop; lists, which are named by empty texts, have none."""

    variables: Sequence[StackVariable | None]

    @staticmethod
    def of(w: Writer, types: Sequence[str], starts: Sequence[str]) -> StackVariables:
        """Emit variables and their first values."""
        pairs = zip(types, starts, strict=True)
        return StackVariables(
            [StackVariable.of(w, type, start) if start else None for type, start in pairs]
        )

    def load(self) -> list[str]:
        """Emit their values."""
        return ["" if x is None else x.load() for x in self.variables]

    def store(self, values: Sequence[str]) -> None:
        """Emit assignments."""
        for variable, value in zip(self.variables, values, strict=True):
            if variable is not None:
                variable.store(value)
