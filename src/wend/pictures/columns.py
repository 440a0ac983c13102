"""The horizontal position of each slot of a drawing, chosen for short and straight edges."""

from __future__ import annotations

from collections.abc import Sequence

from wend.pictures.layers import EdgeSegment, Slot, sweep_count

_MAX_SWEEPS, _MAX_SLOT_VISITS = 16, 60_000  # as in `layers.py`


def assign_columns(layers: Sequence[Sequence[Slot]], gap: float) -> float:
    """Set the left end `x` of each slot; return the total width.

    Args:
        layers: the rows, each in order.
        gap: the minimum distance between two slots.
    """
    for layer in layers:
        left = 0.0
        for slot in layer:
            slot.x = left
            left += slot.width + gap
    count = sweep_count(layers, _MAX_SWEEPS, _MAX_SLOT_VISITS)
    for sweep in range(count):
        neighbors = ("above", "below", "both")[sweep % 3] if sweep < count - 1 else "both"
        for layer in reversed(layers) if neighbors == "below" else layers:
            _move_layer(layer, gap, neighbors)
    leftmost = min((slot.x for layer in layers for slot in layer), default=0.0)
    for layer in layers:
        for slot in layer:
            slot.x -= leftmost
    return max((slot.x + slot.width for layer in layers for slot in layer), default=0.0)


def _move_layer(layer: Sequence[Slot], gap: float, neighbors: str) -> None:
    """Move the slots of a row towards their neighbors, as far as the order allows."""
    targets, weights = [], []
    for slot in layer:
        alignments = []
        if neighbors != "below":
            alignments += [
                (_aligned_x(segment, up=True), _straightness(segment)) for segment in slot.above
            ]
        if neighbors != "above":
            alignments += [
                (_aligned_x(segment, up=False), _straightness(segment)) for segment in slot.below
            ]
        weight = sum(share for _, share in alignments)
        targets.append(sum(x * share for x, share in alignments) / weight if alignments else slot.x)
        weights.append(8.0 if slot.box < 0 else 0.2 + len(alignments))
    for slot, x in zip(layer, _without_overlap(layer, targets, weights, gap), strict=True):
        slot.x = x


def _straightness(segment: EdgeSegment) -> float:
    """Return the weight of a segment: straight passing edges matter more than centered boxes."""
    return 8.0 if segment.start.box < 0 and segment.end.box < 0 else 1.0


def _aligned_x(segment: EdgeSegment, up: bool) -> float:
    """Return the position of the slot at one end that makes the segment vertical."""
    if up:
        return segment.start.x + segment.start_port - segment.end_port
    return segment.end.x + segment.end_port - segment.start_port


def _without_overlap(
    layer: Sequence[Slot], targets: Sequence[float], weights: Sequence[float], gap: float
) -> list[float]:
    """Return the nearest positions (least squares) in which no slots overlap.

    Relative to the widths before it, no position may be less than its predecessor: this is isotonic
    regression, by pooling adjacent violators.
    """
    offsets, offset = [], 0.0
    for slot in layer:
        offsets.append(offset)
        offset += slot.width + gap
    pools: list[list[float]] = []  # mean, weight, number of slots
    for k, x in enumerate(targets):
        pools.append([x - offsets[k], weights[k], 1])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            mean, weight, count = pools.pop()
            last = pools[-1]
            last[0] = (last[0] * last[1] + mean * weight) / (last[1] + weight)
            last[1] += weight
            last[2] += count
    positions = [mean for mean, _, count in pools for _ in range(int(count))]
    return [x + offset for x, offset in zip(positions, offsets, strict=True)]
