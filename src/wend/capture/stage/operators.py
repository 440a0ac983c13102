"""`and`, `or`, `not`, conditional expressions, comparison chains and `assert` on traced values."""

from __future__ import annotations

import functools
import operator
import types
from collections import deque
from collections.abc import Callable, KeysView, Sequence
from typing import Any

import numpy as np

from wend.base.errors import AliasError, ConcreteValueError, explain
from wend.base.source import at, user_source
from wend.capture.guards.outside import read_identity
from wend.capture.heap.container_phis import (
    any_phis,
    check_comparison,
    is_one_of,
    is_same_object,
)
from wend.capture.heap.containers import CONTAINER_TYPES
from wend.capture.heap.places import StandIn
from wend.capture.libraries import is_library
from wend.capture.stage import raises
from wend.capture.stage.branches import if_value
from wend.capture.stage.item_comparisons import (
    NAMES,
    are_equal,
    asks_users,
    compare_items,
    compares_items,
    holds_staged,
)
from wend.capture.stage.iterables import TracedRange
from wend.capture.stage.truth import as_test, is_traced, truth
from wend.capture.state import one_shot_iterators, operands
from wend.capture.state.optional_value import OptionalValue, numbers
from wend.capture.state.paths import decided_truth
from wend.capture.state.state import State
from wend.eager.dispatch import Staged
from wend.eager.promotion import tensor_type
from wend.numpy import elementwise as ew
from wend.numpy import reducing
from wend.trace.aliasing.passed_containers import note_comparison
from wend.trace.arrays.attributes import class_name, class_of
from wend.trace.arrays.concrete_array import ConcreteTracedArray, PromotedArray
from wend.trace.arrays.shown_text import ShownText
from wend.trace.arrays.tracer import TracedNumber, TracedScalar, Tracer
from wend.trace.control.tensor_list import TensorList
from wend.trace.state import effects
from wend.trace.state.raised_errors import note_raised
from wend.trace.state.templates import Text
from wend.trace.state.text_choice import TextChoice, mapped

Thunk = Callable[[], Any]

_IDENTITY_AND_MEMBERSHIP: dict[str, Callable[[Any, Any], Any]] = {
    "Is": lambda a, b: is_(a, b),
    "IsNot": lambda a, b: is_not(a, b),
    "In": lambda a, b: contains(b, a),
    "NotIn": lambda a, b: not_(contains(b, a)),
}


def is_(a: Any, b: Any) -> Any:
    """Return `a is b`: of bools, which are singletons, whether they are equal (D47).

    Raises:
        AliasError: whether the two are one object is known only at run time.
    """
    if isinstance(a, TextChoice) or isinstance(b, TextChoice):
        return a.is_(b) if isinstance(a, TextChoice) else b.is_(a)
    if b is None:
        return a.equals(None) if isinstance(a, OptionalValue) else a is None
    note_comparison(a, b)
    if isinstance(a, OptionalValue) or isinstance(b, OptionalValue):
        return is_(*numbers(a, "is", b))
    a, b = _traced(a), _traced(b)
    if a is b or not (isinstance(a, Tracer) or isinstance(b, Tracer)):
        if isinstance(a, CONTAINER_TYPES) and isinstance(b, CONTAINER_TYPES):
            read_identity(a, b)
        return is_same_object(a, b)
    kind, other_kind = (class_of(x) if isinstance(x, Tracer) else type(x) for x in (a, b))
    if isinstance(b, np.ndarray):
        other_kind = np.ndarray
    if isinstance(a, np.ndarray):
        kind = np.ndarray
    if kind is not other_kind:
        return False
    if kind is bool:
        return ew.equal(a, b).as_weak()
    if kind is not int:
        is_same = is_same_object(a, b)
        is_carried = _may_be_carried(a, b) or _may_be_carried(b, a)
        if is_same or not (is_carried or (_may_come_from_outside(a) and _may_come_from_outside(b))):
            return is_same
        x, y = tensor_type(a), tensor_type(b)
        if x.dtype != y.dtype or x.rank != y.rank:
            return False
    raise AliasError(
        explain(
            f"`is`{at(user_source())} compares {a!r:.60} and {b!r:.60}: whether the two are one "
            "object is known only at run time.",
            cure="compare their values with ==, or np.array_equal; or pass a flag that says which "
            "object it is, in static_argnames.",
        )
    )


def is_not(a: Any, b: Any) -> Any:
    """Return `a is not b`."""
    return not_(is_(a, b))


def _traced(x: Any) -> Any:
    """Return what a value stands for, and the traced array that an array has become."""
    if isinstance(x, StandIn):
        return x.original
    return x.root()._ref if isinstance(x, PromotedArray) and x.root() is x else x


def _may_be_carried(x: Any, other: Any) -> bool:
    """Return whether a value is what a loop carries, and another may be it in some trip."""
    is_param = isinstance(x, Tracer) and x.value.node is None
    if not is_param or not getattr(x.recording, "is_region", False):
        return False
    is_new = isinstance(other, Tracer) and other.value.node is not None
    return not (is_new and other.recording is x.recording)


def _may_come_from_outside(x: Any) -> bool:
    """Return whether a value may be an object of the caller: no operation has made it."""
    if not isinstance(x, Tracer):
        return not isinstance(x, ConcreteTracedArray)
    node = x.value.node
    is_part = x.whole() is not x  # `x[:]` is another object than `x`
    return not is_part and (node is None or bool(node.regions))


# Containers that look for an item by `==`
_EQ_CONTAINERS = (list, tuple, set, frozenset, dict, range, deque)


# The user's code may give the items: this is captured
def _is_item(container: Any, item: Any, are_equal: Any) -> bool:
    """Return whether an iterable object has an item; what follows that is not asked for."""
    for element in container:  # noqa: SIM110 - the loop ends at the item
        if are_equal(element, item):
            return True
    return False


CODES = frozenset({_is_item.__code__})


def _own_items(container: Any) -> Any:
    """Return what a container looks among, or None: its items, whatever an `__iter__` says."""
    kind = next((kind for kind in _EQ_CONTAINERS if isinstance(container, kind)), None)
    if kind is None or type(container) is kind:
        return None if kind is None else container
    return [*kind.__iter__(container)]


def contains(container: Any, item: Any) -> Any:
    """Return `item in container`."""
    if isinstance(container, TracedRange):
        return container.contains(item)
    if isinstance(container, TensorList):
        return _as_bool(container.has(item))
    if isinstance(container, (TracedNumber, TracedScalar)):
        raise TypeError(f"argument of type {class_name(container)!r} is not iterable")
    if isinstance(container, Staged):
        return _as_bool(reducing.any(ew.equal(container, item)))
    if isinstance(item, Staged) and isinstance(container, np.ndarray):
        return _as_bool(reducing.any(ew.equal(container, item)))
    if isinstance(container, TextChoice) or (
        isinstance(container, str) and isinstance(item, TextChoice)
    ):
        return mapped(operator.contains, container, item)
    method = getattr(type(container), "__contains__", None)
    if isinstance(method, types.FunctionType) and not is_library(method.__code__.co_filename):
        is_match = operands.call_method(container, "__contains__", item)
        return _as_bool(truth(is_match)) if isinstance(is_match, Staged) else bool(is_match)
    is_iterated = any(operands.is_users(container, name) for name in ("__iter__", "__getitem__"))
    items = _own_items(container)
    if items is None and is_iterated:
        return operands.call(_is_item)(container, item, are_equal)
    if any_phis() and is_one_of(() if items is None else items, item):
        return True
    if isinstance(container, (list, tuple, deque)) and asks_users([item, *items]):
        return _as_bool(index_of(item, items, 0, len(items)) >= 0)
    if items is None or not (holds_staged(item) or any(map(holds_staged, items))):
        if isinstance(item, ShownText):
            raise item.looked_at()
        return item in one_shot_iterators.consume(container)
    if isinstance(container, (dict, set, frozenset, KeysView)):
        _check_hashable(item)
    result: Any = False
    for element in items:
        is_match = are_equal(element, item)
        if isinstance(is_match, Staged):
            result = is_match if result is False else ew.logical_or(result, is_match)
        elif is_match:
            return _as_bool(ew.logical_or(result, True)) if isinstance(result, Staged) else True
    return _as_bool(result)


def _check_hashable(item: Any) -> None:
    """Raise Python's error for a value, or a part of a tuple, that has no hash."""
    if type(item) is tuple:
        for part in item:
            _check_hashable(part)
    elif isinstance(item, (list, dict, set)):
        raise TypeError(f"unhashable type: {type(item).__name__!r}")
    elif isinstance(item, (Staged, np.ndarray)) and class_of(item) is np.ndarray:
        raise TypeError("unhashable type: 'numpy.ndarray'")


def index_of(item: Any, items: Sequence[Any] | deque[Any], start: int, stop: int) -> Any:
    """Return the position of the first equal item, or -1; no item after that is compared."""
    for position in range(start, stop):
        is_match = are_equal(items[position], item)
        if isinstance(is_match, Staged):
            search = functools.partial(index_of, item, items, position + 1, stop)
            return if_value(is_match, functools.partial(int, position), search, None, "in")
        if is_match:
            return position
    return -1


def _as_bool(x: Any) -> Any:
    """Return a truth value as a Python bool, which it is even if NumPy computes it."""
    return x.as_weak() if isinstance(x, Tracer) else x


def and_(left: Any, right: Thunk, state: State | None = None) -> Any:
    """Return `left and right`; the right side runs only if the left one holds."""
    test = as_test(left)
    if not is_traced(test):
        return right() if test else left
    return if_value(test, right, lambda: left, state, "and")


def or_(left: Any, right: Thunk, state: State | None = None) -> Any:
    """Return `left or right`."""
    test = as_test(left)
    if not is_traced(test):
        return left if test else right()
    return if_value(test, lambda: left, right, state, "or")


def not_(x: Any) -> Any:
    """Return `not x`."""
    x = as_test(x)
    return _as_bool(ew.logical_not(truth(x))) if is_traced(x) else not x


def if_expression(test: Any, then: Thunk, other: Thunk, state: State | None = None) -> Any:
    """Return `then if test else other`."""
    test = as_test(test)
    if not is_traced(test):
        return then() if test else other()
    return if_value(test, then, other, state)


def choose_value(test: Any, then: Thunk, other: Thunk) -> Any:
    """Return `then() if test else other()` for a traced test, where the text is chosen."""
    return if_value(test, then, other, None)


def require_concrete(left: Any) -> Any:
    """Check the left side of an operator whose right side binds a name that is out of reach.

    Raises:
        ConcreteValueError: it is traced.
    """
    if is_traced(left):
        raise ConcreteValueError(
            explain(
                f"`:=`{at(user_source())} stands in a comprehension or lambda, where a traced "
                "value decides whether it runs.",
                cure="write the comprehension as a `for` loop, the lambda as a `def`; or bind the "
                "name before it.",
            )
        )
    return left


def check_filter(test: Any, what: str = "the filter of a comprehension") -> Any:
    """Check the result of a filter, which decides in Python; its outcome may be part of the trace.

    Raises:
        ConcreteValueError: it is traced, and is not.
    """
    test = as_test(test)
    if not is_traced(test):
        return test
    outcome, site = decided_truth(test)
    if outcome is not None:
        return outcome
    error = ConcreteValueError(
        explain(
            f"{what}{at(user_source())} is {test!r}: how many items it lets through is only "
            "known when it runs.",
            cure="write it as a `for` loop that appends to a list.",
        )
    )
    error.deciding_test = site  # type: ignore[attr-defined]
    raise error


def compare(left: Any, name: str, right: Any, *links: tuple[str, Thunk]) -> Any:
    """Return `left < middle < right`, with each operand evaluated once, and only if needed."""
    if name in NAMES:
        check_comparison(left, right)
        left, right = operands.compared_numbers(left, name, right)
    if compares_items(left, name, right):
        result = compare_items(left, name, right)
    elif name in _IDENTITY_AND_MEMBERSHIP:
        result = _IDENTITY_AND_MEMBERSHIP[name](left, right)
    else:
        result = operands.compared(name, left, right)
    if not links:
        return result
    (following, thunk), remaining = links[0], links[1:]
    return and_(result, lambda: compare(right, following, thunk(), *remaining))


def text(*parts: Any) -> str:
    """Build an f-string from literal parts, and a formatted value for each field."""
    return Text.of(parts)


def assertion_error(message: Any) -> AssertionError:
    """Return the error of an `assert` with a message."""
    return AssertionError(message)


def assert_(test: Any, message: Thunk) -> None:
    """Run `assert test, message`."""
    test = as_test(test)
    if is_traced(test):
        message_value = message()
        arguments = [] if message_value is None else [message_value]
        if raises.divert(not_(test), AssertionError, arguments):
            return
        text = () if message_value is None else ("{}", message_value)
        effects.raise_if(not_(test), AssertionError, *text)
    elif not test:
        message_value = message()
        error = AssertionError(*([] if message_value is None else [message_value]))
        note_raised(error)
        raise error
