"""Linear systems and Cholesky factors by LAPACK; if it fails, the NumPy kernel runs."""

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
    """Emit the solution of each linear system of a stack."""
    if not _has_lapack(node, "gesv"):
        return NotImplemented
    a, y = low.array(node, 0), low.array(node, 1)
    low.check_equal_dims(a.dims, (*y.dims[:-1], a.dims[-2]))
    out = low.new_result(node, y.dims)
    n, columns = y.dims[-2:]
    width = low.sizes.add(low.sizes.add(n, columns), "1")
    workspace = low.arrays.new(a.dtype, (n, width))
    function = lapack.solve(a.kind)
    low.calls.external[function] = f"i32 @{function}({lapack.SOLVE_TYPES})"

    def each(k: str) -> str:
        pointers = ", ".join(f"ptr {_matrix_address(low, array, k)}" for array in (a, y, out))
        args = f"{pointers}, ptr {workspace.pointer}, i64 {n}, i64 {columns}"
        return low.w.define(f"call i32 @{function}({args})")

    return [_emit_with_fallback(low, node, operands, out, each, workspace.pointer)]


def emit_cholesky(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the Cholesky factor of each matrix of a stack."""
    if not _has_lapack(node, "potrf"):
        return NotImplemented
    a = low.array(node, 0)
    n = a.dims[-1]
    low.traps.check(low.sizes.equal(n, a.dims[-2]), BAD_SHAPE)
    out = low.new_result(node, a.dims)
    function = lapack.cholesky(a.kind)
    low.calls.external[function] = f"i32 @{function}({lapack.CHOLESKY_TYPES})"

    def each(k: str) -> str:
        args = f"ptr {_matrix_address(low, a, k)}, ptr {_matrix_address(low, out, k)}, i64 {n}"
        return low.w.define(f"call i32 @{function}({args})")

    return [_emit_with_fallback(low, node, operands, out, each)]


def _has_lapack(node: Node, stem: str) -> bool:
    """Return whether LAPACK has a function for the dtype of a node."""
    kind = next((k for k in small_gemm.KINDS if k.dtype == node.operands[0].tensor.dtype), None)
    return kind is not None and blas_functions.are_available(kind, [stem])


def _matrix_address(low: Lowering, array: Array, k: str) -> str:
    """Return the address of a matrix of a stack."""
    area = low.sizes.mul(array.dims[-2], array.dims[-1])
    return low.arrays.address(array, low.sizes.mul(k, area))


def _emit_with_fallback(
    low: Lowering,
    node: Node,
    operands: Sequence[Registers],
    out: Array,
    emit_call: Callable[[str], str],
    *workspaces: str,
) -> Registers:
    """Emit calls for a stack of matrices; if one of them fails, the NumPy kernel computes all.

    The kernel usually raises, but because it rounds differently it may also succeed.
    """
    w, type = low.w, node.results[0].type
    stack = low.sizes.product(out.dims[:-2])
    (status,) = w.fold(
        stack, ["i32"], ["0"], lambda k, so_far: [w.define(f"or i32 {so_far[0]}, {emit_call(k)}")]
    )
    for pointer in workspaces:
        low.arrays.release(pointer)
    native_result = low.array_result(node, out)
    failed, done = w.new_label("none"), w.new_label("done")
    w.branch_unless(w.define(f"icmp eq i32 {status}, 0"), failed)
    native_block = w.block
    w.jump(done)
    w.start(failed)
    low.arrays.release(out.pointer)
    (host_result,) = run_on_host(low, node, operands)
    host_block = w.block
    w.jump(done)
    w.start(done)
    return w.merge(registers(type), [(native_result, native_block), (host_result, host_block)])


EMITTERS: Mapping[Op, Emit] = {linalg.solve: emit_solve, linalg.cholesky: emit_cholesky}
