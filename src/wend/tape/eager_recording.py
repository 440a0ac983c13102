"""Eager recordings: each operation runs its kernel and adds a node (D13).

One recording per thread serves all tapes that are open there; each value knows which of them follow
it. A value that no tape follows is returned as a plain array.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from wend.backends.compiled_graph import CompiledGraph
from wend.base.config import settings
from wend.base.errors import explain
from wend.base.source import user_source
from wend.eager.dispatch import Staged
from wend.ir.builder import as_tuple
from wend.ir.dtypes import is_supported, unsupported
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import NoGradient, Op
from wend.ir.types import TOKEN, MaybeType, TensorType, Type, is_differentiable
from wend.ops.build import Build
from wend.ops.control import call
from wend.runtime.array_boundary import HOST, to_host
from wend.tape.recorded_array import RecordedArray
from wend.tape.recorded_value import ExecutedNode, HeldValue, RecordedValue
from wend.trace.arrays.tracer import Tracer
from wend.trace.arrays.view_transforms import may_copy
from wend.trace.recording.recording import Recording


class EagerBuild(Build):
    """A builder that executes the operations it is given.

    Derivative rules use it like any other builder. A backward pass is thus built by running it, and
    is recorded if an outer tape follows its operands.
    """

    def __init__(self, owner: EagerRecording) -> None:
        super().__init__("eager")
        self.owner = owner
        self.backend: str | None = None  # for calls; None: the setting

    @contextmanager
    def on_backend(self, backend: str | None) -> Iterator[None]:
        """Run calls on another backend in a block."""
        previous, self.backend = self.backend, backend
        try:
            yield
        finally:
            self.backend = previous

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
        tapes &= owner.active_tapes
        if tapes and isinstance(op.derivative, NoGradient):
            tapes = 0
        assert op.kernel is not None
        output = op.kernel(*concretes, **attrs)
        results = _without_0d_arrays(output if isinstance(output, tuple) else (output,))
        types = _types(op, operands, results, attrs)
        source = (self.source or user_source()) if tapes else None
        return ExecutedNode(op, operands, attrs, (), types, results, owner, tapes, source)

    def _call(
        self, op: Op, operands: Sequence[Value], regions: Sequence[Graph], attrs: dict[str, Any]
    ) -> Node:
        """Run a graph; in its forward form if its operands are followed."""
        callee = regions[0] if op is call else _single_node_graph(op, operands, regions, attrs)
        owner, compiled = self.owner, CompiledGraph.of(callee)
        backend = self.backend or settings().backend
        concretes = [value.concrete for value in operands]  # type: ignore[attr-defined]
        wrt = tuple(k for k, value in enumerate(operands) if owner.follows(value))
        seeded = any(map(is_differentiable, callee.result_types))
        if not wrt or not seeded:
            results = HOST.unshare(compiled.run(backend, concretes), concretes)
            types = _types_of(callee.result_types, results)
            return ExecutedNode(call, operands, {}, (callee,), types, results, owner, 0, None)
        forms = compiled.forward_backward(wrt)
        result_count = len(callee.results)
        forward = CompiledGraph.of(forms.forward)
        forward_results = _without_0d_arrays(forward.run(backend, concretes, shown=result_count))
        results = [
            *HOST.unshare(forward_results[:result_count], concretes),
            *forward_results[result_count:],
        ]
        tapes = 0
        for k in wrt:
            tapes |= operands[k].tapes & owner.active_tapes  # type: ignore[attr-defined]
        types = _types_of(forms.forward.result_types, results)
        source = self.source or user_source()
        ran = ExecutedNode(
            call, operands, {}, (forms.forward,), types, results, owner, tapes, source
        )
        ran.pullback = CallPullback(compiled, wrt, result_count, self.backend)
        return ran.with_results(result_count)


def _without_0d_arrays(values: Sequence[Any]) -> list[Any]:
    """Return the values with NumPy scalars in place of 0-d arrays."""
    return [v[()] if isinstance(v, np.ndarray) and not v.ndim else v for v in values]


class CallPullback:
    """The parts of an executed call that its differentiation needs.

    Attributes:
        compiled: the compiled graph of the callee.
        wrt: the operands that are differentiated.
        result_count: the number of results that precede the residuals.
        backend: where it runs; None: the setting.
    """

    __slots__ = ("backend", "compiled", "result_count", "wrt")

    def __init__(
        self, compiled: CompiledGraph, wrt: tuple[int, ...], count: int, backend: str | None
    ) -> None:
        self.compiled, self.wrt, self.result_count, self.backend = compiled, wrt, count, backend


def _types(
    op: Op, operands: Sequence[Value], results: Sequence[Any], attrs: dict[str, Any]
) -> Sequence[Type]:
    """Return the types of results: actual types of arrays, inferred types of lists and the like."""
    if all(isinstance(x, (np.ndarray, np.generic)) for x in results):
        return [TensorType(x.dtype, x.shape) for x in results]
    inferred = as_tuple(op.infer(*(operand.type for operand in operands), **attrs))
    return _types_of(inferred, results)


def _types_of(declared: Sequence[Type], results: Sequence[Any]) -> Sequence[Type]:
    return [
        TensorType(x.dtype, x.shape) if isinstance(x, (np.ndarray, np.generic)) else type
        for type, x in zip(declared, results, strict=True)
    ]


def _single_node_graph(
    op: Op, operands: Sequence[Value], regions: Sequence[Graph], attrs: dict[str, Any]
) -> Graph:
    """Return a graph of one node."""
    b = Build(op.name)
    params = [b.param(operand.type) for operand in operands]
    return b.finish(b.emit_node(op, params, regions, **attrs).results)


class EagerRecording(Recording):
    """The recording of the tapes that are open in a thread.

    Attributes:
        active_tapes: the tapes that record now, as a bit mask.
        live_tapes: those that can still be asked for a gradient.
        outer: the recording before the first tape was entered.
    """

    def __init__(self) -> None:
        super().__init__("GradientTape", None)
        self.b: EagerBuild = EagerBuild(self)
        self.active_tapes = self.live_tapes = 0
        self.outer: Recording | None = None  # the recording before the first tape was entered
        self.tapes = {}  # the entered tapes, by their bits
        self._last_bit = 0
        self._held_values: weakref.WeakValueDictionary[int, RecordedValue]
        self._held_values = weakref.WeakValueDictionary()
        self._variable_refs: dict[int, tuple[Any, Tracer]] = {}
        self._variable_values: dict[int, tuple[Any, int, RecordedValue]] = {}  # with versions

    def new_bit(self) -> int:
        """Return a bit for a new tape. No bit is reused, since values outlive tapes."""
        self._last_bit = self._last_bit << 1 or 1
        self.live_tapes |= self._last_bit
        return self._last_bit

    def follows(self, value: Value) -> bool:
        """Return whether a tape that records now follows a differentiable value."""
        is_owner = value.owner is self  # type: ignore[attr-defined]
        followed = is_owner and value.tapes & self.active_tapes  # type: ignore[attr-defined]
        return bool(followed) and is_differentiable(value.type)

    def runs_now(self) -> bool:
        return True

    # Recording
    def emit(self, op: Op, operands: Sequence[Any], attrs: dict[str, Any]) -> tuple[Any, ...]:
        values = [self.lift(operand) for operand in operands]
        if op.takes_token:
            self.b.emit_node(op, [self.world(), *values], **attrs)
            return ()
        node = self.b.emit_node(op, values, **attrs)
        results = tuple([self.wrap(value) for value in node.results])
        if op.view_of == 0 and isinstance(operands[0], Tracer) and isinstance(results[0], Tracer):
            results[0].link_view(operands[0], may_copy=may_copy(node))
        return results

    def wrap(self, value: Value, *, weak: bool = False) -> Any:
        """Return a recorded array, or a plain one if no tape follows it.

        `weak` is ignored: it is for traces, and executed calls return strongly typed arrays (D4).
        """
        del weak
        if self.follows(value) or not isinstance(value.type, (TensorType, MaybeType)):
            return RecordedArray(value, self)
        return value.concrete  # type: ignore[attr-defined]

    # Outer values
    def lift(self, x: Any) -> Value:
        if isinstance(x, RecordedArray):
            if x.value.owner is self:
                current = x.current()
                return x.value if current is x else self.lift(current)
            return self.constant(x.concrete)
        if isinstance(x, Tracer):
            if x.recording is self:
                return x.value
            raise x.leaked()
        if isinstance(x, Staged):
            return self.lift(x.read())
        return self.constant(x)

    def constant(self, x: Any) -> RecordedValue:
        """Return a value that no tape follows yet. Its array is read-only while it is used."""
        if not isinstance(x, np.ndarray) or not x.ndim:
            number = np.asarray(x)[()]
            return RecordedValue(TensorType(number.dtype, ()), number, self)
        value = self._held_values.get(id(x))
        if value is None or value.concrete is not x:
            if not is_supported(x.dtype):
                raise unsupported(x.dtype)
            value = HeldValue(TensorType(x.dtype, x.shape), x, self)
            self._held_values[id(x)] = value
        return value

    def capture(self, array: Any) -> Any:
        return to_host(array)

    def _lift_array(self, array: np.ndarray) -> Value:
        return self.constant(array)

    def world(self) -> Value:
        return RecordedValue(TOKEN, None, self)

    def set_world(self, token: Value) -> None:
        """Do nothing: operations have run in order already."""

    def call(self, graph: Graph, operands: Sequence[Value], backend: str | None) -> Node:
        with self.b.on_backend(backend):
            return self.b.call(graph, operands)

    # Arrays changed in place: a recorded array is a reference; its old values stay recorded
    def assign(self, ref: Tracer, value: Value) -> None:
        if ref.recording is not self:
            raise ref.leaked()
        for variable, variable_ref in self._variable_refs.values():
            if variable_ref is ref:
                self.assign_variable(variable, self.wrap(value))
                return
        if ref.value.node is None and not (isinstance(ref, RecordedArray) and ref.is_copy):
            raise TypeError(
                explain(
                    f"{ref!r} is watched: it cannot be changed in place.",
                    cure="change a copy of it: x = x.copy().",
                )
            )
        ref.value = value

    # Variables
    def read_variable(self, variable: Any) -> Any:
        return self.wrap(self._variable_value(variable))

    def variable_ref(self, variable: Any) -> Tracer:
        _, ref = self._variable_refs.setdefault(
            id(variable), (variable, Tracer(self._variable_value(variable), self))
        )
        ref.value = self._variable_value(variable)
        return ref

    def assign_variable(self, variable: Any, new: Any) -> None:
        value = self.lift(new)
        variable.store(value.concrete)  # type: ignore[attr-defined]
        if self.follows(value):
            assert isinstance(value, RecordedValue)
            self._variable_values[id(variable)] = variable, variable.version, value

    def set_variable(self, variable: Any, value: Value) -> None:
        self.assign_variable(variable, self.wrap(value))

    def _variable_value(self, variable: Any) -> RecordedValue:
        """Return the current value of a variable, followed by the tapes that watch it."""
        _, version, value = self._variable_values.get(id(variable), (None, None, None))
        if value is None or version != variable.version:
            array = variable.concrete
            value = RecordedValue(TensorType(array.dtype, array.shape), array, self)
            self._variable_values[id(variable)] = variable, variable.version, value
        if is_differentiable(value.type):
            for bit, tape in self.tapes.items():
                if self.active_tapes & bit and tape.watches(variable):
                    value.tapes |= bit
                    tape.first_read.setdefault(id(variable), (variable, value))
        return value
