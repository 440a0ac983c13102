"""Variables created while a function is traced, and their initial values.

Each is created once. An initial value that does not depend on the call is computed at once. One
that depends on arguments is computed before the first call by an `Initializer`, a graph of its own,
so the function's graph need not test whether it was done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

from wend.backends.compiled_graph import CompiledGraph
from wend.base.errors import VariableError, explain
from wend.base.lazy.dataclass import dataclass
from wend.base.source import at
from wend.eager.dispatch import Staged, recorder
from wend.eager.promotion import tensor_type
from wend.ir.graph import Graph, Value
from wend.ir.rewrite import inline, lift
from wend.ir.traverse import operands_first
from wend.ir.types import TensorType, accepts
from wend.ops.build import Build
from wend.passes.strip_stores import strip_stores
from wend.runtime.array_boundary import HOST
from wend.runtime.storage import Storage, StorageOwner
from wend.trace.recording.recording import Recording


@dataclass(eq=False, slots=True)
class Initializer:
    """A graph that computes a variable's initial value from the arguments of a call.

    Attributes:
        storage: the storage of the variable.
        graph: takes some leaves of the arguments, then the captures; returns the value.
        leaves: the indices of those leaves.
        captured: arrays, storages of variables, and traced arrays of an outer trace.
        streams: the generator states that it draws from; the graph also returns their new values.
    """

    storage: Storage
    graph: Graph
    leaves: tuple[int, ...]
    captured: tuple[Any, ...]
    streams: tuple[Storage, ...]

    def operands(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the operands of the graph for a call."""
        captures = [x.owner if isinstance(x, Storage) else x for x in self.captured]
        return [*(leaves[k] for k in self.leaves), *captures]

    def run(self, leaves: Sequence[Any]) -> None:
        """Compute the initial value and store it."""
        variable = self.storage.owner
        # The concrete values of variables, not those that the current trace has assigned.
        operands = [getattr(x, "concrete", x) for x in self.operands(leaves)]
        for param, x in zip(self.graph.params, operands, strict=True):
            if not accepts(param.type, tensor_type(x)):
                raise VariableError(
                    explain(
                        f"{described(variable)} depends on an argument {param.type}, and has no "
                        f"value yet; the first call gives {tensor_type(x)}.",
                        cure="make the first call with the arguments that it was traced for.",
                    )
                )
        arguments = [HOST.receive(x) for x in operands]
        value, *states = CompiledGraph(self.graph).executable("numpy")(arguments)
        variable.store(value)
        for stream, state in zip(self.streams, states, strict=True):
            stream.owner.store(state)


@dataclass(eq=False)
class Creation:
    """The variables that one trace may create and has created.

    Attributes:
        name: the function's name.
        pending: initializers of the function, for its next call.
        refusal: why it may create none, as an error message continues; None: it may.
        cure: the cure in that message.
        created: the variables that it has created.
        deferred: the initializers of those whose initial values depend on arguments.
        stream_starts: the generator states when the trace began.
    """

    name: str
    pending: list[Initializer]
    refusal: str | None = None
    cure: str = ""
    created: list[Any] = field(default_factory=list)
    deferred: list[Initializer] = field(default_factory=list)
    stream_starts: dict[Storage, Any] = field(default_factory=dict)

    def check(self, variable: Any) -> None:
        """Refuse to create a variable if the trace may create none."""
        if self.refusal is not None:
            raise VariableError(explain(f"{described(variable)} {self.refusal}", cure=self.cure))

    def is_pending(self, variable: Any) -> bool:
        """Return whether a variable waits for its initial value."""
        return any(
            initializer.storage is variable.storage
            for initializer in (*self.pending, *self.deferred)
        )

    def end(self) -> None:
        """Drop the traced initial values when the trace has ended."""
        for variable in self.created:
            variable.initial = None


def described(variable: Any) -> str:
    """Return the name of a variable for messages."""
    name = f"Variable {variable.name!r}" if variable.name else "a Variable"
    return f"{name}, made{at(variable.created_at)},"


def create(variable: Any, initial: Any) -> bool:
    """Register a variable with the current trace; return whether its initial value is traced.

    Raises:
        VariableError: it cannot be created here.
    """
    recording: Any = recorder.get()
    if recording is None or recording.runs_now():
        return False
    assert isinstance(recording, Recording)
    creator = _creating_recording(recording)
    if creator is None:
        raise VariableError(
            explain(
                f"{described(variable)} is made in {recording.role}, which is traced at each call.",
                cure="make it outside, once, and use it in the function.",
            )
        )
    creator.creation.check(variable)
    creator.creation.created.append(variable)
    if not isinstance(initial, Staged):
        return False
    value = recording.lift(initial)
    _set_initial(recording, variable, value)
    return True


def is_new(value: Any) -> bool:
    """Return whether a value is a variable that the current trace has created."""
    recording: Any = recorder.get()
    creator = _creating_recording(recording) if isinstance(recording, Recording) else None
    return creator is not None and any(value is new for new in creator.creation.created)


def _creating_recording(recording: Recording | None) -> Recording | None:
    """Return the innermost recording that decides whether variables may be created."""
    while recording is not None and recording.creation is None:
        recording = recording.parent
    return recording


def _set_initial(recording: Recording, variable: Any, value: Value) -> None:
    """Make a value of a recording the initial value of a variable."""
    assert isinstance(value.type, TensorType)
    if not value.type.is_static:
        raise VariableError(
            explain(
                f"{described(variable)} would hold {value.type}, whose sizes are not known "
                "before the function runs.",
                cure="give it a shape of numbers.",
            )
        )
    variable.declare(value.type)
    copier = _SliceCopier(recording, variable)
    copier.copy(recording, [value])
    streams: list[Any] = [
        x for x, _ in copier.captures if isinstance(x, StorageOwner) and x.is_stream
    ]
    if streams:
        copier = _SliceCopier(recording, variable)
    outputs = [value, *(recording.lift(stream.read()) for stream in streams)]
    copies = copier.copy(recording, outputs)
    leaves = tuple(k for k, _ in copier.leaves)
    params = (*(param for _, param in copier.leaves), *(param for _, param in copier.captures))
    results = tuple(copies[value] for value in outputs)
    graph = strip_stores(Graph("initial", params, tuple(copier.b.nodes), results))
    captured = tuple(x.storage if isinstance(x, StorageOwner) else x for x, _ in copier.captures)
    advanced = tuple(stream.storage for stream in streams)
    initializer = Initializer(variable.storage, graph, leaves, captured, advanced)
    needs_pending = any(isinstance(x, Storage) and not x.owner.is_initialized for x in captured)
    needs_outer = any(isinstance(x, Staged) for x in captured)
    if not leaves and not needs_outer and not needs_pending:
        creator = _creating_recording(recording)
        assert creator is not None
        stream_starts = creator.creation.stream_starts
        for stream in advanced:  # the graph starts from the state before earlier draws
            stream_starts.setdefault(stream, stream.owner.concrete)
        initializer.captured = tuple(
            stream_starts.get(x, x) if isinstance(x, Storage) else x for x in captured
        )
        initializer.run(())
        return
    if recording.creation is None:
        raise VariableError(
            explain(
                f"{described(variable)} is made in {recording.role}, and its initial value depends "
                "on what is computed there or given to the function.",
                cure="make it before, or let its initial value depend on nothing of the call.",
            )
        )
    variable.initial = recording.wrap(value)
    recording.creation.deferred.append(initializer)


class _SliceCopier:
    """Copies the backward slice of a value to a graph of its own."""

    def __init__(self, recording: Recording, variable: Any) -> None:
        self.b = Build("initial")
        self.recording, self.variable = recording, variable
        self.leaves: list[tuple[int, Value]] = []
        self.captures: list[tuple[Any, Value]] = []

    def copy(self, recording: Recording, values: Sequence[Value]) -> dict[Value, Value]:
        """Copy values of a recording, with all that they depend on."""
        inputs = [value for value in _backward_slice(values) if value.node is None]
        if recording.is_region:
            assert recording.parent is not None
            outer_values = [recording.outer_value(value) for value in inputs]
            bound_values = [value for value in outer_values if value is not None]
            if len(bound_values) < len(inputs):
                raise VariableError(
                    explain(
                        f"{described(self.variable)} is made in {recording.role}, and its initial "
                        "value depends on what is computed there.",
                        cure="make it before the loop or branch.",
                    )
                )
            outer_copies = self.copy(recording.parent, bound_values)
            sources = {
                param: outer_copies[value]
                for param, value in zip(inputs, bound_values, strict=True)
            }
        else:
            sources = {param: self._source(recording, param) for param in inputs}
        return lift(values, self.b.nodes, sources)

    def _source(self, recording: Recording, value: Value) -> Value:
        is_leaf = value in recording.b.params
        if not is_leaf and value not in recording.captures.values:
            raise VariableError(
                explain(
                    f"{described(self.variable)} has an initial value that depends on an effect.",
                    cure="make it outside of the function.",
                )
            )
        if is_leaf and recording is not _creating_recording(self.recording):
            raise VariableError(
                explain(
                    f"{described(self.variable)} is made in {recording.role}, and its initial "
                    "value depends on its arguments.",
                    cure="make it outside of the function.",
                )
            )
        param = Value(value.type, name=value.name)
        if is_leaf:
            self.leaves.append((recording.b.params.index(value), param))
        else:
            self.captures.append(
                (recording.captures.bindings[recording.captures.values.index(value)], param)
            )
        return param


def _backward_slice(values: Sequence[Value]) -> Iterator[Value]:
    return operands_first(values, lambda value: value.node.operands if value.node else ())


def initialize(pending: list[Initializer], leaves: Sequence[Any]) -> None:
    """Run pending initializers."""
    while pending:
        if not pending[0].storage.is_gone and not pending[0].storage.owner.is_initialized:
            pending[0].run(leaves)
        del pending[0]


def initialize_in(outer: Recording, pending: list[Initializer], leaves: Sequence[Any]) -> None:
    """Run pending initializers as a part of an outer trace."""
    if outer.runs_now():
        initialize(pending, [getattr(x, "concrete", x) for x in leaves])
        return
    pending[:] = [
        initializer
        for initializer in pending
        if not initializer.storage.is_gone and not initializer.storage.owner.is_initialized
    ]
    for initializer in pending:
        variable = initializer.storage.owner
        creator = _creating_recording(outer)
        is_known = creator is not None and creator.creation.is_pending(variable)
        if is_known or (variable.initial is not None and outer.can_lift(variable.initial)):
            continue
        operands = [outer.lift(x) for x in initializer.operands(leaves)]
        value, *states = inline(initializer.graph, operands, outer.b.nodes)
        for stream, state in zip(initializer.streams, states, strict=True):
            stream.owner.assign(outer.wrap(state))
        if creator is None:
            raise VariableError(
                explain(
                    f"{described(variable)} has no value yet, and {outer.role} cannot give it one.",
                    cure="call the function that makes it once before.",
                )
            )
        creator.creation.check(variable)
        creator.creation.created.append(variable)
        _set_initial(outer, variable, value)
