"""Tapes in the memory of the host: what `memory="offload"` makes of the segments of a loop.

A list of segments is arrays in the host's memory. A segment is on its way while the loop makes the
next one: the forward loop carries the segment before, which it writes in the trip after, and the
backward loop carries the one that it has read ahead. So a device has two segments at a time, and
XLA may copy one while it computes with the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from wend.backends.jax.lowering import GraphLowering, Repeat, unsized
from wend.backends.jax.trips import Countdown, find_countdown
from wend.backends.jax.values import DeviceList, Stacked, TapeSegment, read_segment, write_segment
from wend.base.errors import UnsupportedError, explain
from wend.base.lazy.dataclass import dataclass
from wend.base.refusals import refusal
from wend.ir.graph import Node
from wend.ops import lists
from wend.ops.control import WhileParts
from wend.ops.spilling import spill, unspill


def segment_of(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> TapeSegment:
    """Return the segment of what a node spills; it is still on the device.

    Raises:
        UnsupportedError: its loop is in another one, in a branch or in a map.
    """
    if ctx.enclosing[:-1]:
        raise refusal(
            UnsupportedError(
                explain(
                    f'the loop{node.attrs["loop"]} has memory="offload", and is in '
                    f"{ctx.enclosing[0]}: only loops outside of all others move their tapes.",
                    cure="give the policy to the outermost loop, whose segments then have the "
                    'tape of this one; or use memory="thin" or wend.Checkpoints(slots) here.',
                )
            )
        )
    values = [x.items if isinstance(x, Stacked) else x for x in operands]
    return TapeSegment(jax.tree.map(jnp.asarray, tuple(map(unsized, values))))


def value_in(segment: TapeSegment, node: Node) -> Any:
    """Return the value of a segment that a node asks for; rows of a list are an array."""
    value = segment.values[node.attrs["index"]]
    is_list = isinstance(value, DeviceList)
    return value.items if is_list and node.attrs["is_stacked"] else value


def push(ctx: GraphLowering, node: Node, list: DeviceList, segment: TapeSegment) -> TapeSegment:
    """Return the segments of a list after a push, which writes the segment before this one."""
    list_class = ctx.classes.of_use(node, 0)
    assert list_class is not None
    spec = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), segment)
    if ctx.segments.get(list_class.number) != spec:
        ctx.segments[list_class.number] = spec
        raise Repeat
    before, ctx.in_flight[node] = ctx.in_flight[node], segment
    return write_segment(list.items, before, jnp.maximum(list.length - 1, 0))


def get(ctx: GraphLowering, node: Node, list: DeviceList, index: Any) -> TapeSegment:
    """Return the segment at a position; the one that is read next is on its way."""
    countdown = ctx.countdowns.get(node)
    if countdown is None:
        return read_segment(list.items, index)
    segment: TapeSegment = ctx.in_flight[node]
    ctx.in_flight[node] = read_segment(list.items, index - countdown.step)
    return segment


@dataclass(frozen=True, slots=True)
class SegmentsInFlight:
    """The segments that a loop has in flight.

    Attributes:
        pushes: the nodes that push segments.
        gets: the nodes that get segments in order, from the last one on.
    """

    pushes: Sequence[Node]
    gets: Mapping[Node, Countdown]

    @staticmethod
    def of(w: WhileParts, invariants: Sequence[Any]) -> SegmentsInFlight:
        """Return what a loop with some invariants has in flight."""
        nodes = [node for region in (w.before, w.after) for node in region.nodes]
        spilled = {node.results[0] for node in nodes if node.op is spill}
        unspilled = {node.operands[0] for node in nodes if node.op is unspill}
        pushes = [n for n in nodes if n.op is lists.list_push and n.operands[1] in spilled]
        gets = {}
        for node in nodes:
            if node.op is lists.list_get and node.results[0] in unspilled:
                countdown = find_countdown(w, node, invariants)
                if countdown is not None:
                    gets[node] = countdown
        return SegmentsInFlight(pushes, gets)

    def start(self, ctx: GraphLowering, carry: Sequence[Any], invariants: Sequence[Any]) -> None:
        """Set what is in flight before the first trip."""
        for node in self.pushes:
            list_class = ctx.classes.of_use(node, 0)
            assert list_class is not None
            spec = ctx.segments.get(list_class.number)
            ctx.in_flight[node] = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), spec)
        for node, countdown in self.gets.items():
            list = invariants[countdown.list]
            if isinstance(list.items, TapeSegment):
                ctx.countdowns[node] = countdown
                first = jnp.asarray(carry[countdown.counter]) + countdown.offset
                ctx.in_flight[node] = read_segment(list.items, first)

    def state(self, ctx: GraphLowering) -> list[Any]:
        """Return what is in flight, as the loop carries it."""
        return [ctx.in_flight.get(node) for node in (*self.pushes, *self.gets)]

    def resume(self, ctx: GraphLowering, state: Sequence[Any]) -> None:
        """Go on with what a trip has in flight."""
        ctx.in_flight.update(zip((*self.pushes, *self.gets), state, strict=True))

    def finish(self, ctx: GraphLowering, result: Any, list_class: Any) -> Any:
        """Return a result of the loop after the last segment of its list is written."""
        for node in self.pushes:
            if ctx.classes.of_use(node, 0) is list_class:
                last = jnp.maximum(result.length - 1, 0)
                items = write_segment(result.items, ctx.in_flight[node], last)
                return DeviceList(items, result.length, result.size)
        return result
