"""Recording while running: each operation runs its kernel and adds a node (D13).

One recording per thread serves all tapes that are open there; each value says which of them
follow it. What no tape follows is no part of it: it comes out as a plain array.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from wend.backends.compiled_graph import CompiledGraph
from wend.base.config import settings
from wend.base.errors import TypeMismatchError, explain
from wend.base.source import user_source
from wend.eager.dispatch import Staged
from wend.ir.builder import as_tuple
from wend.ir.dtypes import is_supported
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect, NoGradient, Op
from wend.ir.types import TOKEN, MaybeType, TensorType, Type, is_differentiable
from wend.ops.build import Build
from wend.ops.control import call
from wend.runtime.array_boundary import HOST
from wend.tape.recorded_array import Recorded
from wend.tape.recorded_value import HeldValue, Ran, RecordedValue
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.recording import VIEWS, Recording


class EagerBuild(Build):
    """A builder that runs what it is given.

    Derivative rules speak to it as to any other: so a backward pass is made by running it, and
    is recorded where an outer tape follows what it reads.
    """

    def __init__(self, owner: EagerRecording) -> None:
        super().__init__("eager")
        self.owner = owner
        self.backend: str | None = None  # for calls; None: the setting

    @contextmanager
    def on(self, backend: str | None) -> Iterator[None]:
        """Run calls on another backend."""
        before, self.backend = self.backend, backend
        try:
            yield
        finally:
            self.backend = before

    def emit_node(
        self, op: Op, operands: Sequence[Value], regions: Sequence[Graph] = (), **attrs: Any
    ) -> Node:
        if op.regions:
            return self._call(op, operands, regions, attrs)
        owner, tapes, concretes = self.owner, 0, []
        for value in operands:
            concretes.append(value.concrete)  # type: ignore[attr-defined]
            if value.owner is owner:  # type: ignore[attr-defined]
                tapes |= value.tapes  # type: ignore[attr-defined]
        tapes &= owner.listening
        if tapes and isinstance(op.derivative, NoGradient):
            tapes = 0
        assert op.kernel is not None
        given = op.kernel(*concretes, **attrs)
        found = _without_0d_arrays(given if isinstance(given, tuple) else (given,))
        types = _types(op, operands, found, attrs)
        source = (self.source or user_source()) if tapes else None
        return Ran(op, operands, attrs, (), types, found, owner, tapes, source)

    def _call(
        self, op: Op, operands: Sequence[Value], regions: Sequence[Graph], attrs: dict[str, Any]
    ) -> Node:
        """Run a graph, by its forward form if its operands are followed."""
        callee = regions[0] if op is call else _alone(op, operands, regions, attrs)
        owner, compiled = self.owner, CompiledGraph.of(callee)
        backend = self.backend or settings().backend
        concretes = [value.concrete for value in operands]  # type: ignore[attr-defined]
        wrt = tuple(k for k, value in enumerate(operands) if owner.follows(value))
        seeded = any(map(is_differentiable, callee.result_types))
        if not wrt or not seeded:
            found = HOST.own(compiled.run(backend, concretes), concretes)
            types = _types_of(callee.result_types, found)
            return Ran(call, operands, {}, (callee,), types, found, owner, 0, None)
        forms = compiled.forward_backward(wrt)
        own = len(callee.results)
        forward = CompiledGraph.of(forms.forward)
        everything = _without_0d_arrays(forward.run(backend, concretes, shown=own))
        found = [*HOST.own(everything[:own], concretes), *everything[own:]]
        tapes = 0
        for k in wrt:
            tapes |= operands[k].tapes & owner.listening  # type: ignore[attr-defined]
        types = _types_of(forms.forward.result_types, found)
        source = self.source or user_source()
        ran = Ran(call, operands, {}, (forms.forward,), types, found, owner, tapes, source)
        ran.pullback = CallPullback(compiled, wrt, own, self.backend)
        return ran.shown(own)


def _without_0d_arrays(values: Sequence[Any]) -> list[Any]:
    """Return the values, NumPy scalars in place of 0-d arrays."""
    return [v[()] if isinstance(v, np.ndarray) and not v.ndim else v for v in values]


class CallPullback:
    """How a call that has run is differentiated: `own` results come before its residuals."""

    __slots__ = ("backend", "compiled", "own", "wrt")

    def __init__(
        self, compiled: CompiledGraph, wrt: tuple[int, ...], own: int, backend: str | None
    ) -> None:
        self.compiled, self.wrt, self.own, self.backend = compiled, wrt, own, backend


def _types(
    op: Op, operands: Sequence[Value], found: Sequence[Any], attrs: dict[str, Any]
) -> Sequence[Type]:
    """The types of results: of arrays what they are; of lists and the like what the op says."""
    if all(isinstance(x, (np.ndarray, np.generic)) for x in found):
        return [TensorType(x.dtype, x.shape) for x in found]
    inferred = as_tuple(op.infer(*(operand.type for operand in operands), **attrs))
    return _types_of(inferred, found)


def _types_of(declared: Sequence[Type], found: Sequence[Any]) -> Sequence[Type]:
    return [
        TensorType(x.dtype, x.shape) if isinstance(x, (np.ndarray, np.generic)) else type
        for type, x in zip(declared, found, strict=True)
    ]


def _alone(
    op: Op, operands: Sequence[Value], regions: Sequence[Graph], attrs: dict[str, Any]
) -> Graph:
    """A graph of one node."""
    b = Build(op.name)
    params = [b.param(operand.type) for operand in operands]
    return b.finish(b.emit_node(op, params, regions, **attrs).results)


class EagerRecording(Recording):
    """What the tapes that are open in a thread record.

    Attributes:
        listening: the tapes that record now, a bit for each.
        live: those that a gradient may still be asked of.
    """

    def __init__(self) -> None:
        super().__init__("GradientTape", None)
        self.b: EagerBuild = EagerBuild(self)
        self.listening = self.live = 0
        self.before: Recording | None = None  # what recorded when the first tape was entered
        self.tapes = {}  # those that are entered, by their bit
        self._newest = 0
        self._held: weakref.WeakValueDictionary[int, RecordedValue]
        self._held = weakref.WeakValueDictionary()
        self._variable_refs: dict[int, tuple[Any, Tracer]] = {}
        self._contents: dict[int, tuple[Any, int, RecordedValue]] = {}  # of variables

    def new_bit(self) -> int:
        """A bit for a new tape; none is used twice, for values outlive tapes."""
        self._newest = self._newest << 1 or 1
        self.live |= self._newest
        return self._newest

    def follows(self, value: Value) -> bool:
        """Whether a tape that records now follows a value that can be differentiated."""
        mine = value.owner is self  # type: ignore[attr-defined]
        followed = mine and value.tapes & self.listening  # type: ignore[attr-defined]
        return bool(followed) and is_differentiable(value.type)

    def runs_now(self) -> bool:
        return True

    # Recording
    def emit(self, op: Op, operands: Sequence[Any], attrs: dict[str, Any]) -> tuple[Any, ...]:
        values = [self.lift(operand) for operand in operands]
        if op.effect is Effect.WORLD:
            self.b.emit_node(op, [self.world(), *values], **attrs)
            return ()
        node = self.b.emit_node(op, values, **attrs)
        results = tuple([self.wrap(value) for value in node.results])
        if op in VIEWS and isinstance(operands[0], Tracer) and isinstance(results[0], Tracer):
            results[0].look_at(operands[0])
        return results

    def wrap(self, value: Value, *, weak: bool = False) -> Any:
        """A recorded array; a plain one where no tape follows it.

        `weak` is for traces: what a call gives has a dtype of its own when it has run (D4).
        """
        del weak
        if self.follows(value) or not isinstance(value.type, (TensorType, MaybeType)):
            return Recorded(value, self)
        return value.concrete  # type: ignore[attr-defined]

    # Outer values
    def lift(self, x: Any) -> Value:
        if isinstance(x, Recorded):
            if x.value.owner is self:
                found = x.current()
                return x.value if found is x else self.lift(found)
            return self.constant(x.concrete)
        if isinstance(x, Tracer):
            if x.recording is self:
                return x.value
            raise x.leaked()
        if isinstance(x, Staged):
            return self.lift(x.read())
        return self.constant(x)

    def constant(self, x: Any) -> RecordedValue:
        """A value that no tape follows yet. An array is read-only as long as it is used."""
        if not isinstance(x, np.ndarray) or not x.ndim:
            number = np.asarray(x)[()]
            return RecordedValue(TensorType(number.dtype, ()), number, self)
        found = self._held.get(id(x))
        if found is None or found.concrete is not x:
            if not is_supported(x.dtype):
                raise TypeMismatchError(f"arrays of dtype {x.dtype} cannot be used in a graph")
            found = HeldValue(TensorType(x.dtype, x.shape), x, self)
            self._held[id(x)] = found
        return found

    def _lift_array(self, array: np.ndarray) -> Value:
        return self.constant(array)

    def world(self) -> Value:
        return RecordedValue(TOKEN, None, self)

    def set_world(self, token: Value) -> None:
        """What has run is in order already."""

    def call(self, graph: Graph, operands: Sequence[Value], backend: str | None) -> Node:
        with self.b.on(backend):
            return self.b.call(graph, operands)

    # Arrays changed in place: a recorded array is a box, whose old contents stay recorded
    def assign(self, ref: Tracer, value: Value) -> None:
        if ref.recording is not self:
            raise ref.leaked()
        for variable, own in self._variable_refs.values():
            if own is ref:
                self.assign_variable(variable, self.wrap(value))
                return
        if ref.value.node is None and not (isinstance(ref, Recorded) and ref.is_copy):
            raise TypeError(
                explain(
                    f"{ref!r} is watched: it cannot be changed in place.",
                    cure="change a copy of it: x = x.copy().",
                )
            )
        ref.value = value

    # Variables
    def read_variable(self, variable: Any) -> Any:
        return self.wrap(self._content(variable))

    def variable_ref(self, variable: Any) -> Tracer:
        _, ref = self._variable_refs.setdefault(
            id(variable), (variable, Tracer(self._content(variable), self))
        )
        ref.value = self._content(variable)
        return ref

    def assign_variable(self, variable: Any, new: Any) -> None:
        value = self.lift(new)
        variable.store(value.concrete)  # type: ignore[attr-defined]
        if self.follows(value):
            assert isinstance(value, RecordedValue)
            self._contents[id(variable)] = variable, variable.version, value

    def hold_variable(self, variable: Any, value: Value) -> None:
        self.assign_variable(variable, self.wrap(value))

    def _content(self, variable: Any) -> RecordedValue:
        """What a variable holds now, followed by the tapes that watch it."""
        _, version, value = self._contents.get(id(variable), (None, None, None))
        if value is None or version != variable.version:
            array = variable.concrete
            value = RecordedValue(TensorType(array.dtype, array.shape), array, self)
            self._contents[id(variable)] = variable, variable.version, value
        if is_differentiable(value.type):
            for bit, tape in self.tapes.items():
                if self.listening & bit and tape.watches(variable):
                    value.tapes |= bit
                    tape.first_read.setdefault(id(variable), (variable, value))
        return value
