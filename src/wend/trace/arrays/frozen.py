"""Read-only arrays: a recorded value was computed from them, so they must not change (D7)."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from wend.base.lazy.dataclass import dataclass
from wend.base.locks import Rank, lock_of


@dataclass(slots=True)
class _Hold:
    """A held array, the number of its holds, and the views of it that were released before it."""

    array: np.ndarray
    count: int
    views: list[np.ndarray] = field(default_factory=list)


_holds: dict[int, _Hold] = {}
# Re-entrant: the garbage collector may release an array while another is being held.
_lock = lock_of(Rank.FROZEN_ARRAYS)


def hold(array: np.ndarray) -> None:
    """Make an array and its bases read-only until they are released."""
    with _lock:
        base: object = array
        while isinstance(base, np.ndarray):
            entry = _holds.get(id(base))
            if entry is not None:
                entry.count += 1
            elif base.flags.writeable:
                base.flags.writeable = False
                _holds[id(base)] = _Hold(base, 1)
            base = base.base


def release(array: np.ndarray) -> None:
    """Undo one `hold`; after the last one the array is writeable again."""
    with _lock:
        chain: list[np.ndarray] = []
        current: object = array
        while isinstance(current, np.ndarray):
            chain.append(current)
            current = current.base
        for member in reversed(chain):  # bases first: a view is only writeable if its base is
            entry = _holds.get(id(member))
            if entry is None:
                continue
            entry.count -= 1
            if entry.count:
                continue
            del _holds[id(member)]
            base = _holds.get(id(member.base))
            if base is not None:
                base.views += [member, *entry.views]
                continue
            for array in (member, *entry.views):
                array.flags.writeable = True
