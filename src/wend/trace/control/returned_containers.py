"""The nodes of a result that tell what a trace leaves in the containers of its caller."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from wend.base import trees
from wend.base.errors import NestingError, StructureError, explain
from wend.base.instances import has_fields, is_instance, static_fields, structure_of
from wend.base.keys import attributes_of
from wend.base.refusals import refusal
from wend.trace.aliasing.containers import (
    children_of,
    container_like,
    containers_in,
    is_container,
    items_of,
)
from wend.trace.aliasing.passed_containers import PassedContainers
from wend.trace.aliasing.rebuilt_containers import (
    PassedContainer,
    PassedLeaf,
    PythonNumber,
    ResultAndContainers,
)
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.returned_constants import ReturnedObject, returned_constant
from wend.trace.control.returned_list import returned_list
from wend.trace.control.tensor_list import TensorList
from wend.trace.recording.arguments import is_array_leaf


def with_changes(passed: PassedContainers, result: Any) -> Any:
    """Return the result of a trace with what it leaves in the containers of its caller.

    Raises:
        StructureError: they hold themselves, or one new container twice.
    """
    changed = passed.changed()
    encoder = ContainerEncoder(passed, {*changed})
    if not (changed or passed.is_compared or encoder.is_passed_in(result)):
        return with_nodes(result, passed.leaves)
    result = encoder.encoded(result, is_item=False)
    containers = [encoder.container(passed.containers[number]) for number in changed]
    return ResultAndContainers(result, containers)


class ContainerEncoder:
    """Replaces the caller's containers in a result by nodes with their numbers."""

    def __init__(self, passed: PassedContainers, changed: set[int]) -> None:
        self.passed, self.numbers, self.changed = passed, passed.numbers, changed
        self._leaves = {id(leaf): index for index, leaf in enumerate(passed.leaves)}
        self._enclosing: list[int] = []
        self._encoded: dict[int, PassedContainer] = {}  # by number
        self._new_in_result: set[int] = set()
        self._new_in_containers: set[int] = set()

    def is_passed_in(self, result: Any) -> bool:
        return any(id(container) in self.numbers for container in containers_in(result))

    def container(self, container: Any) -> PassedContainer:
        number = self.numbers[id(container)]
        node = self._encoded.get(number)
        if node is None:
            node = self._encoded[number] = self._node_of(container, number)
        return node

    def _node_of(self, container: Any, number: int) -> PassedContainer:
        promoted = self.passed.traced_list(container)
        if promoted is not None:
            return PassedContainer(number, True, returned_list(promoted))
        return PassedContainer(number, number in self.changed, self._encoded_items(container))

    def _encoded_items(self, container: Any) -> Any:
        positions = range(len(items_of(container)))
        return self._container_of(container, self._each_encoded(container, positions))

    def _each_encoded(self, container: Any, positions: Iterable[int]) -> dict[Any, Any]:
        """Return the items at some positions, encoded, by their keys."""
        if id(container) in self._enclosing:
            what = "a list or dict of the arguments holds itself when the function ends."
            raise refusal(StructureError(explain(what, cure="put a copy into it.")))
        self._enclosing.append(id(container))
        static, items = static_fields(type(container)), items_of(container)
        by_key = {
            key: item if key in static else self.encoded(item)
            for key, item in (items[k] for k in positions)
        }
        self._enclosing.pop()
        return by_key

    def _container_of(self, container: Any, by_key: dict[Any, Any]) -> Any:
        """Return encoded items as a node of a container's kind holds them."""
        if isinstance(container, dict):
            return by_key
        if has_fields(container):
            return container_like(container, by_key.values())
        return [*by_key.values()]

    def encoded(self, value: Any, *, is_item: bool = True) -> Any:
        """Return a part of the result; `is_item`: of the contents of a container of the caller."""
        if is_container(value):
            if id(value) in self.numbers:
                return self.container(value)
            seen = self._new_in_containers | (self._new_in_result if is_item else set())
            if id(value) in seen:
                what = "one list or dict is put into the arguments twice: it would become two."
                raise refusal(StructureError(explain(what, cure="put a copy into one of them.")))
            (self._new_in_containers if is_item else self._new_in_result).add(id(value))
            items = (
                self._encoded_items(value)
                if is_item
                else [self.encoded(child, is_item=False) for child in children_of(value)]
            )
            return items if is_item and has_fields(value) else container_like(value, items)
        if isinstance(value, tuple):
            items = [self.encoded(child, is_item=is_item) for child in value]
            return type(value)(*items) if trees.is_namedtuple(type(value)) else tuple(items)
        if isinstance(value, TensorList):
            for key, promoted in self.passed.promoted.items():
                if promoted is value and key in self.numbers:
                    return self.container(self.passed.containers[self.numbers[key]])
        if not is_item:
            return with_nodes(value, self.passed.leaves, is_field=True)
        if id(value) in self._leaves and self.passed.leaves[self._leaves[id(value)]] is value:
            if self.changed:
                return PassedLeaf(self._leaves[id(value)])
            # for derivatives, which have no caller with this leaf
            return with_nodes(value, self.passed.leaves, is_field=True)
        is_number = type(value) in _NUMBERS or (isinstance(value, Tracer) and value.weak)
        value = self._with_nodes(value)
        return PythonNumber(value) if is_number else value

    def _with_nodes(self, value: Any) -> Any:
        return with_nodes(value)


def with_nodes(value: Any, leaves: Sequence[Any] = (), *, is_field: bool = False) -> Any:
    """Return a value with nodes for lists that have grown and for constants.

    All are replaced in one pass: what rebuilds the tree would undo an earlier one.

    Args:
        value: a part of the result.
        leaves: those of the arguments; static ones may stand in instances.
        is_field: whether the value is an attribute of an instance.
    """

    def node_of(part: Any) -> Any:
        if isinstance(part, TensorList):
            return returned_list(part)
        if isinstance(part, _CONSTANTS):
            return returned_constant(part)
        if is_instance(part):
            items = [with_nodes(x, leaves, is_field=True) for _, x in attributes_of(part)]
            return structure_of(part).make(items)
        is_static = is_field and not is_array_leaf(part)
        return ReturnedObject(part) if is_static and any(x is part for x in leaves) else part

    try:
        return trees.map_parts((TensorList, *_CONSTANTS), node_of, value)
    except RecursionError:
        raise NestingError.of_tree() from None


_CONSTANTS = (str, bytes, int, set, frozenset, Exception)
_NUMBERS = (bool, int, float, complex)
