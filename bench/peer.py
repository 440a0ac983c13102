"""What a peer is: a library that runs workloads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from bench import digest
from bench.workload import Library, Program, Refuses, Workload


class Peer(ABC):
    """A library that runs workloads, in a process of its own.

    Attributes:
        library: the functions that programs are written with; set by `load`.
        note: what the last program made has to say of itself.
    """

    library: Library
    note = ""

    @abstractmethod
    def load(self) -> str:
        """Import the library, hold it to one thread, and return its version."""

    @abstractmethod
    def program(
        self, workload: Workload, measure: str, arguments: Sequence[Any]
    ) -> Program | Refuses | None:
        """Make the program of the value or the gradient; None: that is not what it is for."""

    def arguments(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return arguments (floats, and arrays of doubles) as the library likes them."""
        return tuple(values)

    def finish(self, result: Any) -> None:
        """Wait until a result is there, where calls may return before it is."""
        return

    def numbers(self, result: Any) -> list[float]:
        """Return the numbers that stand for a result."""
        return digest.numbers(result)


def make(
    peer: Peer, name: str, workload: Workload, measure: str, arguments: Sequence[Any]
) -> Program | Refuses | None:
    """Return what the peer called `name` makes of a workload."""
    if name in workload.own:
        return workload.own[name](peer, measure)
    made = peer.program(workload, measure, arguments)
    if name in workload.refuses and not isinstance(made, Refuses):
        return Refuses(workload.refuses[name], made)
    return made
