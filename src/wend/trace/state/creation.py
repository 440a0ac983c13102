"""Variables that are made while a function is traced: once, and where their first values come from.

A first value that depends on nothing of the call is computed at once. One that depends on
arguments is computed by an `Initialiser`, a graph of its own, at the first call and before it: so
the function's graph asks nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from wend.backends.compiled_graph import CompiledGraph
from wend.base.errors import VariableError, explain
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
from wend.runtime.storage import Storage
from wend.trace.recording.recording import Recording


@dataclass(eq=False, slots=True)
class Initialiser:
    """Computes the first value of a variable from the arguments of a call.

    Attributes:
        place: the variable's.
        graph: from some leaves of the arguments, and what is captured, to the value.
        leaves: which leaves of the arguments, by position.
        captured: arrays, places of variables, and traced arrays of an outer trace.
        streams: the states of generators that it draws from; the graph gives what they become.
    """

    place: Storage
    graph: Graph
    leaves: tuple[int, ...]
    captured: tuple[Any, ...]
    streams: tuple[Storage, ...]

    def given(self, leaves: Sequence[Any]) -> list[Any]:
        """The arguments of the graph."""
        held = [x.owner if isinstance(x, Storage) else x for x in self.captured]
        return [*(leaves[k] for k in self.leaves), *held]

    def run(self, leaves: Sequence[Any]) -> None:
        """Initialise the variable."""
        variable = self.place.owner
        # What a variable holds now, not what the trace under way has assigned to it
        given = [getattr(x, "concrete", x) for x in self.given(leaves)]
        for param, x in zip(self.graph.params, given, strict=True):
            if not accepts(param.type, tensor_type(x)):
                raise VariableError(
                    explain(
                        f"{described(variable)} depends on an argument {param.type}, and has no "
                        f"value yet; the first call gives {tensor_type(x)}.",
                        cure="make the first call with the arguments that it was traced for.",
                    )
                )
        arguments = [HOST.receive(x) for x in given]
        value, *states = CompiledGraph(self.graph).executable("numpy")(arguments)
        variable.store(value)
        for stream, state in zip(self.streams, states, strict=True):
            stream.owner.store(state)


@dataclass(eq=False)
class Creation:
    """What one trace may make of variables, and what it has made.

    Attributes:
        name: the function's.
        refusal: why it may make none, as messages go on after its name; None: it may.
        pending: initialisers of the function, for its next call.
        made: the variables that it has made.
        new: initialisers of those whose values depend on arguments.
        starts: what the states of generators held when the trace began.
    """

    name: str
    pending: list[Initialiser]
    refusal: str | None = None
    cure: str = ""
    made: list[Any] = field(default_factory=list)
    new: list[Initialiser] = field(default_factory=list)
    starts: dict[Storage, Any] = field(default_factory=dict)

    def check(self, variable: Any) -> None:
        """Refuse to make a variable, if none may be."""
        if self.refusal is not None:
            raise VariableError(explain(f"{described(variable)} {self.refusal}", cure=self.cure))

    def knows(self, variable: Any) -> bool:
        """Whether it is one that waits for its first value."""
        return any(i.place is variable.place for i in (*self.pending, *self.new))

    def end(self) -> None:
        """The trace has ended: its values are gone."""
        for variable in self.made:
            variable.initial = None


def described(variable: Any) -> str:
    """A variable in messages."""
    name = f"Variable {variable.name!r}" if variable.name else "a Variable"
    return f"{name}, made{at(variable.made)},"


def create(variable: Any, initial: Any) -> bool:
    """Make a variable in the trace that is under way; say whether there is one that records it.

    Raises:
        VariableError: it cannot be made here.
    """
    here: Any = recorder.get()
    if here is None or here.runs_now():
        return False
    assert isinstance(here, Recording)
    owner = _owner(here)
    if owner is None:
        raise VariableError(
            explain(
                f"{described(variable)} is made in {here.role}, which is traced at each call.",
                cure="make it outside, once, and use it in the function.",
            )
        )
    owner.creation.check(variable)
    owner.creation.made.append(variable)
    if not isinstance(initial, Staged):
        return False
    value = here.lift(initial)
    _begin(here, variable, value)
    return True


def _owner(recording: Recording | None) -> Recording | None:
    """The recording around that may make variables, or says why not."""
    while recording is not None and recording.creation is None:
        recording = recording.parent
    return recording


def _begin(here: Recording, variable: Any, value: Value) -> None:
    """Let a value of a recording be the first that a variable holds."""
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
    behind = _Behind(here, variable)
    behind.copied(here, [value])
    streams = [x for x, _ in behind.held if getattr(x, "is_stream", False)]
    if streams:
        behind = _Behind(here, variable)
    wanted = [value, *(here.lift(stream.read()) for stream in streams)]
    copies = behind.copied(here, wanted)
    leaves = tuple(k for k, _ in behind.leaves)
    params = (*(param for _, param in behind.leaves), *(param for _, param in behind.held))
    results = tuple(copies[value] for value in wanted)
    graph = strip_stores(Graph("initial", params, tuple(behind.b.nodes), results))
    captured = tuple(getattr(x, "place", x) for x, _ in behind.held)
    advanced = tuple(stream.place for stream in streams)
    initialiser = Initialiser(variable.place, graph, leaves, captured, advanced)
    waits = any(isinstance(x, Storage) and not x.owner.is_initialised for x in captured)
    outer = any(isinstance(x, Staged) for x in captured)
    if not leaves and not outer and not waits:
        owner = _owner(here)
        assert owner is not None
        starts = owner.creation.starts
        for stream in advanced:  # those before it have advanced them: the graph does that, too
            starts.setdefault(stream, stream.owner.concrete)
        initialiser.captured = tuple(
            starts.get(x, x) if isinstance(x, Storage) else x for x in captured
        )
        initialiser.run(())
        return
    if here.creation is None:
        raise VariableError(
            explain(
                f"{described(variable)} is made in {here.role}, and its initial value depends "
                "on what is computed there or given to the function.",
                cure="make it before, or let its initial value depend on nothing of the call.",
            )
        )
    variable.initial = here.wrap(value)
    here.creation.new.append(initialiser)


class _Behind:
    """What a value is computed from, copied to a graph of its own."""

    def __init__(self, here: Recording, variable: Any) -> None:
        self.b = Build("initial")
        self.here, self.variable = here, variable
        self.leaves: list[tuple[int, Value]] = []
        self.held: list[tuple[Any, Value]] = []

    def copied(self, recording: Recording, values: Sequence[Value]) -> dict[Value, Value]:
        """Copy values of a recording, with all that they need."""
        ends = [value for value in _all_behind(values) if value.node is None]
        if recording.is_region:
            assert recording.parent is not None
            around = [recording.outer_value(value) for value in ends]
            known = [value for value in around if value is not None]
            if len(known) < len(ends):
                raise VariableError(
                    explain(
                        f"{described(self.variable)} is made in {recording.role}, and its initial "
                        "value depends on what is computed there.",
                        cure="make it before the loop or branch.",
                    )
                )
            outside = self.copied(recording.parent, known)
            sources = {end: outside[value] for end, value in zip(ends, known, strict=True)}
        else:
            sources = {end: self._source(recording, end) for end in ends}
        return lift(values, self.b.nodes, sources)

    def _source(self, recording: Recording, end: Value) -> Value:
        is_leaf = end in recording.b.params
        if not is_leaf and end not in recording.captures.values:
            raise VariableError(
                explain(
                    f"{described(self.variable)} has an initial value that depends on an effect.",
                    cure="make it outside of the function.",
                )
            )
        if is_leaf and recording is not _owner(self.here):
            raise VariableError(
                explain(
                    f"{described(self.variable)} is made in {recording.role}, and its initial "
                    "value depends on its arguments.",
                    cure="make it outside of the function.",
                )
            )
        param = Value(end.type, name=end.name)
        if is_leaf:
            self.leaves.append((recording.b.params.index(end), param))
        else:
            self.held.append(
                (recording.captures.bindings[recording.captures.values.index(end)], param)
            )
        return param


def _all_behind(values: Sequence[Value]) -> Iterator[Value]:
    return operands_first(values, lambda value: value.node.operands if value.node else ())


def initialise(pending: list[Initialiser], leaves: Sequence[Any]) -> None:
    """Run what gives variables their first values."""
    while pending:
        if not pending[0].place.is_gone and not pending[0].place.owner.is_initialised:
            pending[0].run(leaves)
        del pending[0]


def initialise_in(outer: Recording, pending: list[Initialiser], leaves: Sequence[Any]) -> None:
    """Do so as a part of an outer trace: the values are computed there."""
    if outer.runs_now():
        initialise(pending, [getattr(x, "concrete", x) for x in leaves])
        return
    pending[:] = [
        one for one in pending if not one.place.is_gone and not one.place.owner.is_initialised
    ]
    for one in pending:
        variable = one.place.owner
        owner = _owner(outer)
        knows = owner is not None and owner.creation.knows(variable)
        if knows or (variable.initial is not None and outer.can_lift(variable.initial)):
            continue
        given = [outer.lift(x) for x in one.given(leaves)]
        value, *states = inline(one.graph, given, outer.b.nodes)
        for stream, state in zip(one.streams, states, strict=True):
            stream.owner.assign(outer.wrap(state))
        if owner is None:
            raise VariableError(
                explain(
                    f"{described(variable)} has no value yet, and {outer.role} cannot give it one.",
                    cure="call the function that makes it once before.",
                )
            )
        owner.creation.check(variable)
        owner.creation.made.append(variable)
        _begin(outer, variable, value)
