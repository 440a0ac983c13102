"""Products of small arrays; larger ones are left to NumPy, which has BLAS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wend.backends.native.arrays import Array
from wend.backends.native.emit.elements import ELEMENTS
from wend.backends.native.kinds import REGISTERS
from wend.backends.native.lowering import Emit, Lowering
from wend.backends.native.slots import Slots, is_scalar
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import contracting, elementwise

# How many products a loop of its own is worth: about what a call of Python costs.
MOST_PRODUCTS = 4096


def emit_dot(low: Lowering, node: Node, operands: Sequence[Slots]) -> Any:
    """Products of pairs, added in order."""
    x, y = (value.tensor for value in node.operands)
    (left, right), (batch, other_batch) = node.attrs["contract"], node.attrs["batch"]
    if not (x.is_static and y.is_static) or x.dtype not in REGISTERS or x.dtype.kind == "b":
        return NotImplemented
    if is_scalar(x) or is_scalar(y):
        return NotImplemented
    free = [k for k in range(len(x.dims)) if k not in left and k not in batch]
    other_free = [k for k in range(len(y.dims)) if k not in right and k not in other_batch]
    dims = [str(x.dims[k]) for k in (*batch, *free)] + [str(y.dims[k]) for k in other_free]
    depth = [str(x.dims[k]) for k in left]
    if int(low.sizes.product([*dims, *depth])) > MOST_PRODUCTS:
        return NotImplemented
    a, b = low.array(node, 0), low.array(node, 1)
    mine, theirs = low.sizes.strides(a.dims), low.sizes.strides(b.dims)
    steps = [mine[k] for k in (*batch, *free)] + ["0"] * len(other_free)
    other_steps = [theirs[k] for k in other_batch] + ["0"] * len(free)
    other_steps += [theirs[k] for k in other_free]

    def total(position: tuple[str, ...]) -> str:
        start, other = low.arrays.offset(position, steps), low.arrays.offset(position, other_steps)
        row = (a, start, [mine[k] for k in left])
        return _dot(low, node, row, (b, other, [theirs[k] for k in right]), depth)

    if is_scalar(node.results[0].type):
        return [(total(()),)]
    made = low.new_result(node, dims)
    places = low.sizes.strides(dims)

    def each(position: tuple[str, ...]) -> None:
        low.arrays.store(made, low.arrays.offset(position, places), total(position))

    low.arrays.nest(dims, each)
    return [low.give(node, made)]


Row = tuple[Array, str, list[str]]  # an array, where a row of it starts, and its strides


def _dot(low: Lowering, node: Node, x: Row, y: Row, depth: Sequence[str]) -> str:
    """The sum of products of two rows of one, or several, axes."""
    kind = x[0].kind
    add, multiply = ELEMENTS[elementwise.add].write, ELEMENTS[elementwise.mul].write

    def over(axis: int, at: str, other: str, so_far: str) -> str:
        if axis == len(depth):
            pair = low.arrays.load(x[0], at), low.arrays.load(y[0], other)
            return add(low, node, kind, so_far, multiply(low, node, kind, *pair))

        def body(k: str, given: tuple[str, ...]) -> Sequence[str]:
            here = low.sizes.add(at, low.sizes.mul(k, x[2][axis]))
            there = low.sizes.add(other, low.sizes.mul(k, y[2][axis]))
            return [over(axis + 1, here, there, given[0])]

        return low.w.fold(depth[axis], [kind.text], [so_far], body)[0]

    return over(0, x[1], y[1], kind.literal(0))


EMITTERS: Mapping[Op, Emit] = {contracting.dot_general: emit_dot}
