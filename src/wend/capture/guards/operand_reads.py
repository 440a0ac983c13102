"""Floats of closures and globals that are operands of a trace, not guards (D44)."""

from __future__ import annotations

import types
from collections.abc import Collection, Hashable
from typing import Any

import numpy as np

from wend.backends.fastcall import MISSING
from wend.capture.guards.free_names import stored_names
from wend.capture.guards.reads import CellRead, GlobalRead, PartRead, Read
from wend.trace.recording.recording import current

_FLOATS = (float, complex, np.inexact)


class OperandReads:
    """The floats that a trace reads as operands, which may differ in later calls.

    Each is captured as an array of its own.

    Args:
        holders: the cells, tuples and dicts of keywords that hold them.
        global_names: globals, each with the id of its namespace.

    Attributes:
        sources: the holder of each array in use, with the key of its item, None in a cell; of a
            global its namespace and name.
        values: the floats that plain Python reads, which stay guards: ids of holders, each with
            None, and ids of namespaces, each with a name.
    """

    def __init__(
        self,
        holders: Collection[Any] = (),
        global_names: Collection[tuple[int, str]] = (),
    ) -> None:
        self._holders = {id(holder): holder for holder in holders}
        self._global_names = {*global_names}
        self._arrays: dict[tuple[int, Hashable], np.ndarray] = {}
        self.sources: dict[int, tuple[Any, Hashable]] = {}
        self.values: set[tuple[int, str | None]] = set()
        self._read: list[tuple[Any, Hashable]] = []  # sources whose values Python has read

    def __bool__(self) -> bool:
        return bool(self._holders or self._global_names)

    def places(self) -> list[Any]:
        """Return the ids of the holders, and the globals."""
        return [*self._holders, *self._global_names]

    def cell(self, fun: types.FunctionType, name: str, cell: types.CellType) -> types.CellType:
        """Return a cell of captured code, with operands in place of the floats."""
        try:
            value = cell.cell_contents
        except ValueError:  # not bound
            return cell
        if id(cell) in self._holders and is_float(value):
            if name in {*stored_names(fun.__code__)}:  # the other users of the cell see the store
                return cell
            return types.CellType(self._operand(cell, None, value))
        items = self.items(value) if type(value) is tuple else value
        return cell if items is value else types.CellType(items)

    def items(self, holder: Any) -> Any:
        """Return a tuple or dict with operands in place of the floats."""
        if id(holder) not in self._holders:
            return holder
        if type(holder) is dict:
            return {name: self._item(holder, name, x) for name, x in holder.items()}
        return tuple([self._item(holder, k, x) for k, x in enumerate(holder)])

    def of_global(self, namespace: dict[str, Any], name: str, value: Any) -> Any:
        """Return the operand for a global; `MISSING` if it is none."""
        if (id(namespace), name) not in self._global_names or not is_float(value):
            return MISSING
        return self._operand(namespace, name, value)

    def note_read(self, array: Any) -> None:
        """Note that Python reads the value of an array, if it is one of the operands."""
        if id(array) in self.sources:
            self._read.append(self.sources[id(array)])

    def is_operand(self, read: Read) -> bool:
        """Return whether a read gives operands, whose values need no guard."""
        owner = read.owner()
        if isinstance(read, GlobalRead):
            return (id(owner), read.key) not in self.values and self._uses_global(owner, read.key)
        holder = owner if isinstance(read, CellRead) else None
        if isinstance(read, PartRead) and owner is not None:
            holder = read.value_in(owner)
        is_used = holder is not None and self._uses(holder)
        return is_used and (id(holder), None) not in self.values

    def _uses(self, holder: Any) -> bool:
        """Return whether the floats of a holder are used as operands only."""
        is_used = any(source is holder for source, _ in self.sources.values())
        return is_used and not any(source is holder for source, _ in self._read)

    def _uses_global(self, namespace: dict[str, Any], name: str) -> bool:
        """Return whether a global is used as an operand only."""
        is_used = any(s is namespace and key == name for s, key in self.sources.values())
        return is_used and not any(s is namespace and key == name for s, key in self._read)

    def is_global(self, holder: Any, key: Hashable) -> bool:
        """Return whether a source is a global."""
        return (id(holder), key) in self._global_names

    def read_places(self) -> list[Any]:
        """Return the ids of the holders, and the globals, whose values Python has read."""
        return [
            (id(source), key) if self.is_global(source, key) else id(source)
            for source, key in self._read
        ]

    def _item(self, holder: Any, key: Hashable, value: Any) -> Any:
        return self._operand(holder, key, value) if is_float(value) else value

    def _operand(self, holder: Any, key: Hashable, value: Any) -> Any:
        recording = current()
        if recording is None or recording.runs_now():
            return value
        function = recording.function()
        if function.captures.frozen is not None:
            return value
        place = id(holder), key
        if place not in self._arrays:
            array = self._arrays[place] = np.asarray(value)
            self.sources[id(array)] = holder, key
        operand = function.captures.array(self._arrays[place])
        return function.wrap(operand, weak=type(value) in (float, complex))


def is_float(value: Any) -> bool:
    """Return whether a value is a float or complex number, of Python or NumPy."""
    kind = type(value)
    return issubclass(kind, _FLOATS) and kind.__module__ in ("builtins", "numpy")
