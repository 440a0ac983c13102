"""Lists: arrays with one more axis, or sequences if their items may differ in shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wend.interop.onnx.builder import ELEMENT_TYPES, ModelBuilder, element_of, unsupported
from wend.ir.graph import Graph, Node
from wend.ir.types import Dim, ListType, MaybeType, Symbol, TensorType, Type, without_maybe

Names = Sequence[str]
NO_NAME = ""  # of tokens, and of lists that the trips of a loop do not see


def _is_sequence(m: ModelBuilder, node: Node) -> bool:
    """Return whether the list that a node takes is a sequence."""
    return m.is_sequence(node.operands[0].type)


def note_sizes(m: ModelBuilder, graph: Graph) -> None:
    """Note which lists hold arrays of one shape, though their types have sizes of their own.

    A list is made with new symbols for the sizes of its items; all that is put into it tells
    whether these are always the same.
    """
    pairs: dict[Symbol, set[Dim]] = {}
    for node in graph.walk():
        if node.op.name in _PUTS:
            list_type, item = node.operands[0].type, node.operands[-1].type
        elif node.op.name == "list_unstack":
            list_type, item = node.results[0].type, node.operands[0].type
            if isinstance(item, TensorType):
                item = item.with_shape(item.dims[1:])
        else:
            continue
        element, item = element_of(list_type), without_maybe(item)
        if isinstance(element, TensorType) and isinstance(item, TensorType):
            for own, other in zip(element.shape or (), item.shape or (), strict=False):
                if isinstance(own, Symbol) and own != other:
                    pairs.setdefault(own, set()).add(other)
    for _ in range(len(pairs)):
        for symbol, dims in pairs.items():
            (dim,) = dims if len(dims) == 1 else (symbol,)
            if isinstance(dim, int) or dim in m.sizes:
                m.sizes.setdefault(symbol, dim if isinstance(dim, int) else m.sizes[dim])


_PUTS = ("list_push", "list_set", "list_add_at")


def _dtype(type: Type) -> np.dtype:
    while isinstance(type, (ListType, MaybeType)):
        type = type.element if isinstance(type, ListType) else type.of
    assert isinstance(type, TensorType)
    return type.dtype


def empty(m: ModelBuilder, type: Type, node: Node) -> str:
    """Return the name of an empty list."""
    if m.is_sequence(type):
        return m.emit("SequenceEmpty", dtype=ELEMENT_TYPES[_dtype(type)])
    element = element_of(type)
    assert isinstance(element, TensorType)
    return m.zeros(element.dtype, (0, *element.dims), node)


def _new(m: ModelBuilder, node: Node, x: Names) -> str:
    return empty(m, node.results[0].type, node)


def _push(m: ModelBuilder, node: Node, x: Names) -> str:
    list_name, item = x
    if list_name == NO_NAME:  # a scan output
        return item
    m.quadratic_lists.append("" if node.source is None else node.source.short)
    if _is_sequence(m, node):
        return m.emit("SequenceInsert", list_name, item)
    row = m.emit("Unsqueeze", item, m.integers(0))
    return m.emit("Concat", list_name, row, axis=0)


def _pop(m: ModelBuilder, node: Node, x: Names) -> list[str]:
    last = m.constant(-1, np.int64)
    if _is_sequence(m, node):
        return [m.emit("SequenceErase", x[0]), m.emit("SequenceAt", x[0], last)]
    remaining = m.emit("Slice", x[0], m.integers(0), m.integers(-1), m.integers(0))
    return [remaining, m.emit("Gather", x[0], last, axis=0)]


def _get(m: ModelBuilder, node: Node, x: Names) -> str:
    if _is_sequence(m, node):
        return m.emit("SequenceAt", *x)
    return m.emit("Gather", *x, axis=0)


def _put(m: ModelBuilder, node: Node, x: Names) -> str:
    list_name, index, item = x
    adds = node.op.name == "list_add_at"
    if _is_sequence(m, node):
        if adds:
            item = m.emit("Add", m.emit("SequenceAt", list_name, index), item)
        shorter = m.emit("SequenceErase", list_name, index)
        return m.emit("SequenceInsert", shorter, item, index)
    reduction = {"reduction": "add"} if adds else {}
    position = m.emit("Reshape", index, m.integers(1, 1))
    row = m.emit("Unsqueeze", item, m.integers(0))
    return m.emit("ScatterND", list_name, position, row, **reduction)


def _length(m: ModelBuilder, node: Node, x: Names) -> str:
    if _is_sequence(m, node):
        return m.emit("SequenceLength", x[0])
    return m.emit("Gather", m.emit("Shape", x[0]), m.constant(0, np.int64), axis=0)


def _stack(m: ModelBuilder, node: Node, x: Names) -> str:
    if _is_sequence(m, node):
        return m.emit("ConcatFromSequence", x[0], axis=0, new_axis=1)
    return x[0]


def _unstack(m: ModelBuilder, node: Node, x: Names) -> str:
    if m.is_sequence(node.results[0].type):
        return m.emit("SplitToSequence", x[0], axis=0, keepdims=0)
    return x[0]


def _zeros(m: ModelBuilder, node: Node, x: Names) -> str:
    _refuse_sequence(m, node)
    zero = m.constant(0, _dtype(node.results[0].type))
    return m.emit("Expand", zero, m.emit("Shape", x[0]))


def _add(m: ModelBuilder, node: Node, x: Names) -> str:
    _refuse_sequence(m, node)
    return m.emit("Add", *x)


def _refuse_sequence(m: ModelBuilder, node: Node) -> None:
    if _is_sequence(m, node):
        cure = "export it for known sizes, or the value without its gradient."
        raise unsupported(node, "it adds lists of arrays that differ in shape", cure)


# What may be absent is zeros where it is
def _zero(m: ModelBuilder, node: Node, x: Names) -> str:
    of = node.attrs["type"]
    if isinstance(of, ListType):
        return empty(m, of, node)
    if of.shape is None:
        raise unsupported(node, "its rank is unknown", "export it for arrays of known rank.")
    return m.zeros(of.dtype, of.dims, node)


def _present(m: ModelBuilder, node: Node, x: Names) -> str:
    return x[0]


LISTS: Mapping[str, Any] = {
    "list_new": _new,
    "list_push": _push,
    "list_pop": _pop,
    "list_get": _get,
    "list_set": _put,
    "list_add_at": _put,
    "list_len": _length,
    "list_zeros": _zeros,
    "list_add": _add,
    "list_stack": _stack,
    "list_unstack": _unstack,
    "zero": _zero,
    "present": _present,
    "instantiate": _present,
    "autograd_add": _add,
}
