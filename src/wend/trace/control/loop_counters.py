"""Integers that a loop carries for somebody who counts something of its trips.

Who asks is in the test or the body, when it is recorded. The boxes are made before the loop, so
each time that it is entered they start anew; as all boxes they are carried once they change.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.recording import Recording

_LOOP = ("before", "after")


def carried_integers(
    here: Recording, who: Hashable, starts: Sequence[int], at_end: Callable[[], None]
) -> Sequence[Tracer] | None:
    """Integers that the innermost loop carries; None outside of loops, and in one that runs now.

    Args:
        here: where they are asked for; `put` changes them there.
        who: asks; it is given the same ones in each round of recording.
        starts: what they are when the loop is entered.
        at_end: is called when the loop is recorded, with what is behind it being recorded.
    """
    region = here
    while region.is_region and region.b.name not in _LOOP:
        assert region.parent is not None
        region = region.parent
    if not region.is_region:
        return None
    outer = region.parent
    assert outer is not None
    if outer.runs_now():
        return None
    if who in outer.trip_counters:
        refs, _ = outer.trip_counters[who]
    else:
        refs = [outer.wrap(outer.b.integer(start)) for start in starts]
    outer.trip_counters[who] = refs, at_end  # of the last round, which is the one that stays
    return refs
