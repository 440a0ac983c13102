"""Lists in native memory outside a run: exported without a copy, and imported by other runs.

A list that a run returns is not read. A lease keeps the workspace of the run alive for as long as
one of its lists is. Another run reads the records in place; Python gets copies of the items.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from wend.backends.native.analysis.list_classes import layout_of, root
from wend.backends.native.program import Field
from wend.backends.native.run.marshal import Memory, read_list, struct_format, view, writer
from wend.backends.native.run.workspace import Workspace
from wend.backends.native.target.value_layout import SLOT_BYTES, is_list, is_scalar, list_layout
from wend.base.zero import ZERO
from wend.ir.types import HostType, ListType, MaybeType, TensorType, Type, without_maybe
from wend.runtime.sequence import ItemSource, Sequence


class Lease:
    """The ownership of a run's workspace by the lists it returned; ends with the last of them."""

    __slots__ = ("_idle", "_reference", "inputs", "workspace")

    def __init__(
        self, workspace: Workspace, idle: list[Workspace], inputs: list[ItemSource]
    ) -> None:
        self.workspace, self._idle = workspace, idle
        self._reference = weakref.ref(workspace)
        self.inputs = inputs  # kept alive: a returned list may be one of them

    def __del__(self, _is_over: Callable[[], bool] = sys.is_finalizing) -> None:
        # The garbage collector has cleared weak references to what it collects: a workspace that
        # dies in one cycle with its lease must not be resurrected.
        if not _is_over() and self._reference() is not None:
            self.workspace.give_back(self._idle)


class ListBuffer:
    """A list in the memory of a run.

    Attributes:
        base: the number of its first record.
        layout: the layout of its records, and of those of the lists in it.
        locations: for each of these the address of the records and their stride.
    """

    __slots__ = ("_exporter", "_lease", "_length", "base", "locations")

    def __init__(self, lease: Lease, exporter: ListExporter, base: int, length: int) -> None:
        self._lease, self._exporter = lease, exporter
        self.base, self._length = base, length
        self.locations = exporter.locations(lease.workspace)

    def __len__(self) -> int:
        return self._length

    @property
    def layout(self) -> tuple[str, ...]:
        return self._exporter.layout

    def read(self) -> list[Any]:
        return read_list(self._exporter.list_class, self.base, self._length, self._lease.workspace)


class ListExporter:
    """The export of a list result without a copy: a `Marshaller` that only reads.

    Attributes:
        format: the `struct` format of the slots.
        layout: the layout of its records, and of those of the lists in it.
    """

    def __init__(self, field: Field) -> None:
        assert field.list_class is not None
        self.list_class = root(field.list_class)
        self.format = struct_format(field.type)
        self._is_maybe = isinstance(field.type, MaybeType)
        self._list_classes = [self.list_class]
        while (inner := self._list_classes[-1].inner) is not None:
            self._list_classes.append(root(inner))
        self.layout = layout_of(self._list_classes)

    def read(self, slots: Iterator[Any], memory: Workspace) -> Any:
        is_present = not self._is_maybe or next(slots)
        base, length = next(slots), next(slots)
        if not is_present:
            return ZERO
        if not length:
            return Sequence.of([])
        return Sequence.at(ListBuffer(memory.lease, self, base, length))

    def locations(self, memory: Memory) -> tuple[int, ...]:
        flat: list[int] = []
        for list_class in self._list_classes:
            data, step = memory.arena_records(list_class.arena.number)
            flat += (data + list_class.offset * SLOT_BYTES, step)
        return tuple(flat)


class ListImporter:
    """The import of a list argument: in place, or as a copy of its items in the pool."""

    def __init__(self, type: Type) -> None:
        self._is_maybe = isinstance(type, MaybeType)
        self._layout = list_layout(type)
        self._levels = []
        inner = without_maybe(type)
        while isinstance(inner, ListType):
            self._levels.append(_RecordLayout(inner.element))
            inner = without_maybe(inner.element)
        words = 2 + 2 * len(self._levels)
        self.format = ("?7x" if self._is_maybe else "") + "q" * words
        self._absent = (False, *[0] * words)

    def write(self, x: Any, memory: Memory) -> tuple[Any, ...]:
        if x is ZERO:
            return self._absent
        source = x.source
        if isinstance(source, ListBuffer) and source.layout == self._layout:
            slots = (source.base, len(source), *source.locations)
        else:
            items = x.items()
            slots = (0, len(items), *self._copy_in(0, items, memory))
        return (True, *slots) if self._is_maybe else slots

    def _copy_in(self, depth: int, items: list[Any], memory: Memory) -> tuple[int, ...]:
        """Copy items into records; return their locations, then those of the inner lists."""
        level = self._levels[depth]
        address = memory.allocate(max(len(items), 1) * level.stride)
        if level.number_dtype is not None:
            level.store_numbers(address, items)
        elif depth + 1 == len(self._levels):
            level.store(address, [level.write(item, memory) for item in items])
        else:
            inner_items: list[Any] = []
            rows = []
            for item in items:
                rows.append(level.list_slots(item, len(inner_items)))
                inner_items += () if item is ZERO else item.items()
            level.store(address, rows)
            return (address, level.stride, *self._copy_in(depth + 1, inner_items, memory))
        return (address, level.stride)


class _RecordLayout:
    """The record layout of a list, by the type of its elements.

    Attributes:
        stride: the bytes from one record to the next.
        number_dtype: the dtype, where elements are numbers.
        write: packs an element that is not a list into slots.
    """

    def __init__(self, element: Type) -> None:
        self._slots = struct.Struct(struct_format(element))
        self._is_maybe = isinstance(element, MaybeType)
        self.stride = max(self._slots.size, SLOT_BYTES)
        is_number = isinstance(element, TensorType) and is_scalar(element)
        self.number_dtype = element.dtype if is_number and isinstance(element, TensorType) else None
        if not isinstance(without_maybe(element), ListType):
            self.write = writer(element, None)

    def store_numbers(self, address: int, items: list[Any]) -> None:
        assert self.number_dtype is not None
        column = view(
            address, (len(items), SLOT_BYTES // self.number_dtype.itemsize), self.number_dtype
        )
        column[:, :1] = np.array(items, self.number_dtype)[:, None]

    def store(self, address: int, rows: list[tuple[Any, ...]]) -> None:
        memory = (ctypes.c_char * (len(rows) * self.stride)).from_address(address)
        for k, row in enumerate(rows):
            self._slots.pack_into(memory, k * self.stride, *row)

    def list_slots(self, item: Any, base: int) -> tuple[Any, ...]:
        """Return the slots of an inner list whose records start at `base`, or of an absent one."""
        if item is ZERO:
            return (False, 0, 0)
        return (True, base, len(item)) if self._is_maybe else (base, len(item))


def is_exported(field: Field) -> bool:
    """Return whether a result is a list that is exported without a copy.

    Lists of Python objects are not: native code knows these by their number in one run.
    """
    inner = field.type
    while isinstance(inner, (ListType, MaybeType)):
        inner = inner.element if isinstance(inner, ListType) else inner.of
    return is_list(field.type) and not isinstance(inner, HostType)


def source_buffers(arguments: Any, lists: Iterable[int]) -> list[ItemSource]:
    """Return the native buffers of the lists among some arguments."""
    values = (arguments[k] for k in lists)
    return [x.source for x in values if x is not ZERO and x.source is not None]
