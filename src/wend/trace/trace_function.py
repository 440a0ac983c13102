"""Recording a Python function as a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wend.base import refusals, trees
from wend.base.errors import ShapeError, TypeMismatchError, add_location, explain
from wend.base.reporting.log import step
from wend.base.source import OUTERMOST, at, raised_at
from wend.ir.graph import Value
from wend.ir.types import TensorType
from wend.runtime.storage import Storage
from wend.trace.aliasing.rebuilt_containers import SharedResult
from wend.trace.arrays.tracer import Tracer
from wend.trace.failed_traces import attach_recorded, has_effects, record_error, result_of
from wend.trace.recording.arguments import LeafType, is_array_leaf
from wend.trace.recording.recording import Recording, current
from wend.trace.state.creation import Creation
from wend.trace.state.variable import Variable
from wend.trace.traced import Traced


def call_with(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call a function that is being traced; its arguments are looked up in this frame."""
    return fun(*args, **kwargs)


def trace_function(
    fun: Callable[..., Any],
    types: Sequence[LeafType],
    call: Callable[[Callable[..., Any], Sequence[Any]], Any],
    name: str,
    names: Sequence[str] = (),
    *,
    creation: Creation | None = None,
    by_value: bool = False,
) -> Traced:
    """Record a function.

    Args:
        fun: the Python function.
        types: the types of the array leaves of its arguments.
        call: calls the function with traced leaves in its arguments.
        name: the graph's name.
        names: the names of the leaves, for messages.
        creation: the variables that it may create; None: decided by the enclosing function.
        by_value: whether outer values are captured as constants.

    Raises:
        TypeMismatchError: it returns an object that is no array, number or None.
        Exception: what the function raises; it carries what is recorded before (`take_recorded`).
    """
    with step("trace", name) as tell, refusals.final():
        traced = _traced(fun, types, call, name, names, creation, by_value)
        tell(lambda: f"{traced.graph.count()} nodes")
    return traced


def _traced(
    fun: Callable[..., Any],
    types: Sequence[LeafType],
    call: Callable[[Callable[..., Any], Sequence[Any]], Any],
    name: str,
    names: Sequence[str],
    creation: Creation | None,
    by_value: bool,
) -> Traced:
    recording = Recording(name, current(), by_value=by_value)
    recording.creation = creation
    labels = [*names, *[None] * (len(types) - len(names))]
    leaves = [
        recording.param_of(type, name=label) for type, label in zip(types, labels, strict=True)
    ]
    recording.arguments = leaves
    arguments, passed = _with_variables(recording, types, leaves)
    failure: Exception | None = None
    with recording.active():
        try:
            result = call(fun, arguments)
        except Exception as error:
            if isinstance(error, ShapeError):
                add_location(error, at(raised_at(error)))
            if refusals.is_refusal(error):
                raise
            if not record_error(error) and not has_effects(recording):
                raise
            result, failure = result_of(recording), error
        shared_tree = None
        if isinstance(result, SharedResult):
            shared_tree, result = trees.flatten_deep(result.shared)[1], result.result
        result_leaves, result_tree = trees.flatten_deep(result)
        check_results(name, result_leaves, trees.paths(result_tree, "result"))
        values = [recording.lift(leaf) for leaf in result_leaves]
        written = [k for k, leaf in enumerate(leaves) if leaf.value is not recording.b.params[k]]
        changed = [leaves[k].value for k in written]
        _check_shapes(name, [recording.b.params[k] for k in written], changed)
        inputs = [*recording.b.params[: len(leaves)], *recording.captures.values]
        no_alias = [
            (k, j)
            for k in written
            for j, param in enumerate(inputs)
            if j != k
            and (j in written or param in values or recording.reads_after_change(leaves[k], param))
        ]
        assigned = recording.variables.assigned()
        final_values = [value for _, value in assigned]
        recording.keep_unused_checks([*values, *changed, *final_values])
        for ref in recording.mutations.outer_refs():
            raise TypeMismatchError(
                explain(
                    f"{name} changes {ref!r} in place, which belongs to the function around it.",
                    cure="pass it as an argument.",
                )
            )
    result_types = tuple(
        LeafType(_tensor(value), isinstance(leaf, Tracer) and leaf.weak)
        for value, leaf in zip(values, result_leaves, strict=True)
    )
    graph = recording.finish_function([*values, *changed, *final_values])
    has_world = recording.world_param is not None
    captured = tuple(
        [x.storage if isinstance(x, Variable) else x for x in recording.captures.bindings]
    )
    storages = tuple(variable.storage for variable, _ in assigned)
    states = () if recording.containers is None else tuple(recording.containers.states)
    recording.release()
    traced = Traced(
        graph,
        result_tree,
        result_types,
        captured,
        has_world,
        tuple(written),
        storages,
        tuple(recording.notes),
        [] if creation is None else creation.pending,
        passed,
        tuple(no_alias),
        tuple(recording.raises.items()),
        states,
        shared_tree,
    )
    if failure is not None:
        if creation is None or not creation.created:  # else the next call initializes them
            attach_recorded(failure, traced)
        raise failure
    return traced


def _check_shapes(name: str, params: Sequence[Value], changed: Sequence[Value]) -> None:
    """Refuse arguments that have another shape at the end: the caller's arrays keep theirs."""
    for param, value in zip(params, changed, strict=True):
        types = param.type, value.type
        shapes = [t.shape for t in types if isinstance(t, TensorType) and t.is_static]
        if len(shapes) == 2 and shapes[0] != shapes[1]:
            raise TypeMismatchError(
                explain(
                    f"{name} sets the shape of {param.name} in place, from {shapes[0]} to "
                    f"{shapes[1]}.",
                    cure="make a view: y = x.reshape(shape).",
                )
            )


def _with_variables(
    recording: Recording, types: Sequence[LeafType], leaves: Sequence[Tracer]
) -> tuple[list[Any], tuple[tuple[Storage, int], ...]]:
    """Return the leaves with placeholders for the variables among them, one for each variable."""
    arguments: list[Any] = list(leaves)
    placeholders: dict[int, Variable] = {}
    passed = []
    for k, type in enumerate(types):
        if type.variable is None:
            continue
        if type.variable not in placeholders:
            placeholders[type.variable] = variable = Variable.placeholder(
                type.type, leaves[k].value.name
            )
            recording.variables.bind_argument(variable, leaves[k])
            passed.append((variable.storage, k))
        arguments[k] = placeholders[type.variable]
    return arguments, tuple(passed)


OUTERMOST.add(id(trace_function.__code__))


def _tensor(value: Value) -> TensorType:
    assert isinstance(value.type, TensorType)
    return value.type


def check_results(name: str, leaves: Sequence[Any], paths: Sequence[str]) -> None:
    """Refuse results that are no arrays, numbers or None."""
    for leaf, path in zip(leaves, paths, strict=True):
        if not is_array_leaf(leaf):
            kind = "str" if isinstance(leaf, str) else type(leaf).__name__
            raise TypeMismatchError(
                explain(
                    f"{name} returns {kind} at {path}: {leaf!r:.60}",
                    cure="return arrays, numbers, None, or lists, tuples and dicts of these.",
                )
            )
