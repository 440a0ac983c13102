"""What a run finds: a figure for each workload, measure and peer."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.peers import CATALOGUE


@dataclass(slots=True)
class Figure:
    """What one peer did.

    Attributes:
        samples: seconds of a call (bytes, for memory), one for each round.
        calls: how many calls a sample is the mean of.
        refuses: why there are none.
        off: how far its answer is from the right one, relative to the largest number.
        wrong: the answer, where that is further than it may be.
        note: what it has to say of itself.
    """

    samples: list[float] = field(default_factory=list)
    calls: int = 1
    refuses: str = ""
    off: float = 0.0
    wrong: list[float] = field(default_factory=list)
    note: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.samples)


@dataclass(slots=True)
class Results:
    """The figures of one workload.

    Attributes:
        trips: how many trips a call makes, or None.
        answer: the right one.
        figures: measure → peer → figure.
    """

    workload: str
    title: str
    runs: int
    trips: int | None
    answer: list[float]
    figures: dict[str, dict[str, Figure]]
    versions: dict[str, str] = field(default_factory=dict)

    def figure(self, measure: str, peer: str) -> Figure | None:
        """Return what a peer did, where it did something."""
        found = self.figures.get(measure, {}).get(peer)
        return found if found is not None and found.samples else None

    def peers(self) -> Iterator[str]:
        """Yield the peers that have something to show, in the catalogue's order."""
        shown = {peer for row in self.figures.values() for peer in row}
        yield from (peer for peer in CATALOGUE if peer in shown)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
