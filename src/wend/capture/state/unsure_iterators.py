"""Iterators of which only the run knows how many items a loop has taken.

Python leaves a loop at a `break`, with the items that follow in the iterator. While a loop is
recorded item by item, and a traced value decides whether it has been left, all items are taken.
That shows if the iterator is used again, or if taking an item does more than to give it.
"""

from __future__ import annotations

import dis
import gc
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, GeneratorType
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from wend.base.errors import StructureError, explain
from wend.base.source import at, user_source
from wend.capture.heap.places import named
from wend.capture.heap.trace_log import HOLDERS
from wend.capture.uncaptured import as_written
from wend.trace.recording.recording import Recording, current

# By function that is recorded: the iterators by id, each with the loop that may have left it
_Taken: TypeAlias = dict[int, tuple[Callable[[], Any], str]]
_taken_by: WeakKeyDictionary[Recording, _Taken] = WeakKeyDictionary()

_CURE = "put the items in a list before: for item in list(items)."
_PURE = frozenset({"range", "len", "enumerate", "zip", "reversed", "abs", "float", "int", "min"})
_PURE |= {"max", "sum", "sorted", "list", "tuple"}
_LIBRARIES = frozenset({"builtins", "itertools", "numpy", "collections", "wend"})
_WRITES = ("STORE_ATTR", "STORE_SUBSCR", "STORE_GLOBAL", "STORE_DEREF", "DELETE_", "LOAD_METHOD")


def is_iterator(value: Any) -> bool:
    """Return whether an object yields its items once."""
    return hasattr(type(value), "__next__")


def note_unsure(sources: Iterable[Any], where: str) -> None:
    """Note that another item is taken from iterators, or made by functions, in some runs only.

    Raises:
        StructureError: code that is not known to have no effect gives the item.
    """
    recording = current()
    if recording is None:
        return
    taken = _taken_by.setdefault(recording.function(), {})
    for inner in _iterators_in(sources):
        if not _is_pure(inner):
            raise StructureError(
                explain(
                    f"the {where} takes an item from {named(type(inner))} in some runs only: a "
                    "traced value decides whether the loop is left before, and the code that gives "
                    "the item may have effects.",
                    cure=_CURE,
                )
            )
        # The last reference to a generator that is dropped runs its `finally`.
        held = weakref.ref(inner) if isinstance(inner, GeneratorType) else lambda x=inner: x
        taken[id(inner)] = held, where


def check_sure(value: Any) -> None:
    """Refuse to take items from an iterator that a loop may have left.

    Raises:
        StructureError: it is one.
    """
    recording = current()
    taken = {} if recording is None else _taken_by.get(recording.function(), {})
    if not taken or not is_iterator(value):
        return
    for inner in _iterators_in([value]):
        held, where = taken.get(id(inner), (None, ""))
        if held is not None and held() is inner:
            raise StructureError(
                explain(
                    f"{named(type(inner))} gives its items once; only the run knows how many the "
                    f"{where} takes, and more are taken{at(user_source())}.",
                    cure=_CURE,
                )
            )


def _iterators_in(values: Iterable[Any]) -> Iterator[Any]:
    """Yield the iterators and functions among values, and those they take their items from."""
    pending, seen = [*values], set[int]()
    while pending:
        value = pending.pop()
        is_source = is_iterator(value) or isinstance(value, FunctionType)
        if is_source and id(value) not in seen:
            seen.add(id(value))
            yield value
            pending += _sources(value)


def _sources(iterator: Any) -> Iterable[Any]:
    kind = type(iterator)
    if kind in (zip, enumerate, map, filter):
        return iterator.__reduce__()[1]  # type: ignore[no-any-return]
    return gc.get_referents(iterator) if kind.__module__ == "itertools" else ()


def _is_pure(iterator: Any) -> bool:
    """Return whether taking an item is known to have no other effect."""
    if isinstance(iterator, GeneratorType):
        code = iterator.gi_code
    elif isinstance(iterator, FunctionType):
        code = iterator.__code__
    else:
        return type(iterator).__module__.partition(".")[0] in _LIBRARIES
    instructions = [*dis.get_instructions(as_written(code))]
    calls = sum(x.opname in ("CALL", "CALL_KW", "CALL_FUNCTION_EX") for x in instructions)
    known = sum(x.opname == "LOAD_GLOBAL" and x.argval in _PURE for x in instructions)
    return calls <= known and not any(x.opname.startswith(_WRITES) for x in instructions)


def _tables() -> Iterator[Any]:
    """Yield the tables of iterators, those of recordings that have ended emptied."""
    for recording, taken in list(_taken_by.items()):
        if not recording.is_open:
            taken.clear()
        yield taken


HOLDERS.append(_tables)
