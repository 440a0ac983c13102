"""Lists in native memory outside a run: handed out as they lie there, and given to other runs.

What a run returns as lists is not read. The workspace of the run is kept as it is (its lease), as
long as somebody holds one of the lists. Another run reads them where they lie. Who asks a list for
its items, gets copies.
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
from wend.backends.native.run.marshal import (
    Memory,
    code_of,
    read_list,
    view,
    writer,
)
from wend.backends.native.run.workspace import Workspace
from wend.backends.native.target.value_layout import (
    SLOT_BYTES,
    is_list,
    is_scalar,
    layout,
)
from wend.base.zero import ZERO
from wend.ir.types import HostType, ListType, MaybeType, TensorType, Type, without_maybe
from wend.runtime.sequence import Sequence, Source


class Lease:
    """What keeps a run's workspace from being used again; when it goes, it gives it back."""

    __slots__ = ("_idle", "_reference", "given", "space")

    def __init__(self, space: Workspace, idle: list[Workspace], given: list[Source]) -> None:
        self.space, self._idle = space, idle
        self._reference = weakref.ref(space)
        self.given = given  # where lists lie that the run was given: what it returns may be there

    def __del__(self, _is_over: Callable[[], bool] = sys.is_finalizing) -> None:
        # The garbage collector has cleared what refers weakly to what it collects: a workspace
        # that goes with the lease in a cycle is not to come back to life.
        if not _is_over() and self._reference() is not None:
            self.space.give_back(self._idle)


class ListBuffer:
    """Where a list lies in the memory of a run.

    Attributes:
        base: the number of its first record.
        layout: how its records look, and those of the lists in it.
        where: for each of these where records are, and how far it is from one to the next.
    """

    __slots__ = ("_lease", "_lender", "_length", "base", "where")

    def __init__(self, lease: Lease, lender: ListExporter, base: int, length: int) -> None:
        self._lease, self._lender = lease, lender
        self.base, self._length = base, length
        self.where = lender.where(lease.space)

    def __len__(self) -> int:
        return self._length

    @property
    def layout(self) -> tuple[str, ...]:
        return self._lender.layout

    def read(self) -> list[Any]:
        return read_list(self._lender.place, self.base, self._length, self._lease.space)


class ListExporter:
    """Hands out a result that is a list: a `Carrier` that only reads.

    Attributes:
        format: how struct packs the slots.
        layout: how its records look, and those of the lists in it.
    """

    def __init__(self, field: Field) -> None:
        assert field.place is not None
        self.place = root(field.place)
        self.format = code_of(field.type)
        self._is_maybe = isinstance(field.type, MaybeType)
        self._places = [self.place]
        while (inner := self._places[-1].inner) is not None:
            self._places.append(root(inner))
        self.layout = layout_of(self._places)

    def read(self, slots: Iterator[Any], memory: Workspace) -> Any:
        is_there = not self._is_maybe or next(slots)
        base, length = next(slots), next(slots)
        if not is_there:
            return ZERO
        if not length:
            return Sequence.of([])
        return Sequence.at(ListBuffer(memory.lease, self, base, length))

    def where(self, memory: Memory) -> tuple[int, ...]:
        found: list[int] = []
        for place in self._places:
            data, step = memory.where(place.arena.number)
            found += (data + place.offset * SLOT_BYTES, step)
        return tuple(found)


class ListImporter:
    """Gives a list to native code: where it lies, or a copy of its items in the pool."""

    def __init__(self, type: Type) -> None:
        self._is_maybe = isinstance(type, MaybeType)
        self._layout = layout(type)
        self._levels = []
        inner = without_maybe(type)
        while isinstance(inner, ListType):
            self._levels.append(_Level(inner.element))
            inner = without_maybe(inner.element)
        words = 2 + 2 * len(self._levels)
        self.format = ("?7x" if self._is_maybe else "") + "q" * words
        self._absent = (False, *[0] * words)

    def write(self, x: Any, memory: Memory) -> tuple[Any, ...]:
        if x is ZERO:
            return self._absent
        source = x.source
        if isinstance(source, ListBuffer) and source.layout == self._layout:
            found = (source.base, len(source), *source.where)
        else:
            items = x.items()
            found = (0, len(items), *self._lay(0, items, memory))
        return (True, *found) if self._is_maybe else found

    def _lay(self, depth: int, items: list[Any], memory: Memory) -> tuple[int, ...]:
        """Put items into records; say where they are, and those of the lists among them."""
        level = self._levels[depth]
        address = memory.take(max(len(items), 1) * level.step)
        if level.numbers is not None:
            level.put_numbers(address, items)
        elif depth + 1 == len(self._levels):
            level.put(address, [level.write(item, memory) for item in items])
        else:
            within: list[Any] = []
            rows = []
            for item in items:
                rows.append(level.span(item, len(within)))
                within += () if item is ZERO else item.items()
            level.put(address, rows)
            return (address, level.step, *self._lay(depth + 1, within, memory))
        return (address, level.step)


class _Level:
    """The records of a list, by the type of its elements.

    Attributes:
        step: the bytes from one to the next.
        numbers: the dtype, where elements are numbers.
        write: what makes slots of an element that is no list.
    """

    def __init__(self, element: Type) -> None:
        self._slots = struct.Struct(code_of(element))
        self._is_maybe = isinstance(element, MaybeType)
        self.step = max(self._slots.size, SLOT_BYTES)
        is_number = isinstance(element, TensorType) and is_scalar(element)
        self.numbers = element.dtype if is_number and isinstance(element, TensorType) else None
        if not isinstance(without_maybe(element), ListType):
            self.write = writer(element, None)

    def put_numbers(self, address: int, items: list[Any]) -> None:
        assert self.numbers is not None
        column = view(address, (len(items), SLOT_BYTES // self.numbers.itemsize), self.numbers)
        column[:, :1] = np.array(items, self.numbers)[:, None]

    def put(self, address: int, rows: list[tuple[Any, ...]]) -> None:
        memory = (ctypes.c_char * (len(rows) * self.step)).from_address(address)
        for k, row in enumerate(rows):
            self._slots.pack_into(memory, k * self.step, *row)

    def span(self, item: Any, base: int) -> tuple[Any, ...]:
        """The slots of a list whose records start there, or of none."""
        if item is ZERO:
            return (False, 0, 0)
        return (True, base, len(item)) if self._is_maybe else (base, len(item))


def is_lent(field: Field) -> bool:
    """Whether a result is a list that is handed out as it lies.

    Not if there are objects of Python's in it, which native code knows by numbers of the run.
    """
    inner = field.type
    while isinstance(inner, (ListType, MaybeType)):
        inner = inner.element if isinstance(inner, ListType) else inner.of
    return is_list(field.type) and not isinstance(inner, HostType)


def sources(arguments: Any, lists: Iterable[int]) -> list[Source]:
    """Where the lists among some arguments lie, if that is in native memory."""
    found = (arguments[k] for k in lists)
    return [x.source for x in found if x is not ZERO and x.source is not None]
