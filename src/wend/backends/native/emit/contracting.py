"""Products of arrays and convolution.

Floats are multiplied by small GEMM kernels or BLAS, a matrix at a time; other dtypes by loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from wend.backends.native.codegen.arrays import Array, StridedView
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.emit.array.reducing import check_nonempty
from wend.backends.native.emit.loops.index_maps import IndexMaps
from wend.backends.native.emit.scalar.elements import ELEMENTS
from wend.backends.native.fusion.gemm_accumulate import accumulator_of
from wend.backends.native.fusion.symbolic_strides import (
    ONE_EXTENT,
    Extent,
    extent,
    materialize,
    multiply,
    strides,
)
from wend.backends.native.rt.linalg import blas, blas_functions, small_gemm
from wend.backends.native.target.kinds import REGISTERS, Kind
from wend.backends.native.target.sizes import SizeArithmetic, is_literal
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import contracting, elementwise

# Matrices that need at most this many multiplications are computed in order, as `scalarize/` does
# when it replaces arrays by scalars.
_MAX_IN_ORDER_PRODUCTS = 64


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Operand:
    """An operand of a product, with its axes by role.

    Attributes:
        array: The array.
        strides: The stride of each axis.
        batch: The axes shared by both operands and the result.
        free: The axes that only this operand and the result have.
        contract: The axes summed over.
    """

    array: Array
    strides: Sequence[Extent]
    batch: Sequence[int]
    free: Sequence[int]
    contract: Sequence[int]

    def dims(self, axes: Sequence[int]) -> list[str]:
        return [self.array.dims[k] for k in axes]

    def axis_strides(self, sizes: SizeArithmetic, axes: Sequence[int]) -> list[str]:
        return [materialize(sizes, self.strides[k]) for k in axes]


def emit_dot(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the product of each matrix of a stack with that of another."""
    if any(v.tensor.dtype not in REGISTERS or v.tensor.dtype.kind == "b" for v in node.operands):
        return NotImplemented
    return _emit_product(low, node, *(_operand(low, node, k, operands[k]) for k in (0, 1)))


def emit_dot_of_subviews(low: Lowering, node: Node, product: Node, index_maps: IndexMaps) -> Any:
    """Emit the product that ends the body of a node, read directly from subviews of arrays."""
    product_operands = []
    for k, value in enumerate(product.operands):
        indices = index_maps.identity_indices(value.tensor.dims, len(value.tensor.dims))
        _, index_map = index_maps.read_through(value, indices)
        assert index_map is not None
        assert index_map.array is not None
        start = low.arrays.address(index_map.array, index_map.start)
        array = Array(start, index_map.kind.dtype, index_maps.dims[value])
        product_operands.append(_classify_axes(product, k, array, index_map.steps))
    return _emit_product(low, node, *product_operands)


def _emit_product(low: Lowering, node: Node, x: Operand, y: Operand) -> Any:
    """Emit a product in order, by a small GEMM kernel or by BLAS; or defer it to its addition."""
    kind, size = x.array.kind, _gemm_size(low, x, y)
    is_in_order = not kind.is_real or _is_at_most(size.count_products(low), _MAX_IN_ORDER_PRODUCTS)
    function = "" if is_in_order else _gemm_function(kind, size, y)
    if function == blas.product(kind) and not blas_functions.are_available(
        kind, blas_functions.BLAS
    ):
        return NotImplemented
    for axes in ("contract", "batch"):
        low.check_equal_dims(x.dims(getattr(x, axes)), y.dims(getattr(y, axes)))
    dims = (*x.dims(x.batch), *x.dims(x.free), *y.dims(y.free))
    if not is_in_order and _is_accumulated(low, node):
        gemm_add = _gemm_function(kind, size, y, accumulates=True)
        low.deferred_products[node.results[0]] = lambda target: _emit_gemm(
            low, gemm_add, size, x, y, target
        )
        return [_defer_product(low, node, dims)]
    if not is_in_order and _is_dot(low, node, x, y):
        return [(_emit_dot_product(low, x, y, size.depth),)]
    out = _new_result(low, node, dims)
    if is_in_order:
        _emit_in_order(low, node, x, y, out)
    else:
        _emit_gemm(low, function, size, x, y, out)
    if is_scalar(node.results[0].type):
        return [(low.arrays.load(out, "0"),)]
    return [low.array_result(node, out)]


@dataclass(frozen=True, slots=True)
class GemmSize:
    """The size of one matrix product: (rows × depth) times (depth × columns)."""

    rows: str
    columns: str
    depth: str

    def count_products(self, low: Lowering) -> str:
        """Return the number of multiplications."""
        return low.sizes.product([self.rows, self.columns, self.depth])


def _gemm_size(low: Lowering, x: Operand, y: Operand) -> GemmSize:
    """Return the size of one matrix product of a stack."""
    groups = x.dims(x.free), y.dims(y.free), x.dims(x.contract)
    return GemmSize(*(low.sizes.product(dims) for dims in groups))


def _gemm_function(kind: Kind, size: GemmSize, y: Operand, *, accumulates: bool = False) -> str:
    """Return the name of the kernel: BLAS where it may be faster, else the small GEMM kernel."""
    sizes = (size.rows, size.columns, size.depth)
    if not all(map(is_literal, sizes)):
        return blas.product(kind, accumulates)
    groups = _matrix_axes(y)
    y_is_plain = groups is None or _merged_stride(y, groups[0]) == ONE_EXTENT
    is_small = blas.is_small(*map(int, sizes), y_is_plain=y_is_plain)
    return (small_gemm.small_product if is_small else blas.product)(kind, accumulates)


def _is_dot(low: Lowering, node: Node, x: Operand, y: Operand) -> bool:
    """Return whether a product is that of two vectors without gaps, not too long for one part."""
    return (
        is_scalar(node.results[0].type)
        and all(len(z.contract) == 1 and z.strides[z.contract[0]] == ONE_EXTENT for z in (x, y))
        and not _exceeds(x.dims(x.contract)[0], blas.MAX_CACHED_MATRIX)
    )


def _exceeds(size: str, limit: int) -> bool:
    return is_literal(size) and int(size) > limit


def _emit_dot_product(low: Lowering, x: Operand, y: Operand, depth: str) -> str:
    kind: Kind = x.array.kind
    function = small_gemm.dot(kind)
    low.calls.gemm_functions.add(function)
    arguments = f"ptr {x.array.pointer}, ptr {y.array.pointer}, i64 {depth}"
    return low.w.define(f"call {kind.text} @{function}({arguments})")


def _is_accumulated(low: Lowering, node: Node) -> bool:
    """Return whether the only use of a product adds it to an array that may be updated."""
    assert low.last_uses is not None
    return accumulator_of(low.last_uses, node) in low.refcounts.held


def _defer_product(low: Lowering, node: Node, dims: Sequence[str]) -> Registers:
    """Return the slots of a product in no memory; its operands stay alive until it is added."""
    (result,) = node.results
    retained: list[str] = []
    for value in dict.fromkeys(node.operands):
        if value in low.refcounts.held:
            pointer = low.values[value][0]
            if low.may_move(value):
                low.refcounts.move(value)
            else:
                low.arrays.retain(pointer)
            retained.append(pointer)
    low.product_operands[result] = tuple(retained)
    low.refcounts.mark_foreign(result)
    return low.array_result(node, Array("null", result.tensor.dtype, tuple(dims)))


def _is_at_most(size: str, limit: int) -> bool:
    """Return whether a size is static and at most `limit`."""
    return is_literal(size) and int(size) <= limit


def _operand(low: Lowering, node: Node, k: int, slots: Registers) -> Operand:
    """Return an operand of a product; scalars are spilled to the stack."""
    value = node.operands[k].tensor
    if is_scalar(value):
        array = Array(low.w.allocate(REGISTERS[value.dtype]), value.dtype, ())
        low.arrays.store(array, "0", slots[0])
    else:
        array = low.array(node, k)
    return _classify_axes(node, k, array, strides(array.dims))


def _classify_axes(node: Node, k: int, array: Array, axis_strides: Sequence[Extent]) -> Operand:
    """Return an operand of a product, with its axes by role."""
    batch, contract = node.attrs["batch"][k], node.attrs["contract"][k]
    free = [axis for axis in range(len(array.dims)) if axis not in (*batch, *contract)]
    return Operand(array, axis_strides, batch, free, contract)


def _new_result(low: Lowering, node: Node, dims: Sequence[str]) -> Array:
    """Allocate the result; on the stack if it is a scalar."""
    type = node.results[0].tensor
    if is_scalar(type):
        return Array(low.w.allocate(REGISTERS[type.dtype]), type.dtype, ())
    return low.new_result(node, dims)


# Matrix products
def _emit_gemm(
    low: Lowering, function: str, size: GemmSize, x: Operand, y: Operand, out: Array
) -> None:
    """Call a GEMM function for each matrix of a stack."""
    x, x_copies = _as_matrix_stack(low, x, (*x.batch, *x.free, *x.contract))
    y, y_copies = _as_matrix_stack(low, y, (*y.batch, *y.contract, *y.free))
    out_strides = low.sizes.strides(out.dims)[: len(x.batch)]

    def each(position: tuple[str, ...]) -> None:
        x_address, y_address, out_address = (
            low.arrays.address(array, low.arrays.offset(position, matrix_strides))
            for array, matrix_strides in (
                (x.array, x.axis_strides(low.sizes, x.batch)),
                (y.array, y.axis_strides(low.sizes, y.batch)),
                (out, out_strides),
            )
        )
        matrix_strides = [
            materialize(low.sizes, _merged_stride(operand, axes))
            for operand, axes in ((x, x.free), (x, x.contract), (y, y.contract), (y, y.free))
        ]
        args = f"ptr {x_address}, i64 {matrix_strides[0]}, i64 {matrix_strides[1]}, "
        args += f"ptr {y_address}, i64 {matrix_strides[2]}, i64 {matrix_strides[3]}, "
        args += f"ptr {out_address}, i64 {size.rows}, i64 {size.columns}, i64 {size.depth}"
        low.w.do(f"call void @{function}({args})")

    low.calls.gemm_functions.add(function)
    low.arrays.for_each_position(x.dims(x.batch), each)
    for pointer in (*x_copies, *y_copies):
        low.arrays.release(pointer)


def _merged_stride(operand: Operand, axes: Sequence[int]) -> Extent:
    """Return the stride of axes that are merged into one."""
    return operand.strides[axes[-1]] if axes else ONE_EXTENT


def _as_matrix_stack(
    low: Lowering, operand: Operand, order: Sequence[int]
) -> tuple[Operand, list[str]]:
    """Return an operand as a stack of matrices with one contiguous axis, and pointers to release.

    It is copied if necessary, with its axes in this order.
    """
    groups = _matrix_axes(operand)
    if groups is not None:
        return Operand(operand.array, operand.strides, operand.batch, *groups), []
    copy = low.arrays.new(operand.array.dtype, operand.dims(order))
    source_view = StridedView("0", tuple(operand.axis_strides(low.sizes, order)))
    low.arrays.copy_strided(copy.dims, copy, low.arrays.full_view(copy), operand.array, source_view)
    axes_of_copy = (
        [order.index(k) for k in axes] for axes in (operand.batch, operand.free, operand.contract)
    )
    return Operand(copy, strides(copy.dims), *axes_of_copy), [copy.pointer]


def _matrix_axes(operand: Operand) -> tuple[Sequence[int], Sequence[int]] | None:
    """Return the free and the contracted axes of a matrix, without those of size 1.

    None if one of the groups cannot be merged into one axis, or neither is contiguous.
    """
    free, contract = (
        [k for k in axes if operand.array.dims[k] != "1"]
        for axes in (operand.free, operand.contract)
    )
    if not (_are_mergeable(operand, free) and _are_mergeable(operand, contract)):
        return None
    is_vector = not free or not contract
    return (
        (free, contract)
        if is_vector
        or ONE_EXTENT in (_merged_stride(operand, free), _merged_stride(operand, contract))
        else None
    )


def _are_mergeable(operand: Operand, axes: Sequence[int]) -> bool:
    """Return whether axes can be merged into one."""
    return all(
        operand.strides[outer]
        == multiply(operand.strides[inner], extent(operand.array.dims[inner]))
        for outer, inner in pairwise(axes)
    )


# Products in order
def _emit_in_order(low: Lowering, node: Node, x: Operand, y: Operand, out: Array) -> None:
    """Emit sums of products, added in order."""
    batch, rows = len(x.batch), len(x.batch) + len(x.free)
    out_strides = low.sizes.strides(out.dims)

    def each(position: tuple[str, ...]) -> None:
        x_position, y_position = position[:rows], (*position[:batch], *position[rows:])
        x_start = low.arrays.offset(x_position, x.axis_strides(low.sizes, (*x.batch, *x.free)))
        y_start = low.arrays.offset(y_position, y.axis_strides(low.sizes, (*y.batch, *y.free)))
        total = _dot_in_order(low, node, (x, x_start), (y, y_start))
        low.arrays.store(out, low.arrays.offset(position, out_strides), total)

    low.arrays.for_each_position(out.dims, each)


def _dot_in_order(low: Lowering, node: Node, x: tuple[Operand, str], y: tuple[Operand, str]) -> str:
    """Emit the dot product of a row of x and a column of y."""
    (x_operand, x_start), (y_operand, y_start) = x, y
    kind: Kind = x_operand.array.kind
    add, multiply = ELEMENTS[elementwise.add].emit, ELEMENTS[elementwise.mul].emit
    depth = x_operand.dims(x_operand.contract)
    x_strides = x_operand.axis_strides(low.sizes, x_operand.contract)
    y_strides = y_operand.axis_strides(low.sizes, y_operand.contract)

    def sum_over(axis: int, x_offset: str, y_offset: str, so_far: str) -> str:
        if axis == len(depth):
            x_element = low.arrays.load(x_operand.array, x_offset)
            y_element = low.arrays.load(y_operand.array, y_offset)
            return add(low, node, kind, so_far, multiply(low, node, kind, x_element, y_element))

        def body(k: str, so_far_of_axis: tuple[str, ...]) -> Sequence[str]:
            next_x = low.sizes.add(x_offset, low.sizes.mul(k, x_strides[axis]))
            next_y = low.sizes.add(y_offset, low.sizes.mul(k, y_strides[axis]))
            return [sum_over(axis + 1, next_x, next_y, so_far_of_axis[0])]

        return low.w.fold(depth[axis], [kind.text], [so_far], body)[0]

    return sum_over(0, x_start, y_start, kind.literal(0))


_CONVOLVE_BLOCK_ELEMENTS = 1024  # two blocks fit in a core's private cache


def emit_convolve(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit a convolution in blocks of the longer vector.

    Each element of the shorter one adds a multiple of a block to the result.
    """
    if node.operands[0].tensor.dtype not in REGISTERS:
        return NotImplemented
    x, y, w, sizes = low.array(node, 0), low.array(node, 1), low.w, low.sizes
    check_nonempty(low, (x.dims[0], y.dims[0]))
    out = low.new_result(node, (sizes.sub(sizes.add(x.dims[0], y.dims[0]), "1"),))
    low.arrays.clear(out)
    is_shorter = w.define(f"icmp slt i64 {x.dims[0]}, {y.dims[0]}")
    shorter, longer = (
        (
            w.define(f"select i1 {is_shorter}, ptr {a.pointer}, ptr {b.pointer}"),
            w.define(f"select i1 {is_shorter}, i64 {a.dims[0]}, i64 {b.dims[0]}"),
        )
        for a, b in ((x, y), (y, x))
    )
    kind, arrays = x.kind, low.arrays
    add, mul = ELEMENTS[elementwise.add], ELEMENTS[elementwise.mul]

    def address(pointer: str, k: str) -> str:
        return w.define(f"getelementptr {kind.element}, ptr {pointer}, i64 {k}")

    def block(number: str) -> None:
        first = w.define(f"mul i64 {number}, {_CONVOLVE_BLOCK_ELEMENTS}")
        length = sizes.min(sizes.sub(longer[1], first), str(_CONVOLVE_BLOCK_ELEMENTS))

        def each(i: str) -> None:
            factor = arrays.load_at(kind, address(shorter[0], i))
            source, start = address(longer[0], first), address(address(out.pointer, i), first)

            def step(k: str) -> None:
                place = address(start, k)
                product = mul.emit(
                    low, node, kind, factor, arrays.load_at(kind, address(source, k))
                )
                total = add.emit(low, node, kind, arrays.load_at(kind, place), product)
                arrays.store_at(kind, place, total)

            w.loop(length, step)

        w.loop(shorter[1], each)

    w.loop(
        sizes.div(
            sizes.add(longer[1], str(_CONVOLVE_BLOCK_ELEMENTS - 1)), str(_CONVOLVE_BLOCK_ELEMENTS)
        ),
        block,
    )
    return [low.array_result(node, out)]


EMITTERS: Mapping[Op, Emit] = {
    contracting.dot_general: emit_dot,
    contracting.convolve: emit_convolve,
}
