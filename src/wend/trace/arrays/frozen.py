"""Arrays that may not be changed in place while a recorded value was computed from them (D7)."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np


@dataclass(slots=True)
class _Hold:
    """An array that was writeable, how many recorded values hold it, and views released before."""

    array: np.ndarray
    count: int
    views: list[np.ndarray] = field(default_factory=list)


_holds: dict[int, _Hold] = {}
# Re-entrant: the garbage collector may release an array while another one is being held.
_lock = threading.RLock()


def hold(array: np.ndarray) -> None:
    """Make an array read-only, with the arrays that it is a view of, until it is released."""
    with _lock:
        found: object = array
        while isinstance(found, np.ndarray):
            held = _holds.get(id(found))
            if held is not None:
                held.count += 1
            elif found.flags.writeable:
                found.flags.writeable = False
                _holds[id(found)] = _Hold(found, 1)
            found = found.base


def release(array: np.ndarray) -> None:
    """Take back one `hold`; after the last an array is writeable again."""
    with _lock:
        chain: list[np.ndarray] = []
        found: object = array
        while isinstance(found, np.ndarray):
            chain.append(found)
            found = found.base
        for one in reversed(chain):  # a view can only be writeable when what it views is
            held = _holds.get(id(one))
            if held is None:
                continue
            held.count -= 1
            if held.count:
                continue
            del _holds[id(one)]
            base = _holds.get(id(one.base))
            if base is not None:
                base.views += [one, *held.views]
                continue
            for array in (one, *held.views):
                array.flags.writeable = True
