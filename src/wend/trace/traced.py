"""Records a Python function once, as a graph with the structure of its arguments and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import ShapeError, TypeMismatchError, explain, tell_where
from wend.base.source import at, raised_at
from wend.eager.dispatch import Staged, read_all
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import ListType, TensorType
from wend.trace.arguments import LeafType, is_array_leaf, to_run
from wend.trace.in_use import in_use
from wend.trace.recording import Recording, current
from wend.trace.tracer import Tracer


@dataclass(frozen=True, slots=True)
class Traced:
    """A recorded function.

    Attributes:
        graph: params (one for each array leaf of the arguments, the world if the function has
            effects, then captures) to results (array leaves, then the world).
        result_tree: the structure of what it returns.
        result_types: the types of the leaves of that.
        bindings: what the captures stand for: arrays, or traced arrays of an outer trace.
        has_world: whether it has effects.
        written: the array leaves of the arguments that it changes in place; their new contents
            come after its other results.
        assigned: the variables that it assigns to; what they hold in the end comes after that.
        notes: what `explain` tells of it: the loops that Python ran.
    """

    graph: Graph
    result_tree: trees.TreeDef
    result_types: tuple[LeafType, ...]
    bindings: tuple[Any, ...]
    has_world: bool
    written: tuple[int, ...] = ()
    assigned: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()

    def is_closed(self) -> bool:
        """Whether it captures arrays only, nothing of an outer trace."""
        return not any(isinstance(binding, Staged) for binding in self.bindings)

    def run(self, execute: Callable[[Sequence[Any]], Sequence[Any]], leaves: Sequence[Any]) -> Any:
        """Run it by an executable of its graph on the array leaves of the arguments."""
        arguments = self.arguments(leaves)
        if self.has_world:
            with in_use(self.bindings):
                results = execute(arguments)
        else:
            results = execute(arguments)
        found = self.rebuild(owned(results, arguments))
        changed = results[len(self.result_types) :]
        for k, value in zip(self.written, changed, strict=False):
            np.copyto(leaves[k], value)
        self.assign(results)
        return found

    def assign(self, results: Sequence[Any]) -> None:
        """Let variables hold what results of the graph say."""
        held = results[len(self.result_types) + len(self.written) :]
        for variable, value in zip(self.assigned, held, strict=False):
            variable.store(value)

    def arguments(self, leaves: Sequence[Any]) -> list[Any]:
        """The arguments of the graph, for a backend.

        Raises:
            LeakedValueError: it is given or captures a traced array whose trace has ended.
        """
        leaves, bindings = read_all(leaves), read_all(self.bindings)
        for array in (*leaves, *bindings):
            if isinstance(array, Staged):
                raise array.leaked()
        world = [None] if self.has_world else []
        return [*map(to_run, leaves), *world, *map(to_run, bindings)]

    def rebuild(self, results: Sequence[Any]) -> Any:
        """What the function returns, from results of the graph."""
        return trees.unflatten(self.result_tree, list(results[: len(self.result_types)]))

    def call_in(self, outer: Recording, leaves: Sequence[Any], backend: str | None = None) -> Any:
        """Record a call of it, and return what it returns, traced."""
        node = self.call_graph(outer, self.graph, leaves, backend=backend)
        results = [
            outer.wrap(value, weak=type.weak)
            for value, type in zip(node.results, self.result_types, strict=False)
        ]
        return trees.unflatten(self.result_tree, results)

    def call_graph(
        self,
        outer: Recording,
        graph: Graph,
        leaves: Sequence[Any],
        given: Sequence[Any] = (),
        backend: str | None = None,
    ) -> Node:
        """Record a call of a graph that takes what this one does, and first gives what it gives.

        `given`: what it takes besides; `backend`: for recordings that run it.
        """
        world = [outer.world()] if self.has_world else []
        bindings = [outer.lift(binding) for binding in self.bindings]
        arguments = [outer.lift(leaf) for leaf in leaves]
        more = [outer.lift(x) for x in given]
        with in_use(self.bindings if self.has_world and outer.runs_now() else ()):
            node = outer.call(graph, [*arguments, *world, *bindings, *more], backend)
        changed = node.results[len(self.result_types) :]
        for k, value in zip(self.written, changed, strict=False):
            _write(outer, leaves[k], value)
        changed = changed[len(self.written) :]
        for variable, value in zip(self.assigned, changed, strict=False):
            outer.assign_variable(variable, outer.wrap(value))
        if self.has_world:
            outer.set_world(changed[len(self.assigned)])
        return node


def _write(outer: Recording, leaf: Any, value: Value) -> None:
    """Change an array in place that a called function has changed."""
    found: Any = outer.wrap(value)
    if outer.runs_now() and not isinstance(leaf, Staged):
        _write_now(leaf, found)
        return
    if not isinstance(leaf, Tracer):
        raise TypeMismatchError(
            explain(
                "a function that changes its argument in place was given an array that is a "
                "constant of this trace.",
                cure="pass an array that is an argument of the traced function, or a copy made "
                "from one.",
            )
        )
    leaf.replace(found)


def _write_now(array: Any, found: Any) -> None:
    """Change an array of the caller's in place, under a tape."""
    if isinstance(found, Staged):
        raise TypeMismatchError(
            explain(
                "a function writes what a tape follows into an array that it was given: the "
                "gradient would be lost.",
                cure="return the new array in place of writing it into an argument.",
            )
        )
    np.copyto(array, found)


def owned(results: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """Results that the caller may write to without changing `others` or one another."""
    taken = {id(other) for other in others}
    found = []
    for result in results:
        if isinstance(result, np.ndarray) and result.ndim:
            is_ours = result.flags.owndata and result.flags.writeable and id(result) not in taken
            result = result if is_ours else np.array(result)
            taken.add(id(result))
        found.append(result)
    return found


def copied(values: Sequence[Any]) -> list[Any]:
    """The values with every array copied, so that writes elsewhere do not reach them."""
    return [np.array(v) if isinstance(v, np.ndarray) and v.ndim else v for v in values]


def trace_function(
    fun: Callable[..., Any],
    types: Sequence[LeafType],
    call: Callable[[Callable[..., Any], Sequence[Any]], Any],
    name: str,
    names: Sequence[str] = (),
) -> Traced:
    """Record a function.

    Args:
        fun: the Python function.
        types: the types of the array leaves of its arguments.
        call: calls the function with these leaves put into its arguments.
        name: the graph's name.
        names: names of the leaves, for messages.

    Raises:
        TypeMismatchError: it returns something that is no array, number or None.
    """
    recording = Recording(name, current())
    labels = [*names, *[None] * (len(types) - len(names))]
    leaves = [
        recording.param(type.type, weak=type.weak, name=label)
        for type, label in zip(types, labels, strict=True)
    ]
    with recording.active():
        try:
            result = call(fun, leaves)
        except ShapeError as error:
            tell_where(error, at(raised_at(error)))
            raise
        found, result_tree = trees.flatten(result)
        check_results(name, found, trees.paths(result_tree, "result"))
        values = [recording.lift(leaf) for leaf in found]
        written = [k for k, leaf in enumerate(leaves) if leaf.value is not recording.b.params[k]]
        changed = [leaves[k].value for k in written]
        assigned = recording.assigned_variables()
        for box in recording.changed_boxes():
            raise TypeMismatchError(
                explain(
                    f"{name} changes {box!r} in place, which belongs to the function around it.",
                    cure="pass it as an argument.",
                )
            )
    result_types = tuple(
        LeafType(_tensor(value), isinstance(leaf, Tracer) and leaf.weak)
        for value, leaf in zip(values, found, strict=True)
    )
    held = [value for _, value in assigned]
    graph = recording.finish_function([*values, *changed, *held])
    has_world = recording.world_param is not None
    bindings = tuple(recording.bindings)
    variables = tuple(variable for variable, _ in assigned)
    return Traced(
        graph,
        result_tree,
        result_types,
        bindings,
        has_world,
        tuple(written),
        variables,
        tuple(recording.notes),
    )


def _tensor(value: Value) -> TensorType:
    assert isinstance(value.type, TensorType)
    return value.type


def check_results(name: str, leaves: Sequence[Any], paths: Sequence[str]) -> None:
    """What a function returns are arrays, numbers and None."""
    for leaf, path in zip(leaves, paths, strict=True):
        if isinstance(leaf, Tracer) and isinstance(leaf.value.type, ListType):
            place = path.partition("[<")[0]
            of = "" if place == "result" else f" at {place}"
            raise TypeMismatchError(
                explain(
                    f"{name} returns{of} a list that grows in a loop or branch: how long "
                    "it is, is only known when it runs.",
                    cure="return an array of its items: wnp.stack(out).",
                )
            )
        if not is_array_leaf(leaf):
            raise TypeMismatchError(
                explain(
                    f"{name} returns {type(leaf).__name__} at {path}: {leaf!r:.60}",
                    cure="return arrays, numbers, None, or lists, tuples and dicts of these.",
                )
            )
