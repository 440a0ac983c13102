"""One loop for all elements, whose lanes take the next element when one is done."""

from __future__ import annotations

from wend.backends.native.emit.lanes.elements import LaneElements
from wend.backends.native.emit.lanes.vectors import numbers
from wend.ir.graph import Node
from wend.ops.control import WhileParts

# One in so many lanes may wait for a refill
_WAITING_SHARE = 4


def emit_refilled(elements: LaneElements, loop: Node) -> None:
    """Emit a body with one loop."""
    w, regions, lanes = elements.low.w, elements.regions, elements.lanes
    p, columns_count = WhileParts.of(loop), len(elements.arrays)
    at = elements.body.nodes.index(loop)
    before, after = elements.body.nodes[:at], elements.body.nodes[at + 1 :]
    mask = elements.in_range(numbers(lanes))
    elements.emit_nodes(before, elements.loaded("0", mask, None), mask)
    starts = [regions.values[x] for x in loop.operands]
    entry, head, refill, again, done = (
        w.block,
        *map(w.new_label, ("head", "refill", "again", "done")),
    )
    w.branch(w.define(f"icmp sgt i64 {elements.count}, 0"), head, done)
    w.start(head)
    state = [*elements.columns, *p.before_carry, *p.before_invariants]
    phis = [w.open_phi(elements.word.text, numbers(lanes), entry)]
    phis.append(w.open_phi("i64", str(lanes), entry))
    firsts = [*(regions.values[x] for x in elements.columns), *starts]
    phis += [
        w.open_phi(regions.kind(x).text, first, entry)
        for x, first in zip(state, firsts, strict=True)
    ]
    index, following, *values = (name for name, _ in phis)
    columns, carry = values[:columns_count], values[columns_count:]
    carry, invariants = carry[: len(p.carry)], carry[len(p.carry) :]
    active = elements.in_range(index)
    test, *forwarded = regions.emit(p.before, [*carry, *invariants], active)
    goes_on = regions.both(active, test)
    is_done = w.define(f"xor {regions.flags.text} {active}, {goes_on}")
    next_carry = regions.emit(p.after, [*forwarded, *invariants], goes_on)
    next_carry = regions.choose(goes_on, p.next_carry, next_carry, carry)
    done_count = elements.number_of(is_done)
    is_time = is_time_to_refill(elements, done_count, goes_on)
    from_trip = w.block
    w.branch(is_time, refill, again)
    w.start(refill)
    elements.emit_nodes(before, columns, active)
    regions.values.update(zip(loop.results, forwarded, strict=True))
    regions.emit_nodes(after, is_done)
    elements.scatter(index, is_done)
    new_index = regions.select(elements.word, is_done, elements.taken(following, is_done), index)
    in_range = elements.in_range(new_index)
    fresh = regions.both(is_done, in_range)
    new_columns = elements.loaded(following, fresh, columns)
    elements.emit_nodes(before, new_columns, fresh)
    operands = [regions.values[x] for x in loop.operands]
    new_carry = regions.choose(fresh, p.carry, operands[: len(p.carry)], next_carry)
    new_following = w.define(f"add i64 {following}, {done_count}")
    refilled = [new_index, new_following, *new_columns, *new_carry, *operands[len(p.carry) :]]
    from_refill = w.block
    w.branch(regions.any(in_range), again, done)
    w.start(again)
    stayed = [index, following, *columns, *next_carry, *invariants]
    types = [elements.word.text, "i64", *(regions.kind(x).text for x in state)]
    merged = w.merge(types, [(stayed, from_trip), (refilled, from_refill)])
    regions.end_trip()
    for (_, close), value in zip(phis, merged, strict=True):
        close(value)
    w.jump(head)
    w.start(done)


def is_time_to_refill(elements: LaneElements, done_count: str, goes_on: str) -> str:
    """Emit whether so many lanes wait that they take the next elements, or none goes on."""
    w = elements.low.w
    waiting = w.define(f"mul i64 {done_count}, {_WAITING_SHARE}")
    is_time = w.define(f"icmp sge i64 {waiting}, {elements.lanes}")
    none = w.define(f"xor i1 {elements.regions.any(goes_on)}, true")
    return w.define(f"or i1 {is_time}, {none}")
