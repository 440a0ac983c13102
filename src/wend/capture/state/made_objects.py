"""Objects that captured code has made: random generators, text buffers.

Each call of the function makes them again in the same state, so Python may use them while the
function is traced. Of a generator, the run draws what loops and branches draw
(`builtins/draws/random_draws.py`); its companion is what the run has in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from wend.trace.recording.recording import Recording, current

# By function, then by id: many of them cannot be held weakly. Each with its companion.
_made_in: WeakKeyDictionary[Recording, dict[int, tuple[Any, Any]]] = WeakKeyDictionary()


def note_made(x: Any, companion: Any = None) -> Any:
    """Note an object that captured code makes, and return it."""
    recording = current()
    if recording is not None:
        _made_in.setdefault(recording.function(), {})[id(x)] = x, companion
    return x


def companion_of(x: Any) -> Any:
    """Return the companion of an object that the function being recorded has made, or None."""
    recording = current()
    if recording is None:
        return None
    return _made_in.get(recording.function(), {}).get(id(x), (None, None))[1]


def is_made(x: Any) -> bool:
    """Return whether any function that is being recorded, or that a trace keeps, made an object."""
    return any(id(x) in objects for objects in list(_made_in.values()))


def is_made_here(x: Any) -> bool:
    """Return whether the function that is being recorded has made an object."""
    recording = current()
    return recording is not None and id(x) in _made_in.get(recording.function(), ())


def saved() -> Callable[[], None]:
    """Return what restores the objects that the function being recorded has made until now.

    Python may run a trip of a loop before the loop is recorded, and advances generators in it.
    """
    recording = current()
    objects = {} if recording is None else _made_in.get(recording.function(), {})
    restorers = [c.saved(x) for x, c in objects.values() if c is not None]

    def restore() -> None:
        for restore_one in restorers:
            restore_one()

    return restore
