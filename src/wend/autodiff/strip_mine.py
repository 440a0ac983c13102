"""Strip-mining of loops: what `memory="recompute"` and `Every(k)` differentiate (D31).

`while p: body` becomes `while p: call{recompute}(k trips of the same loop)`. The rule of the call
keeps what it starts from and nothing else, so the tape has one record for k trips. The loop is
rotated, so `before` runs once more than `after`, as in the loop itself.
"""

from __future__ import annotations

from wend.autodiff.loop_transpose import TRIP_COUNT
from wend.autodiff.rotate import Rotation, params_like
from wend.ir.graph import Graph, Node, Value
from wend.ops import elementwise
from wend.ops.build import Build
from wend.ops.control import AGAIN, PREDICATE


def strip_mined(node: Node, trips: int, *, recompute: bool = True, memory: str = "keep") -> Graph:
    """Return a graph with the operands and results of a loop, which keeps a record per segment.

    Args:
        node: the loop.
        trips: those of a segment.
        recompute: whether the record is what a segment starts from; else it is its whole tape.
        memory: the policy of the loop over segments.
    """
    rotation = Rotation(node)
    b = rotation.build("after")
    params = params_like(b, [*rotation.forwarded, *rotation.invariants])
    again = "" if memory == "keep" else AGAIN
    segment = rotation.trip("trip") if trips == 1 else _segment(rotation, trips, again)
    return rotation.graph(
        b.finish(b.call(segment, params, recompute=recompute).results), memory=memory
    )


def _segment(rotation: Rotation, trips: int, applied: str) -> Graph:
    """Make trips while the predicate holds, at most so many."""
    b = rotation.build("segment")
    forwarded = params_like(b, rotation.forwarded)
    invariants = params_like(b, rotation.invariants)
    carry = [b.constant(True), *forwarded, b.integer(0)]
    before, after = _segment_before(rotation, trips), _segment_after(rotation)
    return b.finish(b.while_(carry, invariants, before, after, applied=applied).results[:-1])


def _segment_before(rotation: Rotation, trips: int) -> Graph:
    b = rotation.build("before")
    predicate, forwarded, count, _ = _segment_params(b, rotation)
    is_within = b.lt(count, b.integer(trips))
    goes_on = b.emit(elementwise.bit_and, predicate, is_within)
    return b.finish([goes_on, predicate, *forwarded, count])


def _segment_after(rotation: Rotation) -> Graph:
    b = rotation.build("after")
    _, forwarded, count, invariants = _segment_params(b, rotation)
    results = rotation.append_trip(b, forwarded, invariants)
    return b.finish([*results, b.add(count, b.integer(1))])


def _segment_params(b: Build, rotation: Rotation) -> tuple[Value, list[Value], Value, list[Value]]:
    """Add the params predicate, forwarded…, trips made, invariants…"""
    predicate, forwarded = b.param(PREDICATE), params_like(b, rotation.forwarded)
    return predicate, forwarded, b.param(TRIP_COUNT), params_like(b, rotation.invariants)
