"""The variables that a piece of captured control flow may change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wend.base import trees
from wend.eager.dispatch import Staged
from wend.trace.arguments import is_array_leaf


class Unbound:
    """What a variable holds that is not bound."""

    def __repr__(self) -> str:
        return "<unbound>"


UNBOUND = Unbound()


def is_bound(value: object) -> bool:
    return value is not UNBOUND


class State:
    """The places (names, attributes) that control flow may change, and how to read and set them."""

    def __init__(
        self,
        names: Sequence[str],
        reads: Sequence[Callable[[], Any]],
        setter: Callable[[Sequence[Any]], None],
    ) -> None:
        self.names, self.reads, self.setter = names, reads, setter

    def get(self) -> list[Any]:
        """The values now; `UNBOUND` for what is not bound."""
        return [_read(read) for read in self.reads]

    def set(self, values: Sequence[Any]) -> None:
        """Give every place its value; containers are copied, so that changes in place stay here."""
        self.setter([copied(value) for value in values])

    def restore(self, values: Sequence[Any]) -> None:
        """Give every place its value, the very objects."""
        self.setter(values)


def _read(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (NameError, AttributeError):
        return UNBOUND


def copied(value: Any) -> Any:
    """A pytree's containers anew, its leaves the same."""
    if isinstance(value, (list, dict, set, tuple)):
        return trees.tree_map(lambda leaf: leaf, value)
    return value


def is_carried(value: Any) -> bool:
    """Whether a value can be part of a graph: a pytree of arrays and numbers, and not empty."""
    if value is UNBOUND:
        return False
    leaves, _ = trees.flatten(value)
    return bool(leaves) and all(is_array_leaf(leaf) for leaf in leaves)


def is_same(a: Any, b: Any) -> bool:
    """Whether nothing changed: the same object, or containers of the same leaves."""
    if a is b:
        return True
    if a is UNBOUND or b is UNBOUND or type(a) is not type(b):
        return False
    mine, tree = trees.flatten(a)
    theirs, other = trees.flatten(b)
    return bool(tree == other) and all(map(_same_leaf, mine, theirs))


def _same_leaf(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, Staged) or isinstance(b, Staged):
        return bool(getattr(a, "value", None) is getattr(b, "value", b))
    if is_array_leaf(a) or type(a) is not type(b):
        return type(a) in (bool, int, float, complex) and type(a) is type(b) and bool(a == b)
    try:
        return bool(a == b)
    except Exception:
        return False


def holds_staged(value: Any) -> bool:
    """Whether a traced array is among the leaves."""
    return value is not UNBOUND and any(isinstance(x, Staged) for x in trees.flatten(value)[0])
