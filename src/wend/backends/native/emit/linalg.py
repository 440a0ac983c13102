"""Linear systems and Cholesky factors, by LAPACK; where there is none NumPy says why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import BAD_SHAPE
from wend.backends.native.emit.control.host import run_on_host
from wend.backends.native.rt import blas_functions, lapack, small_gemm
from wend.backends.native.target.value_layout import Registers, registers
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import linalg


def emit_solve(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """The solutions for each matrix of a stack."""
    if not _are_known_numbers(node, "gesv"):
        return NotImplemented
    a, y = low.array(node, 0), low.array(node, 1)
    pairs = (*zip(a.dims[:-1], y.dims[:-1], strict=True), (a.dims[-1], a.dims[-2]))
    for mine, theirs in pairs:
        low.traps.check(low.sizes.equal(mine, theirs), BAD_SHAPE)
    made = low.new_result(node, y.dims)
    n, columns = y.dims[-2:]
    width = low.sizes.add(low.sizes.add(n, columns), "1")
    room = low.arrays.new(a.dtype, (n, width))
    function = lapack.solve(a.kind)
    low.calls.declared[function] = f"i32 @{function}({lapack.SOLVE_TYPES})"

    def each(k: str) -> str:
        places = ", ".join(f"ptr {_matrix(low, array, k)}" for array in (a, y, made))
        given = f"{places}, ptr {room.pointer}, i64 {n}, i64 {columns}"
        return low.w.define(f"call i32 @{function}({given})")

    return [_of_all(low, node, operands, made, each, room.pointer)]


def emit_cholesky(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """The factor of each matrix of a stack."""
    if not _are_known_numbers(node, "potrf"):
        return NotImplemented
    a = low.array(node, 0)
    n = a.dims[-1]
    low.traps.check(low.sizes.equal(n, a.dims[-2]), BAD_SHAPE)
    made = low.new_result(node, a.dims)
    function = lapack.cholesky(a.kind)
    low.calls.declared[function] = f"i32 @{function}({lapack.CHOLESKY_TYPES})"

    def each(k: str) -> str:
        given = f"ptr {_matrix(low, a, k)}, ptr {_matrix(low, made, k)}, i64 {n}"
        return low.w.define(f"call i32 @{function}({given})")

    return [_of_all(low, node, operands, made, each)]


def _are_known_numbers(node: Node, stem: str) -> bool:
    kind = next((k for k in small_gemm.KINDS if k.dtype == node.operands[0].tensor.dtype), None)
    return kind is not None and blas_functions.are_there(kind, [stem])


def _matrix(low: Lowering, array: Array, k: str) -> str:
    area = low.sizes.mul(array.dims[-2], array.dims[-1])
    return low.arrays.address(array, low.sizes.mul(k, area))


def _of_all(
    low: Lowering,
    node: Node,
    operands: Sequence[Registers],
    made: Array,
    each: Callable[[str], str],
    *rooms: str,
) -> Registers:
    """The result of a stack of matrices: NumPy's where one of them has none.

    It mostly raises. By other roundings it may find one.
    """
    w, type = low.w, node.results[0].type
    stack = low.sizes.product(made.dims[:-2])
    (status,) = w.fold(
        stack, ["i32"], ["0"], lambda k, so_far: [w.define(f"or i32 {so_far[0]}, {each(k)}")]
    )
    for pointer in rooms:
        low.arrays.release(pointer)
    own = low.give(node, made)
    failed, done = w.new_label("none"), w.new_label("done")
    w.unless(w.define(f"icmp eq i32 {status}, 0"), failed)
    fine = w.block
    w.jump(done)
    w.start(failed)
    low.arrays.release(made.pointer)
    (theirs,) = run_on_host(low, node, operands)
    there = w.block
    w.jump(done)
    w.start(done)
    return w.merge(registers(type), [(own, fine), (theirs, there)])


EMITTERS: Mapping[Op, Emit] = {linalg.solve: emit_solve, linalg.cholesky: emit_cholesky}
