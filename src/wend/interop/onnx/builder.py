"""Construction of ONNX graphs: names, constants, and the nodes of one graph or subgraph."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from wend.base.errors import UnsupportedError, explain
from wend.base.source import at
from wend.ir.graph import Node
from wend.ir.types import Dim, HostType, ListType, MaybeType, Symbol, TensorType, Type

# Of other dtypes onnxruntime lacks most operators.
ELEMENT_TYPES = {
    np.dtype(name): getattr(TensorProto, tag)
    for name, tag in [
        *(("?", "BOOL"), ("i4", "INT32"), ("i8", "INT64"), ("f4", "FLOAT"), ("f8", "DOUBLE")),
    ]
}


class ModelBuilder:
    """A model under construction. Names are unique in the model: subgraphs see outer values.

    Attributes:
        sizes: for unknown sizes that stay the same, an input and its axis, or the number.
        dropped_checks: the lines of checks that the model does not make.
        quadratic_lists: the lines of lists that take quadratic time.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._scopes: list[list[onnx.NodeProto]] = [[]]
        self._produced: list[set[str]] = [set()]
        self._constants: dict[tuple[Any, ...], str] = {}
        self.initializers: list[onnx.TensorProto] = []
        self.sizes: dict[Symbol, tuple[str, int] | int] = {}
        self.dropped_checks: list[str] = []
        self.quadratic_lists: list[str] = []

    @property
    def nodes(self) -> list[onnx.NodeProto]:
        """The nodes of the innermost graph."""
        return self._scopes[-1]

    def name(self) -> str:
        """Return a new name."""
        return f"v{next(self._numbers)}"

    def emit(self, op: str, *operands: str, **attrs: Any) -> str:
        """Append a node with one result; return the name of that."""
        (result,) = self.emit_many(op, operands, 1, **attrs)
        return result

    def emit_many(self, op: str, operands: Sequence[str], count: int, **attrs: Any) -> list[str]:
        """Append a node; return the names of its results."""
        results = [self.name() for _ in range(count)]
        self.nodes.append(helper.make_node(op, list(operands), results, **attrs))
        self._produced[-1].update(results)
        return results

    def constant(self, value: Any, dtype: Any) -> str:
        """Return the name of a constant, which all graphs of the model share."""
        array = np.asarray(value, dtype)
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self._constants:
            name = self._constants[key] = self.name()
            self.initializers.append(
                numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
            )
        return self._constants[key]

    def used_initializers(self) -> list[onnx.TensorProto]:
        """Return the constants that a node reads; of others onnxruntime warns."""
        used = set(_names_read(self.nodes))
        return [tensor for tensor in self.initializers if tensor.name in used]

    def integers(self, *values: int) -> str:
        """Return the name of a constant vector of i64."""
        return self.constant(values, np.int64)

    @contextmanager
    def subgraph(self) -> Iterator[None]:
        """Emit nodes to a graph of their own; `finish_subgraph` takes it inside the block."""
        self._scopes.append([])
        self._produced.append(set())
        yield
        self._scopes.pop()
        self._produced.pop()

    def finish_subgraph(
        self,
        inputs: Sequence[tuple[str, Type]],
        outputs: Sequence[tuple[str, Type]],
    ) -> onnx.GraphProto:
        """Return the innermost graph; outputs that it does not compute are copied."""
        names: list[str] = []
        for output, _ in outputs:
            is_own = output in self._produced[-1] and output not in names
            names.append(output if is_own else self.emit("Identity", output))
        infos = [self.value_info(name, type) for name, type in inputs]
        out_infos = [
            self.value_info(name, type) for name, (_, type) in zip(names, outputs, strict=True)
        ]
        return helper.make_graph(self.nodes, self.name(), infos, out_infos)

    # Types
    def is_sequence(self, type: Type) -> bool:
        """Return whether a list is a sequence in the model: its items may differ in shape.

        Other lists are arrays with one more axis, the first.
        """
        while isinstance(type, MaybeType):
            type = type.of
        if not isinstance(type, ListType):
            return False
        element = element_of(type)
        if not isinstance(element, TensorType):
            return True
        dims = element.shape
        return dims is None or not all(isinstance(n, int) or n in self.sizes for n in dims)

    def value_info(self, name: str, type: Type) -> onnx.ValueInfoProto:
        """Return the declaration of a value; sizes that only the run knows are left open."""
        if self.is_sequence(type):
            dtype, _ = _array_type(element_of(type))
            return helper.make_tensor_sequence_value_info(name, ELEMENT_TYPES[dtype], None)
        dtype, shape = _array_type(type)
        sizes = None if shape is None else [n if isinstance(n, int) else None for n in shape]
        return helper.make_tensor_value_info(name, ELEMENT_TYPES[dtype], sizes)

    def zeros(self, dtype: np.dtype, dims: Sequence[Dim], node: Node) -> str:
        """Return the name of an array of zeros.

        Raises:
            UnsupportedError: a size is that of no input.
        """
        if all(isinstance(n, int) for n in dims):
            return self.constant(np.zeros(dims), dtype)
        sizes = []
        for dim in dims:
            if isinstance(dim, Symbol) and dim not in self.sizes:
                raise unsupported(node, "its sizes are unknown", "export it for known sizes.")
            sizes.append(self.integers(dim) if isinstance(dim, int) else self._size(dim))
        zero = self.constant(0, dtype)
        return self.emit("Expand", zero, self.emit("Concat", *sizes, axis=0))

    def _size(self, symbol: Symbol) -> str:
        """Return the name of a size, as a vector of one number."""
        size = self.sizes[symbol]
        if isinstance(size, int):
            return self.integers(size)
        name, axis = size
        bounds = self.integers(axis), self.integers(axis + 1)
        return self.emit("Slice", self.emit("Shape", name), *bounds, self.integers(0))

    def check_type(self, type: Type, node: Node) -> None:
        """Refuse values that ONNX has not.

        Raises:
            UnsupportedError: a value is complex, of Python, or a list of lists of lists.
        """
        inner, depth = type, 0
        while isinstance(inner, (MaybeType, ListType)):
            depth += isinstance(inner, ListType)
            inner = inner.element if isinstance(inner, ListType) else inner.of
        if isinstance(inner, HostType):
            why = "it keeps objects of Python, as a tape does that spills"
            raise unsupported(node, why, "export the value; or choose another memory= of the loop.")
        if not isinstance(inner, TensorType):
            return
        if inner.dtype not in ELEMENT_TYPES:
            why = f"values of dtype {inner.dtype} are not exported"
            raise unsupported(node, why, cure_of(inner.dtype))
        if depth > 2 or (depth == 2 and self.is_sequence(element_of(type))):
            raise unsupported(
                node,
                "it keeps lists of lists of arrays that differ in shape",
                "export the value without its gradient, or make an inner loop one of fixed length.",
            )


def _names_read(nodes: Iterable[onnx.NodeProto]) -> Iterator[str]:
    """Yield what nodes and the graphs in them read."""
    for node in nodes:
        yield from node.input
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _names_read(attribute.g.node)


def element_of(type: Type) -> Type:
    """Return the type of a list's items, where they are present."""
    while isinstance(type, MaybeType):
        type = type.of
    assert isinstance(type, ListType)
    element = type.element
    return element.of if isinstance(element, MaybeType) else element


def _array_type(type: Type) -> tuple[np.dtype, Sequence[Any] | None]:
    """Return dtype and shape of what stands for a value: a list is an array with one more axis."""
    if isinstance(type, MaybeType):
        return _array_type(type.of)
    if isinstance(type, ListType):
        dtype, shape = _array_type(type.element)
        return dtype, None if shape is None else (None, *shape)
    assert isinstance(type, TensorType)
    return type.dtype, type.shape


def cure_of(dtype: np.dtype) -> str:
    """Return what to compute with in place of a dtype that is not exported."""
    if dtype.kind == "c":
        return "compute with real and imaginary parts."
    return "cast to one of bool, int32, int64, float32 and float64."


def unsupported(node: Node, why: str, cure: str) -> UnsupportedError:
    """Return the error for a node that has no counterpart in ONNX."""
    what = f"{node.op.name}{at(node.source)} cannot be exported to ONNX: {why}."
    return UnsupportedError(explain(what, cure=cure))
