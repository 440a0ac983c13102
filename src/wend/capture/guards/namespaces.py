"""The dict of a module's variables, as captured code sees it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from types import FunctionType
from typing import Any, Self

from wend.backends.fastcall import MISSING
from wend.capture.guards.active import active_recorder
from wend.capture.heap.locations import Global, log_write
from wend.capture.heap.places import ItemsPlace, StandIn, original_of
from wend.capture.heap.snapshots import is_atom, snapshot
from wend.capture.heap.trace_log import is_written_global, note_write


class Namespace(StandIn, MutableMapping[str, Any]):
    """Stands for the dict of a module's variables: it reads and writes each one as a global (D44).

    Comparisons by `is` see the dict itself. So does what outlives the trace, and code that is not
    captured, which may read and write it all. `update` writes only what differs: a second trace
    writes nothing.
    """

    __slots__ = ()
    original: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        value, recorder = self.original.get(name, MISSING), active_recorder()
        if recorder is not None and not is_written_global(self.original, name):
            value = recorder.read_global(self.original, name, value)
        if value is MISSING:
            raise KeyError(name)
        return value

    def __setitem__(self, name: str, value: Any) -> None:
        log_write(Global(name, self.original), is_certain=True)
        self.original[name] = value

    def __delitem__(self, name: str) -> None:
        self[name]
        log_write(Global(name, self.original), is_certain=True)
        del self.original[name]

    def __iter__(self) -> Iterator[str]:
        self._read_names()
        return iter(self.original)

    def __reversed__(self) -> Iterator[str]:
        self._read_names()
        names: Iterator[str] = reversed(self.original)
        return names

    def __len__(self) -> int:
        self._read_names()
        return len(self.original)

    def _read_names(self) -> None:
        recorder = active_recorder()
        if recorder is not None:
            recorder.read_names(self.original)

    # These write as the line of the user that calls them
    def update(self, /, *others: Any, **named: Any) -> None:
        """Give variables the values of a dict or of keywords.

        One that has its value already is not written: that it has is guarded.
        """
        for name, value in dict(*others, **named).items():
            if not self._holds(name, value):
                log_write(Global(name, self.original))
                self.original[name] = value

    def _holds(self, name: str, value: Any) -> bool:
        now = self.get(name, MISSING)
        if is_atom(type(value)):
            return bool(snapshot(value).matches(now))  # type: ignore[union-attr]  # of an atom
        return self.original.get(name, MISSING) is value

    def setdefault(self, name: str, default: Any = None) -> Any:
        """Return a variable, which gets the default if there is none."""
        if name not in self:
            self[name] = default
        return self[name]

    def pop(self, name: str, *default: Any) -> Any:
        """Delete a variable, and return its value, or the default."""
        if name not in self and default:
            return default[0]
        value = self[name]
        del self[name]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Delete the last variable, and return its name and value."""
        for name in reversed(self):
            return name, self.pop(name)
        raise KeyError("popitem(): dictionary is empty")

    def clear(self) -> None:
        """Delete all variables."""
        for name in [*self]:
            del self[name]

    def copy(self) -> dict[str, Any]:
        """Return a dict of all variables."""
        return dict(self)

    def __eq__(self, other: object) -> bool:
        other = original_of(other)
        return other is self.original or dict(self) == other

    __hash__ = None  # type: ignore[assignment]  # as of a dict

    def __or__(self, other: Any) -> Any:
        return dict(self) | other

    def __ror__(self, other: Any) -> Any:
        return other | dict(self)

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

    def __repr__(self) -> str:
        return repr(dict(self))

    def exposed(self) -> dict[str, Any]:
        """Return the dict itself, for code that is not captured: it may read and write it all."""
        self.exposed_to(self, calls=False)
        note_write(ItemsPlace("globals()", self.original), is_certain=False, is_seen=False)
        return self.original

    def exposed_to(self, names: Iterable[str], *, calls: bool = True) -> dict[str, Any]:
        """Return the dict itself, for code that reads only these names, and may call functions."""
        recorder = active_recorder()
        if recorder is not None:
            for name in names:
                self.get(name)
                value = self.original.get(name)
                if calls or not isinstance(value, (FunctionType, type)):
                    recorder.read_all(value)
        return self.original
