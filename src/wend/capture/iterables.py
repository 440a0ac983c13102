"""What a `for` can go through as one node: ranges, rows of arrays, also numbered or zipped."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.eager.dispatch import Staged, apply, recorder
from wend.eager.promotion import tensor_type
from wend.numpy import elementwise as ew
from wend.ops import lists, shaping
from wend.trace.tracer import Tracer


class Stepped:
    """A thing of known or traced length whose item at a position can be had.

    Attributes:
        count: how many items, an int or a traced integer.
        item: position → item.
        is_staged: whether it must be staged, for Python cannot go through it.
        numbers: the first, the bound and the step, where the items are numbers in a row.
        arrays: the traced arrays whose rows are taken, as they are before the loop.
    """

    def __init__(
        self,
        count: Any,
        item: Callable[[Any], Any],
        *,
        is_staged: bool,
        numbers: tuple[Any, Any, int] | None = None,
        arrays: Sequence[Tracer] = (),
    ) -> None:
        self.count, self.item, self.is_staged = count, item, is_staged
        self.numbers, self.arrays = numbers, arrays


class Unrolled:
    """What `wend.unroll` gives: Python goes through it, whatever it is."""

    def __init__(self, iterable: Any) -> None:
        self.iterable = iterable

    def __iter__(self) -> Any:
        return iter(self.iterable)


def unroll(iterable: Any) -> Unrolled:
    """Let Python go through `iterable` in a captured `for`, a copy of the body for each item.

    Example:
        >>> import wend
        >>> @wend.function
        ... def total(x):
        ...     result = x
        ...     for k in wend.unroll(range(2)):
        ...         result = result + x
        ...     return result
        >>> print(total.get_concrete_function(1.0).graph)
        graph total(%0: f64[]) {
          %1: f64[] = add(%0, %0)
          %2: f64[] = add(%1, %0)
          return %2
        }
    """
    return Unrolled(iterable)


class TracedRange:
    """`range` with a traced bound."""

    def __init__(self, *bounds: Any) -> None:
        self.start: Any = 0
        self.stop: Any = None
        self.step: Any = 1
        if len(bounds) == 1:
            (self.stop,) = bounds
        else:
            self.start, self.stop, self.step = (*bounds, 1)[:3]

    def __iter__(self) -> Any:
        """Not possible: how often is not known."""
        operator.index(self.count())  # raises, and says why
        raise AssertionError

    def count(self) -> Any:
        """How many numbers there are."""
        span = self.stop - self.start
        whole = (span + self.step - ew.sign(self.step)) // self.step
        return ew.maximum(whole, 0)


class Together:
    """`enumerate` or `zip` of things that may be arrays."""

    def __init__(self, *parts: Any, numbered_from: Any = None) -> None:
        self.parts, self.numbered_from = parts, numbered_from

    def __iter__(self) -> Any:
        if self.numbered_from is not None:
            return iter(builtins.enumerate(self.parts[0], self.numbered_from))
        return iter(builtins.zip(*self.parts, strict=False))


def stepped(iterable: Any) -> Stepped | None:
    """The iterable by positions; None where Python goes through it."""
    if isinstance(iterable, (range, TracedRange)):
        return _numbers(iterable)
    if isinstance(iterable, (Staged, np.ndarray)) and tensor_type(iterable).dims:
        return _rows(iterable)
    if isinstance(iterable, Together):
        return _together(iterable)
    return None


def _numbers(numbers: range | TracedRange) -> Stepped:
    start, stop, step = numbers.start, numbers.stop, numbers.step
    is_staged = isinstance(numbers, TracedRange)
    count = numbers.count() if isinstance(numbers, TracedRange) else len(numbers)
    row = (start, stop, step) if isinstance(step, int) else None
    return Stepped(count, lambda k: start + step * k, is_staged=is_staged, numbers=row)


def _rows(array: Any) -> Stepped:
    size = tensor_type(array).dims[0]
    current = recorder.get()
    assert current is not None
    count = size if isinstance(size, int) else apply(shaping.dim_of, array, axis=0)
    (rows,) = current.emit(lists.list_unstack, [array], {})

    def row(k: Any) -> Any:
        found = apply(lists.list_get, rows, _position(k))
        if found.type.shape != ():
            found.look_at(array)  # in NumPy, changing it would change the array
        return found

    arrays = [array] if isinstance(array, Tracer) else []
    return Stepped(count, row, is_staged=isinstance(array, Staged), arrays=arrays)


def _position(k: Any) -> Any:
    return k if isinstance(k, Staged) else np.int64(k)


def _together(iterable: Together) -> Stepped | None:
    parts = [stepped(part) for part in iterable.parts]
    if any(part is None for part in parts):
        return None
    found: Sequence[Stepped] = [part for part in parts if part is not None]
    counts = [part.count for part in found]
    known = [count for count in counts if isinstance(count, int)]
    count: Any = min(known) if known else None
    for one in counts:
        if not isinstance(one, int):
            count = one if count is None else ew.minimum(count, one)
    first = iterable.numbered_from

    def items(k: Any) -> tuple[Any, ...]:
        if first is not None:
            return first + k, found[0].item(k)
        return tuple(part.item(k) for part in found)

    is_staged = any(part.is_staged for part in found)
    arrays = [array for part in found for array in part.arrays]
    return Stepped(count, items, is_staged=is_staged, arrays=arrays)
