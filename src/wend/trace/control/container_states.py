"""Frame states of containers: what those of a caller hold where an operation may fail (D36)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from wend.base import refusals, trees
from wend.base.errors import WendError
from wend.eager.promotion import is_weak
from wend.ir.graph import Value
from wend.ir.types import Type
from wend.trace.aliasing.containers import items_of, set_items
from wend.trace.aliasing.passed_containers import PassedContainers
from wend.trace.aliasing.rebuilt_containers import (
    ContainerState,
    PassedContainer,
    PassedItem,
    ResultAndContainers,
    restore_all,
)
from wend.trace.control.container_changes import (
    Change,
    ChangeEncoder,
    Held,
    HeldItems,
    NotRepresentableError,
    check_leaves,
)
from wend.trace.control.returned_containers import ContainerEncoder
from wend.trace.recording.recording import Recording, current


class ContainerStates:
    """The states of a caller's containers, as a trace goes on.

    Args:
        passed: the containers.

    Attributes:
        states: the changes that frame states refer to, each structure once.
    """

    def __init__(self, passed: PassedContainers) -> None:
        self._passed = passed
        self.states: list[ContainerState] = []
        self._by_structure: dict[Hashable, ContainerState] = {}
        # What the last frame state of each region tells
        self._held: dict[Recording, Held] = {}

    def is_changed(self) -> bool:
        """Return whether the trace has changed containers so far."""
        return bool(self._passed.changed())

    def held(self) -> list[Any]:
        """Return what the containers hold now."""
        self._passed.changed()
        items = [x for container in self._passed.containers for _, x in items_of(container)]
        return [*items, *(x.value for grown in self._passed.promoted.values() for x in grown.lists)]

    def result(self) -> Any:
        """Return the result of a trace that an error ends here: what it leaves in containers."""
        recording, changed = current(), self._passed.changed()
        assert recording is not None
        encoder = _EndEncoder(self._passed, {*changed}, recording)
        nodes = [encoder.container(self._passed.containers[number]) for number in changed]
        return ResultAndContainers(None, nodes) if nodes else None

    def changes(self, recording: Recording) -> dict[int, Value] | None:
        """Return how the containers have changed since the last frame state of a region.

        Returns:
            the arrays of the changes, by their numbers in frame states; None if only all changes
            since the call can be told.
        """
        return self._changes_since(self._held.setdefault(recording, {}), recording)

    def all_changes(self, recording: Recording) -> dict[int, Value]:
        """Return how the containers have changed since the call, by numbers in frame states."""
        changes = self._changes_since({}, recording)
        assert changes is not None
        return changes

    def forget(self, recording: Recording) -> None:
        """Forget the last frame state of a region."""
        self._held.pop(recording, None)

    def _changes_since(self, held: Held, recording: Recording) -> dict[int, Value] | None:
        """Return the changes since a frame state; `held` becomes what containers hold now."""
        changes: list[Change] = []
        encoder = ChangeEncoder(self._passed, recording, self._change)
        for number in sorted({*self._passed.changed(), *held}):
            before = held.get(number) or HeldItems(self._passed.before(number), {})
            depth, new = encoder.mark()
            try:
                with refusals.tentative():
                    own, held_now = encoder.changes(number, before)
            except (WendError, NotRepresentableError):
                if number in held:
                    return None
                encoder.go_back(depth, new)
                continue
            if own or number in held:
                held[number] = held_now
            changes += own
        return {
            k: value
            for state, values in changes
            for k, value in zip(state.numbers, values, strict=True)
        }

    def after(
        self,
        contents: Mapping[int, Type],
        callee: Sequence[ContainerState],
        caller: PassedContainers,
    ) -> tuple[Sequence[tuple[int, int]], Sequence[Value]]:
        """Return what a function that is called here leaves in these containers.

        Args:
            contents: the types of the arrays in a frame state of the callee's, by number.
            callee: the changes that its frame states refer to.
            caller: the containers that are passed to it.

        Returns:
            for each number in frame states the number of an array of the callee's, or the index
            of one of these values of the caller's.
        """
        recording = current()
        assert recording is not None
        before = [items_of(container) for container in caller.containers]
        weak = {k: x for state in callee for k, x in zip(state.numbers, state.weak, strict=False)}
        arrays = {
            k: recording.wrap(Value(type), weak=weak.get(k, False)) for k, type in contents.items()
        }
        numbers = {x.value: k for k, x in arrays.items()}
        try:
            restore_all(callee, arrays, caller)
            changes = self.all_changes(recording)
        finally:
            for container, items in zip(caller.containers, before, strict=True):
                set_items(container, items)
        outer = [x for x in changes.values() if x not in numbers]
        positions = iter(range(len(outer)))
        sources = [numbers[x] if x in numbers else next(positions) for x in changes.values()]
        return [*zip(changes, sources, strict=True)], outer

    def _change(self, node: PassedItem | PassedContainer, recording: Recording) -> Change:
        """Return a change that a node tells."""
        leaves, tree = trees.flatten_deep([node])
        check_leaves(leaves, recording)
        weak = tuple(map(is_weak, leaves))
        key = tree, trees.metadata_key(tree), weak
        state = self._by_structure.get(key)
        if state is None:
            first = self.states[-1].numbers.stop if self.states else FIRST
            state = self._by_structure[key] = ContainerState(first, tree, weak)
            self.states.append(state)
        return state, tuple(map(recording.frames.lifted, leaves or [True]))


# The number of the first array of the first change
FIRST = -2


class _EndEncoder(ContainerEncoder):
    """Replaces containers by nodes; those that it cannot represent stay as they were passed."""

    def __init__(self, passed: PassedContainers, changed: set[int], recording: Recording) -> None:
        super().__init__(passed, changed)
        self._recording = recording

    def _node_of(self, container: Any, number: int) -> PassedContainer:
        if self.passed.traced_list(container) is not None:
            return super()._node_of(container, number)
        if number in self.changed:
            depth, new = len(self._enclosing), {*self._new_in_containers}
            try:
                with refusals.tentative():
                    items = self._encoded_items(container)
                    check_leaves(trees.flatten_deep(items)[0], self._recording)
                return PassedContainer(number, True, items)
            except (WendError, NotRepresentableError):
                del self._enclosing[depth:]
                self._new_in_containers = new
        return PassedContainer(number, False, [])
