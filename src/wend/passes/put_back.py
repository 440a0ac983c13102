"""Stores in views of arrays: what puts a view back into its array."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from wend.ir.graph import Node, Value
from wend.ops import indexing, parts, shaping, updating
from wend.ops.build import Build
from wend.ops.loop_counters import as_integer
from wend.ops.shapes import WHOLE, known_position
from wend.passes.view_positions import VIEWS

_STORES = (
    *(updating.set_slice, updating.scatter_set, indexing.scatter_add),
    *(parts.set_part, parts.add_part),
)
# The operations that put a view back into its array, or store in one
_PUTTING_BACK = (*_STORES, shaping.transpose, shaping.reshape)

Read: TypeAlias = Callable[[Build, Value], Value]


def read_back(put: Node) -> tuple[Value, Read] | None:
    """Return what a node puts into an array, and how to read it from the array that results."""
    match put.op:
        case updating.set_slice:
            slices = put.attrs["slices"]
            return put.operands[1], lambda b, array: b.slice(array, slices=slices)
        case updating.scatter_set if put.operands[1].tensor.dims:
            positions = put.operands[2:]
            return put.operands[1], lambda b, array: b.gather(array, *positions)
        case shaping.transpose:
            perm = put.attrs["perm"]
            inverse = tuple(perm.index(k) for k in range(len(perm)))
            return put.operands[0], lambda b, array: b.transpose(array, perm=inverse)
    return None


def store_of(node: Node) -> tuple[Node, Value] | None:
    """Return what stores in a view that a node puts back into its array, and the array."""
    stored = _innermost_store(node)
    return None if stored is None or stored[0] is node else stored


def _innermost_store(node: Node) -> tuple[Node, Value] | None:
    """Return the store at the end of a chain of nodes that put views back, and the array."""
    if node.op not in _PUTTING_BACK:
        return None
    is_update = node.op.updates == 0 and len(node.operands) > 1
    inner = node.operands[1 if is_update else 0].node if node.operands else None
    if inner is not None and (stored := _innermost_store(inner)) is not None:
        store, view = stored
        array = None if view.node is None else _array_of(node, view.node)
        if array is not None:
            return store, array
    if node.op in _STORES:
        return node, node.operands[0]
    return None


def _array_of(node: Node, view: Node) -> Value | None:
    """Return the array into which a node puts a view of it back; None if that is another."""
    array = view.operands[0]
    match node.op, view.op:
        case updating.set_slice, shaping.slice_:
            is_same = _is_same(array, node.operands[0]) and (
                node.attrs["slices"] == view.attrs["slices"]
            )
        case updating.scatter_set, indexing.gather:
            is_same = _is_same(array, node.operands[0]) and (node.operands[2:] == view.operands[1:])
        case shaping.transpose, shaping.transpose:
            order = [view.attrs["perm"][k] for k in node.attrs["perm"]]
            is_same = order == [*range(len(order))]
        case shaping.reshape, shaping.reshape:
            is_same = array.type == node.results[0].type and array.tensor.rank is not None
        case ((parts.set_part | updating.scatter_set), shaping.reshape):
            array = array.node.operands[0] if array.node is not None else array
            is_same = _is_same(array, node.operands[0]) and _cuts_part(view, node)
        case _:
            return None
    return array if is_same else None


def _cuts_part(view: Node, put: Node) -> bool:
    """Return whether a reshape of a slice is the part that a node puts, at constant positions."""
    cut = view.operands[0].node
    if cut is None or cut.op is not shaping.slice_:
        return False
    array, _, *positions = put.operands
    entries: parts.Entries = (parts.AT,) * len(positions)
    entries += (WHOLE,) * (len(array.tensor.dims) - len(positions))
    if put.op is parts.set_part:
        entries = put.attrs["entries"]
    slices = []
    for (entry, at), dim in zip(parts.by_axis(entries, positions), array.tensor.dims, strict=True):
        number = known_position(as_integer(at[0]), dim) if entry == parts.AT else None
        if isinstance(entry, tuple):
            slices.append(entry)
        elif number is None:
            return False
        else:
            slices.append((number, number + 1, None))
    return (
        tuple(slices) == tuple(cut.attrs["slices"]) and view.results[0].type == put.operands[1].type
    )


def _is_same(view: Value, other: Value) -> bool:
    """Return whether two values are the same view of one array."""
    if view is other:
        return True
    a, b = view.node, other.node
    if a is None or b is None or a.op not in VIEWS or a.op is not b.op or a.attrs != b.attrs:
        return False
    is_like = len(a.operands) == len(b.operands) and view.type == other.type
    return is_like and all(map(_is_same, a.operands, b.operands))
