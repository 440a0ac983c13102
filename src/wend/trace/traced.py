"""Traced functions: a graph, with the structure of the function's arguments and results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import (
    AliasError,
    StructureError,
    TypeMismatchError,
    VariableError,
    change_of_outside,
    explain,
)
from wend.base.lazy.dataclass import dataclass
from wend.base.refusals import refusal
from wend.base.source import at
from wend.eager.dispatch import Staged, read_all
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import inline
from wend.ir.types import Type
from wend.ops.frame_states import frame_state, may_fail, values_of
from wend.passes.attach_writes import attach_writes
from wend.passes.strip_stores import retarget_stores
from wend.runtime.array_boundary import HOST, ArrayBoundary, boundary_of
from wend.runtime.partial_writes import ELEMENT, take_contents
from wend.runtime.storage import Storage, bind_variables
from wend.trace.aliasing.may_alias import may_overlap
from wend.trace.aliasing.passed_containers import CallerContainers, PassedContainers
from wend.trace.aliasing.rebuilt_containers import (
    ContainerState,
    ResultAndContainers,
    rebuilt,
    restore_all,
)
from wend.trace.arrays.concrete_array import ConcreteTracedArray
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.arguments import LeafType
from wend.trace.recording.frames import changed_arguments
from wend.trace.recording.recording import Recording
from wend.trace.state.creation import Initializer, described, initialize, initialize_in
from wend.trace.state.variable import Variable, mark_in_use


@dataclass(frozen=True, slots=True)
class InlinedCall:
    """The results of a graph whose nodes were recorded in place of a call."""

    results: tuple[Value, ...]


class _CalleeFacts:
    """Facts about graphs that every call of them asks for; each graph is walked once."""

    def __init__(self) -> None:
        self._may_fail: dict[Graph, bool] = {}
        self._contents: dict[Graph, Sequence[tuple[Node, Mapping[int, Type]]]] = {}

    def may_fail(self, graph: Graph) -> bool:
        """Return whether a run of a graph may end with an error."""
        if graph not in self._may_fail:
            self._may_fail[graph] = any(map(may_fail, graph.nodes))
        return self._may_fail[graph]

    def contents_of_states(self, graph: Graph) -> Sequence[tuple[Node, Mapping[int, Type]]]:
        """Return the types of the arrays of containers in each frame state of a graph."""
        if graph not in self._contents:
            self._contents[graph] = [
                (state, {k: x.type for k, x in values_of(state).items() if k < ELEMENT})
                for state in graph.walk()
                if state.op is frame_state
            ]
        return self._contents[graph]


@dataclass(frozen=True, slots=True)
class Traced:
    """A recorded function.

    Attributes:
        graph: from the array leaves of the arguments, the world if the function has effects, and
            the captures, to the array leaves of the result, then the changed arguments, the
            assigned variables and the world.
        result_tree: the structure of its result.
        result_types: the types of the result's leaves.
        captured: the bindings of the captures; variables by their storages, which do not keep them
            alive.
        has_world: whether it has effects.
        written: the array leaves of the arguments that it changes in place; their new contents
            follow its other results.
        stored: the storages of the variables that it assigns to; their new values follow these.
        notes: lines for `explain`, such as loops that ran in Python.
        pending: initializers of variables, to be run at the next call.
        passed: the storages of variables that are arguments, with the indices of the arguments.
        no_alias: pairs of inputs that must not share memory, since the first, an array leaf, is
            changed before the second is read or changed. Captures are counted after the leaves.
        raises: the exceptions that a run may raise, with the operations that do.
        states: the structures of the lists, dicts and instances of the caller in frame states.
        shared_tree: the structure of its result with nodes for what it holds several times; None
            if it holds all once.
    """

    graph: Graph
    result_tree: trees.TreeDef
    result_types: tuple[LeafType, ...]
    captured: tuple[Any, ...]
    has_world: bool
    written: tuple[int, ...] = ()
    stored: tuple[Storage, ...] = ()
    notes: tuple[str, ...] = ()
    pending: list[Initializer] = field(default_factory=list)
    passed: tuple[tuple[Storage, int], ...] = ()
    no_alias: tuple[tuple[int, int], ...] = ()
    raises: tuple[tuple[type[BaseException], str], ...] = ()
    states: tuple[ContainerState, ...] = ()
    shared_tree: trees.TreeDef | None = None
    _copies: dict[Any, Graph] = field(default_factory=dict)
    _facts: _CalleeFacts = field(default_factory=lambda: _CalleeFacts())

    @property
    def bindings(self) -> tuple[Any, ...]:
        """The bindings of the captures: arrays, variables, or traced arrays of an outer trace.

        Raises:
            VariableError: a variable no longer exists.
        """
        return tuple([x.owner if isinstance(x, Storage) else x for x in self.captured])

    @property
    def assigned(self) -> tuple[Any, ...]:
        """The variables that it assigns to."""
        return tuple([storage.owner for storage in self.stored])

    @property
    def rebuilt_tree(self) -> trees.TreeDef:
        """The structure by which a call rebuilds its result: objects are one again."""
        return self.result_tree if self.shared_tree is None else self.shared_tree

    @property
    def has_passed_containers(self) -> bool:
        """Whether its result has lists or dicts of the caller, or tells what it leaves in them."""
        return self.result_tree.type is ResultAndContainers

    @property
    def changes_containers(self) -> bool:
        """Whether it changes lists or dicts of the caller."""
        return self.has_passed_containers and self.result_tree.child(1).num_children > 0

    def is_closed(self) -> bool:
        """Return whether it captures nothing of an outer trace."""
        return not any(isinstance(binding, Staged) for binding in self.captured)

    def run(
        self,
        execute: Callable[[Sequence[Any]], Sequence[Any]],
        leaves: Sequence[Any],
        boundary: ArrayBoundary = HOST,
        caller: Callable[[], CallerContainers] | None = None,
    ) -> Any:
        """Run an executable of the graph on the array leaves of the arguments.

        Args:
            execute: the executable.
            leaves: the array leaves.
            boundary: how arrays cross to the executable's backend.
            caller: returns the lists and dicts of the arguments, which may change.

        Raises:
            StructureError: they change, and there is no caller.
        """
        if caller is None:
            self._check_caller(caller)
        passed = caller() if caller is not None and self.has_passed_containers else None
        self.check_no_alias(leaves)
        arguments = self.arguments(leaves, boundary)
        try:
            if self.passed or self.has_world:
                with self.run_context(leaves):
                    results = execute(arguments)
            else:
                results = execute(arguments)
        except BaseException as error:
            if self.states and passed is None and caller is not None:
                passed = caller()
            self.write_contents(leaves, error, passed)
            raise
        result = self.rebuild(boundary.unshare(results, arguments), passed)
        self.write_results(leaves, results)
        return result

    def check_no_alias(self, leaves: Sequence[Any]) -> None:
        """Refuse one array as two inputs if the function's results would show it.

        Raises:
            AliasError: one of the two is changed before the other is read, or an array is changed
                of which elements share memory.
        """
        for k in self.written:
            # What is traced has no strides: it is a value.
            if isinstance(leaves[k], Staged):
                continue
            if boundary_of(leaves[k]).overlaps_itself(leaves[k]):
                raise AliasError(
                    explain(
                        f"{self.graph.name} changes {self.graph.params[k].name}, of which several "
                        "elements are one place of the memory: strides are 0, or overlap.",
                        cure="pass a copy of it, which has a place for each: f(x.copy()).",
                    )
                )
        if not self.no_alias:
            return
        inputs = [*leaves, *self.captured]
        for changed, other in self.no_alias:
            if _share_memory(inputs[changed], inputs[other]):
                is_argument = other < len(leaves)
                cure = "one of them: f(x, x.copy())" if is_argument else "the argument: f(x.copy())"
                raise AliasError(
                    explain(
                        f"{self.graph.name}: {self.graph.params[changed].name} and "
                        f"{self._input_name(other, len(leaves))} are one array, or parts of one; "
                        "the function changes the first, and then uses the second.",
                        cure=f"pass a copy of {cure}.",
                    )
                )

    def _input_name(self, index: int, leaf_count: int) -> str:
        """Return the name of an array leaf or capture for messages."""
        if index < leaf_count:
            return str(self.graph.params[index].name)
        param = self.graph.params[index + self.has_world]
        readers = (node for node in self.graph.nodes if param in node.operands)
        reader = next(readers, None)
        where = "" if reader is None else at(reader.source)
        return f"the array {param.type} of outside that it reads{where}"

    def write_results(self, leaves: Sequence[Any], results: Sequence[Any]) -> Sequence[Any]:
        """Write the new contents of changed arguments; return the function's results proper.

        Raises:
            ValueError: an argument is read-only; none is changed then.
        """
        count = len(self.result_types)
        if self.written:
            self._write_back([leaves[k] for k in self.written], results[count:])
        return results[:count]

    def write_contents(
        self,
        leaves: Sequence[Any],
        error: BaseException,
        caller: CallerContainers | None = None,
    ) -> Mapping[int, Any]:
        """Write what a failed run has changed in the arguments before a check failed (D36).

        Args:
            leaves: the array leaves of the arguments.
            error: the error of the run.
            caller: the lists and dicts of the arguments; None: they stay as they are.

        Returns:
            what lists and dicts held, for `write_containers`, if there is no caller.
        """
        contents = dict(take_contents(error))
        in_containers = {k: contents.pop(k) for k in [*contents] if k < ELEMENT}
        if caller is not None:
            self.write_containers(in_containers, caller)
            in_containers = {}
        if contents:
            self.check_no_alias(leaves)
            self._write_back([leaves[k] for k in contents], [*contents.values()])
        return in_containers

    def write_containers(self, contents: Mapping[int, Any], caller: CallerContainers) -> None:
        """Write what a failed run has left in lists, dicts and instances of the caller (D36)."""
        # The backend, or an argument that is changed, may hold the memory of an array.
        own = {k: x.copy() if isinstance(x, np.ndarray) else x for k, x in contents.items()}
        restore_all(self.states, own, caller)

    def _write_back(self, leaves: Sequence[Any], changed: Sequence[Any]) -> None:
        """Write the new contents of changed arguments.

        Raises:
            ValueError: one is read-only; none is changed then.
        """
        arrays = [leaf for leaf in leaves if not isinstance(leaf, Variable)]
        for array in arrays:
            if not boundary_of(array).is_writeable(array):
                raise ValueError(
                    explain(
                        f"assignment destination is read-only: {self.graph.name} changes an "
                        "argument in place that is read-only, or in the byte order of another "
                        "machine.",
                        cure=boundary_of(array).cure_for_read_only,
                    )
                )
        for leaf, value in zip(leaves, changed, strict=False):
            if not isinstance(leaf, Variable):
                boundary_of(leaf).write(leaf, value)

    @contextmanager
    def run_context(self, leaves: Sequence[Any]) -> Iterator[None]:
        """Bind the variables that are passed, and mark all variables as in use for host calls.

        Raises:
            VariableError: one is also captured, and is assigned to.
        """
        self._check_passed(leaves)
        bound_variables = {storage: leaves[k] for storage, k in self.passed}
        used = (*self.bindings, *bound_variables.values()) if self.has_world else ()
        with bind_variables(bound_variables), mark_in_use(used):
            yield

    def _check_passed(self, leaves: Sequence[Any]) -> None:
        for _, k in self.passed:
            storage = leaves[k].storage
            is_captured = any(x is storage for x in self.captured)
            if is_captured and (k in self.written or storage in self.stored):
                raise VariableError(
                    explain(
                        f"{described(leaves[k])} is passed to {self.graph.name}, which also uses "
                        "it from outside and assigns to it.",
                        cure="let the function use it in one of the two ways.",
                    )
                )

    def arguments(self, leaves: Sequence[Any], boundary: ArrayBoundary = HOST) -> list[Any]:
        """Return the graph's arguments for a backend.

        Raises:
            LeakedValueError: an argument or capture is a traced array whose trace has ended.
        """
        if self.pending:
            initialize(self.pending, leaves)
        bindings: Sequence[Any] = self.bindings
        if any(isinstance(array, Staged) for array in (*leaves, *bindings)):
            leaves, bindings = read_all(leaves), read_all(bindings)
            for array in (*leaves, *bindings):
                if isinstance(array, Staged):
                    raise array.leaked()
        world = [None] if self.has_world else []
        receive = boundary.receive
        return [*map(receive, leaves), *world, *map(receive, bindings)]

    def rebuild(self, results: Sequence[Any], caller: CallerContainers | None = None) -> Any:
        """Return the function's result from the results of the graph."""
        return rebuilt(self.rebuilt_tree, results[: len(self.result_types)], caller)

    def _check_caller(self, caller: CallerContainers | None) -> None:
        """Refuse a run that changes containers which no caller has passed."""
        if caller is None and self.changes_containers:
            name = self.graph.name
            what = f"{name} changes a list or dict of its arguments, which are not at hand here."
            cure = f"let {name} change a copy, and return that; or call {name} itself."
            raise refusal(StructureError(explain(what, cure=cure)))

    def _passed_to(self, graph: Graph, leaves: Sequence[Any]) -> Graph:
        """Return the graph with stores to the variables that are passed; equal calls share it."""
        if not self.passed:
            return graph
        self._check_passed(leaves)
        storages: dict[Storage, Storage] = {
            own_storage: leaves[k].storage for own_storage, k in self.passed
        }
        key = graph, *storages.values()
        if key not in self._copies:
            self._copies[key] = retarget_stores(graph, storages)
        return self._copies[key]

    def with_writes_of(
        self,
        outer: Recording,
        graph: Graph,
        leaves: Sequence[Any],
        caller: PassedContainers | None = None,
    ) -> tuple[Graph, list[Value]]:
        """Return the graph with checks that carry what its caller has written to its arguments.

        Also return operands for its further params; equal calls share the graph. `caller` are the
        lists and dicts of the arguments.
        """
        if not self.has_world:
            return graph, []
        changed = changed_arguments(outer)
        caller_numbers = {id(ref): k for k, ref in enumerate(outer.function().arguments)}
        renamed = {
            k: caller_numbers[id(x)] for k, x in enumerate(leaves) if id(x) in caller_numbers
        }
        contents: dict[int, Value] = {k: outer.lift(ref) for k, ref in changed.items()}
        contents |= outer.frames.containers() | outer.frames.element()
        numbers: list[int | None] = [*contents]
        values = [*contents.values()]
        containers: dict[Node, tuple[tuple[int, int], ...]] = {}
        for state, (sources, own) in self._containers_in(outer, graph, caller).items():
            start = len(values)
            containers[state] = tuple([(k, j + start if j >= 0 else j) for k, j in sources])
            numbers += [None] * len(own)
            values += own
        if not values and not containers and not self.written:
            return graph, []
        types = [value.type for value in values]
        key = graph, *map(tuple, (renamed.items(), numbers, types, containers.items()))
        if key not in self._copies:
            self._copies[key] = attach_writes(graph, renamed, numbers, types, containers)
        return self._copies[key], values

    def _containers_in(
        self, outer: Recording, graph: Graph, caller: PassedContainers | None
    ) -> dict[Node, tuple[Sequence[tuple[int, int]], Sequence[Value]]]:
        """Return what each frame state leaves in the containers of the function around the call."""
        containers = outer.function().containers
        if caller is None or containers is None or not self.states:
            return {}
        return {
            state: containers.after(contents, self.states, caller)
            for state, contents in self._facts.contents_of_states(graph)
        }

    def call_in(
        self,
        outer: Recording,
        leaves: Sequence[Any],
        backend: str | None = None,
        *,
        inlined: bool = False,
        caller: PassedContainers | None = None,
    ) -> Any:
        """Record a call and return its traced result.

        `inlined` records the nodes of the graph instead, as if the function were traced here.
        `caller` are the lists and dicts of the arguments, which may change.
        """
        self._check_caller(caller)
        node = self.call_graph(
            outer, self.graph, leaves, backend=backend, inlined=inlined, caller=caller
        )
        results = [
            outer.wrap(value, weak=type.weak)
            for value, type in zip(node.results, self.result_types, strict=False)
        ]
        return self.rebuild(results, caller)

    def prepare_call(self, outer: Recording) -> None:
        """Prepare a recording for a call: note the exceptions that a run may raise.

        If the function may fail, what its caller's arguments hold before the call is recorded.
        """
        if self._facts.may_fail(self.graph):
            outer.frames.save()
        for error, what in self.raises:
            outer.may_raise(what, (error,))

    def call_graph(
        self,
        outer: Recording,
        graph: Graph,
        leaves: Sequence[Any],
        extra: Sequence[Any] = (),
        backend: str | None = None,
        *,
        inlined: bool = False,
        caller: PassedContainers | None = None,
    ) -> Node | InlinedCall:
        """Record a call of a graph with the params and results of this one, followed by others.

        Args:
            outer: the recording.
            graph: the graph.
            leaves: the array leaves of the arguments.
            extra: operands for its other params.
            backend: for recordings that run the call.
            inlined: whether the nodes of the graph are recorded instead.
            caller: the lists and dicts of the arguments.
        """
        if self.pending:
            initialize_in(outer, self.pending, leaves)
        self.check_no_alias(leaves)
        self.prepare_call(outer)
        node: Node | InlinedCall
        world = [outer.world()] if self.has_world else []
        bindings = [outer.lift(binding) for binding in self.bindings]
        arguments = [outer.lift(leaf) for leaf in leaves]
        extra_values = [outer.lift(x) for x in extra]
        operands = [*arguments, *world, *bindings, *extra_values]
        if outer.runs_now():
            try:
                with self.run_context(leaves):
                    node = outer.call(graph, operands, backend)
            except BaseException as error:
                take_contents(error)  # a tape may hold the arguments
                raise
        else:
            graph = self._passed_to(graph, leaves)
            graph, contents = self.with_writes_of(outer, graph, leaves, caller)
            if inlined:
                node = InlinedCall(inline(graph, [*operands, *contents], outer.b.nodes))
            else:
                node = outer.call(graph, [*operands, *contents], backend)
        changed = node.results[len(self.result_types) :]
        for k, value in zip(self.written, changed, strict=False):
            _write(outer, leaves[k], value)
        changed = changed[len(self.written) :]
        for variable, value in zip(self.assigned, changed, strict=False):
            outer.set_variable(variable, value)
        if self.has_world:
            outer.set_world(changed[len(self.stored)])
        return node


def _write(outer: Recording, leaf: Any, value: Value) -> None:
    """Store the new contents of an array or variable that a called function has changed."""
    if isinstance(leaf, Variable):
        outer.set_variable(leaf, value)
        return
    contents: Any = outer.wrap(value)
    if outer.runs_now() and not isinstance(leaf, Staged):
        _write_now(leaf, contents)
        return
    if isinstance(leaf, ConcreteTracedArray):
        leaf[...] = contents
        return
    if not isinstance(leaf, Tracer):
        raise change_of_outside(
            leaf,
            "a function that changes its argument in place was given an array that is a constant "
            "of this trace.",
        )
    leaf.replace(contents)


def _write_now(array: Any, contents: Any) -> None:
    """Store the new contents of a caller's array under a tape."""
    if isinstance(contents, Staged):
        raise TypeMismatchError(
            explain(
                "a function writes what a tape follows into an array that it was given: the "
                "gradient would be lost.",
                cure="return the new array in place of writing it into an argument.",
            )
        )
    boundary_of(array).write(array, contents)


def _share_memory(x: Any, y: Any) -> bool:
    """Return whether two arrays share memory; traced ones, whether they may."""
    if isinstance(x, Tracer) and isinstance(y, Tracer):
        return may_overlap(x, y)
    if isinstance(x, Tracer) or isinstance(y, Tracer):
        return False
    boundary = boundary_of(x)
    return boundary is boundary_of(y) and boundary.shares_memory(x, y)
