"""Loops, branches and calls: basic blocks, and phis for the values that flow between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from wend.backends.native.analysis.list_classes import Arena
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import BAD_INDEX
from wend.backends.native.emit.array.in_place import unique_pointer
from wend.backends.native.emit.control.align_operands import align_invariants
from wend.backends.native.emit.control.loop_blocks import emit_loop, tape_class
from wend.backends.native.emit.control.reserve_tape import reserve_tape
from wend.backends.native.target.value_layout import Registers, is_scalar, registers
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ir.types import ListType
from wend.ops import creating
from wend.ops.control import IfParts, WhileParts, call, if_, while_


def emit_while(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Emit a loop; its carry is owned, and its invariants are borrowed."""
    parts = WhileParts.of(node)
    count = len(parts.carry)
    starts = [
        low.arenas.copy(low.list_classes.of_use(node, k), operands[k])
        if (node, k) in low.ownership.copied
        else _owned_array(low, node, k, operands[k])
        if _has_unique_carry(low, node, k)
        else low.owned(node, k, operands[k])
        for k in range(count)
    ]
    for params in (parts.before_invariants, parts.after_invariants):
        for param, value in zip(params, parts.invariants, strict=True):
            low.refcounts.borrow(param, value)
    starts = low.coerce_all(node, starts, parts.carry, parts.before_carry)
    invariant_slots, aligned_copies = align_invariants(low, parts, operands[count:])
    reserve_tape(low, parts, _tape_arenas(low, node, parts), starts)
    forwarded = emit_loop(low, node, parts, starts, invariant_slots)
    _set_tape_fills(low, node, parts, forwarded)
    for pointer in aligned_copies:
        low.arrays.release(pointer)
    return low.coerce_all(node, forwarded, parts.forwarded, node.results)


def _has_unique_carry(low: Lowering, node: Node, k: int) -> bool:
    """Return whether a carry can be the only reference to its array, and record that it is.

    Where the start may be shared, it is copied before the loop; that must not cost more than the
    copy in the first trip which it replaces.
    """
    unshared = low.unique_references.unique_carry(node, k)
    if unshared is None:
        return False
    value = node.operands[k]
    is_unique = value in low.unique_references.unique and low.may_move(value)
    if not (is_unique or unshared.is_updated or not low.loop_depth):
        return False
    parts = WhileParts.of(node)
    low.unique_references.unique.update(
        (
            parts.before_carry[k],
            parts.forwarded[unshared.forwarded],
            parts.after_forwarded[unshared.forwarded],
        )
    )
    low.add_unique_result(node.results[unshared.forwarded])
    return True


def _owned_array(low: Lowering, node: Node, k: int, slots: Registers) -> Registers:
    """Return an array as an owned reference that is the only one."""
    value = node.operands[k]
    is_unique = value in low.refcounts.foreign or (
        value in low.unique_references.unique and low.may_move(value)
    )
    slots = low.owned(node, k, slots)
    if is_unique:
        return slots
    return (unique_pointer(low, low.arrays.of(value.tensor, slots)), *slots[1:])


def _tape_arenas(low: Lowering, node: Node, parts: WhileParts) -> list[Arena]:
    """Return the arenas of the loop's tapes."""
    tapes = (tape_class(low, node, parts, k) for k in range(len(parts.carry)))
    return list(dict.fromkeys(tape.arena for tape in tapes if tape is not None))


def _set_tape_fills(
    low: Lowering, node: Node, parts: WhileParts, forwarded: Sequence[Registers]
) -> None:
    """Store the fill of the arenas of the loop's tapes."""
    updated: set[Arena] = set()
    for value, slots in zip(parts.forwarded, forwarded, strict=True):
        if not isinstance(value.type, ListType):
            continue
        list_class = low.list_classes.of(value)
        if list_class.tape is node and list_class.arena not in updated:
            low.arenas.set_fill(list_class.arena, low.arenas.end(slots))
            updated.add(list_class.arena)


def emit_if(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Emit a block per branch; the results are phis in the block where they meet."""
    w, parts = low.w, IfParts.of(node)
    selector = operands[0][0]
    tables = _constant_tables(parts)
    if tables is not None:
        low.traps.check(w.define(f"icmp ult i64 {selector}, {len(parts.branches)}"), BAD_INDEX)
        return [(low.arrays.load(low.constant(table), selector),) for table in tables]
    labels = [w.new_label("branch") for _ in parts.branches]
    done = w.new_label("joined")
    if parts.selector.type.dtype.kind == "b":  # type: ignore[union-attr]
        if len(labels) == 1:
            w.jump(labels[0])
        else:
            w.branch(selector, labels[1], labels[0])
    else:
        cases = " ".join(f"i64 {k}, label %{label}" for k, label in enumerate(labels))
        w.do(f"switch i64 {selector}, label %{low.traps.label(BAD_INDEX)} [ {cases} ]")
    moves = [low.may_move(value) for value in parts.operands]
    _follow_unique_operands(low, node, parts, moves)
    for value, is_moved in zip(parts.operands, moves, strict=True):
        if is_moved:
            low.refcounts.move(value)
    incoming = []
    for label, branch in zip(labels, parts.branches, strict=True):
        w.start(label)
        inputs = low.coerce_all(node, operands[1:], parts.operands, branch.params)
        for param, value in zip(branch.params, parts.operands, strict=True):
            low.refcounts.borrow(param, value)
        branch_results = low.emit_graph(branch, inputs, moves)
        low.traps.node = node
        slots = low.coerce_all(node, branch_results, branch.results, node.results)
        incoming.append((slots, w.block))
        w.jump(done)
    w.start(done)
    return [
        w.merge(registers(result.type), [(slots[k], label) for slots, label in incoming])
        for k, result in enumerate(node.results)
    ]


def _follow_unique_operands(
    low: Lowering, node: Node, parts: IfParts, moves: Sequence[bool]
) -> None:
    """Record what the branches receive, and give back, as the only reference to an array."""
    unique = low.unique_references.unique
    for k, (value, is_moved) in enumerate(zip(parts.operands, moves, strict=True)):
        if value in unique and is_moved:
            result = low.unique_references.unique_result(node, k)
            if result is not None:
                unique.update(branch.params[k] for branch in parts.branches)
                low.add_unique_result(node.results[result])


def _constant_tables(parts: IfParts) -> list[np.ndarray] | None:
    """Return a table of constants per result if an `if` has many branches that are all constants.

    Such an `if` reads an item of a list of numbers. With blocks, LLVM would copy the code that
    follows into each of them.
    """
    branches = parts.branches
    nodes = [node for branch in branches for node in branch.nodes]
    results = list(zip(*(branch.results for branch in branches), strict=True))
    result_nodes = [value.node for values in results for value in values]
    is_table = all(
        node is not None and node.op is creating.constant for node in (*nodes, *result_nodes)
    )
    if len(branches) <= 2 or not is_table or not all(is_scalar(v.type) for v, *_ in results):
        return None
    return [np.array([value.node.attrs["value"] for value in values]) for values in results]


def emit_call(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Emit the nodes of the callee inline."""
    (callee,) = node.regions
    moves = [low.may_move(value) for value in node.operands]
    for param, value, is_moved in zip(callee.params, node.operands, moves, strict=True):
        low.refcounts.borrow(param, value)
        if is_moved:
            low.refcounts.move(value)
    inputs = low.coerce_all(node, operands, node.operands, callee.params)
    callee_results = low.emit_graph(callee, inputs, moves)
    return low.coerce_all(node, callee_results, callee.results, node.results)


EMITTERS: Mapping[Op, Emit] = {while_: emit_while, if_: emit_if, call: emit_call}
