"""What loops settled on when the loop around them was traced before.

A loop is traced until the types of its carry are settled. Each round traces the loops inside it
again, which would take as many rounds as the first time: twice as long for each level of a nest.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.types import TensorType, Type
from wend.trace.recording.arguments import LeafType


class CarryTypeCache:
    """Of one loop: the types that its carry settled on, and the loops in its regions."""

    def __init__(self, where: str = "") -> None:
        self.where = where
        self._entry: list[LeafType] = []
        self._settled: list[LeafType] = []
        self._regions: dict[str, CarryTypeCache] = {}
        self._loops: list[CarryTypeCache] = []
        self._next = 0

    def region(self, name: str) -> CarryTypeCache:
        """Of one of its regions, which is traced once more from its start."""
        found = self._regions.setdefault(name, CarryTypeCache())
        found._next = 0
        return found

    def loop(self, where: str) -> CarryTypeCache:
        """Of the loop that is met next; a new one if another was met here before."""
        k = self._next
        self._next += 1
        if k >= len(self._loops) or self._loops[k].where != where:
            self._loops[k:] = [CarryTypeCache(where)]
        return self._loops[k]

    def start(self, entry: Sequence[LeafType]) -> list[LeafType]:
        """The types to begin with: those settled on, where a leaf enters as it did before.

        Types only grow from round to round, so they would be found again.
        """
        known = len(entry) == len(self._entry)
        pairs = zip(self._entry, self._settled, strict=True)
        last = list(pairs) if known else [(type, type) for type in entry]
        self._entry = list(entry)
        self._settled = [
            _as_settled(now, settled) if now == before else now
            for now, (before, settled) in zip(entry, last, strict=True)
        ]
        return list(self._settled)

    def settle(self, types: Sequence[LeafType]) -> None:
        """Remember what the carry settled on."""
        if len(types) == len(self._entry):
            self._settled = list(types)


def _as_settled(entry: LeafType, settled: LeafType) -> LeafType:
    """A type with the dtype that was settled on; sizes are the loop's own."""
    type: Type = entry.type
    return (
        LeafType(type.with_dtype(settled.type.dtype), settled.weak)
        if isinstance(type, TensorType)
        else entry
    )
