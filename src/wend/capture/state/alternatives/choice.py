"""Choices: texts, members of enumerations or None, of which the run takes one.

`state = "red"` that a loop or branch changes to `"green"` is the position of a text among those
that the trace knows. What is asked of it, is asked of each of them, in a branch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from enum import Enum
from functools import partial
from typing import Any

import numpy as np
import optree

from wend.base.errors import ConcreteValueError, StructureError, explain
from wend.base.refusals import is_refusal
from wend.base.source import at, user_source
from wend.capture.heap.locations import UNBOUND
from wend.capture.state.alternatives.optional_value import is_repeated
from wend.capture.state.paths import keep_deciding_test
from wend.eager.dispatch import Staged
from wend.numpy import elementwise as ew
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.recording import Recording, is_traced_now
from wend.trace.state.raised_errors import note_raised

# How many values one may have: each is a branch where it is used
MAX_OPTIONS = 32

# Whether the trace has a choice
is_in_use: ContextVar[bool] = ContextVar("wend_choice", default=False)

# A higher layer sets it: `then() if test else other()` of a traced test
if_value: Callable[..., Any] = lambda test, then, other, state, kind: (then if test else other)()  # noqa: E731


def _by_case(function: Callable[..., Any]) -> Any:
    """Return a method that gives what a function gives for each value."""
    return lambda self, *others: self.by_case(lambda option: function(option, *others))


class Choice:
    """One of some constants.

    Attributes:
        code: its position among them; only the run may know it.
        options: the constants.
    """

    __slots__ = ("code", "options")
    is_choice = True
    __array_priority__ = 1000

    def __init__(self, code: Any, options: tuple[Any, ...]) -> None:
        self.code, self.options = code, options
        is_in_use.set(True)

    def test(self, holds: Callable[[Any], Any]) -> Any:
        """Return whether a test holds of it."""
        results = [bool(holds(option)) for option in self.options]
        if all(results) or not any(results):
            return results[0]
        is_rare = sum(results) * 2 <= len(results)
        positions = [k for k, result in enumerate(results) if result is is_rare]
        is_one: Any = ew.equal(self.code, positions[0])
        for k in positions[1:]:
            is_one = ew.logical_or(is_one, ew.equal(self.code, k))
        result = is_one if is_rare else ew.logical_not(is_one)
        return result.as_weak() if isinstance(result, Tracer) else bool(result)

    def equals(self, other: Any) -> Any:
        """Return `self == other`."""
        if not isinstance(other, Choice):
            return False if isinstance(other, Staged) else self.test(lambda x: bool(x == other))
        return self.by_case(lambda x: other.test(lambda y: bool(x == y)))

    def by_case(self, function: Callable[[Any], Any]) -> Any:
        """Return what a function gives for the value, recorded for each in a branch."""
        return self._from(0, function)

    def _from(self, k: int, function: Callable[[Any], Any]) -> Any:
        then = partial(_run, function, self.options[k])
        if k == len(self.options) - 1:
            return then()
        test = ew.equal(self.code, k)
        if not isinstance(test, Staged):
            return then() if test else self._from(k + 1, function)
        return if_value(test, then, partial(self._from, k + 1, function), None, "a choice")

    def mapped(self, function: Callable[[Any], Any]) -> Choice:
        """Return the choice among what a function gives for the constants."""
        return Choice(self.code, tuple(map(function, self.options)))

    def among(self, options: tuple[Any, ...]) -> Choice:
        """Return it as a choice of other constants, with all that it may be among them."""
        if options == self.options:
            return self
        positions = [_position(option, options) for option in self.options]
        if positions == [*range(len(positions))]:
            return Choice(self.code, options)
        return Choice(self._position_by_case(positions), options)

    def _position_by_case(self, positions: Sequence[int]) -> Any:
        position: Any = positions[-1]
        for k, other in enumerate(positions[:-1]):
            position = ew.where(ew.equal(self.code, k), other, position)
        return position.as_weak() if isinstance(position, Tracer) else int(position)

    def decided(self, use: str) -> Any:
        """Return its value, if it is part of the trace.

        Raises:
            ConcreteValueError: only the run knows it.
        """
        try:
            return self.options[operator.index(self.code)]
        except ConcreteValueError as error:
            refusal = ConcreteValueError(
                explain(
                    f"{use}{at(user_source())}: only the run knows whether it is "
                    f"{self.described()}.",
                    cure="keep a number in place of it, and look the text up after the call.",
                )
            )
            keep_deciding_test(error, refusal)
            raise refusal from None

    def described(self) -> str:
        """Return a text for messages."""
        *others, last = map(repr, self.options)
        return f"{', '.join(others)} or {last}"

    def __repr__(self) -> str:
        return repr(self.decided("a text is needed"))

    def __str__(self) -> str:
        return str(self.decided("a text is needed"))

    def __format__(self, spec: str) -> str:
        return format(self.decided("a text is needed"), spec)

    def __hash__(self) -> int:
        return hash(self.decided("a hash is needed"))

    def __bool__(self) -> bool:
        return bool(self.decided("a truth value is needed"))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.decided("its items are needed"))

    def __len__(self) -> int:
        return len(self.decided("a length is needed"))

    def __array__(self, *args: Any, **options: Any) -> Any:
        return np.array(self.decided("an array is needed"))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        inputs = tuple(x.decided("a number is needed") if x is self else x for x in inputs)
        return getattr(ufunc, method)(*inputs, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not any(hasattr(option, name) for option in self.options):
            kind = type(self.options[0]).__name__
            raise AttributeError(f"{kind!r} object has no attribute {name!r}", name=name, obj=self)
        if all(callable(getattr(option, name, None)) for option in self.options):
            return lambda *args: self.by_case(lambda x: getattr(x, name)(*args))
        return self.by_case(lambda x: getattr(x, name))

    __getitem__ = _by_case(operator.getitem)
    __add__ = _by_case(operator.add)
    __radd__ = _by_case(lambda x, other: other + x)
    __mul__ = __rmul__ = _by_case(operator.mul)
    __lt__ = _by_case(operator.lt)
    __le__ = _by_case(operator.le)
    __gt__ = _by_case(operator.gt)
    __ge__ = _by_case(operator.ge)

    def __eq__(self, other: object) -> Any:
        return self.equals(other)

    def __ne__(self, other: object) -> Any:
        is_equal = self.equals(other)
        if not isinstance(is_equal, Staged):
            return not is_equal
        return ew.logical_not(is_equal).as_weak()


def _run(function: Callable[[Any], Any], option: Any) -> Any:
    """Call a function; what it raises is an exception of the run."""
    try:
        return function(option)
    except Exception as error:
        if not is_refusal(error):
            note_raised(error)
        raise


def is_option(value: Any) -> bool:
    """Return whether a value may be one of a choice."""
    return type(value) is str or isinstance(value, (Choice, Enum))


def differ(values: Sequence[Any]) -> bool:
    """Return whether values differ in texts, members of enumerations, or one of these and None."""
    if (keys := _common_keys(values)) is not None:
        return any(differ([value[k] for value in values]) for k in keys)
    return _are_different(values)


def _are_different(values: Sequence[Any]) -> bool:
    if not any(map(is_option, values)):
        return False
    if not all(value is None or is_option(value) for value in values):
        return False
    first = values[0]
    if not any(isinstance(x, Choice) or not _is_same(x, first) for x in values):
        return False
    if len(options := _options(values)) > MAX_OPTIONS:
        raise StructureError(
            explain(
                f"a text or constant that a loop changes{at(user_source())} is one of more than "
                f"{MAX_OPTIONS}: {', '.join(f'{x!r:.20}' for x in options[:3])} and others.",
                cure="only arrays, numbers and few texts can change in a staged loop; start it as "
                "a number.",
            )
        )
    return True


def as_choice(value: Any, values: Sequence[Any]) -> Any:
    """Return one of some values as a choice among them, if they differ and are constants.

    Tuples, lists and dicts of one structure are chosen by their items.
    """
    if (keys := _common_keys(values)) is not None:
        items = {k: as_choice(value[k], [other[k] for other in values]) for k in keys}
        if all(items[k] is value[k] for k in keys):
            return value
        return items if type(value) is dict else type(value)(items.values())
    if not _are_different(values):
        return value
    options = _options(values)
    return value.among(options) if isinstance(value, Choice) else _constant(value, options)


def _common_keys(values: Sequence[Any]) -> Sequence[Any] | None:
    """Return the keys of dicts, or positions in sequences, of one structure; None of others."""
    kind = type(values[0])
    if kind not in (tuple, list, dict) or not all(type(value) is kind for value in values):
        return None
    rows = [[*value] if kind is dict else [*range(len(value))] for value in values]
    return rows[0] if all(row == rows[0] for row in rows) else None


def _options(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return all that values may be, in the order in which they have it."""
    options: list[Any] = []
    for value in values:
        for option in value.options if isinstance(value, Choice) else (value,):
            if not any(_is_same(option, other) for other in options):
                options.append(option)
    return tuple(options)


def single_choice(value: Any) -> Choice:
    """Return a constant as a choice of this one."""
    return value if isinstance(value, Choice) else Choice(0, (value,))


def _constant(value: Any, options: tuple[Any, ...]) -> Choice:
    return Choice(_position(value, options), options)


def _position(option: Any, options: Sequence[Any]) -> int:
    return next(k for k, other in enumerate(options) if _is_same(option, other))


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and bool(one == other))


def merged_choices(
    pair: list[Any], regions: Sequence[Recording], outer: Recording, *, always: bool = False
) -> list[Any]:
    """Return what two paths, recorded in two regions, leave as choices, if they are constants.

    Outside of loops the outcome of the test is part of the trace instead.
    """
    is_chosen = always or is_repeated(outer) or any(isinstance(x, Choice) for x in pair)
    if not is_chosen or any(value is UNBOUND for value in pair):
        return pair
    new = []
    for value, region in zip(pair, regions, strict=True):
        with region.active():
            new.append(as_choice(value, pair))
    return new


def _unflatten(options: Any, parts: Any) -> Any:
    """Return a choice; in the results of a run, what it has taken."""
    (code,) = parts
    is_result = isinstance(code, (int, np.integer, np.ndarray)) and not is_traced_now()
    return options[int(code)] if is_result and code < len(options) else Choice(code, options)


def _flatten(x: Any) -> tuple[Any, Any, None]:
    return (x.code,), x.options, None


optree.register_pytree_node(
    Choice,
    _flatten,
    _unflatten,
    namespace=getattr(optree.registry, "__GLOBAL_NAMESPACE"),  # there is no public name for it
)
