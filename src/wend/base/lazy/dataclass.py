"""`dataclasses.dataclass` whose methods are made when one of them is first used.

Making them takes the standard decorator half a millisecond. Of two hundred classes that an import
and a first call define, they use seventy.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from wend.base.locks import Rank, lock_of

__all__ = ["dataclass"]

_LOCK = lock_of(Rank.DATACLASSES)
_REPLACED = ("__dict__", "__weakref__")  # made anew with the class
_ABOUT = (
    *("__dataclass_fields__", "__dataclass_params__", "__match_args__"),
    *["__replace__"] * (sys.version_info >= (3, 13)),
)


class _MadeByStandard:
    """An attribute that the standard decorator makes."""

    def __init__(self, name: str, complete: Callable[[], type]) -> None:
        self._name, self._complete = name, complete

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        attribute = self._complete().__dict__[self._name]
        bind = getattr(type(attribute), "__get__", None)
        return attribute if bind is None else bind(attribute, instance, owner)


def _with_lazy_methods(original: type, weakref_slot: bool, options: dict[str, bool]) -> type:
    """Return a class with slots that has the methods of a dataclass once they are needed."""
    namespace = {**original.__dict__, "__qualname__": original.__qualname__}
    lazy = [*_ABOUT, *(name for name in _generated(options) if name not in namespace)]
    # Python sets the hash to None where a class has an `__eq__` of its own.
    has_own_hash = "__hash__" in namespace and (
        namespace["__hash__"] is not None or "__eq__" not in namespace
    )
    if options["eq"] and not has_own_hash:
        if options["frozen"]:
            lazy.append("__hash__")
        else:
            namespace["__hash__"] = None

    own = [name for name, kind in original.__annotations__.items() if "ClassVar" not in kind]
    defaults = {name: namespace[name] for name in own if name in namespace}
    special = {x: v for x, v in namespace.items() if x[:2] == "__" and x not in _REPLACED}

    def complete() -> type:
        with _LOCK:
            if isinstance(slotted.__dict__["__dataclass_fields__"], _MadeByStandard):
                # A class for each time: the decorator takes defaults away, and Ctrl-C may end it.
                again: Any = type(original)(original.__name__, original.__bases__, {**special})
                for name, value in defaults.items():
                    setattr(again, name, value)
                standard: type = dataclasses.dataclass(**options)(again)
                for name in reversed(lazy):  # fields last: they tell others that all is there
                    setattr(slotted, name, standard.__dict__[name])
        return slotted

    for name in (*own, *_REPLACED):
        namespace.pop(name, None)
    namespace["__slots__"] = (*own, *["__weakref__"] * weakref_slot)
    if options["frozen"]:  # which `copy` and `pickle` cannot set
        namespace.setdefault("__getstate__", _state)
        namespace.setdefault("__setstate__", _set_state)
    namespace |= {name: _MadeByStandard(name, complete) for name in lazy}
    slotted: type = type(original)(original.__name__, original.__bases__, namespace)
    return slotted


def _generated(options: dict[str, bool]) -> list[str]:
    """Return the methods that the standard decorator makes, but for `__hash__`."""
    repr, eq = ["__repr__"] * options["repr"], ["__eq__"] * options["eq"]
    frozen = ["__setattr__", "__delattr__"] * options["frozen"]
    return ["__init__", *repr, *eq, *frozen]


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        slots: bool = False,
        weakref_slot: bool = False,
        eq: bool = True,
        repr: bool = True,
        frozen: bool = False,
    ) -> Any:
        """Return the class as a dataclass; without slots it is made at once.

        Annotations are strings, as `from __future__ import annotations` makes them.
        """
        options = {"eq": eq, "repr": repr, "frozen": frozen}

        def wrap(cls: type) -> type:
            if not slots:
                return dataclasses.dataclass(**options)(cls)
            return _with_lazy_methods(cls, weakref_slot, options)

        return wrap if cls is None else wrap(cls)
