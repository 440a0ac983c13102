"""Frame states of containers: what those of a caller hold where an operation may fail (D36)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
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
    ResultAndContainers,
)
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.returned_containers import ContainerEncoder
from wend.trace.control.tensor_list import TensorList
from wend.trace.recording.arguments import is_array_leaf
from wend.trace.recording.recording import Recording, current


class ContainerStates:
    """The states of a caller's containers, as a trace goes on.

    Args:
        passed: the containers.

    Attributes:
        states: the states that frame states refer to, each structure once.
    """

    def __init__(self, passed: PassedContainers) -> None:
        self._passed = passed
        self.states: list[ContainerState] = []
        self._by_structure: dict[Hashable, ContainerState] = {}

    def is_changed(self) -> bool:
        """Return whether the trace has changed containers so far."""
        return bool(self._passed.changed())

    def result(self) -> Any:
        """Return the result of a trace that an error ends here: what it leaves in containers."""
        recording, changed = current(), self._passed.changed()
        assert recording is not None
        encoder = _StateEncoder(self._passed, {*changed}, recording, is_end=True)
        nodes = [encoder.container(self._passed.containers[number]) for number in changed]
        return ResultAndContainers(None, nodes) if nodes else None

    def now(self, recording: Recording) -> Sequence[tuple[int, Any]]:
        """Return the arrays in changed containers, with their numbers in frame states."""
        changed = self._passed.changed()
        if not changed:
            return ()
        leaves, state = self.of(changed, recording)
        return [*zip(state.numbers, leaves, strict=True)]

    def after(
        self, callee: ContainerState, types: Sequence[Type], caller: PassedContainers
    ) -> tuple[Sequence[tuple[int, int]], Sequence[Any]]:
        """Return what a function that is called here leaves in these containers.

        Args:
            callee: the state of the containers that are passed to it.
            types: the types of its arrays.
            caller: the containers that are passed to it.

        Returns:
            for each number in frame states the number of an array of the callee's, or the index
            of one of these arrays of the caller's.
        """
        recording = current()
        assert recording is not None
        before = [items_of(container) for container in caller.containers]
        arrays = [
            recording.wrap(Value(type), weak=weak)
            for type, weak in zip(types[: len(callee.weak)], callee.weak, strict=True)
        ]
        numbers = {id(x): k for k, x in zip(callee.numbers, arrays, strict=False)}
        try:
            callee.restore(dict(zip(callee.numbers, arrays, strict=False)), caller)
            changed = self._passed.changed()
            leaves, state = self.of(changed, recording)
        finally:
            for container, items in zip(caller.containers, before, strict=True):
                set_items(container, items)
        if not changed:
            return [], []
        outer = [x for x in leaves if id(x) not in numbers]
        positions = iter(range(len(outer)))
        sources = [numbers[id(x)] if id(x) in numbers else next(positions) for x in leaves]
        return [*zip(state.numbers, sources, strict=True)], outer

    def of(
        self, changed: Sequence[int], recording: Recording
    ) -> tuple[Sequence[Any], ContainerState]:
        """Return the arrays in these containers, and the state that they are of."""
        encoder = _StateEncoder(self._passed, {*changed}, recording)
        nodes = [encoder.container(self._passed.containers[number]) for number in changed]
        leaves, tree = trees.flatten_deep(nodes)
        weak = tuple(map(is_weak, leaves))
        key = tree, trees.metadata_key(tree), weak
        state = self._by_structure.get(key)
        if state is None:
            first = self.states[-1].numbers.stop if self.states else FIRST
            state = self._by_structure[key] = ContainerState(first, tree, weak)
            self.states.append(state)
        return leaves or [True], state


# The number of the first array of the first state
FIRST = -2


class _NotRepresentableError(Exception):
    """A container holds what a frame state cannot represent."""


class _StateEncoder(ContainerEncoder):
    """Replaces containers by nodes; those that it cannot represent stay as they were passed."""

    def __init__(
        self,
        passed: PassedContainers,
        changed: set[int],
        recording: Recording,
        *,
        is_end: bool = False,
    ) -> None:
        super().__init__(passed, changed)
        self._recording, self._is_end = recording, is_end

    def _node_of(self, container: Any, number: int) -> PassedContainer:
        promoted = self.passed.traced_list(container)
        if promoted is not None and self._is_end:
            return super()._node_of(container, number)
        if number in self.changed and promoted is None:
            depth, new = len(self._enclosing), {*self._new_in_containers}
            try:
                with refusals.tentative():
                    items = self._encoded_items(container)
                    self._check(items)
                return PassedContainer(number, True, items)
            except (WendError, _NotRepresentableError):
                del self._enclosing[depth:]
                self._new_in_containers = new
        return PassedContainer(number, False, [])

    def _check(self, items: Any) -> None:
        for leaf in trees.flatten_deep(items)[0]:
            if not is_array_leaf(leaf):
                raise _NotRepresentableError
            if isinstance(leaf, Tracer) and not self._recording.can_lift(leaf.current()):
                raise _NotRepresentableError

    def _with_nodes(self, value: Any) -> Any:
        if not self._is_end:
            trees.map_parts(TensorList, _check_no_list, value)
        return super()._with_nodes(value)


def _check_no_list(part: Any) -> Any:
    if isinstance(part, TensorList):
        raise _NotRepresentableError
    return part
