"""Host calls: an operation without an emitter runs its NumPy kernel, called from native code."""

from __future__ import annotations

from collections.abc import Sequence

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.codegen.traps import HOST
from wend.backends.native.target.platform import platform
from wend.backends.native.target.value_layout import SLOT_BYTES, Registers, refuse, registers
from wend.base.errors import UnsupportedError, explain
from wend.base.source import at
from wend.ir.graph import Node
from wend.ir.types import ListType, Type, without_maybe


def emit_host(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Emit a call of the NumPy kernel of a node that has no emitter."""
    if not platform().is_process:
        raise refuse_without_python(node)
    if node.op.kernel is None:
        raise refuse(node, "it has no code and no kernel for this operation")
    low.slow_nodes.append(node)
    return run_on_host(low, node, operands)


def run_on_host(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Emit a host call: operands are stored in the frame, results loaded from it."""
    prepare_host_call(low, node, operands, returns_results=True)
    with_lists = any(map(_has_list, (*node.operands, *node.results)))
    status = call_host(low, with_lists=with_lists)
    low.traps.check(low.w.define(f"icmp eq i32 {status}, 0"), HOST)
    if any(map(_has_list, node.results)):
        low.arenas.reload("%arenas")
    results = []
    offset = sum(SLOT_BYTES * len(registers(value.type)) for value in node.operands)
    for value in node.results:
        slots, offset = load_slots(low, "%frame", offset, value.type)
        results.append(slots)
    return results


_BY_LAPACK = ("solve", "lu_factor", "lu_solve", "cholesky")


def refuse_without_python(node: Node) -> UnsupportedError:
    """Return the error for a node that only Python, NumPy or SciPy can compute."""
    if node.op.name == "dot_general" or node.op.name in _BY_LAPACK:
        needs = "sizes above 64, or known at run time only, need BLAS and LAPACK"
        cure = "leave --no-blas out, and link with a BLAS; or make its sizes static and small."
    else:
        needs, cure = "Python, NumPy or SciPy would compute it", "compute it otherwise."
    name, action = node.op.name, node.attrs.get("action")
    if action is not None:
        name = action.name
        cure = cure if action.draw is None else "draw with wend.random, from a key."
    what = f"`{name}`{at(node.source)} has no code that runs without Python: {needs}."
    return UnsupportedError(explain(what, cure=cure))


def prepare_host_call(
    low: Lowering, node: Node, operands: Sequence[Registers], *, returns_results: bool = False
) -> None:
    """Store the number of the kernel that Python must run, and its operands.

    If it `returns_results`, they follow the operands in the frame.
    """
    number = len(low.host_nodes)
    low.host_nodes.append((node, returns_results))
    offset = 0
    for value, slots in zip(node.operands, operands, strict=True):
        offset = store_slots(low, "%frame", offset, value.type, slots)
    low.w.do(f"store i64 {number}, ptr %host.number")


def call_host(low: Lowering, *, with_lists: bool = True) -> str:
    """Call Python; return 0, or a nonzero i32 if it raised.

    `with_lists` says whether the operands or results include lists.
    """
    if with_lists:
        low.arenas.leave("%arenas", reset=False)
    return low.w.define("call i32 @wend.python(ptr %python)")


def frame_size(node: Node) -> int:
    """Return the size in bytes of the operands and results of a node in the frame."""
    values = (*node.operands, *node.results)
    return SLOT_BYTES * sum(len(registers(value.type)) for value in values)


def _has_list(value: object) -> bool:
    """Return whether the type of a value is a list."""
    type: Type = value.type  # type: ignore[attr-defined]
    return isinstance(without_maybe(type), ListType)


def store_slots(low: Lowering, block: str, offset: int, type: Type, slots: Registers) -> int:
    """Store slots in a block of memory; return the offset behind them."""
    for register, slot in zip(registers(type), slots, strict=True):
        address = low.w.define(f"getelementptr i8, ptr {block}, i64 {offset}")
        low.w.store(register, slot, address, ", align 8")
        offset += SLOT_BYTES
    return offset


def load_slots(low: Lowering, block: str, offset: int, type: Type) -> tuple[Registers, int]:
    """Load slots from a block of memory; return them and the offset behind them."""
    slots = []
    for register in registers(type):
        address = low.w.define(f"getelementptr i8, ptr {block}, i64 {offset}")
        slots.append(low.w.load(register, address, ", align 8"))
        offset += SLOT_BYTES
    return tuple(slots), offset
