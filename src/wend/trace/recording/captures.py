"""Captures: the arrays and outer values that a function reads, as params of its graph (D9)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from wend.base.errors import TypeMismatchError, explain
from wend.ir.dtypes import is_supported
from wend.ir.graph import Graph, Value
from wend.ir.types import TensorType, Type
from wend.ops.build import Build
from wend.runtime.array_boundary import boundary_of, to_host
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
        self._concrete_arrays: list[ConcreteTracedArray] = []  # held, so that their ids stay theirs
        self._array_reads = CapturedArrayReads()

    def array(self, array: Any) -> Value:
        """Return the value of an array, NumPy's or a backend's.

        Raises:
            TypeMismatchError: its dtype is none of a graph's, or its shape was changed in place
                after the graph had read it.
        """
        type = boundary_of(array).type_of(array)
        if not is_supported(type.dtype):
            raise TypeMismatchError(f"arrays of dtype {type.dtype} cannot be used in a graph")
        if self.frozen is not None:
            return self.frozen.array(to_host(array))
        key = array.identity if isinstance(array, ConcreteTracedArray) else id(array)
        value = self.capture(key, array, type)
        if isinstance(value.type, TensorType) and value.type.shape != type.shape:
            raise TypeMismatchError(
                explain(
                    "the shape of an array that Python knows was changed in place after the graph "
                    f"had read it as {value.type}.",
                    cure="make another: x = x.reshape(shape).",
                )
            )
        return value

    def capture(self, key: Hashable, binding: Any, type: Type) -> Value:
        """Return the value of a binding, which is captured at its first use and then held."""
        if key not in self._by_key:
            if isinstance(binding, ConcreteTracedArray):
                self._concrete_arrays.append(binding)
                self._by_key[key] = self._made_in_trace(binding, type)
            else:
                value = self._by_key[key] = self._new(binding, type)
                if isinstance(binding, np.ndarray):
                    self._array_reads.note(value, binding)
        return self._by_key[key]

    def by_key(self, key: Hashable) -> Value | None:
        """Return the value of what was captured under a key."""
        return self._by_key.get(key)

    def substitute(self, key: Hashable, value: Value) -> None:
        """Let a value stand for what would be captured under a key."""
        self._by_key[key] = value

    def _made_in_trace(self, array: ConcreteTracedArray, type: Type) -> Value:
        """Return an array made in the trace: a broadcast where all its elements are one number."""
        number = array.only_number()
        if number is None:
            return self._new(np.array(array), type)
        return self._b.broadcast_to(self._b.constant(number, array.dtype), array.shape)

    def _new(self, binding: Any, type: Type) -> Value:
        value = Value(type)
        self.values.append(value)
        self.bindings.append(binding)
        return value

    def check(self, graph: Graph) -> None:
        """Refuse captured arrays that were changed while the function was traced."""
        self._concrete_arrays.clear()
        self._array_reads.check(graph)

    def clear(self) -> None:
        """Hold no array any more."""
        self.bindings, self._concrete_arrays = [], []
        self.frozen = None
        self._array_reads.clear()
