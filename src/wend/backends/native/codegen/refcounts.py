"""Ownership of references to arrays, decided at compile time.

An array value is *held* by the region that created it, or that received it with a reference; the
region releases it after its last use or hands it on. Otherwise it is *borrowed* from an outer
region, which keeps it alive. Memory that is not from the pool (arguments, constants) is *foreign*:
it has no count, is read-only, and is copied where an owned reference is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from wend.backends.native.codegen.arrays import Arrays
from wend.backends.native.target.value_layout import Registers, references
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Node, Value
from wend.ir.types import TensorType, without_maybe


@dataclass(eq=False, repr=False, slots=True)
class References:
    """Emits retains and releases that keep arrays alive exactly as long as needed.

    Attributes:
        arrays: emits the operations on reference counts.
        held: the values whose references the current region holds.
        foreign: the values in memory without a reference count.
    """

    arrays: Arrays
    held: set[Value] = field(default_factory=set)
    foreign: set[Value] = field(default_factory=set)
    _movable: set[Value] = field(default_factory=set)
    _copies: list[str] = field(default_factory=list)

    def begin_node(self, node: Node, last: Iterable[Value]) -> None:
        """Begin a node; `last` are the operands of which it is the sole last user."""
        self._movable = self.held.intersection(last)
        self.foreign.difference_update(node.results)

    def hold(self, value: Value) -> None:
        """Take over the reference that is handed over with a value."""
        self.foreign.discard(value)
        if references(value.type):
            self.held.add(value)

    def borrow(self, value: Value, owner: Value) -> None:
        """Make a value stand for another value, of an outer region, that keeps the reference."""
        self.held.discard(value)
        (self.foreign.add if owner in self.foreign else self.foreign.discard)(value)

    def share(self, value: Value, owner: Value, pointer: str) -> None:
        """Make a result share the memory of an operand, moving its reference if possible."""
        if owner in self.foreign:
            self.foreign.add(value)
        elif self.may_move(owner):
            self.held.discard(owner)
        else:
            self.arrays.retain(pointer)

    def mark_foreign(self, value: Value) -> None:
        """Mark a result as memory that is not from the pool."""
        self.foreign.add(value)

    def add(self, value: Value) -> None:
        """Hold the reference of an emitted result, unless it is foreign."""
        if value not in self.foreign and references(value.type):
            self.held.add(value)

    def may_move(self, value: Value) -> bool:
        """Return whether the current node may take over the reference to a value."""
        return value in self._movable and value in self.held

    def move(self, value: Value) -> None:
        """Hand on the reference to a value."""
        self.held.discard(value)

    def to_owned(self, value: Value, slots: Registers, *, moves: bool) -> Registers:
        """Return a value with its own reference: moved if possible, else retained or copied."""
        if not references(value.type):
            return slots
        if value in self.foreign:
            return self._copy(value, slots)
        if moves and value in self.held:
            self.held.discard(value)
            return slots
        self.arrays.retain_all(value.type, slots)
        return slots

    def drop(self, value: Value, slots: Registers) -> None:
        """Release a held value."""
        if value in self.held:
            self.held.discard(value)
            self.arrays.release_all(value.type, slots)

    def refcounted(self, value: Value, slots: Registers) -> Registers:
        """Return a value in reference-counted memory; a copy lives while its node is emitted."""
        if value not in self.foreign:
            return slots
        slots = self._copy(value, slots)
        self._copies += [slots[k] for k in references(value.type)]
        return slots

    def end_node(self) -> None:
        """End a node: release the copies made for it."""
        for pointer in self._copies:
            self.arrays.release(pointer)
        self._copies.clear()

    def _copy(self, value: Value, slots: Registers) -> Registers:
        # A foreign maybe is present: absent values do not come from outside.
        type = without_maybe(value.type)
        assert isinstance(type, TensorType)
        flag = slots[:1] if type is not value.type else ()
        array = self.arrays.of(type, slots[len(flag) :])
        return (*flag, *self.arrays.slots(type, self.arrays.copy(array)))
