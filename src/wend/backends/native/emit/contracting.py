"""Products of arrays: of floats by vectors and by BLAS, a matrix at a time; others in loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from wend.backends.native.codegen.arrays import Array, Steps
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import BAD_SHAPE
from wend.backends.native.emit.loops.index_maps import IndexMaps
from wend.backends.native.emit.scalar.elements import ELEMENTS
from wend.backends.native.fusion.gemm_accumulate import sum_of
from wend.backends.native.fusion.symbolic_strides import (
    ONE,
    Extent,
    extent,
    strides,
    times,
    written,
)
from wend.backends.native.rt import blas, blas_functions, small_gemm
from wend.backends.native.target.kinds import REGISTERS, Kind
from wend.backends.native.target.sizes import SizeArithmetic, known
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import contracting, elementwise

# Of one matrix: so few pairs are added in order, as `scalars/` does where it takes arrays apart.
_FEWEST = 64


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Side:
    """An operand: an array, and its axes by what happens to them."""

    array: Array
    strides: Sequence[Extent]
    batch: Sequence[int]
    free: Sequence[int]
    contract: Sequence[int]

    def dims(self, axes: Sequence[int]) -> list[str]:
        return [self.array.dims[k] for k in axes]

    def steps(self, sizes: SizeArithmetic, axes: Sequence[int]) -> list[str]:
        return [written(sizes, self.strides[k]) for k in axes]


def emit_dot(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """A product of each matrix of a stack with that of another."""
    if any(v.tensor.dtype not in REGISTERS or v.tensor.dtype.kind == "b" for v in node.operands):
        return NotImplemented
    return _product(low, node, *(_side(low, node, k, operands[k]) for k in (0, 1)))


def emit_of_parts(low: Lowering, node: Node, product: Node, accesses: IndexMaps) -> Any:
    """A product, the last of a node's body, whose operands are parts of arrays."""
    sides = []
    for k, value in enumerate(product.operands):
        lines = accesses.whole(value.tensor.dims, len(value.tensor.dims))
        _, access = accesses.read_through(value, lines)
        assert access is not None
        assert access.array is not None
        start = low.arrays.address(access.array, access.start)
        array = Array(start, access.kind.dtype, accesses.dims[value])
        sides.append(_by_axes(product, k, array, access.steps))
    return _product(low, node, *sides)


def _product(low: Lowering, node: Node, x: Side, y: Side) -> Any:
    kind, size = x.array.kind, _size(low, x, y)
    in_order = not kind.is_real or _is_at_most(size.pairs(low), _FEWEST)
    function = "" if in_order else _function(kind, size, y)
    if function == blas.product(kind) and not blas_functions.are_there(kind, blas_functions.BLAS):
        return NotImplemented
    for axes in ("contract", "batch"):
        mine, theirs = x.dims(getattr(x, axes)), y.dims(getattr(y, axes))
        for a, b in zip(mine, theirs, strict=True):
            low.traps.check(low.sizes.equal(a, b), BAD_SHAPE)
    dims = (*x.dims(x.batch), *x.dims(x.free), *y.dims(y.free))
    if not in_order and _is_but_added(low, node):
        adding = _function(kind, size, y, adds=True)
        low.products[node.results[0]] = lambda target: _multiply(low, adding, size, x, y, target)
        return [_wait(low, node, dims)]
    made = _new(low, node, dims)
    if in_order:
        _add_in_order(low, node, x, y, made)
    else:
        _multiply(low, function, size, x, y, made)
    if is_scalar(node.results[0].type):
        return [(low.arrays.load(made, "0"),)]
    return [low.give(node, made)]


@dataclass(frozen=True, slots=True)
class Size:
    """Of one matrix times another."""

    rows: str
    columns: str
    depth: str

    def pairs(self, low: Lowering) -> str:
        return low.sizes.product([self.rows, self.columns, self.depth])


def _size(low: Lowering, x: Side, y: Side) -> Size:
    groups = x.dims(x.free), y.dims(y.free), x.dims(x.contract)
    return Size(*(low.sizes.product(dims) for dims in groups))


def _function(kind: Kind, size: Size, y: Side, *, adds: bool = False) -> str:
    """What multiplies matrices: BLAS where it may be faster."""
    sizes = (size.rows, size.columns, size.depth)
    if not all(map(known, sizes)):
        return blas.product(kind, adds)
    groups = _as_lies(y)
    y_is_plain = groups is None or _step(y, groups[0]) == ONE
    is_small = blas.is_small(*map(int, sizes), y_is_plain=y_is_plain)
    return (small_gemm.small_product if is_small else blas.product)(kind, adds)


def _is_but_added(low: Lowering, node: Node) -> bool:
    """Whether a product is added in the array that it is but added to."""
    assert low.uses is not None
    return sum_of(low.uses, node) in low.memory.held


def _wait(low: Lowering, node: Node, dims: Sequence[str]) -> Registers:
    """The slots of a result that is not in memory; what it reads is kept until it is added."""
    (result,) = node.results
    keeps: list[str] = []
    for value in dict.fromkeys(node.operands):
        if value in low.memory.held:
            pointer = low.values[value][0]
            if low.may_move(value):
                low.memory.move(value)
            else:
                low.arrays.retain(pointer)
            keeps.append(pointer)
    low.kept[result] = tuple(keeps)
    low.memory.mark_foreign(result)
    return low.give(node, Array("null", result.tensor.dtype, tuple(dims)))


def _is_at_most(size: str, most: int) -> bool:
    return known(size) and int(size) <= most


def _side(low: Lowering, node: Node, k: int, slots: Registers) -> Side:
    value = node.operands[k].tensor
    if is_scalar(value):
        place = low.w.allocate(REGISTERS[value.dtype])
        array = Array(place, value.dtype, ())
        low.arrays.store(array, "0", slots[0])
    else:
        array = low.array(node, k)
    return _by_axes(node, k, array, strides(array.dims))


def _by_axes(node: Node, k: int, array: Array, steps: Sequence[Extent]) -> Side:
    """An operand of a product, by what happens to its axes."""
    batch, contract = node.attrs["batch"][k], node.attrs["contract"][k]
    free = [axis for axis in range(len(array.dims)) if axis not in (*batch, *contract)]
    return Side(array, steps, batch, free, contract)


def _new(low: Lowering, node: Node, dims: Sequence[str]) -> Array:
    type = node.results[0].tensor
    if is_scalar(type):
        return Array(low.w.allocate(REGISTERS[type.dtype]), type.dtype, ())
    return low.new_result(node, dims)


# Matrices
def _multiply(low: Lowering, function: str, size: Size, x: Side, y: Side, made: Array) -> None:
    """Call a function for the matrices of each place in the stack."""
    x, x_kept = _as_matrices(low, x, (*x.batch, *x.free, *x.contract))
    y, y_kept = _as_matrices(low, y, (*y.batch, *y.contract, *y.free))
    places = low.sizes.strides(made.dims)[: len(x.batch)]

    def each(position: tuple[str, ...]) -> None:
        mine, theirs, here = (
            low.arrays.address(array, low.arrays.offset(position, steps))
            for array, steps in (
                (x.array, x.steps(low.sizes, x.batch)),
                (y.array, y.steps(low.sizes, y.batch)),
                (made, places),
            )
        )
        steps = [
            written(low.sizes, _step(side, axes))
            for side, axes in ((x, x.free), (x, x.contract), (y, y.contract), (y, y.free))
        ]
        given = f"ptr {mine}, i64 {steps[0]}, i64 {steps[1]}, "
        given += f"ptr {theirs}, i64 {steps[2]}, i64 {steps[3]}, "
        given += f"ptr {here}, i64 {size.rows}, i64 {size.columns}, i64 {size.depth}"
        low.w.do(f"call void @{function}({given})")

    low.calls.products.add(function)
    low.arrays.nest(x.dims(x.batch), each)
    for pointer in (*x_kept, *y_kept):
        low.arrays.release(pointer)


def _step(side: Side, axes: Sequence[int]) -> Extent:
    """How far neighbours lie apart along axes that are as one."""
    return side.strides[axes[-1]] if axes else ONE


def _as_matrices(low: Lowering, side: Side, order: Sequence[int]) -> tuple[Side, list[str]]:
    """A side whose axes are as two, one of them dense: copied if it does not lie so.

    Args:
        low: what writes.
        side: an operand.
        order: its axes as they are to lie in a copy.

    Returns:
        The side, and the memory to be released.
    """
    groups = _as_lies(side)
    if groups is not None:
        return Side(side.array, side.strides, side.batch, *groups), []
    made = low.arrays.new(side.array.dtype, side.dims(order))
    steps = Steps("0", tuple(side.steps(low.sizes, order)))
    low.arrays.copy_strided(made.dims, made, low.arrays.whole(made), side.array, steps)
    places = ([order.index(k) for k in axes] for axes in (side.batch, side.free, side.contract))
    return Side(made, strides(made.dims), *places), [made.pointer]


def _as_lies(side: Side) -> tuple[Sequence[int], Sequence[int]] | None:
    """The free axes and those along which is added, without those of one element.

    None where either are not as one, or neither dense in a matrix.
    """
    free, contract = (
        [k for k in axes if side.array.dims[k] != "1"] for axes in (side.free, side.contract)
    )
    if not (_are_as_one(side, free) and _are_as_one(side, contract)):
        return None
    is_vector = not free or not contract
    return (
        (free, contract) if is_vector or ONE in (_step(side, free), _step(side, contract)) else None
    )


def _are_as_one(side: Side, axes: Sequence[int]) -> bool:
    """Whether axes lie as one would."""
    return all(
        side.strides[far] == times(side.strides[near], extent(side.array.dims[near]))
        for far, near in pairwise(axes)
    )


# Numbers
def _add_in_order(low: Lowering, node: Node, x: Side, y: Side, made: Array) -> None:
    """Products of pairs, added in order."""
    shared, mine = len(x.batch), len(x.batch) + len(x.free)
    places = low.sizes.strides(made.dims)

    def each(position: tuple[str, ...]) -> None:
        batch, row, column = position[:shared], position[shared:mine], position[mine:]
        start = low.arrays.offset((*batch, *row), x.steps(low.sizes, (*x.batch, *x.free)))
        other = low.arrays.offset((*batch, *column), y.steps(low.sizes, (*y.batch, *y.free)))
        total = _sum_of_pairs(low, node, (x, start), (y, other))
        low.arrays.store(made, low.arrays.offset(position, places), total)

    low.arrays.nest(made.dims, each)


def _sum_of_pairs(low: Lowering, node: Node, x: tuple[Side, str], y: tuple[Side, str]) -> str:
    (mine, start), (theirs, other_start) = x, y
    kind: Kind = mine.array.kind
    add, multiply = ELEMENTS[elementwise.add].write, ELEMENTS[elementwise.mul].write
    depth = mine.dims(mine.contract)
    steps = mine.steps(low.sizes, mine.contract)
    other_steps = theirs.steps(low.sizes, theirs.contract)

    def over(axis: int, at: str, other: str, so_far: str) -> str:
        if axis == len(depth):
            pair = low.arrays.load(mine.array, at), low.arrays.load(theirs.array, other)
            return add(low, node, kind, so_far, multiply(low, node, kind, *pair))

        def body(k: str, given: tuple[str, ...]) -> Sequence[str]:
            here = low.sizes.add(at, low.sizes.mul(k, steps[axis]))
            there = low.sizes.add(other, low.sizes.mul(k, other_steps[axis]))
            return [over(axis + 1, here, there, given[0])]

        return low.w.fold(depth[axis], [kind.text], [so_far], body)[0]

    return over(0, start, other_start, kind.literal(0))


_BLOCK = 1024  # elements that a processor's own cache holds, twice


def emit_convolve(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """The longer vector, in blocks, added as often as the shorter has elements."""
    if node.operands[0].tensor.dtype not in REGISTERS:
        return NotImplemented
    x, y, w, sizes = low.array(node, 0), low.array(node, 1), low.w, low.sizes
    for array in (x, y):
        empty = sizes.equal(array.dims[0], "0")
        if empty != "false":
            low.traps.check(w.define(f"xor i1 {empty}, true"), BAD_SHAPE)
    count = sizes.sub(sizes.add(x.dims[0], y.dims[0]), "1")
    made = low.new_result(node, (count,))
    low.arrays.clear(made)
    is_shorter = w.define(f"icmp slt i64 {x.dims[0]}, {y.dims[0]}")
    few, many = (
        (
            w.define(f"select i1 {is_shorter}, ptr {a.pointer}, ptr {b.pointer}"),
            w.define(f"select i1 {is_shorter}, i64 {a.dims[0]}, i64 {b.dims[0]}"),
        )
        for a, b in ((x, y), (y, x))
    )
    kind, arrays = x.kind, low.arrays
    add, mul = ELEMENTS[elementwise.add], ELEMENTS[elementwise.mul]

    def at(pointer: str, k: str) -> str:
        return w.define(f"getelementptr {kind.element}, ptr {pointer}, i64 {k}")

    def block(number: str) -> None:
        first = w.define(f"mul i64 {number}, {_BLOCK}")
        length = sizes.least(sizes.sub(many[1], first), str(_BLOCK))

        def each(i: str) -> None:
            factor = arrays.load_at(kind, at(few[0], i))
            source, start = at(many[0], first), at(at(made.pointer, i), first)

            def step(k: str) -> None:
                place = at(start, k)
                product = mul.write(low, node, kind, factor, arrays.load_at(kind, at(source, k)))
                total = add.write(low, node, kind, arrays.load_at(kind, place), product)
                arrays.store_at(kind, place, total)

            w.loop(length, step)

        w.loop(few[1], each)

    w.loop(sizes.div(sizes.add(many[1], str(_BLOCK - 1)), str(_BLOCK)), block)
    return [low.give(node, made)]


EMITTERS: Mapping[Op, Emit] = {
    contracting.dot_general: emit_dot,
    contracting.convolve: emit_convolve,
}
