"""A graph under construction, and how outer values enter it.

Recordings nest: a function holds regions, which hold regions. A value of an outer recording that
an inner one uses becomes a param of each recording between, so regions are closed (D8). A NumPy
array becomes a capture of the function, by reference (D9).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from wend.base import refusals
from wend.base.context_values import scoped
from wend.base.lazy.dataclass import dataclass
from wend.base.source import Source, user_source
from wend.eager.dispatch import Recorder, Staged, recorder
from wend.eager.raising import checked, is_checked
from wend.ir.builder import new_symbol
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.types import TOKEN, Dim, Shape, Type
from wend.ops import effects
from wend.ops.build import Build
from wend.ops.effects import ErrorClass
from wend.runtime.array_boundary import foreign_boundary
from wend.trace.arrays.concrete_array import ConcreteTracedArray
from wend.trace.arrays.shown_text import ShownField
from wend.trace.arrays.tracer import Tracer
from wend.trace.arrays.view_transforms import may_copy, view_transform_of
from wend.trace.recording.arguments import LeafType, is_zero_dim
from wend.trace.recording.captures import Captures
from wend.trace.recording.carry_type_cache import CarryTypeCache
from wend.trace.recording.frames import FrameStates
from wend.trace.recording.frozen_captures import FrozenCaptures
from wend.trace.recording.known_values import known_value
from wend.trace.recording.mutation_log import MutationLog, MutationSnapshot
from wend.trace.recording.noticed import NoticedNodes
from wend.trace.recording.replacements import copy_with_replacements
from wend.trace.recording.run_errors import refuse_handlers
from wend.trace.recording.unused_checks import unused_checks
from wend.trace.recording.variable_refs import VariableRefs
from wend.trace.sizes.integers import ZERO, DerivedSize, Polynomial, constant, symbolic
from wend.trace.sizes.result_sizes import reshape_sizes, slice_size
from wend.trace.sizes.size_table import SizeTable

# Leads the runs in which a node raises an error to its recorded handler, if there is one, and
# returns whether there is; set where handlers are recorded
divert_errors: Callable[[Recording, Node], bool] = lambda recording, node: False  # noqa: E731


@dataclass(frozen=True)
class EffectState:
    """The effects of a recording up to some point.

    Attributes:
        world: the token of the last effect.
        mutations: the contents of the arrays that were changed in place.
        checks: how many checks of numbers there were.
    """

    world: Value | None
    mutations: MutationSnapshot
    checks: int


class Recording(Recorder):
    """The graph of a function or region under construction, and the parts that record it (D53).

    Args:
        name: the graph's name.
        parent: the enclosing recording.
        is_region: whether it is a region; otherwise it is a function.
        role: a region in the user's words: "the body of while_loop at f.py:3".
        by_value: whether a function's captures are constants.

    Attributes:
        b: the builder, which holds the nodes so far.
        region_params: a region's param for each outer value that it uses.
        captures: the captures of a function.
        variables: the variables that a function uses.
        mutations: the arrays that were changed in place.
        arguments: a function's arguments, which its caller holds.
        carry_types: the carry types with which loops were last traced, shared by all regions.
        trip_counters: integers that loops carry for others, with a callback at the loop's end.
        creation: the variables that a function may create.
        tapes: the gradient tapes opened in it.
        replacements: nodes that must return more results than they were recorded with, for tapes.
        notes: lines for `explain`, each once.
        raises: the exceptions that a run of a function may raise, with the operations that do.
        known: whether values depend on outside arrays and constants alone, as far as asked.
        shown_fields: the values in texts that are not written yet.
        element: the number of the element that a region of `vmap` computes.
        frames: records what the arguments hold where an operation may fail.
        noticed: whether it has nodes that somebody may notice.
        containers: the lists, dicts and instances of a function's caller, if it may change them.
    """

    def __init__(
        self,
        name: str,
        parent: Recording | None,
        *,
        is_region: bool = False,
        role: str | None = None,
        by_value: bool = False,
    ) -> None:
        self.role = role or name
        self.parent = parent
        self.is_region = is_region
        self.is_open = True
        self._outer_of: dict[Value, Value] = {}  # a region's: param -> outer value
        outer_sizes = parent._sizes if parent is not None and is_region else None
        self._sizes: SizeTable = SizeTable(outer_sizes, self._outer_of)
        self.b = Build(name, self._sizes.name_sizes)
        self.region_params: dict[Value, Value] = {}
        self.captures = Captures(self.b, FrozenCaptures(self.b, name) if by_value else None)
        self.variables = VariableRefs(self)
        self.mutations: MutationLog = MutationLog(
            parent.mutations.promotions if parent is not None else []
        )
        self.arguments: list[Tracer] = []
        self._argument_numbers: dict[int, int] = {}
        self.carry_types: CarryTypeCache = (
            parent.carry_types if parent is not None and is_region else CarryTypeCache()
        )
        self.trip_counters: dict[Hashable, tuple[list[Tracer], Callable[[], None]]] = {}
        self.creation: Any = None
        self.tapes: dict[int, Any] = {}
        self.replacements: dict[Node, Sequence[Node]] = {}
        self.refusals = refusals.noted()
        self.notes: dict[str, None] = {}
        self.raises: dict[type[BaseException], str] = {}
        self.known: dict[Value, bool] = {}
        self.contents_read: dict[Value, int] = {}  # by Python, after so many nodes
        self.shown_fields: list[ShownField] = []
        self.element: Tracer | None = None
        self.world_param: Value | None = None
        self._world: Value | None = None
        self._checks: list[Node] = []
        self.frames = FrameStates(self)
        self.noticed = NoticedNodes(self.b.nodes)
        self.containers: Any = None

    # Recording
    def active(self) -> AbstractContextManager[Any]:
        """Record here what runs in a `with` block."""
        return scoped(recorder, self)

    def runs_now(self) -> bool:
        """Return whether operations are executed as they are recorded."""
        return False

    def emit(self, op: Op, operands: Sequence[Any], attrs: dict[str, Any]) -> tuple[Any, ...]:
        if op.view_of == 0 and type(operands[0]) is ConcreteTracedArray:
            operands = [operands[0].lazy_ref(), *operands[1:]]
        values = [self.lift(operand) for operand in operands]
        if op.takes_token:
            self.frames.save()
            node = self.b.emit_node(op, [self.world(), *values], **attrs)
            self._world = node.results[0]
            if op.raises:
                self._note_errors(node)
            return tuple(map(self.wrap, node.results[1:]))
        node = self.b.emit_node(op, values, **attrs)
        if op.raises and not is_checked.get() and divert_errors(self, node):
            self.b.nodes.remove(node)  # it is recorded in the region of what follows
            with checked():
                scope: Any = recorder.get()
                return scope.emit(op, operands, attrs)  # type: ignore[no-any-return]
        if not self.runs_now() and op.may_fail(node):
            self.frames.save_before(node)
        if op.raises and not is_checked.get():
            self._note_errors(node)
        results = tuple(map(self.wrap, node.results))
        if op.view_of == 0 and isinstance(operands[0], Tracer) and results[0].type.shape != ():
            is_view = operands[0].is_contiguous_vector()
            results[0].link_view(operands[0], may_copy=not is_view and may_copy(node))
            transform = view_transform_of(node, is_view=is_view)
            if transform is not None:
                results[0].link_part(operands[0], transform)
        return results

    def _note_errors(self, node: Node) -> None:
        """Note what a node may raise in the run."""
        errors = node.op.errors_of(node)
        if errors:
            self.may_raise(effects.risk(node), errors, node.source)
        if node.op is effects.checked:
            self._checks.append(node)

    def may_raise(
        self, what: str, errors: Iterable[type[BaseException]], source: Source | None = None
    ) -> None:
        """Note that an operation, by default of the line that is running, may raise these.

        Raises:
            StagedRaiseError: a handler that is active would catch one.
        """
        if self.runs_now():
            return
        function = self.function()
        for error in errors:
            function.raises.setdefault(error, what)
        refuse_handlers(what, errors, source or user_source(), in_region_only=function.runs_now())

    def wrap(self, value: Value, *, weak: bool = False) -> Tracer:
        """Return a traced array for a value of this recording."""
        return Tracer(value, self, weak=weak)

    def capture(self, array: Any) -> Any:
        return self.wrap(self.lift(array))

    def known_elements(self, staged: Any, *, of_outside: bool = False) -> np.ndarray | None:
        staged = staged.read()
        if not isinstance(staged, Tracer) or self.runs_now() or not self.can_lift(staged):
            return None
        staged = staged.current()
        scope: Recording = self
        while scope is not staged.recording and scope.mutations.outer_value(staged) is None:
            if scope.parent is None:
                return None
            scope = scope.parent
        value = scope.mutations.outer_value(staged) or staged.value
        return known_value(value, scope, of_outside=of_outside)

    def captured(self, array: np.ndarray) -> Tracer:
        """Return the traced array that stands for an array of outside: one for each array."""
        tracer: Tracer = self.captures.tracer(array, self.wrap)
        tracer.zero_dim = is_zero_dim(array)
        return tracer

    def param(self, type: Type, *, weak: bool = False, name: str | None = None) -> Tracer:
        """Add a param and return it as a traced array."""
        return self.wrap(self.b.param(type, name), weak=weak)

    def wrap_as(self, value: Value, type: LeafType) -> Tracer:
        """Return a traced array for a value of this recording, of a type."""
        tracer = self.wrap(value, weak=type.weak)
        if isinstance(tracer, Tracer):
            tracer.zero_dim, tracer.writeable = type.zero_dim, type.writeable
        return tracer

    def param_of(self, type: LeafType, name: str | None = None) -> Tracer:
        """Add a param of a type and return it as a traced array."""
        return self.wrap_as(self.b.param(type.type, name), type)

    def values(self) -> Iterator[Value]:
        """Yield the params, captures and results of nodes."""
        yield from self.b.params
        yield from (*self.captures.values, *self.region_params.values())
        for node in self.b.nodes:
            yield from node.results

    def function(self) -> Recording:
        """Return the recording of the enclosing function."""
        recording = self
        while recording.is_region and recording.parent is not None:
            recording = recording.parent
        return recording

    # Outer values
    def lift(self, x: Any) -> Value:
        """Return the value here of a traced array, a NumPy array, or a number.

        Raises:
            LeakedValueError: a traced array of a recording that does not enclose this one.
        """
        if isinstance(x, Staged):
            x = x.read()
        if isinstance(x, Tracer):
            return self._lift_tracer(x)
        if isinstance(x, ConcreteTracedArray):
            x.note_read()
        if isinstance(x, np.ndarray) or foreign_boundary(x) is not None:
            return self._lift_array(x)
        return self.b.constant(x)

    def can_lift(self, tracer: Tracer) -> bool:
        """Return whether a traced array belongs to this recording, or to one around it."""
        return tracer.recording is self or self._is_inside(tracer.recording)

    def is_within(self, other: object) -> bool:
        """Return whether this is another recording, or inside it."""
        return other is self or self._is_inside(other)

    def _is_inside(self, other: object) -> bool:
        outer = self.parent
        while outer is not None and outer is not other:
            outer = outer.parent
        return outer is not None and outer.is_open

    def _lift_tracer(self, tracer: Tracer) -> Value:
        if tracer.is_stale:
            with self.active():
                return self.lift(tracer.current())
        changed = self.mutations.outer_value(tracer)
        if changed is not None:
            return changed
        if tracer.recording is self:
            return tracer.value
        if not self._is_inside(tracer.recording):
            raise tracer.leaked()
        if not self.is_region:
            concrete = getattr(tracer, "concrete", None)  # of an array that a tape records
            if self.captures.frozen is not None and concrete is not None:
                return self.captures.frozen.array(concrete)
            return self.captures.capture(id(tracer.value), tracer, tracer.value.type)
        assert self.parent is not None
        return self._region_param(self.parent.lift(tracer))

    def _lift_array(self, array: Any) -> Value:
        if not self.is_region:
            return self.captures.array(array)
        assert self.parent is not None
        return self._region_param(self.parent._lift_array(array))

    def _region_param(self, outer: Value) -> Value:
        if outer not in self.region_params:
            param = self.region_params[outer] = Value(outer.type, name=outer.name)
            self._outer_of[param] = outer
        return self.region_params[outer]

    def outer_value(self, param: Value) -> Value | None:
        """Return the value around a region that one of its params stands for."""
        return self._outer_of.get(param)

    # Sizes that are values
    def size_of(self, number: Any) -> Dim:
        return self._sizes.size(self._polynomial(number).positive_part())

    def size_between(self, start: Any, stop: Any, size: Any) -> Dim:
        return self._sizes.size(slice_size(*map(self._polynomial, (start, stop, size))))

    def note_range(self, x: Any, low: Any, high: Any) -> None:
        """Note that an integer is at least `low` and below `high` in each run of this region."""
        if isinstance(x, Tracer):
            self._sizes.note_range(self.lift(x), self._polynomial(low), self._polynomial(high))

    def size_of_spread(self, sizes: Iterable[Dim]) -> Dim:
        numbers = map(self._sizes.of_dim, sorted(sizes, key=str))
        return self._sizes.size(symbolic(DerivedSize("spread", tuple(numbers))))

    def may_be_equal(self, size: Dim, other: Dim) -> bool:
        """Return whether two sizes may be equal in every run of this region.

        They are not if they vary from trip to trip, or if one is the other plus or minus something,
        at least where they are large.
        """
        if isinstance(size, int) and isinstance(other, int):
            return size == other
        numbers = [self._sizes.of_dim(dim) for dim in (size, other)]
        difference = numbers[1].minus(numbers[0])
        is_resized = difference != ZERO and (
            difference.is_nonnegative
            or ZERO.minus(difference).is_nonnegative
            or numbers[0].differs_at_large_sizes(numbers[1])
        )
        return not is_resized and all(map(self._sizes.is_invariant, numbers))

    def sizes_of_reshape(self, shape: Shape | None, target: Sequence[Any]) -> Shape:
        old_sizes = None if shape is None else tuple(map(self._sizes.of_dim, shape))
        sizes = reshape_sizes(old_sizes, tuple(map(self._polynomial, target)))
        return tuple(new_symbol() if x is None else self._sizes.size(x) for x in sizes)

    def _polynomial(self, x: Any) -> Polynomial:
        if not isinstance(x, Tracer):
            return constant(int(x))
        known = self.known_elements(x, of_outside=True)
        return self._sizes.of_value(self.lift(x)) if known is None else constant(int(known))

    # Arrays changed in place (D7)
    def assign(self, ref: Tracer, value: Value) -> None:
        """Give a traced array another value, here and in the regions recorded inside.

        Raises:
            TypeMismatchError: it stands for an array of outside.
        """
        owner: Any = ref.recording
        owner.function().captures.check_unchanged(ref)
        if ref.recording is self:
            self.mutations.write_local(ref, value, len(self.b.nodes))
        elif self._is_inside(ref.recording):
            self.mutations.write_outer(ref, value)
        else:
            raise ref.leaked()

    def reads_after_change(self, changed: Tracer, other: Value) -> bool:
        """Return whether a value is read after an array's first write, or by the loop of that."""
        first = self.mutations.first_write(changed)
        if self.contents_read.get(other, 0) > first:
            return True
        readers = (k for k, node in enumerate(self.b.nodes) if other in node.operands)
        return any(k >= first or (k == first - 1 and self.b.nodes[k].regions) for k in readers)

    def changes(self, ref: Tracer) -> bool:
        """Return whether this region changes an outer array that it was opened for."""
        return self.mutations.outer_value(ref) not in self.b.params

    def open_for(self, refs: Sequence[Tracer]) -> None:
        """Add params for outer arrays that the region changes in place."""
        for ref in refs:
            ref.mark_views()
            self.mutations.write_outer(ref, self.b.param(ref.value.type))

    def argument_numbers(self) -> dict[int, int]:
        """Return the number of each argument of this function, by its id."""
        if len(self._argument_numbers) != len(self.arguments):
            self._argument_numbers = {id(ref): k for k, ref in enumerate(self.arguments)}
        return self._argument_numbers

    # Variables: references of the function, which regions change like arrays
    def variable_ref(self, variable: Any) -> Tracer:
        """Return the reference of a variable in the enclosing function."""
        if self.is_region and self.parent is not None:
            return self.parent.variable_ref(variable)  # a tape's recording has its own way
        return self.variables.ref(variable)

    def read_variable(self, variable: Any) -> Tracer:
        """Return the current value of a variable."""
        value = self.lift(self.variable_ref(variable))
        if self.function().captures.frozen is None:
            self._notify_tapes(variable)
        return self.wrap(value)

    def assign_variable(self, variable: Any, new: Any) -> None:
        """Record an assignment to a variable."""
        self.function().variables.check_assignable(variable)
        ref = self.variable_ref(variable)
        self.assign(ref, self.b.store(self.lift(ref), self.lift(new), variable=variable.storage))

    def set_variable(self, variable: Any, value: Value) -> None:
        """Make a variable hold the result of a node that has assigned to it."""
        self.function().variables.check_assignable(variable)
        self.assign(self.variable_ref(variable), value)

    def _notify_tapes(self, variable: Any) -> None:
        recording: Recording | None = self
        while recording is not None and not recording.runs_now():
            for tape in recording.tapes.values():
                tape.on_variable_read(variable, recording.lift(recording.variable_ref(variable)))
            recording = recording.parent if recording.is_region else None

    # Effects
    def world(self) -> Value:
        """Return the token of the last effect here."""
        if self._world is None:
            self._world = self.world_param = Value(TOKEN, name="world")
        return self._world

    def set_world(self, token: Value) -> None:
        self._world = token

    def effects(self) -> EffectState:
        """Return the effects so far, to be restored when a part is recorded again."""
        return EffectState(self._world, self.mutations.snapshot(), len(self._checks))

    def restore_effects(self, state: EffectState) -> None:
        """Drop the effects since a state; their nodes become dead."""
        self._world = state.world or self.world_param
        self.frames.restart()
        self.mutations.restore(state.mutations)
        del self._checks[state.checks :]

    def emit_raise(
        self,
        error: ErrorClass,
        text: str | None,
        predicate: Any,
        values: Sequence[Any],
        source: Source | None = None,
    ) -> None:
        """Record that an exception is raised if a predicate holds, by default at this line."""
        outer_source, self.b.source = self.b.source, source
        try:
            self.emit(effects.raise_if, [predicate, *values], {"error": error, "text": text})
        finally:
            self.b.source = outer_source

    def keep_unused_checks(self, results: Sequence[Value]) -> None:
        """Turn the checks of numbers that no result needs into effects: Python raises, too."""
        for node in unused_checks(self._checks, self.b.nodes, results):
            x, *predicates = map(self.wrap, node.operands)
            attrs = node.attrs
            for check in zip(attrs["errors"], attrs["texts"], predicates, strict=True):
                self.emit_raise(*check, [x] if "{" in check[1] else [], node.source)

    def call(self, graph: Graph, operands: Sequence[Value], backend: str | None) -> Node:
        """Record a call of a graph; `backend` is for recordings that run it."""
        del backend
        return self.b.call(graph, operands)

    # Graphs
    def finish_function(self, results: Sequence[Value]) -> Graph:
        """Return the graph of a function.

        Its params are the arguments, the world if it has effects, and the captures.
        """
        self.is_open = False
        params = [*self.b.params, *([self.world_param] if self.world_param else [])]
        results = [*results, *([self.world()] if self.world_param else [])]
        captures = tuple(self.captures.values)
        nodes, results = self._with_replacements(results)
        graph = Graph(self.b.name, (*params, *captures), tuple(nodes), tuple(results), captures)
        self.captures.check(graph)
        return graph

    def finish_region(
        self, results: Sequence[Value], invariants: Sequence[Value], *, has_world: bool
    ) -> Graph:
        """Return the graph of a region.

        Its params end with the world if `has_world`, and one for each invariant.
        """
        self.is_open = False
        assert self.parent is not None
        self.parent.notes.update(self.notes)
        world: list[Value] = []
        if has_world:
            results = [*results, self.world()]
            assert self.world_param is not None
            world = [self.world_param]
        outer = [self.region_params.get(value) or Value(value.type) for value in invariants]
        params = (*self.b.params, *world, *outer)
        nodes, results = self._with_replacements(results)
        return Graph(self.b.name, params, tuple(nodes), tuple(results))

    def _with_replacements(
        self, results: Sequence[Value]
    ) -> tuple[Sequence[Node], Sequence[Value]]:
        """Return the nodes and results, with the replacements of nodes that tapes have extended."""
        if not self.replacements:
            return self.b.nodes, results
        mapping: dict[Value, Value] = {}
        nodes = copy_with_replacements(self.b.nodes, mapping, self.replacements)
        return nodes, [mapping.get(value, value) for value in results]

    def release(self) -> None:
        """Release all arrays and variables, which traced arrays that escape would keep alive."""
        self.arguments, self._argument_numbers, self.containers = [], {}, None
        self.captures.clear()
        self.variables.clear()
        self.mutations.clear()
        self.trip_counters.clear()
        self.shown_fields.clear()


def current() -> Recording | None:
    """Return the innermost recording, if one is under way."""
    recording = recorder.get()
    assert recording is None or isinstance(recording, Recording)
    return recording


def is_traced_now() -> bool:
    """Return whether a function is being traced: its operations are recorded, not run."""
    recording = current()
    return recording is not None and not recording.runs_now()
