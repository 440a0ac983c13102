"""In-place changes of arrays in one recording (D7).

A traced array is a reference to a value: `y = x` shares it, and `x[i] = v` makes it refer to
another value. A region has its own contents of the outer arrays that it changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wend.ir.graph import Value

if TYPE_CHECKING:
    from wend.trace.arrays.concrete_array import ConcreteTracedArray
    from wend.trace.arrays.tracer import Tracer


@dataclass(frozen=True)
class MutationSnapshot:
    """The contents of changed arrays at some point of a recording.

    Attributes:
        own: the values of the recording's own changed arrays, by id.
        outer: the outer arrays that it has changed, with their values in it.
        promotions: the arrays made in the trace that have become traced, with their tracers.
    """

    own: dict[int, Value]
    outer: dict[int, tuple[Tracer, Value]]
    promotions: tuple[tuple[ConcreteTracedArray, Tracer], ...]


class MutationLog:
    """The arrays that a recording has changed in place.

    Attributes:
        promotions: arrays made in the trace that have become traced; one list for all recordings
            of a function.
    """

    def __init__(self, promotions: list[tuple[ConcreteTracedArray, Tracer]]) -> None:
        self.promotions = promotions
        self._outer: dict[int, tuple[Tracer, Value]] = {}
        self._own: dict[int, tuple[Tracer, Value]] = {}  # with the value before the first write
        self._first_write: dict[int, int] = {}

    def write_own(self, ref: Tracer, value: Value, position: int) -> None:
        """Note a write to an array of this recording, and do it.

        Args:
            ref: the array.
            value: its new value.
            position: the number of nodes that precede the write.
        """
        self._own.setdefault(id(ref), (ref, ref.value))
        self._first_write.setdefault(id(ref), position)
        ref.value = value

    def write_outer(self, ref: Tracer, value: Value) -> None:
        """Note a write to an outer array: it has another value in this region only."""
        self._outer[id(ref)] = ref, value

    def outer_value(self, ref: Tracer) -> Value | None:
        """Return the value of an outer array in this region, if the region may change it."""
        _, value = self._outer.get(id(ref), (None, None))
        return value

    def outer_refs(self) -> list[Tracer]:
        """Return the outer arrays that this region changes, or was opened for."""
        return [ref for ref, _ in self._outer.values()]

    def first_write(self, ref: Tracer) -> int:
        """Return the number of nodes that precede the first write to an array."""
        return self._first_write.get(id(ref), 0)

    def snapshot(self) -> MutationSnapshot:
        """Return what `restore` needs to forget later writes."""
        own = {key: ref.value for key, (ref, _) in self._own.items()}
        return MutationSnapshot(own, dict(self._outer), tuple(self.promotions))

    def restore(self, snapshot: MutationSnapshot) -> None:
        """Forget the writes since a snapshot."""
        for key, (ref, first_value) in self._own.items():
            ref.value = snapshot.own.get(key, first_value)
        self._outer = dict(snapshot.outer)
        for array, _ in self.promotions:
            array.become(None)
        for array, ref in snapshot.promotions:
            array.become(ref)
        self.promotions[:] = snapshot.promotions

    def clear(self) -> None:
        """Hold no array any more."""
        self.promotions = []
        self._own.clear()
        self._outer.clear()
