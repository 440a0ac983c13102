"""The variables and heap locations that a region of captured control flow may change."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import CellType, FunctionType
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import StructureError, explain
from wend.base.keys import is_equal
from wend.base.source import at, user_source
from wend.capture.heap.containers import (
    NestedContainers,
    copy_containers,
    is_container,
    nested_containers,
    outermost_containers,
)
from wend.capture.heap.locations import (
    UNBOUND,
    ArrayElements,
    Attribute,
    AttributeOrder,
    Cell,
    Contents,
    Location,
    WriteLog,
    binding_of,
    count_log_references,
    evaluate,
    has_custom_setter,
    log_write,
    variable_location,
)
from wend.capture.heap.partial_attributes import AttributeNames
from wend.capture.heap.places import instance_variables
from wend.capture.heap.trace_log import count_trace_log_references
from wend.capture.state import unbound, unbound_attributes
from wend.capture.state.merged_instances import copied, is_mergeable
from wend.eager.dispatch import Staged, recorder
from wend.eager.promotion import PYTHON_SCALARS
from wend.ir.dtypes import is_supported
from wend.trace.aliasing.passed_containers import forget_promotion
from wend.trace.arrays.concrete_array import ConcreteTracedArray, adopt, promotion_error
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.tensor_list import is_list
from wend.trace.recording.arguments import is_array_leaf

Reader = Callable[[], Any]


def is_unbound(value: object) -> bool:
    """Return whether a value marks an unbound variable."""
    return value is UNBOUND


class Reference:
    """The identity of a container or array that is mutated in place, without its contents."""

    def __init__(self, container: Any) -> None:
        self.container = container

    def __repr__(self) -> str:
        return repr(self.container)


class State:
    """The variables and heap locations that control flow may change, by position.

    Args:
        names: the variables.
        readers: thunks that read the variables.
        setter: sets all variables from a sequence of values.
        heap: `("variable" | "attribute" | "holder" | "contents", label, thunk that reads the
            variable or the object, name of the attribute)`; the attribute of a holder is not
            rebound.
        not_live: variables that are not read afterwards; they are here as their contents change.
        in_place: variables that are never rebound: an array in one keeps its identity, and its
            elements change.
        possibly_unbound: variables whose reads check that the run has bound them.

    Attributes:
        locations: the heap locations, which follow the variables by position.
        keys: the keys of the locations.
        promoted_lists: the lists that were promoted to traced ones.
        objects: the indices of values that stay the objects they are, as variables of wend.
        instances: the indices of values that are carried by the attributes of instances.
    """

    def __init__(
        self,
        names: Sequence[str] = (),
        readers: Sequence[Reader] = (),
        setter: Callable[[Sequence[Any]], None] = lambda values: None,
        heap: Sequence[tuple[str, str, Any, str | None]] = (),
        not_live: Sequence[str] = (),
        in_place: Sequence[str] = (),
        possibly_unbound: Sequence[str] = (),
    ) -> None:
        self.not_live, self.in_place = frozenset(not_live), set(in_place)
        self.possibly_unbound = frozenset(possibly_unbound)
        self.objects: set[int] = set()
        self.instances: set[int] = set()
        self.variables, self.readers, self.setter, self.heap = names, readers, setter, heap
        self._fixed: set[Hashable] = set()  # attributes that are never rebound, by their keys
        self.locations: list[Location] = []
        self.keys: set[Hashable] = set()
        self.promoted_lists: list[tuple[int, Location]] = []  # (index, the former location)
        self.unpromoted: list[Any] = []  # the values before the first promotion

    def copy(self) -> State:
        """Return a description of the same variables, with no location resolved yet."""
        return State(
            self.variables,
            self.readers,
            self.setter,
            self.heap,
            [*self.not_live],
            [*self.in_place],
            [*self.possibly_unbound],
        )

    def open_heap(self) -> State:
        """Resolve the objects that the attributes and containers belong to now; return self."""
        self._adopt_arrays()
        for kind, label, thunk, attribute in self.heap:
            if kind == "variable":
                self.extend([variable_location(thunk, label)])
                continue
            owner = evaluate(thunk)
            if kind in ("attribute", "holder") and owner is not UNBOUND:
                if has_custom_setter(owner, attribute or ""):
                    continue
                location = Attribute(label, owner, attribute or "")
                if kind == "attribute" or not _stays(location):
                    self.extend([location])
            else:
                is_bound = owner is not UNBOUND and label not in self.variables
                for container in outermost_containers(owner):
                    binding = binding_of(thunk, label) if is_bound and container is owner else None
                    self.extend([Contents(label, container, binding)])
        return self

    def _adopt_arrays(self) -> None:
        """Adopt plain arrays that operators created, so that they can become traced."""
        adopted: dict[int, Any] = {}
        for k, thunk in enumerate(self.readers):
            if (array := adopt_sole_reference(thunk)) is not None:
                adopted[k] = array
        if adopted:
            self.setter([adopted.get(k, evaluate(thunk)) for k, thunk in enumerate(self.readers)])

    def extend(self, locations: Sequence[Location], *, is_private: bool = False) -> None:
        """Add locations; `is_private`: nobody else sees them, so the write is not logged."""
        for location in locations:
            if location.key not in self.keys:
                if not is_private:
                    log_write(location)
                self.keys.add(location.key)
                if (
                    isinstance(location, Attribute)
                    and instance_variables(location.owner) is not None
                ):
                    order = AttributeOrder(location.label.rpartition(".")[0], location.owner)
                    self.extend([order], is_private=is_private)
                self.locations.append(location)
                if isinstance(location, Contents) and location.binding is not None:
                    self.extend([location.binding], is_private=is_private)

    def rollback(self) -> list[Any]:
        """Undo the promotion of lists; return what the locations held before."""
        for index, location in reversed(self.promoted_lists):
            self.keys = {*self.keys - {self.locations[index].key}, location.key}
            self.locations[index] = location
            if isinstance(location, Contents):
                forget_promotion(location.container)
        self.promoted_lists.clear()
        unpromoted, self.unpromoted = self.unpromoted, []
        return unpromoted

    @property
    def names(self) -> list[str]:
        return [*self.variables, *(location.label for location in self.locations)]

    def carried_indices(self, values: Sequence[Any]) -> list[int]:
        """Return the indices of values that can be graph values, in carry order."""
        leading = [
            k
            for k, location in enumerate(self.locations, len(self.variables))
            if location.is_carried_first
        ]
        trailing = [k for k in range(len(values)) if k not in leading]
        return [
            k
            for k in (*leading, *trailing)
            if k < len(values) and k not in self.objects and self._is_carried(k, values[k])
        ]

    def _is_carried(self, k: int, value: Any) -> bool:
        return is_mergeable(value) if k in self.instances else is_carried(value)

    def is_same(self, k: int, a: Any, b: Any) -> bool:
        """Return whether nothing changed from one value of an index to another."""
        if k in self.instances and is_mergeable(a) and is_mergeable(b):
            return _are_same_leaves(
                trees.flatten_deep(a, keeps_static=True, with_objects=True),
                trees.flatten_deep(b, keeps_static=True, with_objects=True),
            )
        return is_same(a, b)

    def copied(self, values: Sequence[Any]) -> list[Any]:
        """Return values with copies of containers, and of instances that are carried."""
        return [
            copied(value) if k in self.instances and is_mergeable(value) else copy_containers(value)
            for k, value in enumerate(values)
        ]

    def get(self) -> list[Any]:
        """Return the current values, `UNBOUND` for unbound ones."""
        values = [*map(evaluate, self.readers), *(location.read() for location in self.locations)]
        return [self._as_reference(k, value) for k, value in enumerate(values)]

    def _as_reference(self, k: int, value: Any) -> Any:
        if is_container(value) and ("contents", id(value)) in self.keys:
            return Reference(value)
        location = self.location_of(k)
        is_fixed = (
            self.variables[k] in self.in_place if location is None else location.key in self._fixed
        )
        keeps_identity = isinstance(value, tuple) or is_container(value) or is_ref(value)
        return Reference(value) if is_fixed and keeps_identity else value

    def keep(self, k: int) -> bool:
        """Keep the array of a variable or an attribute, whose elements change; return if it may."""
        location = self.location_of(k)
        if location is None:
            self.in_place.add(self.names[k])
        elif isinstance(location, Attribute):
            self._fixed.add(location.key)
        return location is None or isinstance(location, Attribute)

    def snapshot(self) -> list[Any]:
        """Return the current values; later mutations do not affect them."""
        return self.copied(self.get())

    def set(self, values: Sequence[Any]) -> list[Any]:
        """Set all values, with copies of the containers, so that the originals are not mutated.

        Returns:
            what the variables and locations hold.
        """
        copies = self.copied(values)
        self.restore(copies)
        originals = [None if self.is_contents(k) else value for k, value in enumerate(values)]
        unbound_attributes.enter_region(originals, copies)
        return copies

    def nested_containers(self) -> list[tuple[Contents, NestedContainers]]:
        """Return the containers of the state, with the containers nested in each now."""
        return [
            (location, nested_containers(location.container))
            for location in self.locations
            if isinstance(location, Contents)
        ]

    def held(
        self, values: Sequence[Any], live: Sequence[str] | None = None
    ) -> list[tuple[str, Any]]:
        """Return what the variables that are read later, and the attributes, hold, by name."""
        return [
            (name, value)
            for k, (name, value) in enumerate(zip(self.names, values, strict=False))
            if not self.is_contents(k)
            and (
                k >= len(self.variables)
                or (name not in self.not_live if live is None else name in live)
            )
        ]

    def is_contents(self, k: int) -> bool:
        """Return whether an index is that of a container's contents, which keeps its identity."""
        return isinstance(self.location_of(k), Contents)

    def location_of(self, k: int) -> Location | None:
        """Return the location of an index; None if it is that of a variable."""
        return self.locations[k - len(self.variables)] if k >= len(self.variables) else None

    def note_unbound(self, k: int, where: str, cure: str) -> None:
        """Record that a value is bound only in some runs, and where it would have to be bound.

        Raises:
            UnboundError: it is an attribute whose class would give another value in its place.
        """
        unbound.note_reason(self.names[k], where, cure)
        location = self.location_of(k)
        if isinstance(location, Attribute):
            unbound_attributes.note_unbound(location, where, cure)

    def restore(self, values: Sequence[Any]) -> None:
        """Set all values to these very objects; locations added since keep their values."""
        objects = [v.container if isinstance(v, Reference) else v for v in values]
        count = len(self.variables)
        self.setter(objects[:count])
        written = [*zip(self.locations, objects[count:], strict=False)]
        for location, value in written:
            location.write(value)
        for location, value in written:
            if isinstance(location, AttributeOrder):  # of those that were unbound, too
                location.write(value)

    def undo(self, values: Sequence[Any]) -> None:
        """Set all values to these from before a branch or loop."""
        self.restore(values)
        self.disown(values)

    def disown(self, values: Sequence[Any]) -> None:
        """Take the attributes from objects whose classes have given them when values were read."""
        for location, value in zip(self.locations, values[len(self.variables) :], strict=False):
            if isinstance(location, AttributeOrder):
                location.undo(value)


def _stays(location: Attribute) -> bool:
    """Return whether what an attribute holds is updated in place."""
    value = location.read()
    return is_ref(value) or isinstance(value, tuple)


def is_ref(value: Any) -> bool:
    """Return whether a value is an array that is updated in place for all who hold it."""
    if isinstance(value, np.ndarray):
        return True
    is_traced = isinstance(value, Tracer) and not is_list(value)
    return is_traced and (value.type.shape != () or bool(value.zero_dim))


def adopt_sole_reference(thunk: Reader) -> ConcreteTracedArray | None:
    """Adopt a plain array that one variable alone holds, so that it can become traced."""
    if recorder.get() is None:
        return None
    array = evaluate(thunk)
    is_sole = (
        type(array) is np.ndarray
        and array.base is None
        and _reference_count(array) <= _SOLE_REFERENCE_COUNT + count_log_references(array)
    )
    return adopt(array) if is_sole and array.ndim and is_supported(array.dtype) else None


def _reference_count(array: Any) -> int:
    return sys.getrefcount(array)


def _reference_count_of_variable() -> int:
    sample = np.zeros(1)

    def measure(thunk: Reader) -> int:
        array = evaluate(thunk)
        return _reference_count(array)

    return measure(lambda: sample)


_SOLE_REFERENCE_COUNT = _reference_count_of_variable()


def _is_unreferenced(location: Location) -> bool:
    """Return whether only the write log holds a container any more.

    It was then created in the trace, which need not be repeated to confirm that.
    """
    if not isinstance(location, Contents):
        return False
    count, binding = _container_reference_count(location), location.binding
    count -= count_trace_log_references("items", location.container)
    if isinstance(binding, Cell) and binding.read() is location.container:
        # The variable of a function that has returned still holds it.
        count -= _cell_reference_count(binding) <= _UNREFERENCED_CELL_COUNT
    return count <= _UNREFERENCED_COUNT


def _container_reference_count(location: Contents) -> int:
    return sys.getrefcount(location.container)


def _cell_reference_count(location: Cell) -> int:
    return sys.getrefcount(location.cell)


_UNREFERENCED_COUNT = _container_reference_count(Contents("", []))
_UNREFERENCED_CELL_COUNT = _cell_reference_count(Cell("", CellType()))


class Discovery:
    """Discovery of heap locations that a body changes, by tracing it until no new ones appear.

    An object that each trace creates anew belongs to the body; one that two traces change comes
    from outside, as does one that is reached before a trace.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.reached: Mapping[int, Any] = {}  # objects that exist before the trace, by id
        self.seen: dict[Hashable, Location] = {}  # keeps the objects, so that no id is reused
        self.left: dict[Hashable, tuple[Location, Any]] = {}  # with their value before `undo`
        self.confirmed: set[Hashable] = set()
        self.may_retrace = True

    def undo(self, log: WriteLog) -> list[Location]:
        """Undo the writes of a trace outside the state, and return their locations."""
        changed = []
        for location, old in reversed(log.values()):
            if (
                location.key in self.state.keys
                or location.is_trace_local()
                or _is_unreferenced(location)
            ):
                continue
            new = location.read()
            if old is not UNBOUND or not _is_of_key(location):
                location.undo(old)
            if not is_same(old, new):
                changed.append(location)
                self.left[location.key] = location, new
        return changed

    def needs_retrace(self, locations: Sequence[Location]) -> bool:
        """Add locations that traces changed to the state; return whether to trace again."""
        locations = [*{x.key: x for x in locations}.values()]  # both paths may change one
        confirmed: list[Location] = []
        unconfirmed: list[Location] = []
        for location in locations:
            is_outer = location.key in self.seen or location.is_reached(self.reached)
            (confirmed if is_outer else unconfirmed).append(location)
        for location in confirmed:
            if isinstance(location, ArrayElements):
                raise promotion_error(location.array)
            if location.key in self.confirmed:
                raise _reached_again(location)
            self.confirmed.add(location.key)
        for location in unconfirmed:
            self.seen[location.key] = location
        self.state.extend(confirmed)
        retrace = bool(confirmed) or (bool(unconfirmed) and self.may_retrace)
        # Later finds were created by the body, unless the state has grown.
        self.may_retrace = bool(confirmed)
        for location in () if retrace else locations:
            self._redo(location)
        return retrace

    def _redo(self, location: Location) -> None:
        """Restore what the body created to the value that the body gave it."""
        location, value = self.left[location.key]
        location.write(value)


def _reached_again(location: Location) -> StructureError:
    """Return the refusal of an object that the body reaches where the state cannot replace it."""
    return StructureError(
        explain(
            f"`{location.label}` is changed{at(user_source())} in a loop or branch that is "
            "recorded, which reaches it by the default of a parameter.",
            cure="pass it as an argument, or make it in the function.",
        )
    )


def _is_of_key(location: Location) -> bool:
    """Return whether a location is of an object whose hash the user's code computes.

    It may be a key in what the body has made, which cannot be looked at without its attributes.
    """
    owner = getattr(location, "owner", None)
    return isinstance(getattr(type(owner), "__hash__", None), FunctionType)


def is_carried(value: Any) -> bool:
    """Return whether a value can be a graph value: a non-empty pytree of arrays and numbers."""
    if value is UNBOUND or isinstance(value, Reference):
        return False
    leaves, _ = trees.flatten(value)
    return bool(leaves) and all(is_array_leaf(leaf) for leaf in leaves)


def is_same(a: Any, b: Any) -> bool:
    """Return whether nothing changed: the same object, or containers with the same leaves."""
    if a is b:
        return True
    if a is UNBOUND or b is UNBOUND or type(a) is not type(b):
        return False
    if isinstance(a, Reference):
        return a.container is b.container
    if isinstance(a, AttributeNames):
        return a.agrees(b)
    return _are_same_leaves(trees.flatten(a), trees.flatten(b))


def _are_same_leaves(a: tuple[list[Any], Any], b: tuple[list[Any], Any]) -> bool:
    (leaves, tree), (other_leaves, other_tree) = a, b
    return trees.is_same_structure(tree, other_tree) and all(map(_same_leaf, leaves, other_leaves))


def _same_leaf(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if is_ref(a) or is_ref(b):
        return False  # a copy is a different array
    if isinstance(a, Staged) or isinstance(b, Staged):
        return bool(getattr(a, "value", None) is getattr(b, "value", b))
    if isinstance(a, Reference) and isinstance(b, Reference):
        return a.container is b.container
    if is_array_leaf(a) and type(a) not in PYTHON_SCALARS:
        return False
    return is_equal(a, b)


def holds_staged(value: Any) -> bool:
    """Return whether a traced array is among the leaves, or is updated in place there."""
    if isinstance(value, Reference):
        return isinstance(value.container, Staged)
    return value is not UNBOUND and any(isinstance(x, Staged) for x in trees.flatten(value)[0])
