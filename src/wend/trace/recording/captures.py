"""Captures: the arrays and outer values that a function reads, as params of its graph (D9)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from wend.base.errors import TypeMismatchError, change_of_outside, explain
from wend.base.source import at, user_source
from wend.ir.dtypes import is_supported, unsupported
from wend.ir.graph import Graph, Value
from wend.ir.types import TensorType, Type
from wend.ops.build import Build
from wend.runtime.array_boundary import boundary_of, check_no_subclass, to_host
from wend.trace.arrays.captured_reads import CapturedArrayReads
from wend.trace.arrays.concrete_array import ConcreteTracedArray
from wend.trace.recording.frozen_captures import FrozenCaptures


class Captures:
    """The captures of one function under construction.

    Arrays are captured by reference, each once; with `frozen`, as constants.

    Attributes:
        values: the params that stand for captures.
        bindings: what each of them stands for: an array, a variable, or an outer tracer.
        frozen: the constants of a function that captures by value; None: by reference.
    """

    def __init__(self, b: Build, frozen: FrozenCaptures | None) -> None:
        self._b = b
        self.frozen = frozen
        self.values: list[Value] = []
        self.bindings: list[Any] = []
        self._by_key: dict[Hashable, Value] = {}
        self._concrete_arrays: list[ConcreteTracedArray] = []  # kept alive: ids are keys
        self._array_reads = CapturedArrayReads()
        self._tracers: dict[int, Any] = {}  # of outside arrays that captured code has read, by id
        self._binding_of: dict[Value, Any] = {}
        self._of_outside: set[Value] = set()

    def tracer(self, array: Any, wrap: Callable[[Value], Any]) -> Any:
        """Return the traced array that stands for an array of outside: one for each array."""
        if id(array) not in self._tracers:
            self._tracers[id(array)] = wrap(self.array(array))
        return self._tracers[id(array)]

    def check_unchanged(self, tracer: Any) -> None:
        """Refuse to change a traced array that stands for an array of outside.

        Raises:
            TypeMismatchError: the array would change when the function is traced, or never.
        """
        if any(tracer is outside for outside in self._tracers.values()):
            raise change_of_outside(
                self.binding_of(tracer.value),
                f"an array that was made outside the function, {tracer.type}, is changed in "
                f"place{at(user_source())}.",
            )

    def binding_of(self, value: Value) -> Any:
        """Return what a value stands for, or None."""
        return self._binding_of.get(value)

    def is_of_outside(self, value: Value) -> bool:
        """Return whether a value stands for an array of outside, which may change later."""
        return value in self._of_outside

    def array(self, array: Any) -> Value:
        """Return the value of an array of NumPy or of a backend.

        Raises:
            TypeMismatchError: its dtype is not supported, or its shape was changed in place after
                the graph read it.
        """
        check_no_subclass(array)
        type = boundary_of(array).type_of(array)
        if not is_supported(type.dtype):
            raise unsupported(type.dtype)
        if self.frozen is not None:
            return self.frozen.array(to_host(array))
        key = array.identity if isinstance(array, ConcreteTracedArray) else id(array)
        value = self.capture(key, array, type)
        if isinstance(value.type, TensorType) and value.type.shape != type.shape:
            raise TypeMismatchError(
                explain(
                    "the shape of a concrete array was changed in place after the graph "
                    f"had read it as {value.type}.",
                    cure="make another: x = x.reshape(shape).",
                )
            )
        return value

    def capture(self, key: Hashable, binding: Any, type: Type) -> Value:
        """Return the value of a binding, which is captured at its first use and kept alive."""
        if key not in self._by_key:
            if isinstance(binding, ConcreteTracedArray):
                self._concrete_arrays.append(binding)
                self._by_key[key] = self._lift_concrete(binding, type)
            else:
                value = self._by_key[key] = self._new(binding, type)
                self._of_outside.add(value)
                if isinstance(binding, np.ndarray):
                    self._array_reads.note(value, binding)
        return self._by_key[key]

    def by_key(self, key: Hashable) -> Value | None:
        """Return the value captured under a key, or None."""
        return self._by_key.get(key)

    def substitute(self, key: Hashable, value: Value) -> None:
        """Make a value stand for what would be captured under a key."""
        self._by_key[key] = value

    def _lift_concrete(self, array: ConcreteTracedArray, type: Type) -> Value:
        """Return the value of an array made in the trace; a uniform array becomes a broadcast."""
        element = array.uniform_value()
        if element is None:
            return self._new(np.array(array), type)
        return self._b.broadcast_to(self._b.constant(element, array.dtype), array.shape)

    def _new(self, binding: Any, type: Type) -> Value:
        value = Value(type)
        self.values.append(value)
        self.bindings.append(binding)
        self._binding_of[value] = binding
        return value

    def check(self, graph: Graph) -> None:
        """Refuse captured arrays that were changed while the function was traced."""
        self._concrete_arrays.clear()
        self._array_reads.check(graph)

    def clear(self) -> None:
        """Release all arrays."""
        self.bindings, self._concrete_arrays = [], []
        self._tracers.clear()
        self._binding_of.clear()
        self.frozen = None
        self._array_reads.clear()
