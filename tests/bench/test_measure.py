"""How many calls a sample has."""

from __future__ import annotations

from typing import Any

from bench.figures import Figure
from bench.measure import SAMPLE, Seat


class Compiler:
    """A peer whose tenth call compiles; later ones are quick."""

    def __init__(self) -> None:
        self.calls = 0

    def ask(self, do: str, calls: int, warm: bool) -> Any:
        seconds = 0.0
        for k in range(calls + warm):
            self.calls += 1
            spent = 0.03 if self.calls == 10 else 1e-3 if self.calls < 10 else 1e-5
            seconds += spent if k >= warm else 0.0
        return {"seconds": seconds}


def test_what_is_compiled_after_some_calls_is_no_part_of_a_sample() -> None:
    seat, figure, peer = Seat.__new__(Seat), Figure(), Compiler()
    seconds = seat.calibrate(peer, figure, quick=True)
    assert abs(seconds - 1e-5) < 1e-9
    assert figure.calls * seconds >= SAMPLE
    assert peer.calls < 100 * figure.calls


def test_a_long_call_is_made_once() -> None:
    class Slow:
        calls = 0

        def ask(self, do: str, calls: int, warm: bool) -> Any:
            self.calls += calls + warm
            return {"seconds": 0.5 * calls}

    seat, figure, peer = Seat.__new__(Seat), Figure(), Slow()
    assert seat.calibrate(peer, figure, quick=False) == 0.5
    assert (figure.calls, peer.calls) == (1, 1)
