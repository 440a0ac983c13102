"""Linear algebra by the loops of `numpy.linalg`; if they find no result, the NumPy kernel runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import BAD_SHAPE
from wend.backends.native.emit.numpy_loop import (
    call_loop,
    loaded_result,
    or_by_kernel,
    result_in_memory,
)
from wend.backends.native.rt import numpy_loops
from wend.backends.native.rt.numpy_loops import Loop
from wend.backends.native.target.kinds import Kind
from wend.backends.native.target.value_layout import Registers
from wend.base.lazy.dataclass import dataclass
from wend.ir.dtypes import real_of
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import decompositions, factors, linalg


@dataclass(frozen=True, slots=True)
class Gufunc:
    """A generalized ufunc of `numpy.linalg` that computes an operation.

    Attributes:
        ufunc: its name.
        dims: operands → the core dimensions, and those of each result.
        may_fail: whether it marks what it could not compute by NaN, at the first number.
    """

    ufunc: str
    dims: Callable[[Sequence[Array]], tuple[Sequence[str], Sequence[Sequence[str]]]]
    may_fail: bool = False


def gufunc_of(node: Node) -> Gufunc | None:
    """Return the ufunc that computes a node of matrices in f64 or c128."""
    rows, columns = node.operands[0].tensor.dims[-2:]
    match node.op:
        case factors.det:
            return Gufunc("det", lambda xs: (xs[0].dims[-1:], [()]))
        case factors.slogdet:
            return Gufunc("slogdet", lambda xs: (xs[0].dims[-1:], [(), ()]))
        case decompositions.eigh:
            name = "eigh_lo" if node.attrs["lower"] else "eigh_up"
            return Gufunc(name, _vectors_of_square, may_fail=True)
        case decompositions.eig:
            return Gufunc("eig", _vectors_of_square, may_fail=True)
        case decompositions.svd if isinstance(rows, int) and isinstance(columns, int):
            return Gufunc("svd_f" if node.attrs["full"] else "svd_s", _of_svd(node), may_fail=True)
        case linalg.solve:
            return Gufunc(
                "solve", lambda xs: ((xs[1].dims[-2], xs[1].dims[-1]), [xs[1].dims[-2:]]), True
            )
        case linalg.cholesky:
            return Gufunc("cholesky_lo", lambda xs: (xs[0].dims[-1:], [xs[0].dims[-2:]]), True)
    return None


def _vectors_of_square(xs: Sequence[Array]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    n = xs[0].dims[-1]
    return (n,), [(n,), (n, n)]


def _of_svd(node: Node) -> Any:
    def dims(xs: Sequence[Array]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        rows, columns = xs[0].dims[-2:]
        fewer = str(min(int(rows), int(columns)))
        if node.attrs["full"]:
            return (rows, columns, fewer), [(rows, rows), (fewer,), (columns, columns)]
        return (rows, columns, fewer), [(rows, fewer), (fewer,), (fewer, columns)]

    return dims


def emit_by_numpy(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the loop of the ufunc of `numpy.linalg` that NumPy's function calls."""
    gufunc, loop = gufunc_of(node), _loop_of(node)
    core_dims = [dim for value in node.operands for dim in value.tensor.dims[-2:]]
    if gufunc is None or loop is None or 0 in core_dims:
        return NotImplemented
    arrays = [low.array(node, k) for k in range(len(operands))]
    batch = arrays[0].dims[:-2]
    if node.op is not decompositions.svd:
        _check_core(low, arrays)
    core, shapes = gufunc.dims(arrays)
    outs = [result_in_memory(low, node, k, (*batch, *shape)) for k, shape in enumerate(shapes)]
    steps = _steps(low, [*((x, x.dims[-2:]) for x in arrays), *zip(outs, shapes, strict=True)])
    stack = low.sizes.product(batch)
    call_loop(low, loop, [x.pointer for x in (*arrays, *outs)], [stack, *core], steps)
    if not gufunc.may_fail:
        return [loaded_result(low, node, k, out) for k, out in enumerate(outs)]
    succeeded = _are_numbers(low, outs[0], stack, low.sizes.product(shapes[0]))
    is_empty = low.sizes.equal(low.sizes.product(core), "0")
    if is_empty != "false":
        succeeded = low.w.define(f"and i1 {succeeded}, {low.w.define(f'xor i1 {is_empty}, true')}")
    return or_by_kernel(low, node, operands, outs, succeeded)


def emit_qr(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the orthogonal factors of each matrix: reflections, then the matrix of them."""
    a, letter = low.array(node, 0), node.operands[0].tensor.dtype.char
    rows, columns = a.dims[-2:]
    if letter not in "dD" or not (rows.isdigit() and columns.isdigit()) or "0" in (rows, columns):
        return NotImplemented
    fewer = str(min(int(rows), int(columns)))
    is_whole = node.attrs["complete"] and int(rows) > int(columns)
    name = "qr_complete" if is_whole else "qr_reduced"
    first = Loop("linalg", "qr_r_raw", f"{letter}->{letter}")
    second = Loop("linalg", name, f"{letter * 2}->{letter}")
    if not (numpy_loops.is_available(first) and numpy_loops.is_available(second)):
        return NotImplemented
    batch, stack = a.dims[:-2], low.sizes.product(a.dims[:-2])
    work, tau = low.arrays.copy(a), low.arrays.new(a.dtype, (*batch, fewer))
    arguments = [(work, (rows, columns)), (tau, (fewer,))]
    pointers = [work.pointer, tau.pointer]
    call_loop(low, first, pointers, [stack, rows, columns, fewer], _steps(low, arguments))
    k = rows if is_whole else fewer
    q = result_in_memory(low, node, 0, (*batch, rows, k))
    core = [rows, columns] if is_whole else [rows, columns, fewer]
    steps = _steps(low, [*arguments, (q, (rows, k))])
    call_loop(low, second, [*pointers, q.pointer], [stack, *core], steps)
    r = result_in_memory(low, node, 1, (*batch, k, columns))
    _copy_upper(low, work, r)
    for array in (work, tau):
        low.arrays.release(array.pointer)
    return [loaded_result(low, node, 0, q), loaded_result(low, node, 1, r)]


def _copy_upper(low: Lowering, source: Array, target: Array) -> None:
    """Copy the first rows of each matrix of a stack, with zeros below the diagonal."""
    rows, columns = target.dims[-2:]
    low.arrays.clear(target)

    def each(number: str) -> None:
        starts = [
            low.sizes.mul(number, low.sizes.product(array.dims[-2:])) for array in (source, target)
        ]
        for i in range(min(int(rows), int(columns))):
            offset = str(i * int(columns) + i)
            addresses = [low.sizes.add(start, offset) for start in starts]
            low.arrays.copy_run(target, addresses[1], source, addresses[0], str(int(columns) - i))

    low.w.loop(low.sizes.product(target.dims[:-2]), each)


def emit_has_factors(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit whether a decomposition of every matrix of a stack exists."""
    a, letter = low.array(node, 0), node.operands[0].tensor.dtype.char
    ufunc = "cholesky_lo" if node.attrs["factors"] == "cholesky" else "inv"
    loop = Loop("linalg", ufunc, f"{letter}->{letter}")
    if letter not in "dD" or not numpy_loops.is_available(loop) or "0" in a.dims[-2:]:
        return NotImplemented
    _check_core(low, [a])
    n, stack = a.dims[-1], low.sizes.product(a.dims[:-2])
    out = low.arrays.new(a.dtype, a.dims)
    steps = _steps(low, [(a, (n, n)), (out, (n, n))])
    call_loop(low, loop, [a.pointer, out.pointer], [stack, n], steps)
    succeeded = _are_numbers(low, out, stack, low.sizes.product(a.dims[-2:]))
    # Results of numbers that are not finite may be NaN, too: the kernel decides.
    is_plain = _are_finite(low, a)
    low.arrays.release(out.pointer)
    answered = low.w.define(f"or i1 {succeeded}, {is_plain}")
    result = Array(low.w.allocate("i8"), node.results[0].tensor.dtype, ())
    low.arrays.store(result, "0", succeeded)
    return or_by_kernel(low, node, operands, [result], answered)


def _are_finite(low: Lowering, array: Array) -> str:
    """Emit whether all numbers, or their parts, are finite."""
    kind, parts = Kind(real_of(array.dtype)), 2 if array.dtype.kind == "c" else 1
    flat = Array(array.pointer, kind.dtype, (low.sizes.mul(low.arrays.count(array), str(parts)),))

    def body(k: str, so_far: tuple[str, ...]) -> Sequence[str]:
        x = low.arrays.load(flat, k)
        gap = low.w.define(f"fsub {kind.text} {x}, {x}")
        return [
            low.w.define(
                f"and i1 {so_far[0]}, {low.w.define(f'fcmp ord {kind.text} {gap}, {gap}')}"
            )
        ]

    return low.w.fold(flat.dims[0], ["i1"], ["true"], body)[0]


def _are_numbers(low: Lowering, out: Array, stack: str, size: str) -> str:
    """Emit whether the first number of each result is one: NumPy's loops mark failures by NaN."""

    def is_found(k: str, so_far: tuple[str, ...]) -> Sequence[str]:
        kind = Kind(real_of(out.dtype))
        first = low.arrays.load_at(kind, low.arrays.address(out, low.sizes.mul(k, size)))
        is_number = low.w.define(f"fcmp ord {kind.text} {first}, {first}")
        return [low.w.define(f"and i1 {so_far[0]}, {is_number}")]

    return low.w.fold(stack, ["i1"], ["true"], is_found)[0]


def _check_core(low: Lowering, arrays: Sequence[Array]) -> None:
    """Trap unless stacks agree, and what NumPy wants to be square is."""
    square = arrays[0].dims[-2:]
    low.traps.check(low.sizes.equal(*square), BAD_SHAPE)
    for other in arrays[1:]:
        low.check_equal_dims((*arrays[0].dims[:-2], square[0]), other.dims[:-1])


def _steps(low: Lowering, arguments: Sequence[tuple[Array, Sequence[str]]]) -> list[str]:
    """Return the steps of a loop for arrays in C order, and their core shapes."""
    outer, inner = [], []
    for array, core in arguments:
        itemsize = str(array.dtype.itemsize)
        outer.append(low.sizes.mul(low.sizes.product(core), itemsize))
        inner += [low.sizes.mul(stride, itemsize) for stride in low.sizes.strides(core)]
    return [*outer, *inner]


def _loop_of(node: Node) -> Loop | None:
    """Return the loop that computes a node; None if there is none for its dtypes."""
    gufunc = gufunc_of(node)
    inputs, outputs = (
        "".join(value.tensor.dtype.char for value in values)
        for values in (node.operands, node.results)
    )
    if gufunc is None or not set(inputs) <= set("dD"):
        return None
    loop = Loop("linalg", gufunc.ufunc, f"{inputs}->{outputs}")
    return loop if numpy_loops.is_available(loop) else None


EMITTERS: Mapping[Op, Emit] = dict.fromkeys(
    (decompositions.eigh, decompositions.eig, decompositions.svd), emit_by_numpy
) | {factors.qr: emit_qr, linalg.has_factors: emit_has_factors}
