"""Who holds references to the arrays in memory, decided while code is written.

Each value that is an array is *held* by the region that made it, or was handed over to it, and is
then released after its last use or handed on; or it is *borrowed* from an outer region, which
keeps it alive meanwhile. Memory that is not the pool's (arguments, constants) is *foreign*: it has
no count, is only read, and is copied where a reference of one's own is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from wend.backends.native.codegen.arrays import Arrays
from wend.backends.native.target.value_layout import Registers, references
from wend.ir.graph import Node, Value
from wend.ir.types import TensorType, without_maybe


@dataclass(eq=False, repr=False, slots=True)
class References:
    """Writes by `arrays` what keeps arrays as long as they are needed, and no longer."""

    arrays: Arrays
    held: set[Value] = field(default_factory=set)
    foreign: set[Value] = field(default_factory=set)
    _movable: set[Value] = field(default_factory=set)
    _copies: list[str] = field(default_factory=list)

    def start(self, node: Node, last: Iterable[Value]) -> None:
        """Start with a node: `last` are operands that nobody takes after it or beside it."""
        self._movable = self.held.intersection(last)
        self.foreign.difference_update(node.results)

    def hold(self, value: Value) -> None:
        """A reference is handed over with a value."""
        self.foreign.discard(value)
        if references(value.type):
            self.held.add(value)

    def borrow(self, value: Value, owner: Value) -> None:
        """A value stands for another one of an outer region."""
        self.held.discard(value)
        (self.foreign.add if owner in self.foreign else self.foreign.discard)(value)

    def share(self, value: Value, owner: Value, pointer: str) -> None:
        """A result is the memory of an operand. Where it can be, it is handed over."""
        if owner in self.foreign:
            self.foreign.add(value)
        elif self.may_move(owner):
            self.held.discard(owner)
        else:
            self.arrays.retain(pointer)

    def mark_foreign(self, value: Value) -> None:
        """A result lies in memory that is not the pool's."""
        self.foreign.add(value)

    def add(self, value: Value) -> None:
        """A result has been written; unless it is foreign there is a reference with it."""
        if value not in self.foreign and references(value.type):
            self.held.add(value)

    def may_move(self, value: Value) -> bool:
        """Whether the node that is being written may take over the reference to a value."""
        return value in self._movable and value in self.held

    def move(self, value: Value) -> None:
        """A reference is handed on."""
        self.held.discard(value)

    def own(self, value: Value, slots: Registers, *, moves: bool) -> Registers:
        """A value with a reference of its own: moved if it may be, else shared or copied."""
        places = references(value.type)
        if not places:
            return slots
        if value in self.foreign:
            return self._copied(value, slots)
        if moves and value in self.held:
            self.held.discard(value)
            return slots
        for k in places:
            self.arrays.retain(slots[k])
        return slots

    def drop(self, value: Value, slots: Registers) -> None:
        """Release a value that is held."""
        if value in self.held:
            self.held.discard(value)
            for k in references(value.type):
                self.arrays.release(slots[k])

    def pooled(self, value: Value, slots: Registers) -> Registers:
        """A value in memory that has counts; a copy lives as long as its node is written."""
        if value not in self.foreign:
            return slots
        slots = self._copied(value, slots)
        self._copies += [slots[k] for k in references(value.type)]
        return slots

    def finish(self) -> None:
        """A node has been written."""
        for pointer in self._copies:
            self.arrays.release(pointer)
        self._copies.clear()

    def _copied(self, value: Value, slots: Registers) -> Registers:
        # What is foreign and may be absent is there: nothing else comes from outside.
        type = without_maybe(value.type)
        assert isinstance(type, TensorType)
        flag = slots[:1] if type is not value.type else ()
        array = self.arrays.of(type, slots[len(flag) :])
        return (*flag, *self.arrays.slots(type, self.arrays.copied(array)))
