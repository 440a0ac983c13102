"""Checks that captured NumPy arrays are not changed while a function is traced."""

from __future__ import annotations

import zlib

import numpy as np

from wend.base.errors import TypeMismatchError, explain
from wend.base.lazy.dataclass import dataclass
from wend.base.source import Source, at, user_source
from wend.ir.graph import Graph, Value
from wend.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class _CapturedRead:
    """A captured array, the checksum of its contents at its first use, and where that was."""

    array: np.ndarray
    checksum: int
    source: Source | None


class CapturedArrayReads:
    """The arrays that a function under construction has captured by reference.

    Code that wend does not see may change one during the trace. The graph would then use the new
    contents in operations that were recorded before the change.
    """

    def __init__(self) -> None:
        self._reads: dict[Value, _CapturedRead] = {}

    def note(self, value: Value, array: np.ndarray) -> None:
        """Remember the contents of the array that a value of the graph stands for."""
        self._reads[value] = _CapturedRead(array, _checksum(array), user_source())

    def check(self, graph: Graph) -> None:
        """Check the arrays that the graph reads for changes.

        Raises:
            TypeMismatchError: one has changed since it was used.
        """
        used = {*graph.results, *(operand for node in graph.nodes for operand in node.operands)}
        for value, read in self._reads.items():
            if value in used and _checksum(read.array) != read.checksum:
                type = TensorType(read.array.dtype, read.array.shape)
                raise TypeMismatchError(
                    explain(
                        f"a concrete array, {type}, is used{at(read.source)} and then "
                        f"changed in place in {graph.name}: what was computed from it would "
                        "change too.",
                        cure="change a copy: x = x.copy() before.",
                    )
                )

    def clear(self) -> None:
        """Release all arrays."""
        self._reads.clear()


def _checksum(array: np.ndarray) -> int:
    return zlib.crc32(np.ascontiguousarray(array).data)
