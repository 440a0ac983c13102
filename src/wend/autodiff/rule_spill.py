"""The adjoint of a loop with `memory="spill"`: its tape leaves memory by segments (D31).

The loop runs in segments of so many trips, each with the tape of `"keep"`. When a segment ends, its
tape is written; the backward loop reads it before it goes back through the segment. Trips run once.
The derivative is that of the loop, and of its strip-mined gradient.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.autodiff.activity import RegionActivity
from wend.autodiff.copied_carries import pushed_types
from wend.autodiff.cotangents import Cotangent, instantiate_or_zeros
from wend.autodiff.loop_transpose import LoopCotangentActivity
from wend.autodiff.region_transpose import RegionTranspose, transpose_region
from wend.autodiff.residuals import estimated_bytes
from wend.autodiff.rotate import params_like
from wend.autodiff.rule_schedule import (
    ScheduledLoop,
    operand_positions,
    plain_backward,
    pull_back_scheduled_loop,
    scheduled_forward,
)
from wend.autodiff.strip_mine import strip_mined
from wend.autodiff.transpose import BackwardPass, Transposer
from wend.base.zero import ZERO
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import ListType
from wend.ops.build import Build
from wend.ops.control import WhileParts

_SEGMENT_BYTES = 1 << 22
_SEGMENTS_IN_LIMIT = 16
_PLAIN_SEGMENT = 16  # trips, of the form that derivatives are taken of


def pull_back_spilled(
    t: Transposer,
    bwd: BackwardPass,
    node: Node,
    cts: Sequence[Cotangent],
    trip_by_trip: Sequence[Node],
) -> None:
    """Append the backward pass of a loop whose tape is spilled.

    Args:
        t: the transposer.
        bwd: the backward pass.
        node: the loop.
        cts: the cotangents of its results.
        trip_by_trip: the nodes that replace it by `"keep"`.
    """
    trips = _trips_of_segment(node, trip_by_trip[-1])

    def make(nonzero: LoopCotangentActivity, _: RegionActivity) -> ScheduledLoop:
        segments = strip_mined(node, trips, recompute=False)
        seeds = {i: segments.result_types[i] for i in nonzero.forwarded}
        transposed = transpose_region(t, segments, operand_positions(node, nonzero), seeds)
        read = transposed.residuals(segments.params)
        residuals = [value for value in read if value not in segments.params]
        forward = scheduled_forward(node, transposed.with_residuals("spilling", residuals))
        backward = _backward(node, nonzero, transposed, residuals)
        plain = plain_backward(t, node, nonzero, backward, _PLAIN_SEGMENT)
        return ScheduledLoop(forward, nonzero, backward, plain)

    pull_back_scheduled_loop(t, bwd, node, cts, make)


def _trips_of_segment(node: Node, keeping: Node) -> int:
    """Return how many trips a segment has, from the loop that keeps all records.

    The tape of an inner loop may have any size, so there a segment is one trip.
    """
    types = pushed_types(keeping)
    if any(isinstance(type, ListType) for type in types):
        return 1
    limit = WhileParts.of(node).limit
    size = limit // _SEGMENTS_IN_LIMIT if limit else _SEGMENT_BYTES
    return max(1, int(size / max(1.0, sum(map(estimated_bytes, types)))))


def _backward(
    node: Node,
    nonzero: LoopCotangentActivity,
    transposed: RegionTranspose,
    residuals: Sequence[Value],
) -> Graph:
    """Return (operands, residuals, cotangents) → cotangents of operands."""
    b = Build("way_back")
    b.source = node.source
    params = params_like(b, transposed.graph.params)
    mapping = dict(zip(transposed.graph.params, params, strict=True))
    mapping |= {value: b.param(value.type) for value in residuals}
    mapping |= {seed: b.param(seed.type) for seed in transposed.seeds.values()}
    grads = transposed.append_backward(b, mapping)
    positions = operand_positions(node, nonzero)
    return b.finish([instantiate_or_zeros(b, grads.get(k, ZERO), params[k]) for k in positions])
