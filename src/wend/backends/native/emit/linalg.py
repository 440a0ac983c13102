"""Linear systems, Cholesky factors and determinants.

They are computed by elimination where matrices are small, else by LAPACK. If there is no result,
the NumPy kernel runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import BAD_SHAPE
from wend.backends.native.emit.decompositions import emit_by_numpy
from wend.backends.native.emit.numpy_loop import loaded_result, or_by_kernel, result_in_memory
from wend.backends.native.emit.scalar.casting import emit_cast
from wend.backends.native.rt.linalg import blas_functions, elimination, lapack, small_gemm
from wend.backends.native.target.kinds import Kind, scalar_literal
from wend.backends.native.target.platform import platform
from wend.backends.native.target.value_layout import Registers
from wend.ir.dtypes import FLOAT64
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import factors, linalg


def emit_solve(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the solution of each linear system of a stack."""
    is_own = _is_computed_here(node)
    if not is_own and not _has_lapack(node, "gesv", "trtrs"):
        return emit_by_numpy(low, node, operands)
    a, y = low.array(node, 0), low.array(node, 1)
    low.check_equal_dims(a.dims, (*y.dims[:-1], a.dims[-2]))
    out = low.new_result(node, y.dims)
    n, columns = y.dims[-2:]
    width = low.sizes.add(low.sizes.add(n, columns), "1")
    workspace = low.arrays.new(a.dtype, (n, width))
    function = elimination.solve(a.kind) if is_own else lapack.solve(a.kind)
    low.calls.external[function] = f"i32 @{function}({lapack.SOLVE_TYPES})"

    def each(k: str) -> str:
        pointers = ", ".join(f"ptr {_matrix_address(low, array, k)}" for array in (a, y, out))
        args = f"{pointers}, ptr {workspace.pointer}, i64 {n}, i64 {columns}"
        return low.w.define(f"call i32 @{function}({args})")

    return _emit_with_fallback(low, node, operands, [out], each, workspace.pointer)


def emit_lu_factor(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the factors and row exchanges of each matrix of a stack."""
    is_own = _is_computed_here(node)
    if not is_own and not _has_lapack(node, "getrf"):
        return NotImplemented
    a = low.array(node, 0)
    n = a.dims[-1]
    low.traps.check(low.sizes.equal(n, a.dims[-2]), BAD_SHAPE)
    outs = [low.new_result(node, a.dims, 0), low.new_result(node, a.dims[:-1], 1)]
    function = elimination.lu_factor(a.kind) if is_own else lapack.lu_factor(a.kind)
    low.calls.external[function] = f"i32 @{function}({lapack.LU_FACTOR_TYPES})"

    def each(k: str) -> str:
        matrices = ", ".join(f"ptr {_matrix_address(low, x, k)}" for x in (a, outs[0]))
        exchanges = low.arrays.address(outs[1], low.sizes.mul(k, n))
        return low.w.define(f"call i32 @{function}({matrices}, ptr {exchanges}, i64 {n})")

    return _emit_with_fallback(low, node, operands, outs, each)


def emit_lu_solve(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the solution of each linear system of a stack, from factors."""
    is_own = _is_computed_here(node)
    if not is_own and not _has_lapack(node, "getrs", "trtrs"):
        return NotImplemented
    factors, exchanges, y = (low.array(node, k) for k in range(3))
    low.check_equal_dims(factors.dims, (*y.dims[:-1], factors.dims[-2]))
    out = low.new_result(node, y.dims)
    n, columns = y.dims[-2:]
    workspace = None if is_own else low.arrays.new(y.dtype, (n, columns))
    function = elimination.lu_solve(y.kind) if is_own else lapack.lu_solve(y.kind)
    types, type = (elimination.LU_SOLVE_TYPES, "void") if is_own else (lapack.LU_SOLVE_TYPES, "i32")
    low.calls.external[function] = f"{type} @{function}({types})"

    def each(k: str) -> str:
        pointers = [
            _matrix_address(low, factors, k),
            low.arrays.address(exchanges, low.sizes.mul(k, n)),
            *(_matrix_address(low, array, k) for array in (y, out)),
            *([workspace.pointer] if workspace else ()),
        ]
        flag = str(node.attrs["transposed"]).lower()
        args = f"{', '.join(f'ptr {x}' for x in pointers)}, i64 {n}, i64 {columns}, i1 {flag}"
        if not is_own:
            return low.w.define(f"call i32 @{function}({args})")
        low.w.do(f"call void @{function}({args})")
        return "0"

    room = [workspace.pointer] if workspace else ()
    return _emit_with_fallback(low, node, operands, [out], each, *room)


def emit_cholesky(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the Cholesky factor of each matrix of a stack."""
    is_own = _is_computed_here(node)
    if not is_own and not _has_lapack(node, "potrf"):
        return emit_by_numpy(low, node, operands)
    a = low.array(node, 0)
    n = a.dims[-1]
    low.traps.check(low.sizes.equal(n, a.dims[-2]), BAD_SHAPE)
    out = low.new_result(node, a.dims)
    function = elimination.cholesky(a.kind) if is_own else lapack.cholesky(a.kind)
    low.calls.external[function] = f"i32 @{function}({lapack.CHOLESKY_TYPES})"

    def each(k: str) -> str:
        args = f"ptr {_matrix_address(low, a, k)}, ptr {_matrix_address(low, out, k)}, i64 {n}"
        return low.w.define(f"call i32 @{function}({args})")

    return _emit_with_fallback(low, node, operands, [out], each)


def _is_computed_here(node: Node) -> bool:
    """Return whether an object file computes it without LAPACK, which may be missing beside it."""
    a = node.operands[0].tensor
    return (
        not platform().is_process
        and Kind(a.dtype) in small_gemm.KINDS
        and isinstance(a.dims[-1], int)
        and a.dims[-1] <= elimination.max_size()
    )


def _has_lapack(node: Node, *stems: str) -> bool:
    """Return whether LAPACK has functions for the dtype of a node."""
    kind = next((k for k in small_gemm.KINDS if k.dtype == node.operands[0].tensor.dtype), None)
    return kind is not None and blas_functions.are_available(kind, stems)


def _matrix_address(low: Lowering, array: Array, k: str) -> str:
    """Return the address of a matrix of a stack."""
    area = low.sizes.mul(array.dims[-2], array.dims[-1])
    return low.arrays.address(array, low.sizes.mul(k, area))


def _emit_with_fallback(
    low: Lowering,
    node: Node,
    operands: Sequence[Registers],
    outs: Sequence[Array],
    emit_call: Callable[[str], str],
    *workspaces: str,
) -> list[Registers]:
    """Emit calls for a stack of matrices; if one of them fails, the NumPy kernel computes all.

    The kernel usually raises, but because it rounds differently it may also succeed.
    """
    w = low.w
    stack = low.sizes.product(outs[0].dims[:-2])
    (status,) = w.fold(
        stack, ["i32"], ["0"], lambda k, so_far: [w.define(f"or i32 {so_far[0]}, {emit_call(k)}")]
    )
    for pointer in workspaces:
        low.arrays.release(pointer)
    succeeded = w.define(f"icmp eq i32 {status}, 0")
    return or_by_kernel(low, node, operands, outs, succeeded)


def emit_determinant(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit determinants by elimination for small matrices, else by NumPy's loop."""
    dtype, size = node.operands[0].tensor.dtype, node.operands[0].tensor.dims[-1]
    if not isinstance(size, int) or not 0 < size <= elimination.max_size():
        return emit_by_numpy(low, node, operands)
    if Kind(dtype) not in small_gemm.KINDS:
        return emit_by_numpy(low, node, operands)
    wide, array, w = Kind(FLOAT64), low.array(node, 0), low.w
    low.traps.check(low.sizes.equal(*array.dims[-2:]), BAD_SHAPE)
    function = elimination.eliminate(wide)
    low.calls.external[function] = f"i64 @{function}({elimination.ELIMINATE_TYPES})"
    outs = [result_in_memory(low, node, k, array.dims[:-2]) for k in range(len(node.results))]
    # In double precision, as in NumPy
    room = Array(w.allocate(f"[{size * size} x double]"), FLOAT64, (str(size), str(size)))

    def each(k: str) -> None:
        first = low.sizes.mul(k, str(size * size))
        for i in range(size * size):
            x = low.arrays.load(array, low.sizes.add(first, str(i)))
            low.arrays.store(room, str(i), emit_cast(w, array.kind, wide, x))
        sign = w.define(f"call i64 @{function}(ptr {room.pointer}, i64 {size}, i64 {size})")
        number = w.define(f"sitofp i64 {sign} to double")
        pivots = [low.arrays.load(room, str(i * (size + 1))) for i in range(size)]
        combine = _product_of_pivots if node.op is factors.det else _logarithm_of_pivots
        for out, value in zip(outs, combine(low, number, pivots), strict=True):
            low.arrays.store(out, k, emit_cast(w, wide, out.kind, value))

    w.loop(low.sizes.product(array.dims[:-2]), each)
    return [loaded_result(low, node, k, out) for k, out in enumerate(outs)]


def _product_of_pivots(low: Lowering, sign: str, pivots: Sequence[str]) -> list[str]:
    """Emit a determinant: where the product of the pivots over- or underflows, by logarithms."""
    w = low.w
    product = sign
    for pivot in pivots:
        product = w.define(f"fmul double {product}, {pivot}")
    size = w.define(f"call double @llvm.fabs.f64(double {product})")
    limits = np.finfo(np.float64)
    above = w.define(f"fcmp oge double {size}, {scalar_literal(limits.tiny, FLOAT64)}")
    below = w.define(f"fcmp ole double {size}, {scalar_literal(limits.max, FLOAT64)}")
    is_normal = w.define(f"and i1 {above}, {below}")

    def by_logarithms() -> str:
        sign_of_all, logarithm = _logarithm_of_pivots(low, sign, pivots)
        size = low.calls.math_function("exp", Kind(FLOAT64), logarithm)
        return w.define(f"fmul double {sign_of_all}, {size}")

    other, before, last = w.when(("odd", "normal"), lambda: is_normal, by_logarithms, unless=True)
    return [w.phi("double", (product, before), (other, last))]


def _logarithm_of_pivots(low: Lowering, sign: str, pivots: Sequence[str]) -> list[str]:
    """Emit the sign of a determinant and the logarithm of its absolute value."""
    w = low.w
    is_singular = w.define(f"fcmp oeq double {sign}, 0.0")
    total = "0.0"
    for pivot in pivots:
        is_negative = w.define(f"fcmp olt double {pivot}, 0.0")
        turned = w.define(f"fneg double {sign}")
        sign = w.define(f"select i1 {is_negative}, double {turned}, double {sign}")
        size = w.define(f"call double @llvm.fabs.f64(double {pivot})")
        logarithm = low.calls.math_function("log", Kind(FLOAT64), size)
        total = w.define(f"fadd double {total}, {logarithm}")
    lowest = scalar_literal(float("-inf"), FLOAT64)
    return [
        w.define(f"select i1 {is_singular}, double 0.0, double {sign}"),
        w.define(f"select i1 {is_singular}, double {lowest}, double {total}"),
    ]


EMITTERS: Mapping[Op, Emit] = {
    linalg.solve: emit_solve,
    linalg.lu_factor: emit_lu_factor,
    linalg.lu_solve: emit_lu_solve,
    linalg.cholesky: emit_cholesky,
    factors.det: emit_determinant,
    factors.slogdet: emit_determinant,
}
