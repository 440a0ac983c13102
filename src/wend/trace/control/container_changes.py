"""How the containers of a caller change between two frame states (D36)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.instances import static_fields
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Value
from wend.trace.aliasing.containers import items_of
from wend.trace.aliasing.passed_containers import PassedContainers
from wend.trace.aliasing.rebuilt_containers import (
    ContainerState,
    PassedContainer,
    PassedItem,
    ReturnedObject,
)
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.returned_containers import ContainerEncoder
from wend.trace.control.returned_list import list_state
from wend.trace.control.tensor_list import TensorList
from wend.trace.recording.arguments import is_array_leaf
from wend.trace.recording.recording import Recording


@dataclass(frozen=True, slots=True)
class HeldItems:
    """The items of a container, as the last frame state tells them.

    Attributes:
        items: its items, with their keys.
        mutable: the changes that tell what those hold which may change in place, by position.
    """

    items: Sequence[tuple[Any, Any]]
    mutable: Mapping[int, Change]


# A change of a container, with the values of its arrays
Change = tuple[ContainerState, tuple[Value, ...]]
# What the last frame state of a region tells of each container that has changed, by number
Held = dict[int, HeldItems]


# Stands for all items of a list that a recorded loop lets grow
_GROWN = -1


class NotRepresentableError(Exception):
    """A container holds what a frame state cannot represent."""


class ChangeEncoder(ContainerEncoder):
    """Tells changes of containers by nodes."""

    def __init__(
        self,
        passed: PassedContainers,
        recording: Recording,
        change: Callable[[PassedItem | PassedContainer, Recording], Change],
    ) -> None:
        super().__init__(passed, {*range(len(passed.containers))})
        self._recording, self._change = recording, change

    def mark(self) -> tuple[int, set[int]]:
        """Return what `go_back` goes back to."""
        return len(self._enclosing), {*self._new_in_containers}

    def go_back(self, depth: int, new: set[int]) -> None:
        """Forget what a container holds that cannot be represented."""
        del self._enclosing[depth:]
        self._new_in_containers = new

    def changes(self, number: int, before: HeldItems) -> tuple[Sequence[Change], HeldItems]:
        """Return how a container has changed, and what it holds now."""
        container = self.passed.containers[number]
        grown = self.passed.traced_list(container)
        if grown is not None:
            node = PassedContainer(number, True, list_state(grown))
            change = self._change(node, self._recording)
            is_same = before.mutable.get(_GROWN) == change
            return [] if is_same else [change], HeldItems([], {_GROWN: change})
        items, first_new = items_of(container), len(before.items)
        is_replaced = not _continues(items, before.items)
        encoded: dict[int, Any] = {}
        for position, (_, item) in enumerate(items):
            is_other = is_replaced or position >= first_new
            if is_other or item is not before.items[position][1] or position in before.mutable:
                encoded[position] = self._encoded_at(container, items, position)

        def change_of(position: int, *, is_new: bool = False) -> Change:
            key = items[position][0]
            node = PassedItem(number, key, is_new, encoded[position])
            return self._change(node, self._recording)

        mutable = {k: change_of(k) for k in encoded if not self._is_immutable(items[k][1])}
        now = HeldItems(items, mutable)
        if is_replaced:
            by_key = {items[k][0]: item for k, item in encoded.items()}
            node = PassedContainer(number, True, self._container_of(container, by_key))
            return [self._change(node, self._recording)], now
        changed = [
            k
            for k in encoded
            if k >= first_new
            or items[k][1] is not before.items[k][1]
            or mutable[k][0] is not before.mutable[k][0]
            or mutable[k][1] != before.mutable[k][1]
        ]
        return [change_of(k, is_new=k >= first_new) for k in changed], now

    def _encoded_at(self, container: Any, items: Sequence[tuple[Any, Any]], position: int) -> Any:
        key, item = items[position]
        if key in static_fields(type(container)):
            return ReturnedObject(item)
        self._enclosing.append(id(container))
        encoded = self.encoded(item)
        self._enclosing.pop()
        return encoded

    def _is_immutable(self, item: Any) -> bool:
        """Return whether what an item holds changes only where another takes its place."""
        if isinstance(item, Tracer):
            return item.weak or (item.type.shape == () and item.zero_dim is False)
        return isinstance(item, _IMMUTABLE) or id(item) in self.numbers or id(item) in self._leaves

    def _node_of(self, container: Any, number: int) -> PassedContainer:
        return PassedContainer(number, False, [])

    def _with_nodes(self, value: Any) -> Any:
        trees.map_parts(TensorList, _check_no_list, value)
        return super()._with_nodes(value)


_IMMUTABLE = (bool, int, float, complex, str, bytes, type(None), np.generic)


def _continues(items: Sequence[tuple[Any, Any]], before: Sequence[tuple[Any, Any]]) -> bool:
    """Return whether items have the keys of earlier ones, in their order, and perhaps others."""
    return len(items) >= len(before) and all(
        key is old or (key == old and type(key) is type(old))
        for (key, _), (old, _) in zip(items, before, strict=False)
    )


def check_leaves(leaves: Sequence[Any], recording: Recording) -> None:
    """Check that a frame state of a recording can hold these leaves.

    Raises:
        NotRepresentableError: it cannot.
    """
    for leaf in leaves:
        if not is_array_leaf(leaf):
            raise NotRepresentableError
        if isinstance(leaf, Tracer) and not recording.can_lift(leaf.current()):
            raise NotRepresentableError


def _check_no_list(part: Any) -> Any:
    if isinstance(part, TensorList):
        raise NotRepresentableError
    return part
