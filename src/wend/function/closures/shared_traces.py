"""Traces that local functions with the same code share, each with its own cells."""

from __future__ import annotations

import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from wend.backends.compiled_graph import CompiledGraph
from wend.backends.fastcall import MISSING
from wend.base.keys import weak_parts
from wend.base.lazy.dataclass import dataclass
from wend.capture.guards.operand_reads import OperandReads, is_float
from wend.capture.guards.reads import CellRead, GlobalRead, GuardSet, PartRead, Read
from wend.capture.guards.recorder import GuardRecorder
from wend.capture.heap.snapshots import (
    DictSnapshot,
    IdentitySnapshot,
    SequenceSnapshot,
    Snapshot,
    ValueSnapshot,
    count_of,
    items_of,
    snapshot,
)
from wend.function.closures.closure_key import ClosureKey
from wend.function.concrete import ConcreteFunction
from wend.function.signature.shape_relaxation import subsumes
from wend.function.signature.signature import Arguments
from wend.ir.graph import Graph
from wend.ir.types import Symbol, TensorType
from wend.trace.recording.arguments import LeafType
from wend.trace.state.raised_errors import RaisedError
from wend.trace.traced import Traced

_MAX_KEYS = 128  # bounds the memory
_MAX_TRACES = 8  # for each key


@dataclass(frozen=True, slots=True)
class _ObjectNumber:
    """An object by its number among those of a key."""

    number: int


@dataclass(frozen=True, slots=True)
class _Items:
    """A snapshot of a container with objects of the key in it."""

    kind: type
    keys: tuple[Snapshot, ...]
    items: tuple[Any, ...]

    def fits(self, value: Any, objects: Sequence[Any], is_operand: bool) -> bool:
        if type(value) is not self.kind or count_of(value) != len(self.items):
            return False
        keys: list[Any] = [*value] if self.keys else []  # type: ignore[misc]  # of a dict
        return all(key.matches(x) for key, x in zip(self.keys, keys, strict=False)) and all(
            _fits(item, x, objects, is_operand)
            for item, x in zip(self.items, items_of(value), strict=True)
        )


def _expected(of: Snapshot, numbers: dict[int, int]) -> Any:
    """Return what a snapshot says of functions with other objects."""
    if isinstance(of, IdentitySnapshot):
        value = of.reference()
        return (
            _ObjectNumber(numbers[id(value)]) if value is not None and id(value) in numbers else of
        )
    if isinstance(of, (SequenceSnapshot, DictSnapshot)):
        items = tuple([_expected(item, numbers) for item in of.snapshots])
        return _Items(of.kind, tuple(getattr(of, "keys", ())), items)
    return of


def _fits(expected: Any, value: Any, objects: Sequence[Any], is_operand: bool) -> bool:
    """Return whether a value is as expected; `is_operand`: a float may be another one."""
    if isinstance(expected, _ObjectNumber):
        return value is objects[expected.number]
    if isinstance(expected, _Items):
        return expected.fits(value, objects, is_operand)
    if is_operand and isinstance(expected, ValueSnapshot) and is_float(expected.value):
        return type(value) is type(expected.value)
    return bool(expected.matches(value))


@dataclass(frozen=True, slots=True)
class _SharedGuard:
    """A read of a trace, for functions with other objects."""

    kind: type[Read]
    name: str
    owner: _ObjectNumber | Callable[[], Any]
    key: Any
    expected: Any
    recorded: Snapshot
    is_operand: bool

    def owner_in(self, objects: Sequence[Any]) -> Any:
        return objects[self.owner.number] if isinstance(self.owner, _ObjectNumber) else self.owner()

    def read(self, objects: Sequence[Any], is_operand: bool) -> Read | None:
        """Return the read of another function; None if the value is not as expected."""
        owner = self.owner_in(objects)
        read = self.kind(self.name, owner, self.key, self.recorded)
        value = read.value_in(owner)
        if not _fits(self.expected, value, objects, is_operand):
            return None
        if not self.recorded.matches(value):
            is_object = isinstance(self.recorded, IdentitySnapshot)
            now = IdentitySnapshot(value) if is_object else snapshot(value)
            if now is None:
                return None
            read.snapshot = now
        return read


@dataclass(frozen=True, slots=True)
class _FloatOperand:
    """A float that is an operand: in a cell, an item of a holder, or a global."""

    holder: _ObjectNumber | dict[str, Any]
    key: Hashable
    is_global: bool

    def holder_in(self, objects: Sequence[Any]) -> Any:
        return (
            objects[self.holder.number] if isinstance(self.holder, _ObjectNumber) else self.holder
        )

    def value_in(self, objects: Sequence[Any]) -> Any:
        holder = self.holder_in(objects)
        try:
            return holder.cell_contents if isinstance(holder, types.CellType) else holder[self.key]
        except (ValueError, LookupError):
            return MISSING


@dataclass(frozen=True, eq=False)
class SharedGraphs:
    """The record of a trace without its captures, and its compiled graph.

    It lives as long as a trace that uses it, or the table of shared traces keeps it.
    """

    traced: Traced
    compiled: CompiledGraph


@dataclass(frozen=True, slots=True)
class SharedTrace:
    """The parts and reads of the trace of one function, without the objects of that function.

    Attributes:
        graphs: a reference to its graphs, which may be gone.
        types: the types of its arguments.
        accepts_zero_one: whether its symbolic sizes may be 0 or 1.
        notes: lines for `explain`.
        origin: the cache in which it was made.
    """

    graphs: weakref.ref[SharedGraphs]
    types: tuple[LeafType, ...]
    accepts_zero_one: bool
    notes: tuple[str, ...]
    origin: weakref.ref[Any]
    _captured: tuple[Any, ...]
    _guards: tuple[_SharedGuard, ...]

    def accepts(self, arguments: Arguments) -> bool:
        """Return whether it serves arguments of these types."""
        return self.types == arguments.types or subsumes(
            self.types, arguments.types, accepts_zero_one=self.accepts_zero_one
        )

    def bound(self, key: ClosureKey) -> BoundTrace | None:
        """Return the trace for the objects of another key; None if a guard fails, or it is gone."""
        graphs, objects, reads = self.graphs(), key.objects, []
        if graphs is None:
            return None
        for guard in self._guards:
            if guard.owner_in(objects) is None:
                continue
            read = guard.read(objects, guard.is_operand)
            if read is None:
                return None
            reads.append(read)
        captured = tuple([_captured_in(key, source) for source in self._captured])
        if any(x is MISSING for x in captured):
            return None
        return BoundTrace(self, graphs, replace(graphs.traced, captured=captured), GuardSet(reads))

    def unlike(self, objects: Sequence[Any]) -> list[_SharedGuard] | None:
        """Return the guards that fail as floats are others; None if others fail, too."""
        failing = []
        for guard in self._guards:
            if guard.owner_in(objects) is None or guard.read(objects, guard.is_operand):
                continue
            if guard.is_operand or not guard.read(objects, True):
                return None
            failing.append(guard)
        return failing

    def operand_places(self, key: ClosureKey) -> Iterator[Any]:
        """Yield where the floats are that are operands: numbers of objects, and globals."""
        for x in self._captured:
            if isinstance(x, _FloatOperand):
                holder = id(x.holder_in(key.objects))
                yield (holder, x.key) if x.is_global else key.numbers()[holder]


@dataclass(frozen=True, slots=True)
class BoundTrace:
    """A shared trace for the objects of one key.

    Attributes:
        shared: the trace.
        graphs: its graphs.
        traced: what it has recorded, with the captures.
        guards: its reads.
    """

    shared: SharedTrace
    graphs: SharedGraphs
    traced: Traced
    guards: GuardSet


def _captured_in(key: ClosureKey, source: Any) -> Any:
    """Return a capture for the objects of a key; `MISSING` if there is none."""
    if isinstance(source, _ObjectNumber):
        return key.objects[source.number]
    if isinstance(source, _FloatOperand):
        value = source.value_in(key.objects)
        return np.asarray(value) if is_float(value) else MISSING
    captured = source()
    # One array in two places would be told from two by `is`.
    return MISSING if captured is None or id(captured) in key.numbers() else captured


def _shared(
    concrete: ConcreteFunction, recorder: GuardRecorder, guards: GuardSet, key: ClosureKey
) -> tuple[tuple[Any, ...], tuple[_SharedGuard, ...]] | None:
    """Return the captures and guards of a trace, for functions with other objects."""
    numbers, sources = key.numbers(), recorder.operands.sources
    captured: list[Any] = []
    for binding in concrete.traced.captured:
        if id(binding) in sources:
            holder, item = sources[id(binding)]
            place = _ObjectNumber(numbers[id(holder)]) if id(holder) in numbers else holder
            captured.append(_FloatOperand(place, item, recorder.operands.is_global(holder, item)))
        elif id(binding) in numbers:
            captured.append(_ObjectNumber(numbers[id(binding)]))
        else:
            try:
                captured.append(weakref.ref(binding))
            except TypeError:
                return None
    shared_guards = []
    for read in guards.reads:
        owner = read.owner()
        if owner is None:
            continue
        place = _ObjectNumber(numbers[id(owner)]) if id(owner) in numbers else read.owner
        expected = _expected(read.snapshot, numbers)
        is_operand = recorder.operands.is_operand(read)
        shared_guards.append(
            _SharedGuard(
                type(read), read.name, place, read.key, expected, read.snapshot, is_operand
            )
        )
    return tuple(captured), tuple(shared_guards)


def _is_shareable(concrete: ConcreteFunction) -> bool:
    """Return whether nothing in a trace but captures and guards belongs to its function."""
    traced = concrete.traced
    return (
        concrete.first_call is None
        and not traced.pending
        and traced.is_closed()
        and not traced.has_passed_containers
        and all(_is_data(value) for node in concrete.graph.walk() for value in node.attrs.values())
    )


# What attributes of operations may be: data, and nothing that a function may hold
_DATA = (
    *(type(None), bool, int, float, complex, str, bytes, np.generic, np.dtype, np.ndarray, type),
    *(Graph, Symbol, TensorType),
)


def _is_data(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_is_data, value))
    if isinstance(value, dict):
        return all(map(_is_data, value.items()))
    return isinstance(value, _DATA) or (isinstance(value, RaisedError) and value.is_plain)


@dataclass(eq=False)
class _KeyTraces:
    """The traces of one key.

    Attributes:
        traces: the traces, the last one first; those whose graphs are gone tell what has differed.
        preserved: the graphs that stay for functions to come.
        is_made_anew: whether a trace was lost with its function, so that others are likely.
        values: holders and globals of floats whose values a trace needs, and so are no operands.
        references: references to the objects that the key holds weakly.
    """

    traces: list[SharedTrace] = field(default_factory=list)
    preserved: deque[SharedGraphs] = field(default_factory=lambda: deque(maxlen=_MAX_TRACES))
    is_made_anew: bool = False
    values: set[Hashable] = field(default_factory=set)
    references: list[Any] = field(default_factory=list)


_entries: OrderedDict[Hashable, _KeyTraces] = OrderedDict()


def forget_shared_traces() -> None:
    """Forget all traces that local functions share."""
    _entries.clear()


def _entry(key: Hashable) -> _KeyTraces:
    entry = _entries.get(key)
    if entry is None:
        entry = _entries[key] = _KeyTraces()

        def drop(_: Any) -> None:
            _entries.pop(key, None)

        entry.references = [part.on_collection(drop) for part in weak_parts(key)]
        if len(_entries) > _MAX_KEYS:
            _entries.popitem(last=False)
    return entry


def find_shared(key: ClosureKey, arguments: Arguments) -> BoundTrace | None:
    """Return the trace of another function that serves a call, for the objects of its key."""
    entry = _entries.get(key.value)
    if entry is None:
        return None
    _entries.move_to_end(key.value)
    for trace in entry.traces:
        bound = trace.bound(key) if trace.accepts(arguments) else None
        if bound is not None:
            return bound
    return None


def operands_for(key: ClosureKey, arguments: Arguments) -> OperandReads | None:
    """Return the floats to trace as operands: those by which a call differs from earlier ones."""
    entry = _entries.get(key.value)
    if entry is None:
        return None
    for trace in entry.traces:
        failing = trace.unlike(key.objects) if trace.accepts(arguments) else None
        if not failing:
            continue
        places = {*trace.operand_places(key), *(_holder(guard, key) for guard in failing)}
        places -= entry.values
        if None in places or not places:
            return None
        holders = [key.objects[place] for place in places if isinstance(place, int)]
        return OperandReads(holders, [place for place in places if isinstance(place, tuple)])
    return None


def _holder(guard: _SharedGuard, key: ClosureKey) -> Any:
    """Return the number of the object that holds the float, or a global; None: neither does."""
    owner = guard.owner_in(key.objects)
    if guard.kind is GlobalRead:
        return id(owner), guard.key
    if guard.kind is CellRead:
        return key.numbers().get(id(owner))
    holder = getattr(owner, guard.key) if guard.kind is PartRead else owner
    is_tuple_or_keywords = type(holder) is tuple or guard.kind is PartRead
    return key.numbers().get(id(holder)) if is_tuple_or_keywords else None


def keep_values(key: ClosureKey, places: Iterable[Any]) -> None:
    """Note that a trace needs the values of the floats at these places."""
    numbers = key.numbers()
    _entry(key.value).values.update([numbers.get(place, place) for place in places])


def share(trace: Any, recorder: GuardRecorder, key: ClosureKey, *, origin: Any) -> None:
    """Make a trace serve other functions, too; it was made in the cache `origin`.

    Its graphs live as long as its function, unless functions of the code are made again and again:
    then they are kept for the next one.
    """
    concrete: ConcreteFunction = trace.concrete
    parts = _shared(concrete, recorder, trace.guards, key) if _is_shareable(concrete) else None
    if parts is None:
        return
    graphs = SharedGraphs(replace(concrete.traced, captured=()), concrete.compiled)
    trace.graphs = graphs
    shared = SharedTrace(
        weakref.ref(graphs),
        concrete.input_types,
        trace.accepts_zero_one,
        trace.notes,
        weakref.ref(origin),
        *parts,
    )
    entry = _entry(key.value)
    alive = [other for other in entry.traces if other.graphs() is not None]
    entry.is_made_anew |= len(alive) < len(entry.traces)
    if entry.is_made_anew:
        entry.preserved.append(graphs)
    entry.traces = [shared, *alive][:_MAX_TRACES]
    keep_values(key, recorder.operands.read_places())
