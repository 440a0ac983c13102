"""Places in objects that a trace may write, with what they hold."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import itertools
import pickle
import sys
import threading
import warnings
from abc import ABC, abstractmethod
from types import MemberDescriptorType, ModuleType
from typing import Any, Self

import numpy as np

from wend.capture.heap.buffers import BUFFERS, assign_bytes, restorable_bytes
from wend.capture.heap.containers import base_of
from wend.trace.aliasing.referrers import is_node
from wend.trace.arrays.concrete_array import ConcreteTracedArray

ABSENT = object()  # what a place holds that is unbound


def is_setting(value: Any) -> bool:
    """Return whether a value is equal to another only if Python cannot tell them apart."""
    return type(value) in (str, bytes, bool, int, type(None))


class Place(ABC):
    """One place in an object that code may write, without what is nested in it."""

    __slots__ = ("label", "owner")

    def __init__(self, label: str, owner: Any) -> None:
        self.label, self.owner = label, owner

    def in_object(self, owner: Any) -> Self:
        """Return the place of another owner that is like this one."""
        return type(self)(self.label, owner)

    @property
    @abstractmethod
    def key(self) -> tuple[Any, ...]:
        """A key that is equal for places of the same place."""

    @abstractmethod
    def read(self) -> Any:
        """Return what it holds, not affected by later writes; `ABSENT` if nothing."""

    @abstractmethod
    def write(self, value: Any) -> None:
        """Restore what `read` has returned."""

    def holds(self, old: Any) -> bool:
        """Return whether it holds what `read` has returned."""
        return self.read() is old

    def adds_to(self, old: Any) -> bool:
        """Return whether it holds more than what `read` has returned, and all of that."""
        return old is ABSENT or old is None

    def may_be_local(self) -> bool:
        """Return whether the owner may have been made in the trace."""
        return is_node(self.owner)

    def is_among(self, alive: set[int]) -> bool:
        """Return whether the owner outlives the trace; `alive`: the ids of those that do."""
        return id(self.owner) in alive or not self.may_be_local()

    def make_plain(self) -> None:
        """Replace arrays whose elements a trace has known by NumPy's."""
        value = self.read()
        new = plain(value)
        if new is not value:
            self.write(new)


class AttributePlace(Place):
    """An attribute that an object itself holds."""

    __slots__ = ("name",)

    def __init__(self, label: str, owner: Any, name: str) -> None:
        super().__init__(label, owner)
        self.name = name

    def in_object(self, owner: Any) -> Self:
        return type(self)(self.label, owner, self.name)

    @property
    def key(self) -> tuple[Any, ...]:
        return "attribute", id(self.owner), self.name

    def read(self) -> Any:
        if isinstance(self.owner, (type, ModuleType)):
            return vars(self.owner).get(self.name, ABSENT)
        own = instance_dict(self.owner)
        if own is not None and self.name in own:
            return own[self.name]
        descriptor = self._descriptor()
        if isinstance(descriptor, MemberDescriptorType):
            with contextlib.suppress(AttributeError):  # an empty slot; `__getattr__` is not asked
                return descriptor.__get__(self.owner)
        return ABSENT

    def write(self, value: Any) -> None:
        kind: Any = type(self.owner) if isinstance(self.owner, (type, ModuleType)) else object
        if value is not ABSENT:
            kind.__setattr__(self.owner, self.name, value)
        elif self.read() is not ABSENT:
            kind.__delattr__(self.owner, self.name)

    def _descriptor(self) -> Any:
        return inspect.getattr_static(type(self.owner), self.name, None)


class ItemsPlace(Place):
    """The items of a list, dict, set or the like."""

    __slots__ = ()

    @property
    def container(self) -> Any:
        """The container, which the owner is or has."""
        return self.owner

    def may_be_local(self) -> bool:
        return not is_of_module(self.owner) and super().may_be_local()

    @property
    def key(self) -> tuple[Any, ...]:
        return "items", id(self.owner)

    def read(self) -> Any:
        owner = self.container
        if isinstance(owner, BUFFERS):
            return restorable_bytes(owner)
        kind = base_of(owner)
        if issubclass(kind, dict):
            return [x for pair in kind.items(owner) for x in pair]
        return [*kind.__iter__(owner)]

    def adds_to(self, old: Any) -> bool:
        owner = self.container
        if isinstance(owner, dict):
            pairs = zip(old[::2], old[1::2], strict=True)
            return all(dict.get(owner, key, ABSENT) is value for key, value in pairs)
        return isinstance(owner, set) and set.issuperset(owner, old)

    def write(self, value: Any) -> None:
        owner = self.container
        if isinstance(owner, BUFFERS):
            assign_bytes(owner, value)
            return
        kind = base_of(owner)
        kind.clear(owner)
        if issubclass(kind, dict):
            for name, item in zip(value[::2], value[1::2], strict=True):
                kind.__setitem__(owner, name, item)
        else:
            (kind.update if issubclass(kind, set) else kind.extend)(owner, value)

    def holds(self, old: Any) -> bool:
        now = self.read()
        if isinstance(now, bytes):
            return bool(now == old)
        return len(now) == len(old) and all(a is b for a, b in zip(now, old, strict=True))

    def make_plain(self) -> None:
        plain(self.container)


class GrowthPlace(ItemsPlace):
    """The end of a list."""

    __slots__ = ()


def is_of_module(value: Any) -> bool:
    """Return whether an object is the dict of a module's variables."""
    name = value.get("__name__") if type(value) is dict else None
    module = sys.modules.get(name) if isinstance(name, str) else None
    return module is not None and getattr(module, "__dict__", None) is value


class VariablesPlace(ItemsPlace):
    """All attributes in the `__dict__` of an object."""

    __slots__ = ()

    @property
    def container(self) -> Any:
        return instance_dict(self.owner)

    @property
    def key(self) -> tuple[Any, ...]:
        return "variables", id(self.owner)


class CellPlace(Place):
    """A variable of an enclosing function."""

    __slots__ = ()

    @property
    def key(self) -> tuple[Any, ...]:
        return "cell", id(self.owner)

    def read(self) -> Any:
        try:
            return self.owner.cell_contents
        except ValueError:
            return ABSENT

    def write(self, value: Any) -> None:
        if value is not ABSENT:
            self.owner.cell_contents = value
        elif self.read() is not ABSENT:
            del self.owner.cell_contents


class GlobalPlace(Place):
    """A variable of a module."""

    __slots__ = ()

    def may_be_local(self) -> bool:
        return False

    def holds(self, old: Any) -> bool:
        value = self.read()
        return value is old or (is_setting(old) and type(value) is type(old) and value == old)

    @property
    def key(self) -> tuple[Any, ...]:
        return "global", id(self.owner), self.label

    def read(self) -> Any:
        return self.owner.get(self.label, ABSENT)

    def write(self, value: Any) -> None:
        if value is not ABSENT:
            self.owner[self.label] = value
        else:
            self.owner.pop(self.label, None)


class ElementsPlace(Place):
    """The elements of a plain array."""

    __slots__ = ()

    @property
    def key(self) -> tuple[Any, ...]:
        return "elements", id(self.owner)

    def read(self) -> Any:
        return np.array(np.ndarray.view(self.owner, np.ndarray))

    def write(self, value: Any) -> None:
        np.ndarray.view(self.owner, np.ndarray)[...] = value

    def holds(self, old: Any) -> bool:
        return bool(self.owner.shape == old.shape and self.owner.tobytes() == old.tobytes())


class StatePlace(Place):
    """The state of an object that only its own methods see."""

    __slots__ = ()

    @property
    def key(self) -> tuple[Any, ...]:
        return "state", id(self.owner)

    def read(self) -> Any:
        return ABSENT

    def write(self, value: Any) -> None:
        pass

    def holds(self, old: Any) -> bool:
        return False  # its methods change it


class DrawsPlace(StatePlace):
    """The numbers that a random generator of NumPy will draw."""

    __slots__ = ()

    @property
    def _bits(self) -> Any:
        owner = getattr(self.owner, "_bit_generator", self.owner)
        return getattr(owner, "bit_generator", owner)

    def read(self) -> Any:
        return pickle.dumps(self._bits.state)

    def write(self, value: Any) -> None:
        self._bits.state = pickle.loads(value)

    def holds(self, old: Any) -> bool:
        return bool(self.read() == old)


class PositionPlace(Place):
    """The position of an iterator."""

    __slots__ = ()

    @property
    def key(self) -> tuple[Any, ...]:
        return "position", id(self.owner)

    def read(self) -> Any:
        if isinstance(self.owner, itertools.count):
            return repr(self.owner)
        if type(self.owner).__name__ in ("groupby", "_grouper"):
            return ABSENT  # a copy would end the group that is gone through
        try:
            with warnings.catch_warnings():  # of Python 3.12: iterators will not be copied
                warnings.simplefilter("ignore", DeprecationWarning)
                return copy.copy(self.owner).__reduce__()[2]
        except (TypeError, IndexError, AttributeError):
            return ABSENT

    def write(self, value: Any) -> None:
        if value is not ABSENT and hasattr(self.owner, "__setstate__"):
            self.owner.__setstate__(value)

    def holds(self, old: Any) -> bool:
        # Positions of others are more than a number
        return type(old) in (int, str) and bool(self.read() == old)


class StandIn:
    """Stands for an object of outside while a trace is recorded."""

    __slots__ = ("original",)

    def __init__(self, original: Any) -> None:
        self.original = original


def original_of(value: Any) -> Any:
    """Return the object that a value stands for in a trace: NumPy's array for one of a trace."""
    if type(value) is ConcreteTracedArray:
        return np.ndarray.view(value, np.ndarray)
    return value.original if isinstance(value, StandIn) else value


def plain(value: Any) -> Any:
    """Return the object that a value stands for; items of lists and dicts are replaced by theirs.

    They may contain themselves.
    """
    value = original_of(value)
    if is_of_module(value):
        return value
    pending, seen = [value], {id(value)}
    while pending:
        container = pending.pop()
        if type(container) not in (list, dict):
            continue
        is_dict = isinstance(container, dict)
        for key, item in [*(container.items() if is_dict else enumerate(container))]:
            original = original_of(item)
            if original is not item:
                container[key] = original
            elif id(item) not in seen and not is_of_module(item):
                seen.add(id(item))
                pending.append(item)
    return value


def instance_dict(owner: Any) -> dict[str, Any] | None:
    """Return the `__dict__` of an object, without running code of its class."""
    if type(owner) is functools.partial:  # reading it would make one, and a partial of it nested
        own = owner.__reduce__()[2][-1]
        return own if isinstance(own, dict) else None
    base: Any = threading.local if issubclass(type(owner), threading.local) else object
    try:
        own = base.__getattribute__(owner, "__dict__")
    except AttributeError:
        return None
    return own if isinstance(own, dict) else None


def instance_variables(owner: Any) -> dict[str, Any] | None:
    """Return the `__dict__` of an instance; None of a class, a module, or an object without one."""
    own = None if isinstance(owner, (type, ModuleType)) else instance_dict(owner)
    return own if type(own) is dict else None


def named(kind: type) -> str:
    """Return what an object of a class is called: "a Counter", "an Event"."""
    return f"{'an' if kind.__name__[:1] in 'AEIOUaeiou' else 'a'} {kind.__name__}"
