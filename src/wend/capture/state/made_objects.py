"""Objects that captured code has made: random generators, text buffers.

Each call of the function makes them again in the same state, so Python may use them while the
function is traced.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from wend.trace.recording.recording import Recording, current

# By function, then by id: many of them cannot be held weakly.
_made_in: WeakKeyDictionary[Recording, dict[int, Any]] = WeakKeyDictionary()


def note_made(x: Any) -> Any:
    """Note an object that captured code makes, and return it."""
    recording = current()
    if recording is not None:
        _made_in.setdefault(recording.function(), {})[id(x)] = x
    return x


def is_made_here(x: Any) -> bool:
    """Return whether the function that is being recorded has made an object."""
    recording = current()
    return recording is not None and id(x) in _made_in.get(recording.function(), ())
