"""In-place changes of arrays in one recording (D7).

A traced array is a reference to a value: `y = x` shares it, and `x[i] = v` makes it refer to
another value. A region has its own contents of the outer arrays that it changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Value

if TYPE_CHECKING:
    from wend.trace.arrays.concrete_array import ConcreteTracedArray
    from wend.trace.arrays.tracer import Tracer


@dataclass(frozen=True)
class MutationSnapshot:
    """The contents of changed arrays at some point of a recording.

    Attributes:
        local: the values of the recording's changed arrays, by id.
        outer: the changed outer arrays, with their values in this recording.
        promotions: the concrete arrays that have become traced, with their tracers.
    """

    local: dict[int, Value]
    outer: dict[int, tuple[Tracer, Value]]
    promotions: tuple[tuple[ConcreteTracedArray, Tracer], ...]


class MutationLog:
    """The arrays that a recording has changed in place.

    Attributes:
        promotions: concrete arrays that have become traced; one list for all recordings of a
            function.
    """

    def __init__(self, promotions: list[tuple[ConcreteTracedArray, Tracer]]) -> None:
        self.promotions = promotions
        self._outer: dict[int, tuple[Tracer, Value]] = {}
        self._local: dict[int, tuple[Tracer, Value]] = {}  # with the value before the first write
        self._first_write: dict[int, int] = {}

    def write_local(self, ref: Tracer, value: Value, position: int) -> None:
        """Write to an array of this recording, and log the write.

        Args:
            ref: the array.
            value: its new value.
            position: the number of nodes that precede the write.
        """
        self._local.setdefault(id(ref), (ref, ref.value))
        self._first_write.setdefault(id(ref), position)
        ref.value = value

    def first_value(self, ref: Tracer) -> Value:
        """Return the value of an array of this recording before its first write."""
        return self._local.get(id(ref), (ref, ref.value))[1]

    def write_outer(self, ref: Tracer, value: Value) -> None:
        """Log a write to an outer array, which has another value in this region only."""
        self._outer[id(ref)] = ref, value

    def outer_value(self, ref: Tracer) -> Value | None:
        """Return the value of an outer array in this region, if the region may change it."""
        _, value = self._outer.get(id(ref), (None, None))
        return value

    def local_refs(self) -> list[Tracer]:
        """Return the arrays of this recording that were written to."""
        return [ref for ref, _ in self._local.values()]

    def outer_refs(self) -> list[Tracer]:
        """Return the outer arrays that this region changes or has params for."""
        return [ref for ref, _ in self._outer.values()]

    def first_write(self, ref: Tracer) -> int:
        """Return the number of nodes that precede the first write to an array."""
        return self._first_write.get(id(ref), 0)

    def snapshot(self) -> MutationSnapshot:
        """Return the state that `restore` goes back to."""
        local = {key: ref.value for key, (ref, _) in self._local.items()}
        return MutationSnapshot(local, dict(self._outer), tuple(self.promotions))

    def restore(self, snapshot: MutationSnapshot) -> None:
        """Undo the writes since a snapshot."""
        for key, (ref, first_value) in self._local.items():
            ref.value = snapshot.local.get(key, first_value)
        self._outer = dict(snapshot.outer)
        for array, _ in self.promotions:
            array.become(None)
        for array, ref in snapshot.promotions:
            array.become(ref)
        self.promotions[:] = snapshot.promotions

    def clear(self) -> None:
        """Release all arrays."""
        self.promotions = []
        self._local.clear()
        self._outer.clear()
