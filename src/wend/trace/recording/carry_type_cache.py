"""Carry types that loops were unified to when an enclosing loop was last traced.

A loop is traced until the types of its carry reach a fixpoint. Each round traces the inner loops
again. Starting these from their last types saves their own rounds, which would double the time for
each level of nesting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wend.ir.types import TensorType, Type
from wend.trace.recording.arguments import LeafType


class CarryTypeCache:
    """The last carry types of one loop, and the caches of the loops in its regions."""

    def __init__(self, where: str = "") -> None:
        self.where = where
        self._entry: list[LeafType] = []
        self._unified: list[LeafType] = []
        self._regions: dict[str, CarryTypeCache] = {}
        self._loops: list[CarryTypeCache] = []
        self._next = 0

    def region(self, name: str) -> CarryTypeCache:
        """Return the cache of a region, which is about to be traced from its start."""
        region = self._regions.setdefault(name, CarryTypeCache())
        region._next = 0
        return region

    def loop(self, where: str) -> CarryTypeCache:
        """Return the cache of the next loop; a new one if there was another loop at this point."""
        k = self._next
        self._next += 1
        if k >= len(self._loops) or self._loops[k].where != where:
            self._loops[k:] = [CarryTypeCache(where)]
        return self._loops[k]

    def start(self, entry: Sequence[LeafType]) -> list[LeafType]:
        """Return the types to start from: the last ones for leaves that enter with the same type.

        Types only widen from round to round, so the fixpoint is the same.
        """
        is_same_length = len(entry) == len(self._entry)
        pairs = zip(self._entry, self._unified, strict=True)
        previous = list(pairs) if is_same_length else [(type, type) for type in entry]
        self._entry = list(entry)
        self._unified = [
            _with_unified_dtype(entry_type, old_unified) if entry_type == old_entry else entry_type
            for entry_type, (old_entry, old_unified) in zip(entry, previous, strict=True)
        ]
        return list(self._unified)

    def record(self, types: Sequence[LeafType]) -> None:
        """Remember the unified types of the carry."""
        if len(types) == len(self._entry):
            self._unified = list(types)


def _with_unified_dtype(entry: LeafType, unified: LeafType) -> LeafType:
    """Return a type with the dtype of the unified one; sizes are those on entry."""
    type: Type = entry.type
    return (
        replace(unified, type=type.with_dtype(unified.type.dtype))
        if isinstance(type, TensorType)
        else entry
    )
