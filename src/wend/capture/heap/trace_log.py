"""The writes of a trace to objects, and which of these objects outlive it.

A trace runs the function's Python once, however often it will be called. What it changes in its
own objects is a part of the graph. A change to an object that outlives the trace would happen when
the function is traced, not at each call, and is refused unless it only initializes something: a
second trace must not write again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import (
    CodeType,
    FunctionType,
)
from typing import Any

from wend.base.context_values import scoped
from wend.base.errors import LeakedValueError, SideEffectError, WendError, explain, listed
from wend.base.source import Source, at, user_source
from wend.capture.heap.outliving import (
    Tables,
    outliving,
    outliving_after_collection,
    still_referenced,
)
from wend.capture.heap.places import (
    AttributePlace,
    ElementsPlace,
    GlobalPlace,
    GrowthPlace,
    ItemsPlace,
    Place,
    PositionPlace,
    VariablesPlace,
    is_setting,
)
from wend.eager.dispatch import Staged
from wend.ir.graph import Graph
from wend.ops.hosting import HOST_CALLS
from wend.trace.aliasing.referrers import MAX_NODES, is_node, parts_of
from wend.trace.control.tensor_list import TensorList
from wend.trace.recording.recording import current
from wend.trace.state.templates import Text
from wend.trace.state.variable import Variable


class _LoggedWrite:
    """A write: the place, what it held before, where it was first written; see `note_write`."""

    __slots__ = (
        *("is_certain", "is_seen", "may_initialize", "may_replace", "may_set"),
        *("old", "place", "source"),
    )

    def __init__(self, place: Place) -> None:
        self.place = place
        self.source: Source | None = None
        self.is_certain, self.may_initialize, self.may_replace = False, True, True
        self.may_set, self.is_seen = False, True
        self.old = place.read()

    def is_write(self) -> bool:
        return not self.place.holds(self.old) or (self.is_certain and not self.is_setting())

    def is_setting(self) -> bool:
        """Return whether it is a global that may be set for a time: guards know all it can hold."""
        return isinstance(self.place, GlobalPlace) and is_setting(self.old)

    def changed_place(self) -> Place:
        """Return the place that has changed: the end of a list to which is appended."""
        place, grown = self.place, self.grown_list()
        if grown is not None:
            return GrowthPlace(place.label, grown)
        if type(place) is ItemsPlace and type(place.owner) is list:
            count = len(self.old)
            if len(place.owner) > count and all(map(operator.is_, place.owner, self.old)):
                return GrowthPlace(place.label, place.owner)
        return place

    def grown_list(self) -> Any:
        """Return the list that a recorded loop lets grow, if what it has become stands here."""
        is_grown = not self.is_certain and type(self.old) is list
        return self.old if is_grown and isinstance(self.place.read(), TensorList) else None

    def is_initialization(self) -> bool:
        """Return whether a write may be one that a second trace does not make again."""
        return self.may_initialize and (self.may_replace or self.place.adds_to(self.old))


class TraceLog:
    """The places that one trace has written, with what they held before."""

    def __init__(self) -> None:
        self.entries: dict[Hashable, _LoggedWrite] = {}
        self._outliving: list[_LoggedWrite] = []
        self.captured: tuple[Any, ...] = ()
        self._functions: dict[CodeType, None] = {}
        self._lifted: set[tuple[Any, ...]] = set()  # keys of places whose values are arguments
        self._restoring: list[Callable[[], None]] = []

    def adds_function(self, fun: FunctionType) -> bool:
        """Return whether a function is new to the trace, and note it."""
        is_new = fun.__code__ not in self._functions
        self._functions[fun.__code__] = None
        return is_new

    def note(self, place: Place, is_here: bool) -> _LoggedWrite:
        """Log that a place is about to be written; see `note_write`."""
        entry = self.entries.get(place.key)
        if entry is None:
            entry = self.entries[place.key] = _LoggedWrite(place)
        if is_here and entry.source is None:
            entry.source = user_source()
        return entry

    def forget(self, owner: Any) -> None:
        """Forget the writes to an object that the trace has made and nobody else has seen."""
        for key in [key for key, entry in self.entries.items() if entry.place.owner is owner]:
            del self.entries[key]

    def lift(self, place: Place, value: Any) -> None:
        """Put an argument into a place until the trace ends: what it holds then is a result."""
        old = place.read()
        self._lifted.add(place.key)
        self._restoring.append(lambda: place.write(old))
        place.write(value)

    def lift_items(self, container: Any, restore: Callable[[], None]) -> None:
        """Note that a container holds arguments until the trace ends, when `restore` is called."""
        self._lifted.add(("items", id(container)))
        self._restoring.append(restore)

    def _is_lifted(self, entry: _LoggedWrite) -> bool:
        """Return whether a write is one of an argument, or perhaps one to an owner of such."""
        place = entry.place
        if self._lifted and ("items", id(entry.grown_list())) in self._lifted:
            place.write(entry.old)
            return True
        if place.key in self._lifted or not (isinstance(place, VariablesPlace) and entry.is_seen):
            return place.key in self._lifted
        return any(key[:2] == ("attribute", id(place.owner)) for key in self._lifted)

    def end(self) -> None:
        """Restore what the lifted places held before the trace."""
        while self._restoring:
            self._restoring.pop()()

    def refuse_unseen(self, name: str) -> None:
        """Refuse a trace in which code that is not captured may change arguments of outside."""
        owners = {key[1] for key in self._lifted if isinstance(key, tuple)}
        unseen = [
            entry
            for key, entry in self.entries.items()
            if not entry.is_seen and (key in self._lifted or id(entry.place.owner) in owners)
        ]
        if unseen:
            raise refusal(unseen, name)

    def rollback(self, *, only_traced: bool = False) -> None:
        """Restore what all places held before, or those that hold traced values now."""
        for entry in reversed(self.entries.values()):
            place = entry.place
            if not place.holds(entry.old) and (not only_traced or _reaches_traced(place.read())):
                place.write(entry.old)

    def restored(self, name: str, graph: Graph) -> list[Place]:
        """Return the globals that the trace has set for a time.

        Raises:
            SideEffectError: functions that run with the graph would not see what they are set to.
        """
        unchanged = [e for e in self.entries.values() if not e.is_write()]
        entries = [e for e in unchanged if e.is_certain or e.may_set]
        if entries and any(node.op in HOST_CALLS for node in graph.walk()):
            raise refusal(entries, name)
        return [entry.place for entry in entries if entry.is_certain]

    def outliving(self, captured: tuple[Any, ...]) -> list[_LoggedWrite]:
        """Return the writes to objects that outlive the trace, which has just ended.

        Args:
            captured: what the graph has captured, which alone keeps no object of the user.
        """
        writes = [e for e in self.entries.values() if e.is_write() and not self._is_lifted(e)]
        self.captured = captured
        for search in (still_referenced, outliving, outliving_after_collection):
            owners = [e.place.owner for e in writes if e.place.may_be_local()]
            if not owners:  # a search from the globals of a module would visit all that is loaded
                break
            alive = search(owners, _tables())
            del owners
            writes = [e for e in writes if e.place.is_among(alive)]
        return writes

    def settle(self, name: str, captured: tuple[Any, ...]) -> bool:
        """Return whether the trace has changed what outlives it.

        Raises:
            SideEffectError: it has put a traced value there, or may do so in each call.
        """
        writes = self.outliving(captured)
        for entry in writes:
            entry.place.make_plain()
        refused = [
            entry
            for entry in writes
            if not entry.is_initialization() or _reaches_traced(entry.place.read())
        ]
        if refused:
            raise _of_outside(refused, name)
        self._outliving = writes
        return bool(writes)

    def refuse_any(self, name: str, captured: tuple[Any, ...]) -> None:
        """Refuse a trace that has written to what outlives it."""
        writes = self.outliving(captured)
        if writes:
            raise _of_outside(writes, name)

    def refuse_lost(self, name: str, is_of_outside: Callable[[Any], bool]) -> None:
        """Refuse a trace that an error ends, if traced values would be taken back from outside."""
        lost = [
            entry
            for entry in self.entries.values()
            if (is_of_outside(entry.place.owner) or not entry.place.may_be_local())
            and not self._is_lifted(entry)
            and entry.is_write()
            and _reaches_traced(entry.place.read())
        ]
        if lost:
            raise _of_outside(lost, name)

    @contextmanager
    def explaining_failure(self, name: str) -> Iterator[None]:
        """Refuse the writes that `settle` has found if the second trace, in this block, fails."""
        try:
            yield
        except Exception as error:
            is_own = isinstance(error, WendError) and not isinstance(error, LeakedValueError)
            if self._outliving and not is_own:
                raise _of_outside(self._outliving, name) from error
            raise

    def described(self) -> str:
        """Return what `settle` has found, for messages."""
        return listed(dict.fromkeys(_subject(entry.place) for entry in self._outliving))


def _of_outside(writes: Sequence[_LoggedWrite], name: str) -> SideEffectError:
    """Return the error for writes to what outlives a trace, with their places if all are known."""
    error = refusal(writes, name)
    if all(write.is_seen for write in writes):
        places = [write.changed_place() for write in writes]
        # What may write any attribute has written one of these.
        owners = {id(place.owner) for place in places if isinstance(place, AttributePlace)}
        error.changed_outside = tuple(
            [x for x in places if not (isinstance(x, VariablesPlace) and id(x.owner) in owners)]
        )
    return error


def refusal(writes: Sequence[_LoggedWrite], name: str) -> SideEffectError:
    """Return the error for writes that a call of `name` would not repeat."""
    entry = next((write for write in writes if write.is_certain), writes[0])
    place, where = entry.place, at(entry.source)
    subject = _subject(place)
    if isinstance(place, PositionPlace):
        what = f"{subject} gives its items once; it is advanced{where}, and outlives the call"
        cure = "make the iterator in the function, or pass the item as an argument."
    elif isinstance(place, ElementsPlace):
        what = f"{subject} is changed in place{where}, and is an array of outside"
        cure = "pass it as an argument, change a copy of it, or keep it in a wend.Variable."
    elif isinstance(place.owner, BaseException):
        what = f"{subject} is set{where}, and the exception outlives the call"
        cure = (
            "let the class of the exception set it: class OwnError(ValueError), with an __init__ "
            "that takes the value."
        )
    elif isinstance(place.read(), Variable):
        what = f"{subject} is set to a Variable{where}, and outlives the call"
        cure = "make it once: if self.v is None: self.v = wend.Variable(…)."
    else:
        what = f"{subject} is changed{where}, and outlives the call"
        cure = (
            "return the new value, or keep it in a wend.Variable; what the function itself makes "
            "may change."
        )
    reason = f"{what}: it would change when {name} is traced, not at each call."
    return SideEffectError(explain(reason, cure=cure))


def _subject(place: Place) -> str:
    label = place.label.removesuffix(".")
    return label if label.startswith(("a ", "an ")) else f"`{label}`"


# The active logs
_logs: ContextVar[tuple[TraceLog, ...]] = ContextVar("wend_trace_logs", default=())
# Functions that return containers in which wend holds objects of the user for the time of a trace
HOLDERS: list[Callable[[], Iterable[Any]]] = []


@contextmanager
def trace_log() -> Iterator[TraceLog]:
    """Log the writes of a trace.

    They are undone if wend refuses it. An error of the user's own undoes nothing in Python; only
    traced values are taken back then, from what the trace has made (see `refuse_lost`).
    """
    log = TraceLog()
    with scoped(_logs, (*_logs.get(), log)):
        try:
            yield log
        except WendError:
            log.rollback()
            raise
        except BaseException:
            log.rollback(only_traced=True)
            raise
        finally:
            log.end()


def count_trace_log_references(kind: str, owner: Any) -> int:
    """Return how many references the active logs hold to a container or array, by its key."""
    entries = (log.entries.get((kind, id(owner))) for log in _logs.get())
    return len({id(entry.place) for entry in entries if entry is not None})


def is_trace_logged() -> bool:
    """Return whether the writes of a trace are logged."""
    return bool(_logs.get())


def innermost_log() -> TraceLog | None:
    """Return the log of the innermost trace under way."""
    logs = _logs.get()
    return logs[-1] if logs else None


def is_written_global(variables: dict[str, Any], name: str) -> bool:
    """Return whether captured code of the innermost trace has written a global."""
    logs = _logs.get()
    entry = logs[-1].entries.get(("global", id(variables), name)) if logs else None
    return entry is not None and entry.is_certain


def note_constructed(instance: Any) -> None:
    """Note that the trace has made an object: what its constructor wrote in it, nobody had seen."""
    for log in _logs.get():
        log.forget(instance)


def is_first_use(fun: FunctionType) -> bool:
    """Return whether the active trace uses a function for the first time."""
    return bool([log for log in _logs.get() if log.adds_function(fun)])


def note_write(
    place: Place,
    *,
    is_certain: bool = True,
    is_here: bool = True,
    may_initialize: bool = True,
    may_replace: bool = True,
    may_set: bool = False,
    is_seen: bool = True,
) -> None:
    """Log that a place is about to be written, in all active traces.

    Args:
        place: the place.
        is_certain: whether the write is one even if the place holds the same then.
        is_here: whether the user's current line is the one that writes.
        may_initialize: whether code that has been seen decides to write, as an initialization does.
        may_replace: whether an initialization may put one thing in the place of another.
        may_set: whether code that is not captured may write it now, and what it held before later.
        is_seen: whether captured code writes it.
    """
    for log in _logs.get():
        entry = log.note(place, is_here)
        entry.is_certain |= is_certain
        entry.may_initialize &= may_initialize
        entry.may_replace &= may_replace
        entry.may_set |= may_set
        entry.is_seen &= is_seen


def _reaches_traced(value: Any) -> bool:
    """Return whether a value is traced, or holds a traced one at any depth."""
    stack, seen = [value], set[int]()
    while stack and len(seen) < MAX_NODES:
        x = stack.pop()
        if isinstance(x, Variable):
            continue
        if isinstance(x, (TensorList, Text)) or (isinstance(x, Staged) and not _is_outer(x)):
            return True
        if id(x) not in seen and is_node(x):
            seen.add(id(x))
            stack += parts_of(x)
    return False


def _is_outer(x: Any) -> bool:
    """Return whether a traced value belongs to a trace around this one."""
    recording = current()
    while recording is not None:
        if recording is getattr(x, "recording", None):
            return True
        recording = recording.parent
    return False


def _tables() -> Tables:
    """Return wend's own tables that hold objects of the user."""
    holders: list[Any] = [holder for holders_of in HOLDERS for holder in holders_of()]
    holders += [log.captured for log in _logs.get()]
    entries = {id(e): e for log in _logs.get() for e in log.entries.values()}
    places = {id(e.place): e.place for e in entries.values()}
    holders += [*entries.values(), *places.values()]
    holders += [e.old for e in entries.values() if isinstance(e.place, ItemsPlace)]
    return holders, {id(x.owner) for x in places.values() if not x.may_be_local()}
