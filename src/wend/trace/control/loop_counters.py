"""Integers that a loop carries for a client that counts its trips.

The client asks for them while the test or the body is recorded. Their references are created before
the loop, so they are reset each time the loop is entered. Like all references, they are carried
once they change.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.recording import Recording

_LOOP_REGIONS = ("before", "after")


def carried_integers(
    recording: Recording,
    key: Hashable,
    initial_values: Sequence[int],
    on_loop_end: Callable[[], None],
) -> Sequence[Tracer] | None:
    """Return integers that the innermost loop carries.

    None outside of loops, and in a loop that runs as it is recorded.

    Args:
        recording: where they are asked for, and assigned to.
        key: identifies the client, which gets the same integers in each round of tracing.
        initial_values: their values when the loop is entered.
        on_loop_end: called once the loop is recorded, in the recording of what follows.
    """
    region = recording
    while region.is_region and region.b.name not in _LOOP_REGIONS:
        assert region.parent is not None
        region = region.parent
    if not region.is_region:
        return None
    outer = region.parent
    assert outer is not None
    if outer.runs_now():
        return None
    if key in outer.trip_counters:
        refs, _ = outer.trip_counters[key]
    else:
        refs = [outer.wrap(outer.b.integer(start)) for start in initial_values]
    outer.trip_counters[key] = refs, on_loop_end  # the last round is the one that is used
    return refs
