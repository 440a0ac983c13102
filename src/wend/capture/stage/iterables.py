"""What a `for` can go through as one node: ranges, rows of arrays, also numbered or zipped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.base.errors import ConcreteValueError, explain
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged, apply, recorder
from wend.eager.promotion import tensor_type
from wend.numpy import elementwise as ew
from wend.numpy.shaping import stack
from wend.ops import lists, shaping
from wend.trace.arrays.provenance import static_advice
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.arguments import is_array_leaf


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
        raise ConcreteValueError(
            explain(
                f"how many numbers a range has is needed{at(user_source())}, but its bounds are "
                "traced: they are only known when it runs.",
                cure="go through it by a `for` statement, which is recorded as one loop; "
                f"or {self._static_advice()}.",
            )
        )

    def _static_advice(self) -> str:
        """How Python would know its bounds."""
        bounds = [x for x in (self.start, self.stop, self.step) if isinstance(x, Tracer)]
        advice = (static_advice(bound.value, bound.recording) for bound in bounds)
        return next(filter(None, advice), "make its bounds static with static_argnums")

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            if (key.start, key.stop, key.step) == (None, None, -1):
                return backwards(self)
            return self.__iter__()
        count = self.count()
        return self.start + self.step * ew.where(key < 0, key + count, key)

    def __contains__(self, item: Any) -> Any:
        return self.__iter__()

    def holds(self, item: Any) -> Any:
        """Whether a number is among them, traced."""
        steps = (item - self.start) // self.step
        is_one = ew.equal(self.start + steps * self.step, item)
        return is_one & (steps >= 0) & (steps < self.count())

    def count(self) -> Any:
        """How many numbers there are."""
        span = self.stop - self.start
        whole = (span + self.step - ew.sign(self.step)) // self.step
        return ew.maximum(whole, 0)


def backwards(numbers: TracedRange) -> TracedRange:
    """The same numbers from the last to the first."""
    last = numbers.start + (numbers.count() - 1) * numbers.step
    return TracedRange(last, numbers.start - numbers.step, -numbers.step)


class Together:
    """`enumerate`, `zip` or `map` of things that may be arrays.

    Args:
        *parts: the things.
        numbered_from: the first number of `enumerate`.
        strict: whether `zip` wants them equally long.
        function: what `map` makes of the items.
    """

    def __init__(
        self,
        *parts: Any,
        numbered_from: Any = None,
        strict: bool = False,
        function: Callable[..., Any] | None = None,
    ) -> None:
        self.parts, self.numbered_from = parts, numbered_from
        self.strict, self.function = strict, function

    def __iter__(self) -> Any:
        first = self.numbered_from
        if isinstance(first, Staged):
            start: Any = first
            return ((start + k, item) for k, item in enumerate(self.parts[0]))
        if first is not None:
            return iter(enumerate(self.parts[0], first))
        if self.function is not None:
            return map(self.function, *self.parts)
        return iter(zip(*self.parts, strict=self.strict))

    def check_lengths(self, counts: Sequence[Any]) -> None:
        """Refuse `zip(…, strict=True)` of things that are not known to be equally long."""
        if not self.strict:
            return
        for number, count in enumerate(counts[1:], 2):
            if not isinstance(count, int) or not isinstance(counts[0], int):
                raise ConcreteValueError(
                    explain(
                        f"zip(…, strict=True){at(user_source())} compares lengths that are only "
                        "known when it runs.",
                        cure="leave out strict=True, and assert that the lengths are equal.",
                    )
                )
            if count != counts[0]:
                how = "longer" if count > counts[0] else "shorter"
                others = "argument 1" if number == 2 else f"arguments 1-{number - 1}"
                raise ValueError(f"zip() argument {number} is {how} than {others}")


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


def _listed(part: Any) -> Stepped | None:
    """A list beside a range with traced bounds: the rows of an array of its items."""
    is_list = isinstance(part, (list, tuple)) and len(part) > 0
    return _rows(stack(part)) if is_list and all(map(is_array_leaf, part)) else None


def _position(k: Any) -> Any:
    return k if isinstance(k, Staged) else np.int64(k)


def _together(iterable: Together) -> Stepped | None:
    is_open = any(isinstance(part, TracedRange) for part in iterable.parts)
    parts = [stepped(part) or (_listed(part) if is_open else None) for part in iterable.parts]
    if any(part is None for part in parts):
        return None
    found: Sequence[Stepped] = [part for part in parts if part is not None]
    counts = [part.count for part in found]
    known = [count for count in counts if isinstance(count, int)]
    count: Any = min(known) if known else None
    for one in counts:
        if not isinstance(one, int):
            count = one if count is None else ew.minimum(count, one)
    iterable.check_lengths(counts)
    first, function = iterable.numbered_from, iterable.function

    def items(k: Any) -> Any:
        if first is not None:
            return first + k, found[0].item(k)
        own = tuple(part.item(k) for part in found)
        return own if function is None else function(*own)

    is_staged = any(part.is_staged for part in found)
    arrays = [array for part in found for array in part.arrays]
    return Stepped(count, items, is_staged=is_staged, arrays=arrays)
