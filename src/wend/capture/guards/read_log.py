"""The objects of outside that a trace has met, and its reads of them."""

from __future__ import annotations

import types
from typing import Any

from wend.backends.fastcall import MISSING
from wend.capture.guards.kinds import (
    UNOBSERVED,
    is_library_module,
    is_settings,
    is_users_class,
)
from wend.capture.guards.reads import (
    AttributeRead,
    CallRead,
    ContentsRead,
    GlobalRead,
    KeysRead,
    PartRead,
    Read,
    static_attribute,
)
from wend.capture.guards.unseen_calls import UnseenCalls
from wend.capture.heap.places import instance_dict
from wend.capture.heap.snapshots import (
    ElementsSnapshot,
    IdentitySnapshot,
    Snapshot,
    container_kind,
    snapshot,
)
from wend.capture.heap.trace_log import is_trace_logged, note_write
from wend.trace.recording.recording import current


class ReadLog:
    """The reads that a trace has noted, and the objects of outside that they are about."""

    unseen: UnseenCalls

    def __init__(self) -> None:
        self._reads: dict[tuple[Any, ...], Read] = {}
        self._plain_reads: set[tuple[Any, ...]] = set()  # whose values plain Python may change
        self._unlogged: set[tuple[Any, ...]] = set()  # whose values change as code likes
        self._alive: dict[int, Any] = {}  # objects of outside, so that no id is used again
        self._outside: dict[int, str] = {}  # objects of outside -> their names
        self._is_plain = False  # what is noted now is what plain Python may read and write
        self._is_free = False  # and it may write it: it is marked with @do_not_capture

    def restart(self) -> None:
        """Drop all that is noted: the function is traced again."""
        self._reads.clear()
        self._plain_reads.clear()
        self._unlogged.clear()
        self._alive.clear()
        self._outside.clear()

    def observe(self, value: Any, label: str) -> bool:
        """Mark an object as one of outside; return whether it was not known yet."""
        if id(value) in self._outside:
            return False
        self._outside[id(value)] = label
        self._keep(value)
        if is_settings(type(value)):
            state = snapshot(value.__reduce__())
            self._note(CallRead, value, ("__reduce__", (), ()), state, f"the settings of {label}")
        return True

    def is_of_outside(self, value: Any) -> bool:
        """Return whether an object is one that the trace has found outside."""
        return id(value) in self._outside

    def _keep(self, value: Any) -> None:
        """Keep an object of outside alive; a class may be one that the trace has made."""
        if not issubclass(type(value), type) or "<locals>" not in value.__qualname__:
            self._alive[id(value)] = value

    def _holder(self, owner: Any, name: str) -> tuple[Any, str]:
        """Return the object of outside in which an attribute is looked up, and what it is called.

        That of an object which the trace has made is its class, or a base of that; `MISSING`: all
        are made in the trace.
        """
        label = self._outside.get(id(owner))
        if label is not None:
            return owner, label
        kind: Any = type(owner)
        if issubclass(kind, types.ModuleType) and not is_library_module(owner):
            self.observe(owner, owner.__name__)
            return owner, owner.__name__
        if kind is super:
            following = owner.__self_class__.__mro__
            following = following[following.index(owner.__thisclass__) + 1 :]
            bases = [base for base in following if name in base.__dict__]
        elif issubclass(kind, type):
            bases = owner.__mro__
        elif issubclass(kind, UNOBSERVED) or name in (instance_dict(owner) or ()):
            return MISSING, ""
        else:
            bases = kind.__mro__
        for base in bases:
            if self._is_observed_class(base):
                return base, base.__name__
            if name in base.__dict__:
                break
        return MISSING, ""

    def _is_observed_class(self, cls: Any) -> bool:
        """Return whether an object is a class of the user's that is not made in the trace."""
        return is_users_class(cls) and (
            "<locals>" not in cls.__qualname__ or id(cls) in self._outside
        )

    def _note_keyed(
        self, kind: type[Read], owner: Any, key: Any, value: Any, label: str, is_base: bool
    ) -> None:
        """Note a read; if only a part of the value is read, guard which container it is."""
        is_part = is_base and container_kind(type(value)) is not None
        self._note(kind, owner, key, IdentitySnapshot(value) if is_part else snapshot(value), label)

    def _note(
        self, kind: type[Read], owner: Any, key: Any, value: Snapshot | None, label: str
    ) -> None:
        identity = (kind, id(owner), key, type(key), type(value))
        if value is None:
            return
        if identity not in self._reads:
            self._keep(owner)
            self._reads[identity] = kind(label, owner, key, value)
        if self._is_free or not is_trace_logged():
            self._unlogged.add(identity)
        if self._is_plain and identity not in self._plain_reads and is_trace_logged():
            self._plain_reads.add(identity)
            recording = current()
            is_decided = recording is None or not recording.is_region
            options = {"is_here": False, "may_initialize": is_decided, "may_replace": False}
            for place in self._reads[identity].places():
                note_write(place, is_certain=False, **options)

    def _read_class(self, cls: type) -> None:
        """Note that code reads all that a class holds itself."""
        label, names = cls.__name__, tuple(vars(cls))
        self._note(KeysRead, cls, None, snapshot(names), f"the attributes of {label}")
        for name in names:
            if not name.startswith("__"):
                held = static_attribute(cls, name)
                self._note_keyed(AttributeRead, cls, name, held, f"{label}.{name}", False)

    def read_class_of(self, value: Any) -> None:
        """Note that captured code asks for the class of a value."""
        label = self._outside.get(id(value))
        if label is not None and is_users_class(type(value)):
            self._note(
                PartRead, value, "__class__", IdentitySnapshot(type(value)), f"{label}.__class__"
            )

    def read_restored_global(self, namespace: dict[str, Any], name: str) -> None:
        """Note that a trace has set a global for a time: it must hold what it holds now."""
        self._note(GlobalRead, namespace, name, snapshot(namespace[name]), name)

    def read_elements(self, array: Any) -> None:
        """Note that Python reads the elements of an array of outside."""
        label = self._outside.get(id(array), "an array")
        self._note(ContentsRead, array, None, ElementsSnapshot(array), f"the contents of {label}")
