"""Loops and branches: basic blocks, and phis for what flows between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from wend.backends.native.analysis.list_classes import Arena, ListClass
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import BAD_INDEX
from wend.backends.native.emit.control.align_operands import align
from wend.backends.native.emit.control.precompute import emit_lookahead, find_lookahead
from wend.backends.native.emit.control.reserve_tape import reserve
from wend.backends.native.target.value_layout import Registers, is_scalar, registers
from wend.ir.graph import Graph, Node
from wend.ir.op import Op
from wend.ir.types import ListType, without_maybe
from wend.ops import creating
from wend.ops.control import IfParts, WhileParts, call, if_, while_

# After how many trips a loop of scalars alone reads the clock first
_FIRST_PAUSE = 16


def emit_while(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """A block for `before` and one for `after`; the carry is phis at the head of the former."""
    w, parts = low.w, WhileParts.of(node)
    count = len(parts.carry)
    starts = [
        low.arenas.copy(low.places.used(node, k), operands[k])
        if (node, k) in low.ownership.copied
        else low.owned(node, k, operands[k])
        for k in range(count)
    ]
    for region_params in (parts.before_invariants, parts.after_invariants):
        for param, value in zip(region_params, parts.invariants, strict=True):
            low.memory.borrow(param, value)
    starts = low.coerce_all(node, starts, parts.carry, parts.before_carry)
    types = [param.type for param in parts.before_carry]
    rest, moved = align(low, parts, operands[count:])
    reserve(low, parts, _tape_arenas(low, node, parts), starts)
    head, body, done = (w.new_label(hint) for hint in ("before", "after", "done"))
    outside = w.block
    w.jump(head)
    w.start(head)

    leaders = _leaders(low, node, parts)
    carry: list[Registers] = []
    closers = []
    for k, start in enumerate(starts):
        if leaders[k] != k:
            carry.append(carry[leaders[k]])
            continue
        phis = [w.open_phi(r, s, outside) for r, s in zip(registers(types[k]), start, strict=True)]
        carry.append(tuple(name for name, _ in phis))
        closers.append((k, [close for _, close in phis]))

    plan = find_lookahead(parts)
    left, close_left = w.open_phi("i64", "0", outside) if plan else ("0", None)
    rest_left = "0"

    given = low.coerce_all(node, rest, parts.invariants, parts.before_invariants)
    held = [True] * count + [False] * len(rest)
    (goes_on,), *forwarded = _region(low, parts.before, [*carry, *given], held)
    low.traps.node = node
    w.branch(goes_on, body, done)
    w.start(body)
    handed = low.coerce_all(node, forwarded, parts.forwarded, parts.after_forwarded)
    given = low.coerce_all(node, rest, parts.invariants, parts.after_invariants)
    held = [True] * len(handed) + [False] * len(rest)
    if plan:
        low.values.update(zip(parts.after.params, [*handed, *given], strict=True))
        rest_left = emit_lookahead(low, plan, left)
    found = _region(low, parts.after, [*handed, *given], held)
    low.traps.node = node
    following = low.coerce_all(node, found, parts.next_carry, parts.before_carry)
    if low.measures:
        low.measures.count_trip()
    is_scalars = all(map(is_scalar, types))
    low.safepoints.count_trip(low.safepoints.new_counter(_FIRST_PAUSE if is_scalars else 1))
    for k, fill_in in closers:
        for close, slot in zip(fill_in, following[k], strict=True):
            close(slot)
    if close_left:
        close_left(rest_left)
    w.jump(head)
    w.start(done)
    _settle_tapes(low, node, parts, forwarded)
    for pointer in moved:
        low.arrays.release(pointer)
    return low.coerce_all(node, forwarded, parts.forwarded, node.results)


def _leaders(low: Lowering, node: Node, parts: WhileParts) -> list[int]:
    """For each carry the first one whose registers it shares: tapes of one arena grow alike."""
    first: dict[Arena, int] = {}
    leaders = []
    for k in range(len(parts.carry)):
        place = _tape(low, node, parts, k)
        leaders.append(k if place is None else first.setdefault(place.arena, k))
    return leaders


def _tape(low: Lowering, node: Node, parts: WhileParts, carry: int) -> ListClass | None:
    if not isinstance(without_maybe(parts.before_carry[carry].type), ListType):
        return None
    place = low.places.of(parts.before_carry[carry])
    return place if place.tape is node else None


def _tape_arenas(low: Lowering, node: Node, parts: WhileParts) -> list[Arena]:
    places = (_tape(low, node, parts, k) for k in range(len(parts.carry)))
    return list(dict.fromkeys(place.arena for place in places if place is not None))


def _settle_tapes(
    low: Lowering, node: Node, parts: WhileParts, forwarded: Sequence[Registers]
) -> None:
    """Tell the arenas of the loop's tapes how far they are filled."""
    settled: set[Arena] = set()
    for value, slots in zip(parts.forwarded, forwarded, strict=True):
        if not isinstance(value.type, ListType):
            continue
        place = low.places.of(value)
        if place.tape is node and place.arena not in settled:
            low.arenas.set_fill(place.arena, low.arenas.end(slots))
            settled.add(place.arena)


def _region(
    low: Lowering, region: Graph, given: Sequence[Registers], held: Sequence[bool]
) -> list[Registers]:
    """A region of a loop; lists that do not outlive one run of it give their records back."""
    local = _local_arenas(low, region)
    fills = [low.arenas.fill(arena) for arena in local]
    low.trips += 1
    results = low.graph(region, given, held)
    low.trips -= 1
    for arena, fill in zip(local, fills, strict=True):
        low.arenas.truncate(arena, fill)
    return results


def _local_arenas(low: Lowering, region: Graph) -> list[Arena]:
    """The arenas of lists that are made in a region and do not leave it."""
    made = {p.arena: None for p in low.places.made_in(region)}
    seen = {
        place.arena
        for value in (*region.params, *region.results)
        for place in low.places.reach(value)
    }
    return [arena for arena in made if arena not in seen]


def emit_if(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """A block for each branch; the results are phis where they meet."""
    w, parts = low.w, IfParts.of(node)
    selector = operands[0][0]
    tables = _tables(parts)
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
    for value, is_moved in zip(parts.operands, moves, strict=True):
        if is_moved:
            low.memory.move(value)
    sources = []
    for label, branch in zip(labels, parts.branches, strict=True):
        w.start(label)
        inputs = low.coerce_all(node, operands[1:], parts.operands, branch.params)
        for param, value in zip(branch.params, parts.operands, strict=True):
            low.memory.borrow(param, value)
        found = low.graph(branch, inputs, moves)
        low.traps.node = node
        slots = low.coerce_all(node, found, branch.results, node.results)
        sources.append((slots, w.block))
        w.jump(done)
    w.start(done)
    return [
        w.merge(registers(result.type), [(slots[k], label) for slots, label in sources])
        for k, result in enumerate(node.results)
    ]


def _tables(parts: IfParts) -> list[np.ndarray] | None:
    """For each result what the branches give, where these are many and compute nothing.

    Such an `if` is an item of a list of numbers. As blocks LLVM would copy what follows for each.
    """
    branches = parts.branches
    nodes = [node for branch in branches for node in branch.nodes]
    results = list(zip(*(branch.results for branch in branches), strict=True))
    given = [value.node for values in results for value in values]
    is_table = all(node is not None and node.op is creating.constant for node in (*nodes, *given))
    if len(branches) <= 2 or not is_table or not all(is_scalar(v.type) for v, *_ in results):
        return None
    return [np.array([value.node.attrs["value"] for value in values]) for values in results]


def emit_call(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """The callee's nodes in place of the call."""
    (callee,) = node.regions
    moves = [low.may_move(value) for value in node.operands]
    for param, value, is_moved in zip(callee.params, node.operands, moves, strict=True):
        low.memory.borrow(param, value)
        if is_moved:
            low.memory.move(value)
    inputs = low.coerce_all(node, operands, node.operands, callee.params)
    found = low.graph(callee, inputs, moves)
    return low.coerce_all(node, found, callee.results, node.results)


EMITTERS: Mapping[Op, Emit] = {while_: emit_while, if_: emit_if, call: emit_call}
