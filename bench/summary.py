"""Geometric means of how many times wend's peers take, over the workloads of a group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from bench.figures import Results
from bench.peers import CATALOGUE
from bench.workload import GRADIENT, VALUE
from bench.workloads import GROUPS

OWN = "wend"


def lines(found: Mapping[str, Results]) -> Iterator[str]:
    """Yield a line for each group and measure of which there are two workloads or more."""
    for group in GROUPS:
        for measure in (VALUE, GRADIENT):
            means = []
            for peer in CATALOGUE:
                ratios = over(found, group, measure, peer)
                if len(ratios) > 1 and peer != OWN:
                    means.append(f"{CATALOGUE[peer].label} {mean(ratios):.2f}× ({len(ratios)})")
            if means:
                yield f"{group}, {measure}, geometric means: {', '.join(means)}"


def over(found: Mapping[str, Results], group: str, measure: str, peer: str) -> list[float]:
    """Return how many times wend's a peer takes, where both are right."""
    ratios = []
    for name in GROUPS[group]:
        if name in found:
            own, other = (found[name].figure(measure, who) for who in (OWN, peer))
            if own and other and not own.wrong and not other.wrong:
                ratios.append(other.median / own.median)
    return ratios


def mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))
