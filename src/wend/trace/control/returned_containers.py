"""The nodes of a result that tell what a trace leaves in the containers of its caller."""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from enum import Enum
from types import ModuleType
from typing import Any, cast

import numpy as np

from wend.base import trees
from wend.base.errors import NestingError, StructureError, explain
from wend.base.instances import (
    InstanceNode,
    InstanceStructure,
    has_fields,
    is_instance,
    is_ordinary_object,
    static_fields,
    structure_of,
)
from wend.base.keys import attributes_of
from wend.base.lazy.dataclass import dataclass
from wend.base.pytree_codegen import Unflatten, compile_unflatten
from wend.base.refusals import refusal
from wend.trace.aliasing.containers import (
    container_like,
    is_container,
    items_of,
)
from wend.trace.aliasing.passed_containers import PassedContainers
from wend.trace.aliasing.rebuilt_containers import (
    PassedContainer,
    PassedLeaf,
    PythonNumber,
    ResultAndContainers,
    ReturnedObject,
    SharedAgain,
    SharedPart,
    SharedResult,
    numbered,
    python_number,
    rebuilt,
)
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.returned_constants import returned_constant
from wend.trace.control.returned_list import returned_list
from wend.trace.control.returned_optional import ReturnedOptional
from wend.trace.control.tensor_list import TensorList
from wend.trace.recording.arguments import is_array_leaf
from wend.trace.state.text_choice import ReturnedText, TextChoice


def with_changes(passed: PassedContainers, result: Any, is_outside: Callable[[Any], bool]) -> Any:
    """Return the result of a trace with what it leaves in the containers of its caller.

    Args:
        passed: the containers of the caller.
        result: the result.
        is_outside: tells of an object whether the trace has found it outside; it is returned.

    Raises:
        StructureError: containers hold themselves, or one new container twice.
        NestingError: the result is a thousand levels deep.
    """
    changed = passed.changed()

    def encoded(*, shares: bool) -> Any:
        encoder = ContainerEncoder(passed, {*changed}, is_outside, shares=shares)
        parts = encoder.enter(result)
        node = encoder.encoded(result, is_item=False)
        if changed or passed.is_compared or parts.holds_passed:
            containers = [encoder.container(passed.containers[number]) for number in changed]
            node = ResultAndContainers(node, containers)
        return node, parts

    try:
        shared, parts = encoded(shares=True)
        if not parts.repeated or parts.holds_itself:
            return shared
        return SharedResult(encoded(shares=False)[0], shared)
    except RecursionError:
        raise NestingError.of_tree() from None


def with_identity(passed: PassedContainers, result: Any) -> Any:
    """Return the result of a run in Python, to be rebuilt: instances of classes stay as they are.

    The function has changed the containers of its caller itself.
    """
    encoder = ContainerEncoder(passed, set(), is_ordinary_object, shares=True)
    encoder.enter(result)
    return encoder.encoded(result, is_item=False)


def unflatten_compiled(treedef: trees.TreeDef) -> Unflatten:
    """Return a function from leaves to a result that has no containers of a caller."""
    converted = dict.fromkeys(trees.leaves_under(treedef, PythonNumber), python_number)
    return compile_unflatten(numbered(treedef), converted) or functools.partial(rebuilt, treedef)


@dataclass(slots=True)
class _ResultParts:
    """The objects of a result, by id.

    Attributes:
        seen: its containers and instances.
        repeated: those that it holds several times.
        holds_passed: whether containers of the caller are among them.
        holds_itself: whether one holds itself.
    """

    seen: set[int] = field(default_factory=set)
    repeated: set[int] = field(default_factory=set)
    holds_passed: bool = False
    holds_itself: bool = False


class ContainerEncoder:
    """Replaces the objects in a result that have an identity by nodes.

    These are the caller's containers, objects of outside, instances of ordinary classes, and what
    the result holds several times.
    """

    def __init__(
        self,
        passed: PassedContainers,
        changed: set[int],
        is_outside: Callable[[Any], bool] = lambda _: False,
        *,
        shares: bool = False,
    ) -> None:
        self.passed, self.numbers, self.changed = passed, passed.numbers, changed
        self._is_outside = is_outside
        self._shares = shares
        self._leaves = {id(leaf): index for index, leaf in enumerate(passed.leaves)}
        self._enclosing: list[int] = []
        self._instance_depth = 0  # how many instances enclose what is encoded
        self._encoded: dict[int, PassedContainer] = {}  # by number
        self._parts = _ResultParts()
        self._new_in_containers: set[int] = set()
        self._shared: dict[int, int] = {}  # the numbers of what is repeated and encoded, by id

    def enter(self, result: Any) -> _ResultParts:
        """Note the objects of a result, and return what they are.

        Raises:
            RecursionError: it is too deep.
        """
        parts = self._parts
        if id(result) in self.numbers:
            parts.holds_passed = True
        elif isinstance(result, tuple):
            for item in result:
                self.enter(item)
        elif id(result) in parts.seen:
            parts.repeated.add(id(result))
            parts.holds_itself |= id(result) in self._enclosing
        elif _has_identity(result) and not self._is_outside(result):
            parts.seen.add(id(result))
            self._enclosing.append(id(result))
            for _, item in _parts_of(result):
                self.enter(item)
            self._enclosing.pop()
        return parts

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
        positions = range(len(_parts_of(container)))
        return self._container_of(container, self._each_encoded(container, positions))

    def _each_encoded(self, container: Any, positions: Iterable[int]) -> dict[Any, Any]:
        """Return the items at some positions, encoded, by their keys."""
        if id(container) in self._enclosing:
            what = "a list or dict of the arguments holds itself when the function ends."
            raise refusal(StructureError(explain(what, cure="put a copy into it.")))
        self._enter_parts(container)
        static, items = static_fields(type(container)), _parts_of(container)
        by_key = {
            key: item if key in static else self.encoded(item)
            for key, item in (items[k] for k in positions)
        }
        self._leave_parts(container)
        return by_key

    def _container_of(self, container: Any, by_key: dict[Any, Any]) -> Any:
        """Return encoded items as a node of a container's kind holds them."""
        if isinstance(container, dict):
            return by_key
        if isinstance(container, (list, deque)):
            return [*by_key.values()]
        return _with_parts(container, [*by_key.values()])

    def encoded(
        self, value: Any, *, is_item: bool = True, keeps_numbers: bool | None = None
    ) -> Any:
        """Return a part of the result.

        Args:
            value: the part.
            is_item: whether it is in a container of the caller.
            keeps_numbers: whether Python's numbers stay such; None: where it `is_item`.
        """
        keeps_numbers = is_item if keeps_numbers is None else keeps_numbers
        if id(value) in self.numbers and is_container(value):
            return self.container(value)
        if isinstance(value, TensorList):
            for key, promoted in self.passed.promoted.items():
                if promoted is value and key in self.numbers:
                    return self.container(self.passed.containers[self.numbers[key]])
        if _has_identity(value) and self._is_outside(value):
            return ReturnedObject(value)
        if not is_item and _is_rebuildable(value):
            return self._shared_part(value, keeps_numbers)
        if _is_rebuildable(value):
            if id(value) in self._new_in_containers | self._parts.seen:
                what = "one list or dict is put into the arguments twice: it would become two."
                raise refusal(StructureError(explain(what, cure="put a copy into one of them.")))
            self._new_in_containers.add(id(value))
            items = self._encoded_items(value)
            return container_like(value, items) if isinstance(items, (list, dict)) else items
        if isinstance(value, tuple):
            items = [
                self.encoded(child, is_item=is_item, keeps_numbers=keeps_numbers) for child in value
            ]
            return type(value)(*items) if trees.is_namedtuple(type(value)) else tuple(items)
        if not is_item and not keeps_numbers:
            return self._with_nodes(value)
        if is_item and id(value) in self._leaves:
            if self.changed:
                return PassedLeaf(self._leaves[id(value)])
            return self._with_nodes(value)  # derivatives have no caller with this leaf
        is_number = type(value) in _NUMBERS or (isinstance(value, Tracer) and value.weak)
        value = self._with_nodes(value)
        return PythonNumber(value) if is_number else value

    def _shared_part(self, value: Any, keeps_numbers: bool) -> Any:
        """Return a container or instance of the result, where it is first or once more."""
        number = self._shared.get(id(value))
        is_again = number is not None
        if number is not None and id(value) in self._enclosing:
            return SharedAgain(number, None, _maker_of_empty(value))
        if self._shares and not is_again and id(value) in self._parts.repeated:
            number = self._shared[id(value)] = len(self._shared)
        self._enter_parts(value)
        keeps_numbers = keeps_numbers or is_ordinary_object(value)
        static = static_fields(type(value))
        items = [
            x if key in static else self.encoded(x, is_item=False, keeps_numbers=keeps_numbers)
            for key, x in _parts_of(value)
        ]
        node = _with_parts(value, items)
        self._leave_parts(value)
        if number is None:
            return node
        return SharedAgain(number, node) if is_again else SharedPart(number, node)

    def _with_nodes(self, value: Any) -> Any:
        return with_nodes(value, self._is_static, is_field=self._instance_depth > 0)

    def _enter_parts(self, value: Any) -> None:
        self._enclosing.append(id(value))
        self._instance_depth += _is_instance(value)

    def _leave_parts(self, value: Any) -> None:
        self._enclosing.pop()
        self._instance_depth -= _is_instance(value)

    def _is_static(self, value: Any) -> bool:
        return id(value) in self._leaves or self._is_outside(value)


def _has_identity(value: Any) -> bool:
    """Return whether a value is a container, or an instance whose attributes are its parts."""
    return isinstance(value, TensorList) or is_container(value) or is_ordinary_object(value)


def _is_rebuildable(value: Any) -> bool:
    """Return whether a value has an identity, and is all that its class and its parts tell."""
    if isinstance(value, _KINDS):
        return type(value) in _KINDS
    return _has_identity(value)


def _is_instance(value: Any) -> bool:
    return has_fields(value) or is_ordinary_object(value)


def _parts_of(value: Any) -> Sequence[tuple[Any, Any]]:
    """Return the items of a container, or the attributes of an instance."""
    if is_container(value):
        return items_of(value)
    return attributes_of(value) if is_ordinary_object(value) else ()


def _with_parts(value: Any, parts: Sequence[Any]) -> Any:
    """Return a node for a container or instance with these parts."""
    if isinstance(value, TensorList):
        return returned_list(value)
    if is_container(value):
        return container_like(value, parts)
    return InstanceNode(structure_of(value).make(parts))


def _maker_of_empty(value: Any) -> Callable[[], Any]:
    """Return what makes an object that is to be filled, for one that holds itself."""
    if _is_instance(value):
        return InstanceStructure(type(value), ()).make
    kind: Any = type(value)
    if kind not in (list, dict, OrderedDict):
        what = f"the result holds a {kind.__name__} that holds itself."
        raise refusal(StructureError(explain(what, cure="use a list or dict.")))
    return cast(Callable[[], Any], kind)


def with_nodes(value: Any, is_static: Callable[[Any], bool], *, is_field: bool = False) -> Any:
    """Return a value with nodes for lists that have grown, for constants and for instances.

    All are replaced in one pass: what rebuilds the tree would undo an earlier one.

    Args:
        value: a part of the result.
        is_static: tells of an object whether it is returned itself: it is not of the trace.
        is_field: whether the value is an attribute of an instance, which may be any such object.
    """

    def node_of(part: Any) -> Any:
        if isinstance(part, TensorList):
            return returned_list(part)
        if isinstance(part, _CONSTANTS):
            return returned_constant(part)
        if isinstance(part, ReturnedOptional):
            return part
        if isinstance(part, TextChoice):
            return ReturnedText(part.index, part.options)
        if is_array_leaf(part):
            return part
        is_whole = is_field or is_ordinary_object(part)
        if is_whole and (is_static(part) or _is_symbol(part)):
            return ReturnedObject(part)
        if is_instance(part) or is_ordinary_object(part):
            items = [with_nodes(x, is_static, is_field=True) for _, x in attributes_of(part)]
            instance = structure_of(part).make(items)
            return instance if is_instance(part) else InstanceNode(instance)
        return part

    try:
        return trees.map_parts(_NODES, node_of, value)
    except RecursionError:
        raise NestingError.of_tree() from None


def _is_symbol(value: Any) -> bool:
    """Return whether a value is one object in the whole program: it is known by its name."""
    if isinstance(value, type):
        return "<locals>" not in value.__qualname__
    return isinstance(value, (Enum, ModuleType, np.dtype, np.ufunc))


_KINDS = (list, dict, OrderedDict, defaultdict, deque)
_CONSTANTS = (str, bytes, int, set, frozenset, Exception)
_NODES = (TensorList, ReturnedOptional, TextChoice, *_CONSTANTS)
_NUMBERS = (bool, int, float, complex)
