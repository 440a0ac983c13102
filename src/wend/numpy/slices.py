"""Slices as entries of keys: those with staged bounds cut an axis at positions of the run."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from wend.eager.dispatch import Staged, any_staged, recorder
from wend.eager.promotion import cast
from wend.ir.dtypes import INT64
from wend.ir.types import Dim
from wend.numpy import elementwise as ew


def has_staged_bounds(entry: Any) -> bool:
    """Whether it is a slice of which a bound is only known when the function runs."""
    return isinstance(entry, slice) and any_staged([entry.start, entry.stop, entry.step])


def is_whole(entry: Any) -> bool:
    """Whether it is a slice of all there is."""
    return isinstance(entry, slice) and entry.start is entry.stop is entry.step is None


def known_bounds(entry: slice) -> tuple[int | None, int | None, int | None]:
    """The bounds of a slice that is known before the run."""
    bounds = (entry.start, entry.stop, entry.step)
    start, stop, step = (None if b is None else operator.index(b) for b in bounds)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    return start, stop, step


def cut_at(entry: slice, size: Any) -> tuple[Any, Any, Dim]:
    """Where a slice with staged bounds cuts an axis, before its step, and how much that leaves."""
    if isinstance(entry.step, Staged):
        raise IndexError(
            "the step of a slice of a traced array must be known before the run; "
            "use wnp.take with wnp.arange(start, stop, step)"
        )
    for bound in (entry.start, entry.stop):
        if isinstance(bound, Staged) and (
            bound.type.shape != () or bound.type.dtype.kind not in "iu"
        ):
            raise TypeError(f"slice indices must be integers or None, not {bound!r}")
    step = 1 if entry.step is None else operator.index(entry.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step > 0:
        start = 0 if entry.start is None else entry.start
        stop = size if entry.stop is None else entry.stop
    else:
        # From its end to its start: what the step then goes through backwards.
        start = 0 if entry.stop is None else _from_the_front(entry.stop, size) + 1
        stop = size if entry.start is None else _from_the_front(entry.start, size) + 1
    start, stop = (_bound(bound) for bound in (start, stop))
    current = recorder.get()
    assert current is not None
    return start, stop, current.size_between(start, stop, size)


def _bound(number: Any) -> Any:
    return cast(number, INT64) if isinstance(number, Staged) else np.int64(number)


def _from_the_front(bound: Any, size: Any) -> Any:
    """A position of an end of a slice that goes backwards, −1 being before the first."""
    bound = _bound(bound)
    return ew.clip(ew.where(bound < 0, bound + size, bound), -1, size - 1)
