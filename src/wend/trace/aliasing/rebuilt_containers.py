"""Nodes of results for objects with an identity: containers of the caller, and shared parts.

The containers of a caller change when a result is rebuilt. An object that a result holds several
times is one again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.context_values import scoped
from wend.base.errors import LeakedValueError, StructureError, explain
from wend.base.instances import set_attributes
from wend.base.keys import attributes_of, identity_of
from wend.base.lazy.dataclass import dataclass
from wend.base.pytree_codegen import ReferencedPart
from wend.base.refusals import refusal
from wend.trace.aliasing.containers import assign_items, is_container, set_item
from wend.trace.aliasing.passed_containers import CallerContainers


class PassedContainer:
    """A container of the caller in the result of a trace: its number, and what it holds then."""

    def __init__(self, number: int, is_changed: bool, items: Any) -> None:
        self.number, self.is_changed, self.items = number, is_changed, items


class SharedPart:
    """An object that a result holds several times, where it is first: its number, and a node."""

    def __init__(self, number: int, node: Any) -> None:
        self.number, self.node = number, node


class SharedAgain:
    """An object that the result holds before, with its node as another object.

    If the object holds itself, the node is None, and `make_empty` makes an object to be filled.
    """

    def __init__(self, number: int, node: Any, make_empty: Callable[[], Any] | None = None) -> None:
        self.number, self.node, self.make_empty = number, node, make_empty


class SharedResult:
    """A result as a tree, and with nodes for what it holds several times; the leaves are equal."""

    def __init__(self, result: Any, shared: Any) -> None:
        self.result, self.shared = result, shared


class ReturnedObject:
    """An object that is no part of the run, such as a static leaf of the arguments or a global."""

    def __init__(self, value: Any) -> None:
        self.identity = identity_of(value)


class PassedItem:
    """An item that changes in a container of the caller, or `is_new` there, after the others."""

    def __init__(self, number: int, key: Any, is_new: bool, item: Any) -> None:
        self.number, self.key, self.is_new, self.item = number, key, is_new, item


class PassedLeaf:
    """A leaf of the arguments that stands in a container of the caller, where it may have moved."""

    def __init__(self, index: int) -> None:
        self.index = index


class PythonNumber:
    """A number of Python's in a container of the caller, which gets no scalar of NumPy."""

    def __init__(self, value: Any) -> None:
        self.value = value


class ResultAndContainers:
    """The result of a function, and the containers of the caller that it has changed."""

    def __init__(self, result: Any, changed: Sequence[PassedContainer]) -> None:
        self.result, self.changed = result, [*changed]


@dataclass(frozen=True, slots=True)
class ContainerState:
    """The structure of a change of the caller's containers: of an item, or of all of a container.

    Attributes:
        first: the number of its first array in frame states.
        tree: the structure of its node.
        weak: which of its arrays are numbers of Python.
    """

    first: int
    tree: trees.TreeDef
    weak: tuple[bool, ...]

    @property
    def numbers(self) -> range:
        """The numbers of its arrays in frame states; one without arrays has a number, too."""
        return range(self.first, self.first - max(1, len(self.weak)), -1)

    def restore(self, contents: Mapping[int, Any], caller: CallerContainers) -> None:
        """Make the change in the caller's containers, with arrays of a frame state."""
        arrays = [contents[number] for number in self.numbers[: len(self.weak)]]
        rebuilt(self.tree, arrays, caller)


def restore_all(
    states: Sequence[ContainerState], contents: Mapping[int, Any], caller: CallerContainers
) -> None:
    """Leave in the caller's containers what a frame state holds; later changes stand later."""
    by_number = {state.first: state for state in states}
    for number in contents:
        if number in by_number:
            by_number[number].restore(contents, caller)


_caller: ContextVar[CallerContainers | None] = ContextVar("wend_caller_containers", default=None)
# By number: the objects that the result being rebuilt holds several times
_shared: ContextVar[dict[int, Any] | None] = ContextVar("wend_shared_parts", default=None)


def rebuilt(
    treedef: trees.TreeDef, leaves: Sequence[Any], caller: CallerContainers | None = None
) -> Any:
    """Return the result of a call; the containers of its caller, if there is one, change."""
    with scoped(_caller, caller), scoped(_shared, {}):
        return trees.unflatten(treedef, leaves)


def numbered(treedef: trees.TreeDef) -> Any:
    """Return a result with its leaves numbered from 0; objects of outside are `ReferencedPart`s."""
    with scoped(_shows_references, True):
        return rebuilt(treedef, range(treedef.num_leaves))


def _rebuilt_container(metadata: Any, children: Any) -> Any:
    number, is_changed = metadata
    (items,) = children
    caller = _caller.get()
    if caller is None:
        return items
    container = caller.containers[number]
    if not is_container(items):
        what = "a list grows in a function that is called with it, in a loop that is recorded."
        cure = "let the function return what is to be appended."
        raise refusal(StructureError(explain(what, cure=cure)))
    if is_changed:
        assign_items(container, items)
    return container


def _rebuilt_shared(number: int, children: Any) -> Any:
    (value,) = children
    shared = _shared.get()
    if shared is None:
        what = "a result holds an object that holds itself, which only a call can return."
        raise refusal(StructureError(explain(what, cure="call the function, or return a tree.")))
    if number not in shared:
        shared[number] = value
        return value
    empty = shared[number]
    if is_container(empty):
        assign_items(empty, value)
    else:
        set_attributes(empty, dict(attributes_of(value)))
    return empty


def _rebuilt_again(metadata: Any, children: Any) -> Any:
    number, make_empty = metadata
    shared = _shared.get()
    if shared is None:
        return None  # until the object refuses it
    if number not in shared:
        shared[number] = make_empty()
    return shared[number]


def _rebuilt_item(metadata: Any, children: Any) -> Any:
    number, key, is_new = metadata
    (item,) = children
    caller = _caller.get()
    if caller is not None:
        set_item(caller.containers[number], key, item, is_new=is_new)
    return item


def _rebuilt_leaf(index: int, children: Any) -> Any:
    caller = _caller.get()
    return None if caller is None else caller.leaves[index]


def _rebuilt_number(metadata: Any, children: Any) -> Any:
    (value,) = children
    return python_number(value)


def python_number(value: Any) -> Any:
    """Return a number of Python's for a scalar of NumPy."""
    return value.item() if isinstance(value, (np.generic, np.ndarray)) else value


# Whether objects of outside are shown as references: the structure of a result is asked for
_shows_references: ContextVar[bool] = ContextVar("wend_shows_references", default=False)


def object_of_outside(identity: Any) -> Any:
    """Return the object that a `ReturnedObject` refers to.

    Raises:
        LeakedValueError: it is gone.
    """
    value = identity.reference()
    if value is None:
        what = "an object that a function returns, and that it has not made, is gone."
        cure = "keep it alive as long as the function."
        raise LeakedValueError(explain(what, cure=cure))
    return value


def _returned_object(identity: Any, children: Any) -> Any:
    def get() -> Any:
        return object_of_outside(identity)

    return ReferencedPart(get) if _shows_references.get() else get()


def _rebuilt_result(metadata: Any, children: Any) -> Any:
    return children[0]


trees.register_node(ReturnedObject, lambda x: ((), x.identity), _returned_object)
trees.register_node(
    PassedContainer, lambda x: ((x.items,), (x.number, x.is_changed)), _rebuilt_container
)
trees.register_node(SharedPart, lambda x: ((x.node,), x.number), _rebuilt_shared)
trees.register_node(SharedAgain, lambda x: ((x.node,), (x.number, x.make_empty)), _rebuilt_again)
trees.register_node(PassedItem, lambda x: ((x.item,), (x.number, x.key, x.is_new)), _rebuilt_item)
trees.register_node(PassedLeaf, lambda x: ((), x.index), _rebuilt_leaf)
trees.register_node(PythonNumber, lambda x: ((x.value,), None), _rebuilt_number)
trees.register_node(ResultAndContainers, lambda x: ((x.result, x.changed), None), _rebuilt_result)
