"""A graph that is being recorded, and how outer values come into it.

Recordings nest: a function holds regions, which hold regions. A value of an outer recording that
an inner one uses becomes a param of each recording on the way, so regions are closed (D8). A
NumPy array becomes a capture of the function, by reference (D9).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from wend.base.context_values import scoped
from wend.base.errors import TypeMismatchError, explain
from wend.eager.dispatch import Recorder, Staged, recorder
from wend.ir.builder import new_symbol
from wend.ir.dtypes import is_supported
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect, Op
from wend.ir.types import TOKEN, Dim, Shape, TensorType, Type
from wend.ops import elementwise, shaping
from wend.ops.build import Build
from wend.trace.arrays.captured_reads import CapturedArrayReads
from wend.trace.arrays.concrete_array import ConcreteTracedArray
from wend.trace.arrays.tracer import Tracer
from wend.trace.arrays.view_transforms import view_transform_of
from wend.trace.recording.carry_types import CarryTypeCache
from wend.trace.recording.frozen_captures import FrozenCaptures
from wend.trace.recording.replacements import copy_with_replacements
from wend.trace.sizes.integers import (
    ZERO,
    DerivedSize,
    Number,
    constant,
    one,
)
from wend.trace.sizes.result_sizes import cut, reshaped
from wend.trace.sizes.size_table import SizeTable


@dataclass(frozen=True)
class EffectState:
    """What a recording has done by some point: to the world, and to arrays in place.

    Attributes:
        world: the token of the last effect.
        held: what its own changed arrays hold, by id.
        refs: the outer arrays it has changed, and what they hold here.
        promotions: the arrays made in the trace that have become traced, with their boxes.
    """

    world: Value | None
    held: dict[int, Value]
    refs: dict[int, tuple[Tracer, Value]]
    promotions: tuple[tuple[ConcreteTracedArray, Tracer], ...]


class Recording(Recorder):
    """The graph of a function (`is_region` False) or of a region that is being recorded.

    `role` is what a region is in the user's words: "the body of while_loop at f.py:3";
    `by_value`: a function's captures are constants.
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
        self._entered: dict[Value, Value] = {}  # a region's: param -> outer value
        self._sizes: SizeTable = SizeTable(
            parent._sizes if parent and is_region else None, self._entered
        )
        self.b = Build(name, self._sizes.named)
        self.frozen = FrozenCaptures(self.b, name) if by_value else None  # a function's
        self.role = role or name
        self.parent = parent
        self.is_region = is_region
        self.is_open = True
        self.captured: dict[Value, Value] = {}  # a region's: outer value -> param
        self.bindings: list[Any] = []  # a function's: arrays and outer tracers it captures
        self.captures: list[Value] = []
        self._array_params: dict[Hashable, Value] = {}
        self._refs: dict[int, tuple[Tracer, Value]] = {}  # outer arrays changed in place here
        self._changed: dict[int, tuple[Tracer, Value]] = {}  # own ones, with what they held first
        self._first_changed: dict[int, int] = {}  # how many nodes there were then
        # Arrays made in the trace that have become traced, and those that the graph has read
        self.promotions: list[tuple[ConcreteTracedArray, Tracer]] = (
            parent.promotions if parent else []
        )
        self._read_arrays: list[ConcreteTracedArray] = []
        self._reads = CapturedArrayReads()  # those of outside
        self.variables: dict[int, tuple[Any, Tracer]] = {}  # a function's, with what they hold
        self.creation: Any = None  # what a function may make of variables
        self.tapes: dict[int, Any] = {}  # that were opened here
        self.replacements: dict[Node, Sequence[Node]] = {}  # nodes that must give more (see tapes)
        self.arguments: list[Tracer] = []  # a function's, which its caller holds
        # What the loops in it settled on when it was traced before; a branch's are those around it
        self.carry_types: CarryTypeCache = (
            parent.carry_types if parent is not None and is_region else CarryTypeCache()
        )
        # Integers that its loops carry for who asks, and what that is told of their end
        self.counted: dict[Hashable, tuple[list[Tracer], Callable[[], None]]] = {}
        self.notes: dict[str, None] = {}  # what `explain` tells of this trace, each once
        self._world: Value | None = None
        self.world_param: Value | None = None

    # Recording
    def active(self) -> AbstractContextManager[Any]:
        """Record what runs in this block here."""
        return scoped(recorder, self)

    def runs_now(self) -> bool:
        """Whether operations run as they are recorded."""
        return False

    def emit(self, op: Op, operands: Sequence[Any], attrs: dict[str, Any]) -> tuple[Any, ...]:
        if op in VIEWS and type(operands[0]) is ConcreteTracedArray:
            operands = [operands[0].lazy_ref(), *operands[1:]]
        values = [self.lift(operand) for operand in operands]
        if op.effect is Effect.WORLD:
            node = self.b.emit_node(op, [self.world(), *values], **attrs)
            self._world = node.results[0]
            return tuple(map(self.wrap, node.results[1:]))
        node = self.b.emit_node(op, values, **attrs)
        results = tuple(map(self.wrap, node.results))
        if op in VIEWS and isinstance(operands[0], Tracer) and results[0].type.shape != ():
            results[0].look_at(operands[0])
            if (how := view_transform_of(node, is_view=operands[0].is_in_a_row())) is not None:
                results[0].is_part(operands[0], how)
        return results

    def wrap(self, value: Value, *, weak: bool = False) -> Tracer:
        """A value of this recording as a traced array."""
        return Tracer(value, self, weak=weak)

    def param(self, type: Type, *, weak: bool = False, name: str | None = None) -> Tracer:
        """A new param as a traced array."""
        return self.wrap(self.b.param(type, name), weak=weak)

    def values(self) -> Iterator[Value]:
        """What there is here: params, captures and the results of nodes."""
        yield from self.b.params
        yield from (*self.captures, *self.captured.values())
        for node in self.b.nodes:
            yield from node.results

    # Outer values
    def lift(self, x: Any) -> Value:
        """The value here of a traced array, of a NumPy array, or of a number.

        Raises:
            LeakedValueError: a traced array of a recording that does not enclose this one.
        """
        if isinstance(x, Staged):
            x = x.read()
        if isinstance(x, Tracer):
            return self._lift_tracer(x)
        if isinstance(x, np.ndarray):
            return self._lift_array(x)
        return self.b.constant(x)

    def can_lift(self, tracer: Tracer) -> bool:
        """Whether a traced array belongs to this recording, or to one around it."""
        return tracer.recording is self or self._encloses(tracer.recording)

    def _lift_tracer(self, tracer: Tracer) -> Value:
        with self.active():
            found = tracer.current()
        if found is not tracer:
            return self.lift(found)
        if id(tracer) in self._refs:
            return self._refs[id(tracer)][1]
        if tracer.recording is self:
            return tracer.value
        if not self._encloses(tracer.recording):
            raise tracer.leaked()
        if not self.is_region:
            numbers = getattr(tracer, "concrete", None)  # of one that a tape follows
            if self.frozen is not None and numbers is not None:
                return self.frozen.array(numbers)
            return self._capture(id(tracer.value), tracer, tracer.value.type)
        assert self.parent is not None
        return self._enter(self.parent.lift(tracer))

    def is_in(self, other: object) -> bool:
        """Whether this is another recording, or inside it."""
        return other is self or self._encloses(other)

    def _encloses(self, other: object) -> bool:
        outer = self.parent
        while outer is not None and outer is not other:
            outer = outer.parent
        return outer is not None and outer.is_open

    def _lift_array(self, array: np.ndarray) -> Value:
        if isinstance(array, ConcreteTracedArray):
            array.note_read()
        return self._lift_plain(array)

    def _lift_plain(self, array: np.ndarray) -> Value:
        if self.is_region:
            assert self.parent is not None
            return self._enter(self.parent._lift_plain(array))
        if not is_supported(array.dtype):
            raise TypeMismatchError(f"arrays of dtype {array.dtype} cannot be used in a graph")
        if self.frozen is not None:
            return self.frozen.array(array)
        key = array.identity if isinstance(array, ConcreteTracedArray) else id(array)
        value = self._capture(key, array, TensorType(array.dtype, array.shape))
        if isinstance(value.type, TensorType) and value.type.shape != array.shape:
            raise TypeMismatchError(
                explain(
                    "the shape of an array that Python knows was changed in place after the graph "
                    f"had read it as {value.type}.",
                    cure="make another: x = x.reshape(shape).",
                )
            )
        return value

    def _enter(self, outer: Value) -> Value:
        if outer not in self.captured:
            self.captured[outer] = Value(outer.type, name=outer.name)
            self._entered[self.captured[outer]] = outer
        return self.captured[outer]

    def outer_value(self, param: Value) -> Value | None:
        """The value around a region that one of its params stands for."""
        return self._entered.get(param)

    def _capture(self, key: Hashable, binding: Any, type: Type) -> Value:
        # The binding is kept, so its id stays its own.
        if key not in self._array_params:
            if isinstance(binding, ConcreteTracedArray):
                self._read_arrays.append(binding)
                self._array_params[key] = self._known(binding, type)
            else:
                value = self._array_params[key] = self._new_capture(binding, type)
                if isinstance(binding, np.ndarray):
                    self._reads.note(value, binding)
        return self._array_params[key]

    def _known(self, array: ConcreteTracedArray, type: Type) -> Value:
        """The numbers that an array has: made at each call where it is large and they are one."""
        number = array.only_number()
        if number is None:
            return self._new_capture(np.array(array), type)
        return self.b.broadcast_to(self.b.constant(number, array.dtype), array.shape)

    def _new_capture(self, binding: Any, type: Type) -> Value:
        value = Value(type)
        self.captures.append(value)
        self.bindings.append(binding)
        return value

    # Sizes that are values
    def size_of(self, number: Any) -> Dim:
        return self._sizes.size(self._number(number).positive_part())

    def size_between(self, start: Any, stop: Any, size: Any) -> Dim:
        return self._sizes.size(cut(*map(self._number, (start, stop, size))))

    def size_of_spread(self, sizes: Iterable[Dim]) -> Dim:
        numbers = map(self._sizes.of_dim, sorted(sizes, key=str))
        return self._sizes.size(one(DerivedSize("spread", tuple(numbers))))

    def may_be_one(self, size: Dim, other: Dim) -> bool:
        """Whether two sizes may turn out to be one in every run of this region.

        Not those that differ in each trip of a loop, nor where one is made greater or smaller.
        """
        if isinstance(size, int) and isinstance(other, int):
            return size == other
        numbers = [self._sizes.of_dim(dim) for dim in (size, other)]
        more = numbers[1].minus(numbers[0])
        is_resized = more != ZERO and (more.is_size or ZERO.minus(more).is_size)
        return not is_resized and all(map(self._sizes.is_steady, numbers))

    def sizes_of_reshape(self, shape: Shape | None, wanted: Sequence[Any]) -> Shape:
        whole = None if shape is None else tuple(map(self._sizes.of_dim, shape))
        found = reshaped(whole, tuple(map(self._number, wanted)))
        return tuple(new_symbol() if x is None else self._sizes.size(x) for x in found)

    def _number(self, x: Any) -> Number:
        return self._sizes.number(self.lift(x)) if isinstance(x, Tracer) else constant(int(x))

    # Arrays changed in place (D7): a traced array is a box, and a region has its own contents
    def assign(self, ref: Tracer, value: Value) -> None:
        """Put another value into a traced array, here and in what is recorded inside."""
        if ref.recording is self:
            self._changed.setdefault(id(ref), (ref, ref.value))
            self._first_changed.setdefault(id(ref), len(self.b.nodes))
            ref.value = value
        elif self._encloses(ref.recording):
            self._refs[id(ref)] = (ref, value)
        else:
            raise ref.leaked()

    def reads_after_change(self, changed: Tracer, other: Value) -> bool:
        """Whether a value is read after an array was first changed, or by the loop that does so."""
        first = self._first_changed.get(id(changed), 0)
        readers = (k for k, node in enumerate(self.b.nodes) if other in node.operands)
        return any(k >= first or (k == first - 1 and self.b.nodes[k].regions) for k in readers)

    def changed_refs(self) -> list[Tracer]:
        """The outer arrays that this region changes, or was opened for."""
        return [ref for ref, _ in self._refs.values()]

    def changes(self, ref: Tracer) -> bool:
        """Whether this region changes an outer array that it was opened for."""
        return self._refs[id(ref)][1] not in self.b.params

    def open_for(self, refs: Sequence[Tracer]) -> None:
        """Make params for outer arrays that the region changes in place."""
        for ref in refs:
            ref.mark_views()
            self._refs[id(ref)] = (ref, self.b.param(ref.value.type))

    # Variables: boxes of the function, which change when it does
    def read_variable(self, variable: Any) -> Tracer:
        """What a variable holds here and now."""
        value = self.lift(self.variable_ref(variable))
        if self._function().frozen is None:
            self._tell_tapes(variable)
        return self.wrap(value)

    def assign_variable(self, variable: Any, new: Any) -> None:
        """Let a variable hold something else from here on."""
        self._check_assignable(variable)
        ref = self.variable_ref(variable)
        self.assign(ref, self.b.store(self.lift(ref), self.lift(new), variable=variable.place))

    def hold_variable(self, variable: Any, value: Value) -> None:
        """Let a variable hold what a node that assigned to it gives."""
        self._check_assignable(variable)
        self.assign(self.variable_ref(variable), value)

    def _check_assignable(self, variable: Any) -> None:
        frozen = self._function().frozen
        if frozen is not None:
            raise frozen.assigned(variable)

    def variable_ref(self, variable: Any) -> Tracer:
        """The box of a variable, in the function that this belongs to."""
        if self.is_region:
            assert self.parent is not None
            return self.parent.variable_ref(variable)
        if id(variable) not in self.variables:
            first = variable.initial
            if first is not None and self.can_lift(first):
                value = self.lift(first)
            elif self.frozen is not None:
                value = self.frozen.variable(variable, self._is_assigned_around)
            else:
                value = self._capture(id(variable), variable, variable.type)
            self.variables[id(variable)] = variable, self.wrap(value)
        return self.variables[id(variable)][1]

    def _function(self) -> Recording:
        """The recording of the function that this is a part of."""
        recording = self
        while recording.is_region and recording.parent is not None:
            recording = recording.parent
        return recording

    def _is_assigned_around(self, variable: Any) -> bool:
        """Whether a function around this one that is being recorded has assigned to a variable."""
        here = self.parent
        while here is not None and not here.runs_now():
            function = here._function()
            _, ref = function.variables.get(id(variable), (None, None))
            if ref is not None and function.frozen is None:
                first = function._array_params[id(variable)]
                if id(ref) in here._refs or ref.value is not first:
                    return True
            here = here.parent
        return False

    def pass_variable(self, variable: Any, ref: Tracer) -> None:
        """Let an argument be what a variable holds, that stands for the one that is passed."""
        self.variables[id(variable)] = variable, ref
        self._array_params[id(variable)] = ref.value

    def assigned_variables(self) -> list[tuple[Any, Value]]:
        """The variables that the function changes, with what they hold in the end."""
        if self.frozen is not None:
            return []
        params = self._array_params
        found = self.variables.values()
        own = {id(param) for param in self.b.params}  # of variables that are passed
        changed = [(v, ref.value) for v, ref in found if ref.value != params.get(id(v))]
        return [(v, value) for v, value in changed if id(params.get(id(v))) not in own]

    def _tell_tapes(self, variable: Any) -> None:
        here: Recording | None = self
        while here is not None and not here.runs_now():
            for tape in here.tapes.values():
                tape.note(variable, here.lift(here.variable_ref(variable)))
            here = here.parent if here.is_region else None

    # Effects
    def world(self) -> Value:
        """The token of the last effect here."""
        if self._world is None:
            self._world = self.world_param = Value(TOKEN, name="world")
        return self._world

    def set_world(self, token: Value) -> None:
        self._world = token

    def effects(self) -> EffectState:
        """The effects so far, to go back to where a part is recorded again."""
        held = {key: ref.value for key, (ref, _) in self._changed.items()}
        return EffectState(self._world, held, dict(self._refs), tuple(self.promotions))

    def restore_effects(self, then: EffectState) -> None:
        """Forget the effects since `then`: their nodes are read by nobody."""
        self._world = then.world or self.world_param
        for key, (ref, first) in self._changed.items():
            ref.value = then.held.get(key, first)
        self._refs = dict(then.refs)
        for array, _ in self.promotions:
            array.become(None)
        for array, ref in then.promotions:
            array.become(ref)
        self.promotions[:] = then.promotions

    def call(self, graph: Graph, operands: Sequence[Value], backend: str | None) -> Node:
        """Record a call of a graph; `backend` is for recordings that run it."""
        del backend
        return self.b.call(graph, operands)

    # Graphs
    def finish_function(self, results: Sequence[Value]) -> Graph:
        """The graph of a function: params, the world if it has effects, captures."""
        self.is_open = False
        self._read_arrays.clear()
        params = [*self.b.params, *([self.world_param] if self.world_param else [])]
        results = [*results, *([self.world()] if self.world_param else [])]
        captures = tuple(self.captures)
        nodes, results = self._with_replacements(results)
        graph = Graph(self.b.name, (*params, *captures), tuple(nodes), tuple(results), captures)
        self._reads.check(graph)
        return graph

    def let_go(self) -> None:
        """Hold no array or variable any more: whoever held traced arrays would keep them alive."""
        self.bindings, self.arguments, self.promotions, self._read_arrays = [], [], [], []
        self.frozen = None
        self._reads.clear()
        for known in (self.variables, self._changed, self._refs, self.counted):
            known.clear()

    def _with_replacements(
        self, results: Sequence[Value]
    ) -> tuple[Sequence[Node], Sequence[Value]]:
        """The nodes and results, with what stands for nodes that tapes ask more of."""
        if not self.replacements:
            return self.b.nodes, results
        mapping: dict[Value, Value] = {}
        nodes = copy_with_replacements(self.b.nodes, mapping, self.replacements)
        return nodes, [mapping.get(value, value) for value in results]

    def finish_region(
        self, results: Sequence[Value], invariants: Sequence[Value], *, has_world: bool
    ) -> Graph:
        """The graph of a region: its params, the world if asked, then one for each invariant."""
        self.is_open = False
        assert self.parent is not None
        self.parent.notes.update(self.notes)
        world: list[Value] = []
        if has_world:
            results = [*results, self.world()]
            assert self.world_param is not None
            world = [self.world_param]
        entered = [self.captured.get(outer) or Value(outer.type) for outer in invariants]
        params = (*self.b.params, *world, *entered)
        nodes, results = self._with_replacements(results)
        return Graph(self.b.name, params, tuple(nodes), tuple(results))


# Operations whose result NumPy would let share memory with the first operand.
VIEWS = frozenset(
    {
        shaping.slice_,
        shaping.narrow,
        shaping.reshape,
        shaping.transpose,
        shaping.broadcast_to,
        elementwise.real,
        elementwise.imag,
    }
)


def current() -> Recording | None:
    """The innermost recording, if one is under way."""
    found = recorder.get()
    assert found is None or isinstance(found, Recording)
    return found
