"""Operations without code of their own: their NumPy kernel runs, called from native code."""

from __future__ import annotations

from collections.abc import Sequence

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.codegen.traps import HOST
from wend.backends.native.target.value_layout import (
    SLOT_BYTES,
    Registers,
    refuse,
    registers,
)
from wend.ir.graph import Node
from wend.ir.types import ListType, Type, without_maybe


def emit_host(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """The call of the kernel of a node that has no code."""
    if node.op.kernel is None:
        raise refuse(node, "it has no code and no kernel for this operation")
    low.slow_nodes.append(node)
    return run_on_host(low, node, operands)


def run_on_host(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Operands into the frame, the call, results out of it."""
    give_kernel(low, node, operands, gives=True)
    with_lists = any(map(_has_list, (*node.operands, *node.results)))
    status = run_kernel(low, with_lists=with_lists)
    low.traps.check(low.w.define(f"icmp eq i32 {status}, 0"), HOST)
    if any(map(_has_list, node.results)):
        low.arenas.reload("%arenas")
    results = []
    offset = sum(SLOT_BYTES * len(registers(value.type)) for value in node.operands)
    for value in node.results:
        slots, offset = load(low, "%frame", offset, value.type)
        results.append(slots)
    return results


def give_kernel(
    low: Lowering, node: Node, operands: Sequence[Registers], *, gives: bool = False
) -> None:
    """Say which kernel Python is to run, and on what.

    Where it `gives`, its results will lie in the frame after the operands.
    """
    number = len(low.host_nodes)
    low.host_nodes.append((node, gives))
    offset = 0
    for value, slots in zip(node.operands, operands, strict=True):
        offset = store(low, "%frame", offset, value.type, slots)
    low.w.do(f"store i64 {number}, ptr %host.number")


def run_kernel(low: Lowering, *, with_lists: bool = True) -> str:
    """Call Python; return 0 or that there is an exception: an i32.

    `with_lists` says whether there are lists among the operands or results.
    """
    if with_lists:
        low.arenas.leave("%arenas", for_good=False)
    return low.w.define("call i32 @wend.python(ptr %python)")


def frame_size(node: Node) -> int:
    """The bytes that its operands and results take."""
    values = (*node.operands, *node.results)
    return SLOT_BYTES * sum(len(registers(value.type)) for value in values)


def _has_list(value: object) -> bool:
    type: Type = value.type  # type: ignore[attr-defined]
    return isinstance(without_maybe(type), ListType)


def store(low: Lowering, block: str, offset: int, type: Type, slots: Registers) -> int:
    """Put slots into a block of memory; return where the next go."""
    for register, slot in zip(registers(type), slots, strict=True):
        place = low.w.define(f"getelementptr i8, ptr {block}, i64 {offset}")
        kept, value = register, slot
        if register == "i1":
            kept, value = "i8", low.w.define(f"zext i1 {slot} to i8")
        low.w.do(f"store {kept} {value}, ptr {place}, align 8")
        offset += SLOT_BYTES
    return offset


def load(low: Lowering, block: str, offset: int, type: Type) -> tuple[Registers, int]:
    """Get slots from a block of memory; also where the next are."""
    slots = []
    for register in registers(type):
        place = low.w.define(f"getelementptr i8, ptr {block}, i64 {offset}")
        kept = "i8" if register == "i1" else register
        value = low.w.define(f"load {kept}, ptr {place}, align 8")
        slots.append(low.w.define(f"icmp ne i8 {value}, 0") if register == "i1" else value)
        offset += SLOT_BYTES
    return tuple(slots), offset
