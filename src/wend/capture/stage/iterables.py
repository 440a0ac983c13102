"""Iterables that a `for` can stage as one node: ranges, array rows, `enumerate`, `zip`, `map`."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from wend.base.errors import ConcreteValueError, StructureError, explain
from wend.base.memory import Memory, memory_text
from wend.base.source import at, user_source
from wend.capture.state.paths import keep_deciding_test
from wend.eager.checking import checked
from wend.eager.dispatch import Staged, apply, recorder
from wend.eager.promotion import is_weak, tensor_type, wrapped
from wend.ir.dtypes import INT64
from wend.numpy import elementwise as ew
from wend.numpy import ranges
from wend.numpy.shaping import stack
from wend.numpy.slices import as_position
from wend.ops import lists, shaping
from wend.trace.arrays.attributes import class_name, class_of, not_iterable
from wend.trace.arrays.decided_integers import decided_integer
from wend.trace.arrays.provenance import static_advice, with_sources
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.tensor_list import TensorList
from wend.trace.recording.arguments import is_array_leaf

# A loop that cannot be recorded as one node runs in Python if it has no more trips than these.
MAX_UNROLLED_TRIPS = 64


class IndexedIterable:
    """An iterable of known or traced length with random access to its items.

    Attributes:
        count: the number of items, an int or a traced integer.
        item: index → item.
        is_staged: whether it must be staged, since Python cannot iterate over it.
        numbers: start, stop and step, if the items are an arithmetic progression.
        arrays: the arrays whose rows are the items, as they are before the loop.
        lists: the grown lists whose items they are, each with a copy of it from before the loop.
    """

    def __init__(
        self,
        count: Any,
        item: Callable[[Any], Any],
        *,
        is_staged: bool,
        numbers: tuple[Any, Any, int] | None = None,
        arrays: Sequence[Any] = (),
        lists: Sequence[tuple[TensorList, TensorList]] = (),
    ) -> None:
        self.count, self.item, self.is_staged = count, item, is_staged
        self.numbers, self.arrays, self.lists = numbers, arrays, lists

    def check_unchanged(self) -> None:
        """Have Python go through a list that the loop has changed.

        Raises:
            ConcreteValueError: its length is known only when it runs.
        """
        for grown, before in self.lists:
            if any(x is not y for x, y in zip(grown.lists, before.lists, strict=True)):
                iter(before)


class Unrolled:
    """The result of `wend.unroll`: an iterable that Python iterates over."""

    def __init__(self, iterable: Any) -> None:
        self.iterable = iterable

    def __iter__(self) -> Any:
        return iter(self.iterable)


def unroll(iterable: Any) -> Unrolled:
    """Unroll a captured `for` over `iterable`: Python runs it and records its body for each item.

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


class LoopWithMemory:
    """The result of `wend.loop`: an iterable, and what a loop over it keeps.

    Attributes:
        iterable: what the loop goes through.
        memory: the policy.
    """

    def __init__(self, iterable: Any, memory: Memory) -> None:
        self.iterable, self.memory = iterable, memory

    def __iter__(self) -> Iterator[Any]:
        return iter(self.iterable)


def loop(iterable: Iterable[Any], *, memory: Memory) -> LoopWithMemory:
    """Say what a captured `for` over `iterable` keeps for its backward pass.

    It wins over `config(memory=…)`. Loops in the body do not inherit it. A loop that Python runs,
    such as one outside of a `wend.function`, is not changed.

    Args:
        iterable: what the loop goes through: a range, an array, `zip(…)`, `enumerate(…)`.
        memory: a policy: `"keep"`, `"recompute"`, `"thin"`, `wend.Every(trips)`,
            `wend.Checkpoints(slots)`.

    Raises:
        ValueError: there is no policy of that name.
        NotDifferentiableError: the loop prints, calls Python or assigns to a variable, which the
            policy would repeat.

    Example:
        >>> import wend
        >>> def power(x):
        ...     y = x
        ...     for k in wend.loop(range(100), memory=wend.Every(10)):
        ...         y = y * x
        ...     return y
        >>> wend.grad(power)(1.0)
        np.float64(101.0)
    """
    memory_text(memory)
    return LoopWithMemory(iterable, memory)


class TracedRange:
    """A `range` with a traced bound."""

    def __init__(self, *bounds: Any) -> None:
        self.start: Any = 0
        self.stop: Any = None
        self.step: Any = 1
        if len(bounds) == 1:
            (self.stop,) = bounds
        else:
            self.start, self.stop, self.step = (*bounds, 1)[:3]
        self.start, self.stop, self.step = map(_as_bound, (self.start, self.stop, self.step))
        if not isinstance(self.step, Staged):
            range(0, 0, self.step)  # Python's error for 0
        elif isinstance(self.step, Tracer):
            is_zero = ew.equal(self.step, 0)
            self.step = checked(self.step, (is_zero, ValueError, "range() arg 3 must not be zero"))

    def __iter__(self) -> Any:
        """Iterate if arrays of outside give the bounds; else the trip count is not known.

        Raises:
            ConcreteValueError: arguments decide on the bounds.
        """
        try:
            bounds = [operator.index(bound) for bound in (self.start, self.stop, self.step)]
        except ConcreteValueError as error:
            unknown = self._unknown_length()
            keep_deciding_test(error, unknown)
            raise unknown from None
        return iter(range(*bounds))

    def with_decided(self) -> range | TracedRange:
        """Return the range with the bounds whose values are part of the trace (D37)."""
        bounds = [
            bound if value is None else value
            for bound in (self.start, self.stop, self.step)
            for value in (decided_integer(bound) if isinstance(bound, Tracer) else None,)
        ]
        are_known = all(isinstance(bound, int) for bound in bounds)
        return range(*bounds) if are_known else TracedRange(*bounds)

    def _unknown_length(self) -> ConcreteValueError:
        error = ConcreteValueError(
            explain(
                f"the length of a range is needed{at(user_source())}, but its bounds are "
                "traced: they are known only at run time.",
                cure="iterate over it with a `for` statement, which is recorded as one loop; "
                f"or {self._static_advice()}.",
            )
        )
        return with_sources(error, self.start, self.stop, self.step)

    def _static_advice(self) -> str:
        """Return advice on how to make the bounds static."""
        bounds = [x for x in (self.start, self.stop, self.step) if isinstance(x, Tracer)]
        advice = (static_advice(bound.value, bound.recording) for bound in bounds)
        return next(filter(None, advice), "make its bounds static with static_argnums")

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            if (key.start, key.stop, key.step) == (None, None, -1):
                return reversed_range(self)
            return self.__iter__()
        count = self.count()
        index = ew.where(key < 0, key + count, key)
        is_outside = ew.logical_or(index < 0, index >= count)
        index = checked(index, (is_outside, IndexError, "range object index out of range"))
        return (self.start + self.step * index).as_weak()

    def __contains__(self, item: Any) -> Any:
        return self.__iter__()

    def contains(self, item: Any) -> Any:
        """Return whether a number is in the range, as a traced bool."""
        steps = (item - self.start) // self.step
        is_one = ew.equal(self.start + steps * self.step, item)
        return (is_one & (steps >= 0) & (steps < self.count())).as_weak()

    def as_array(self) -> Any:
        """Return its numbers, as `np.array` does."""
        return ranges.arange(self.start, self.stop, self.step)

    def count(self) -> Any:
        """Return the length of the range; bounds far apart do not overflow."""
        if isinstance(self.step, int) and abs(self.step) == 1:
            return ew.maximum((self.stop - self.start) * self.step, 0)
        is_down = self.step < 0
        first = ew.where(is_down, self.stop, self.start)
        last = ew.where(is_down, self.start, self.stop)
        distance = wrapped(last, ew.UINT64) - wrapped(first, ew.UINT64) - np.uint64(1)
        whole = wrapped(distance // wrapped(abs(self.step), ew.UINT64), INT64) + 1
        return ew.where(first < last, whole, 0)


def _as_bound(x: Any) -> Any:
    """Return a bound of a range, or the start of `enumerate`, as a Python integer.

    Raises:
        TypeError: it is no integer.
    """
    if not isinstance(x, Staged):
        return operator.index(x)
    type = tensor_type(x)
    is_integer = type.dtype.kind in "iu" or (type.dtype.kind == "b" and x.weak)
    if type.shape != () or not is_integer:
        if class_of(x) is np.ndarray:
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        raise TypeError(f"{class_name(x)!r} object cannot be interpreted as an integer")
    return x if x.weak and type.dtype == np.int64 else as_position(x).as_weak()


def reversed_range(numbers: TracedRange) -> TracedRange:
    """Return the range in reverse order."""
    last = numbers.start + (numbers.count() - 1) * numbers.step
    return TracedRange(last, numbers.start - numbers.step, -numbers.step)


class GridPositions:
    """The positions in arrays of a shape as tuples, row by row."""

    def __init__(self, shape: tuple[Any, ...]) -> None:
        self.shape = tuple(map(_as_size, shape))

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return iter(np.ndindex(*map(operator.index, self.shape)))

    def count(self) -> Any:
        """Return how many there are."""
        return math.prod(self.shape)

    def at(self, k: Any) -> tuple[Any, ...]:
        """Return one of them."""
        position: list[Any] = []
        for size in reversed(self.shape):
            position.append(k % size)
            k = k // size
        return tuple(reversed(position))


def _as_size(size: Any) -> Any:
    size = _as_bound(size)
    if not isinstance(size, Tracer):
        return size
    text = "negative dimensions are not allowed"
    return checked(size, (ew.less(size, 0), ValueError, text))


class ZippedIterable:
    """`enumerate`, `zip`, `map` or `reversed` of iterables that may be arrays.

    It gives its items once: to Python, by `next`, or all to one staged loop.

    Args:
        *parts: the iterables.
        enumerate_from: the first number of `enumerate`.
        strict: whether `zip` requires equal lengths.
        function: the function of `map`.
        kind: the class that it stands for.

    Raises:
        TypeError: a part is no iterable.
    """

    def __init__(
        self,
        *parts: Any,
        enumerate_from: Any = None,
        strict: bool = False,
        function: Callable[..., Any] | None = None,
        kind: type = zip,
    ) -> None:
        for part in parts:
            if isinstance(part, Staged) and not part.type.rank:
                raise TypeError(not_iterable(part))
            if not (hasattr(type(part), "__iter__") or hasattr(type(part), "__getitem__")):
                iter(part)  # Python's error
        self.parts = parts
        self.enumerate_from = None if enumerate_from is None else _as_bound(enumerate_from)
        self.strict, self.function, self.kind = strict, function, kind
        self._items: Iterator[Any] | None = None  # what `next` takes items from
        self._taken_by = ""  # the staged loop that has taken them

    @property  # type: ignore[misc]  # of `isinstance`
    def __class__(self) -> Any:
        return self.kind

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        self.check_untaken()
        if self._items is None:
            self._items = self._iterate()
        return next(self._items)

    def _iterate(self) -> Iterator[Any]:
        first = self.enumerate_from
        if isinstance(first, Staged):
            start: Any = first
            return ((start + k, item) for k, item in enumerate(self.parts[0]))
        if first is not None:
            return iter(enumerate(self.parts[0], first))
        if self.function is not None:
            return map(self.function, *self.parts)
        if self.kind is reversed:
            return iter(self.parts[0])
        return iter(zip(*self.parts, strict=self.strict))

    def is_started(self) -> bool:
        """Return whether `next` has taken an item, or a staged loop all.

        Raises:
            StructureError: a staged loop has.
        """
        self.check_untaken()
        return self._items is not None

    def check_untaken(self) -> None:
        """Refuse to take items that a staged loop has taken, as only the run knows how many."""
        if self._taken_by:
            raise StructureError(
                explain(
                    f"`{self.kind.__name__}(…)` gives its items once; the {self._taken_by} has "
                    f"taken them, and they are asked for again{at(user_source())}.",
                    cure=f"call {self.kind.__name__} again, or loop over positions.",
                )
            )

    def take(self, where: str) -> None:
        """Note that a staged loop has taken the items."""
        self._taken_by = where
        for part in self.parts:
            if type(part) is ZippedIterable:
                part.take(where)

    def raises_at_end(self, counts: Sequence[Any]) -> bool:
        """Return whether `zip(…, strict=True)` raises an error after its last item.

        Raises:
            ConcreteValueError: only the run knows; or there are too many items for Python to take.
        """
        if not self.strict or len(counts) < 2:
            return False
        known = [count for count in counts if isinstance(count, int)]
        if len(known) < len(counts):
            raise ConcreteValueError(
                explain(
                    f"zip(…, strict=True){at(user_source())} compares lengths that are only "
                    "known when it runs.",
                    cure="leave out strict=True, and assert that the lengths are equal.",
                )
            )
        if len({*known}) > 1 and min(known) > MAX_UNROLLED_TRIPS:
            raise ConcreteValueError(
                explain(
                    f"zip(…, strict=True){at(user_source())} has {min(known)} items, and raises an "
                    "error after them.",
                    cure="assert that the lengths are equal before.",
                )
            )
        return len({*known}) > 1


def as_indexed(iterable: Any) -> IndexedIterable | None:
    """Return an iterable with access by index; None if Python iterates over it."""
    if isinstance(iterable, TracedRange):
        return _index_range(iterable.with_decided())
    if isinstance(iterable, range):
        return _index_range(iterable)
    if isinstance(iterable, GridPositions):
        is_staged = any(isinstance(size, Staged) for size in iterable.shape)
        return IndexedIterable(iterable.count(), iterable.at, is_staged=is_staged)
    if isinstance(iterable, itertools.repeat):
        reduced: Any = iterable.__reduce__()
        item, *count = reduced[1]
        return IndexedIterable(count[0], lambda k: item, is_staged=False) if count else None
    if isinstance(iterable, (Staged, np.ndarray)) and tensor_type(iterable).dims:
        return _index_rows(iterable)
    if isinstance(iterable, ZippedIterable):
        return _index_zip(iterable)
    if type(iterable) is TensorList and iterable.lists[0].is_reachable():
        return _index_grown(iterable)
    return None


def _index_grown(grown: TensorList) -> IndexedIterable | None:
    """Index a list that grows in a staged loop, as it is now; Python goes through a short one."""
    items, length = grown.copy(), grown.length()
    if decided_integer(length) is not None:
        return None
    lists = [(grown, items)]
    return IndexedIterable(length, items.item_at, is_staged=True, lists=lists)


def _index_range(numbers: range | TracedRange) -> IndexedIterable:
    start, stop, step = numbers.start, numbers.stop, numbers.step
    is_staged = isinstance(numbers, TracedRange)
    count = numbers.count() if isinstance(numbers, TracedRange) else len(numbers)
    row = None
    if isinstance(step, int):
        stop = _safe_stop(stop, step)
        row = None if stop is None else (start, stop, step)
    return IndexedIterable(count, lambda k: start + step * k, is_staged=is_staged, numbers=row)


_INT64 = np.iinfo(np.int64)


def _safe_stop(stop: Any, step: int) -> Any:
    """Return the end of a range, checked: the number after the last one must have 64 bits.

    None if it is known not to have.
    """
    if abs(step) == 1:
        return stop
    is_far = stop > _INT64.max + 1 - step if step > 0 else stop < _INT64.min - 1 - step
    text = f"a range of step {step} ends where the next number would not fit 64 bits"
    if isinstance(is_far, Tracer):
        return checked(stop, (is_far, OverflowError, text))
    return None if is_far else stop


def _index_rows(array: Any, *, are_numbers: bool = False) -> IndexedIterable:
    size = tensor_type(array).dims[0]
    current = recorder.get()
    assert current is not None
    count = size if isinstance(size, int) else apply(shaping.dim_of, array, axis=0)
    (rows,) = current.emit(lists.list_unstack, [array], {})

    def row(k: Any) -> Any:
        item = apply(lists.list_get, rows, _as_index(k))
        if item.type.shape != ():
            item.link_view(array)  # in NumPy, a write to it would change the array
        return item.as_weak() if are_numbers else item

    return IndexedIterable(count, row, is_staged=isinstance(array, Staged), arrays=[array])


def _index_list(part: Any) -> IndexedIterable | None:
    """Index a list next to a range with traced bounds by the rows of an array of its items."""
    is_list = isinstance(part, (list, tuple)) and len(part) > 0
    if not is_list or not all(map(is_array_leaf, part)):
        return None
    return _index_rows(stack(part), are_numbers=all(map(is_weak, part)))


def _as_index(k: Any) -> Any:
    return k if isinstance(k, Staged) else np.int64(k)


def _index_zip(iterable: ZippedIterable) -> IndexedIterable | None:
    if iterable.is_started():
        return None
    if iterable.kind is reversed:
        return as_indexed(iterable.parts[0])
    is_open = any(isinstance(part, TracedRange) for part in iterable.parts)
    parts = [
        as_indexed(part) or (_index_list(part) if is_open else None) for part in iterable.parts
    ]
    if any(part is None for part in parts):
        return None
    indexed: Sequence[IndexedIterable] = [part for part in parts if part is not None]
    counts = [part.count for part in indexed]
    known = [count for count in counts if isinstance(count, int)]
    count: Any = min(known) if known else None
    for other_count in counts:
        if not isinstance(other_count, int):
            count = other_count if count is None else ew.minimum(count, other_count)
    if iterable.raises_at_end(counts):
        return None  # Python takes the items
    first, function = iterable.enumerate_from, iterable.function

    def item_at(k: Any) -> Any:
        if first is not None:
            return first + k, indexed[0].item(k)
        elements = tuple(part.item(k) for part in indexed)
        return elements if function is None else function(*elements)

    is_staged = any(part.is_staged for part in indexed)
    arrays = [array for part in indexed for array in part.arrays]
    grown = [pair for part in indexed for pair in part.lists]
    return IndexedIterable(count, item_at, is_staged=is_staged, arrays=arrays, lists=grown)
