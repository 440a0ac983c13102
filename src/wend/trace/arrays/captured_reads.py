"""NumPy arrays that a graph reads: they hold at the end of the trace what they held when it did."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from wend.base.errors import TypeMismatchError, explain
from wend.base.source import Source, at, user_source
from wend.ir.graph import Graph, Value
from wend.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class _Read:
    """An array, what it held when it was first used, and where that was."""

    array: np.ndarray
    checksum: int
    source: Source | None


class CapturedArrayReads:
    """The arrays that a function under way has captured by reference.

    Python may change one while it is traced, in code that wend does not see. The graph would have
    the new numbers where it was used before.
    """

    def __init__(self) -> None:
        self._reads: dict[Value, _Read] = {}

    def note(self, value: Value, array: np.ndarray) -> None:
        """Remember what an array holds that a value of the graph stands for."""
        self._reads[value] = _Read(array, _checksum(array), user_source())

    def check(self, graph: Graph) -> None:
        """Look at the arrays again that the graph reads.

        Raises:
            TypeMismatchError: one has changed since it was used.
        """
        used = {*graph.results, *(operand for node in graph.nodes for operand in node.operands)}
        for value, read in self._reads.items():
            if value in used and _checksum(read.array) != read.checksum:
                kind = TensorType(read.array.dtype, read.array.shape)
                raise TypeMismatchError(
                    explain(
                        f"an array that Python knows, {kind}, is used{at(read.source)} and then "
                        f"changed in place in {graph.name}: what was computed of it would change "
                        "too.",
                        cure="change a copy: x = x.copy() before.",
                    )
                )

    def clear(self) -> None:
        """Hold no array any more."""
        self._reads.clear()


def _checksum(array: np.ndarray) -> int:
    return zlib.crc32(np.ascontiguousarray(array).data)
