"""The objects of outside that a trace has met, and its reads of them."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

from wend.backends.fastcall import MISSING
from wend.base.errors import SideEffectError, explain
from wend.base.source import at, user_source
from wend.capture.guards.kinds import (
    UNOBSERVED,
    is_library_module,
    is_settings,
    is_users_class,
)
from wend.capture.guards.reads import (
    AttributeRead,
    CallRead,
    CellRead,
    ContentsRead,
    GlobalRead,
    ItemRead,
    KeysRead,
    PartRead,
    Read,
    static_attribute,
)
from wend.capture.guards.unseen_calls import UnseenCalls
from wend.capture.heap.places import ItemsPlace, Place, instance_dict
from wend.capture.heap.snapshots import (
    ElementsSnapshot,
    IdentitySnapshot,
    Snapshot,
    container_kind,
    items_of,
    snapshot,
)
from wend.capture.heap.trace_log import is_trace_logged, note_write
from wend.trace.recording.recording import current

_GROWING = ("append", "extend")


def length_refusal(place: Place, where: str = "") -> SideEffectError:
    """Return the refusal of a list of outside whose length changes, and is read."""
    what = (
        f"`{place.label}` outlives the call, gets another length, and is read{where}: each length "
        "would be another trace."
    )
    cure = "append to it in a function that does not read it, or return what is to be appended."
    error = SideEffectError(explain(what, cure=cure))
    error.changed_outside = (place,)
    return error


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
        self._is_pure = False  # code that writes nothing reads it
        self._is_free = False  # and it may write it: it is marked with @do_not_capture
        self._growing: dict[int, Place] = {}  # lists of outside that are passed empty, by id
        self._growing_around: dict[int, Place] = {}  # of traces around this one
        self._lifted: set[tuple[Any, ...]] = set()  # places whose values are arguments of the trace

    def restart(self) -> None:
        """Drop all that is noted: the function is traced again."""
        self._reads.clear()
        self._plain_reads.clear()
        self._unlogged.clear()
        self._alive.clear()
        self._outside.clear()
        self._lifted.clear()
        self._growing = {**self._growing_around}

    def lift(
        self, places: Iterable[Place], containers: Iterable[Any], growing: Iterable[Place] = ()
    ) -> None:
        """Take what places and containers of outside hold as arguments: reads are no guards.

        Args:
            places: the places.
            containers: the containers.
            growing: those of lists that are passed empty, and take what is appended.
        """
        self._growing.update((id(place.owner), place) for place in growing)
        for read in self._reads.values() if self._growing else ():
            owner = read.owner()
            if owner is not None:
                self._check_growing(type(read), owner, read.key, read.snapshot)
        self._lifted.update(place.key for place in places)
        for container in containers:
            self._keep(container)
            self._lifted.add(("items", id(container)))

    def _is_lifted(self, kind: type[Read], owner: Any, key: Any) -> bool:
        """Return whether a read gives an argument of the trace."""
        if ("items", id(owner)) in self._lifted:
            return True
        if kind is GlobalRead:
            return ("global", id(owner), key) in self._lifted
        if kind is CellRead:
            return ("cell", id(owner)) in self._lifted
        if kind is AttributeRead:
            return ("attribute", id(owner), key) in self._lifted
        return False

    def take_growing(self, outer: ReadLog) -> None:
        """Take the lists that are passed empty to a trace around this one."""
        self._growing_around = {**outer._growing}
        self._growing = {**outer._growing}

    def gives_argument(self, read: Read) -> bool:
        """Return whether a read of a trace that is called gives an argument of this one."""
        return bool(self._lifted) and self._is_lifted(type(read), read.owner(), read.key)

    def only_grows(self, fun: Any) -> bool:
        """Return whether a method appends to a list that is passed empty."""
        return id(getattr(fun, "__self__", None)) in self._growing and fun.__name__ in _GROWING

    def _check_growing(
        self, kind: type[Read], owner: Any, key: Any, value: Snapshot | None
    ) -> None:
        growing = self._growing_in(kind, owner, key, value)
        if growing is not None:
            raise length_refusal(self._growing[id(growing)], at(user_source()))

    def _growing_in(self, kind: type[Read], owner: Any, key: Any, value: Snapshot | None) -> Any:
        """Return a list that is passed empty, if a read of what it holds gives or contains it."""
        if kind in (ItemRead, ContentsRead) and id(owner) in self._growing:
            return owner
        if kind in (CallRead, KeysRead) or isinstance(value, IdentitySnapshot):
            return None
        stack = [kind("", owner, key, IdentitySnapshot(owner)).value_in(owner)]
        seen = set[int]()
        while stack:
            part = stack.pop()
            if id(part) in self._growing:
                return part
            if id(part) not in seen and container_kind(type(part)) is not None:
                seen.add(id(part))
                stack += items_of(part)
        return None

    def _around_lifted(
        self, kind: type[Read], owner: Any, key: Any, value: Snapshot | None
    ) -> Snapshot | None:
        """Return the snapshot of what is read, with containers that are arguments by identity."""
        if kind in (CallRead, KeysRead):
            return value
        lifted = tuple([key[1] for key in self._lifted if key[0] == "items"])
        whole = kind("", owner, key, IdentitySnapshot(owner)).value_in(owner)
        is_container = container_kind(type(whole)) is not None
        return snapshot(whole, lifted) if is_container and lifted else value

    def places_of(self, value: Any) -> list[Place]:
        """Return the places that the trace has read a value from."""
        places: list[Place] = []
        for read in [*self._reads.values()]:
            owner = read.owner()
            if owner is None or isinstance(read, (CallRead, KeysRead, PartRead)):
                continue
            if isinstance(read, ContentsRead):
                is_holder = container_kind(type(owner)) is not None and any(
                    item is value for item in items_of(owner)
                )
            else:
                is_holder = read.value_in(owner) is value
            if not is_holder:
                continue
            if isinstance(read, (ContentsRead, ItemRead)):
                is_tuple = isinstance(owner, tuple)
                places += self.places_of(owner) if is_tuple else [ItemsPlace(read.name, owner)]
            else:
                places += read.own_places(owner)
        return places

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
        if self._growing:
            self._check_growing(kind, owner, key, value)
        if self._lifted and self._is_lifted(kind, owner, key):
            return
        if self._lifted and not isinstance(value, IdentitySnapshot):
            value = self._around_lifted(kind, owner, key, value)
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
            read = self._reads[identity]
            for place in read.places():
                note_write(place, is_certain=False, is_seen=self._is_pure, **options)

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

    def read_identity(self, value: Any) -> None:
        """Note that captured code asks which container of outside a value is."""
        if container_kind(type(value)) is None or id(value) not in self._outside:
            return
        for read in [*self._reads.values()]:
            owner = read.owner()
            if owner is None or isinstance(read, (ContentsRead, CallRead)):  # a call runs code
                continue
            if read.value_in(owner) is value:
                self._note(type(read), owner, read.key, IdentitySnapshot(value), read.name)

    def read_restored_global(self, namespace: dict[str, Any], name: str) -> None:
        """Note that a trace has set a global for a time: it must hold what it holds now."""
        self._note(GlobalRead, namespace, name, snapshot(namespace[name]), name)

    def read_elements(self, array: Any) -> None:
        """Note that Python reads the elements of an array of outside."""
        label = self._outside.get(id(array), "an array")
        self._note(ContentsRead, array, None, ElementsSnapshot(array), f"the contents of {label}")
