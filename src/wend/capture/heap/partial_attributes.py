"""The names of objects' attributes, and those that an object itself has in some runs only.

In the others its class may have them, so that reading one gives a value in every run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from wend.base.context_values import scoped


class AttributeNames:
    """The names of an object's attributes, in the order of its `__dict__`.

    Attributes:
        names: the names.
        partial: those that the object itself has in some runs only, with the place that decides;
            where it has not, the class may have them.
    """

    def __init__(self, names: Sequence[str], partial: Mapping[str, str] = MappingProxyType({})):
        self.names, self.partial = tuple(names), partial

    def __repr__(self) -> str:
        return ", ".join(self.names)

    def agrees(self, other: AttributeNames) -> bool:
        """Return whether the names that both have are in the same order."""
        common = {*self.names} & {*other.names}
        first, second = ([x for x in names if x in common] for names in (self.names, other.names))
        return first == second

    def merged(self, other: AttributeNames, where: str) -> AttributeNames:
        """Return the names of both, if a place decides which the object has."""
        names = [*dict.fromkeys((*self.names, *other.names))]
        new = {name: where for name in names if (name in self.names) != (name in other.names)}
        return AttributeNames(names, {**new, **other.partial, **self.partial})


# Attributes that objects have in some runs only, by the ids of the objects, which are held
_partial_names: ContextVar[dict[int, tuple[Any, Mapping[str, str]]] | None] = ContextVar(
    "wend_partial_names", default=None
)


@contextmanager
def tracking_partial_names() -> Iterator[None]:
    """Track in this block, the trace of a function, which attributes only some runs set."""
    with scoped(_partial_names, {**(_partial_names.get() or {})}):
        yield


def partial_names(owner: Any) -> Mapping[str, str]:
    """Return the attributes that an object has in some runs only, with what decides."""
    return ((_partial_names.get() or {}).get(id(owner)) or (None, {}))[1]


def any_partial_names() -> bool:
    """Return whether an object has an attribute in some runs only."""
    return any(names for _, names in (_partial_names.get() or {}).values())


def set_partial_names(owner: Any, names: Mapping[str, str]) -> None:
    """Note which attributes an object has in some runs only."""
    tracked = _partial_names.get()
    if tracked is not None and (names or id(owner) in tracked):
        tracked[id(owner)] = owner, names
