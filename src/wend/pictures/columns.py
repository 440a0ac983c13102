"""Where in its row each place of a drawing is, so that lines are short and straight."""

from __future__ import annotations

from collections.abc import Sequence

from wend.pictures.layers import Link, Place, sweeps

_SWEEPS, _VISITS = 16, 60_000


def set_columns(layers: Sequence[Sequence[Place]], gap: float) -> float:
    """Give each place its `x`, the left end; return how wide all is.

    Args:
        layers: the rows, each in order.
        gap: what is left free between two places.
    """
    for layer in layers:
        left = 0.0
        for place in layer:
            place.x = left
            left += place.width + gap
    count = sweeps(layers, _SWEEPS, _VISITS)
    for sweep in range(count):
        kind = ("above", "below", "both")[sweep % 3] if sweep < count - 1 else "both"
        for layer in reversed(layers) if kind == "below" else layers:
            _move(layer, gap, kind)
    least = min((place.x for layer in layers for place in layer), default=0.0)
    for layer in layers:
        for place in layer:
            place.x -= least
    return max((place.x + place.width for layer in layers for place in layer), default=0.0)


def _move(layer: Sequence[Place], gap: float, kind: str) -> None:
    """Move the places of a row to where their lines want them, as near as the order allows."""
    wanted, weights = [], []
    for place in layer:
        spots = []
        if kind != "below":
            spots += [(_aligned(link, up=True), _weight(link)) for link in place.above]
        if kind != "above":
            spots += [(_aligned(link, up=False), _weight(link)) for link in place.below]
        weight = sum(mine for _, mine in spots)
        wanted.append(sum(x * mine for x, mine in spots) / weight if spots else place.x)
        weights.append(8.0 if place.box < 0 else 0.2 + len(spots))
    for place, x in zip(layer, _separated(layer, wanted, weights, gap), strict=True):
        place.x = x


def _weight(link: Link) -> float:
    """A line that passes rows is to be straight before a box is in the middle."""
    return 8.0 if link.start.box < 0 and link.end.box < 0 else 1.0


def _aligned(link: Link, up: bool) -> float:
    """Where the place at one end would be were the link vertical."""
    if up:
        return link.start.x + link.start_port - link.end_port
    return link.end.x + link.end_port - link.start_port


def _separated(
    layer: Sequence[Place], wanted: Sequence[float], weights: Sequence[float], gap: float
) -> list[float]:
    """The nearest positions (least squares) in which nothing overlaps.

    Counted without the widths before it, a position must not be less than the one before:
    isotonic regression, by pooling neighbours that are in the wrong order.
    """
    offsets, offset = [], 0.0
    for place in layer:
        offsets.append(offset)
        offset += place.width + gap
    pools: list[list[float]] = []  # mean, weight, how many
    for k, x in enumerate(wanted):
        pools.append([x - offsets[k], weights[k], 1])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            mean, weight, count = pools.pop()
            last = pools[-1]
            last[0] = (last[0] * last[1] + mean * weight) / (last[1] + weight)
            last[1] += weight
            last[2] += count
    positions = [mean for mean, _, count in pools for _ in range(int(count))]
    return [x + offset for x, offset in zip(positions, offsets, strict=True)]
