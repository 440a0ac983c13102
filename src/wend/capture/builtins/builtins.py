"""Implementations of the Python builtins for traced values."""

from __future__ import annotations

import builtins
import dis
import types
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise, takewhile
from typing import Any

import numpy as np

from wend.base.errors import ConcreteValueError, StructureError, explain
from wend.base.refusals import refusal
from wend.base.source import at, user_source
from wend.capture.builtins import conversions, grown_lists
from wend.capture.builtins.conversions import as_weak
from wend.capture.guards.namespaces import Namespace
from wend.capture.guards.outside import read_class_of
from wend.capture.libraries import is_library
from wend.capture.stage.branches import if_value
from wend.capture.stage.item_comparisons import (
    asks_users,
    compare_items,
    compares_items,
    holds_staged,
)
from wend.capture.stage.iterables import TracedRange, ZippedIterable
from wend.capture.stage.truth import as_test, truth
from wend.capture.state import operands
from wend.capture.state.optional_value import OptionalValue
from wend.capture.syntax.names import RUNTIME
from wend.eager.checking import checked
from wend.eager.dispatch import Staged
from wend.eager.promotion import PYTHON_SCALARS, is_weak, tensor_type
from wend.eager.promotion import is_scalar as is_scalar_of_numpy
from wend.numpy import elementwise as ew
from wend.numpy import indexing, orders, reducing, shaping
from wend.numpy.operands import dtype_of
from wend.trace.aliasing.may_alias import record_merge
from wend.trace.arrays.attributes import class_of, example_of, not_iterable, unsized
from wend.trace.arrays.concrete_array import ConcreteTracedArray
from wend.trace.arrays.shown_text import ShownText
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.tensor_list import TensorDeque, TensorList
from wend.trace.recording.arguments import common_value, is_zero_dim
from wend.trace.recording.recording import current
from wend.trace.state import effects
from wend.trace.state.text_choice import TextChoice


def stack_if_list(xs: Any) -> Any:
    """Return a traced list as the array of its items, and other values unchanged."""
    return xs.rows() if isinstance(xs, TensorList) else xs


def _items_of(xs: Any) -> Any:
    """Return what to go through for the items of a value: those of a traced list are numbers."""
    is_of_numbers = isinstance(xs, TensorList) and xs.holds_numbers
    return map(as_weak, xs.items()) if is_of_numbers else stack_if_list(xs)


# Functions of one value
def length(x: Any) -> Any:
    """Return `len(x)`."""
    if isinstance(x, TensorList):
        return as_weak(x.length())
    if isinstance(x, TracedRange):
        return as_weak(x.count())
    if not shaping.rank_of(x):
        raise TypeError(unsized(x))
    return as_weak(shaping.shape(x)[0])


def type_of(x: Any) -> type:
    """Return `type(x)`: Python's types for weak scalars, NumPy's types for others."""
    if isinstance(x, TextChoice):
        kinds = {*map(type, x.options)}
        return kinds.pop() if len(kinds) == 1 else type(x.decided("its type is needed"))
    if not isinstance(x, Staged):
        read_class_of(x)
        return str if isinstance(x, ShownText) else _STANDS_FOR.get(type(x), type(x))
    return type_of(x.decided("a type is needed")) if isinstance(x, OptionalValue) else class_of(x)


_STANDS_FOR: dict[type, type] = {
    TensorList: list,
    TensorDeque: deque,
    Namespace: dict,
    ConcreteTracedArray: np.ndarray,
}


def is_scalar(x: Any) -> bool:
    """Return `np.isscalar(x)`."""
    return class_of(x) is not np.ndarray if isinstance(x, Staged) else bool(np.isscalar(x))


def is_instance(x: Any, kinds: Any) -> Any:
    """Return `isinstance(x, kinds)`, where a traced value has the type that it stands for."""
    if isinstance(x, TextChoice):
        return x.mapped(lambda option: is_instance(option, kinds))
    if isinstance(x, OptionalValue):
        number, none = is_instance(x.value, kinds), isinstance(None, kinds)
        return number if number is none else x.equals(None) if none else x != None  # noqa: E711
    if isinstance(kinds, types.UnionType):
        kinds = kinds.__args__
    if isinstance(kinds, tuple):
        return _is_instance_of_one(x, kinds)
    kind = type_of(x)
    check = getattr(type(kinds), "__instancecheck__", None)
    is_users = isinstance(check, types.FunctionType) and not is_library(check.__code__.co_filename)
    if is_users and kind is not kinds:
        return to_bool(operands.call_method(kinds, "__instancecheck__", x))
    if not isinstance(x, (Staged, TensorList, Namespace)):
        return isinstance(x, kinds)
    is_of_wend = isinstance(kinds, type) and issubclass(kinds, (Staged, TensorList))
    return isinstance(x if is_of_wend else example_of(kind), kinds)


def _is_instance_of_one(x: Any, kinds: tuple[Any, ...]) -> Any:
    for k, kind in enumerate(kinds, start=1):
        is_one = is_instance(x, kind)
        if isinstance(is_one, Staged):
            others = lambda following=kinds[k:]: _is_instance_of_one(x, following)  # noqa: E731
            return if_value(is_one, lambda: True, others, None, "isinstance")
        if is_one:
            return True
    return False


def power(base: Any, exp: Any, mod: Any = None) -> Any:
    """Return `pow(base, exp, mod)`."""
    if mod is None:
        return base**exp
    raise refusal(
        TypeError(
            explain(
                f"pow{at(user_source())} of traced values takes no modulus: its integers are "
                "unbounded in Python, and have 64 bits here.",
                cure="write the loop that squares and takes remainders.",
            )
        )
    )


def to_bool(x: Any) -> Any:
    """Return `bool(x)`."""
    if isinstance(x, TracedRange):
        return length(x) > 0
    test = as_test(x)
    return conversions.to_bool(test) if isinstance(test, Staged) else bool(test)


# Functions of many values
def sum_of(xs: Any, start: Any = 0) -> Any:
    """Return `sum(xs, start)`."""
    if isinstance(xs, TensorList):
        items = xs.items()
        kind = dtype_of(items).kind
        total = reducing.sum(items, 0, dtype=None if kind == "b" else dtype_of(items))
        return (as_weak(total) if xs.holds_numbers else total) + start
    if isinstance(start, (str, bytes, bytearray)):
        return builtins.sum((), start)  # which raises
    for x in xs:
        start = operands.binary("Add", start, x)
    return start


def min_or_max(name: str, reduce: Callable[..., Any]) -> Any:
    """Build `min` or `max`, which returns the first of the extreme items."""
    original = getattr(builtins, name)
    order = "Lt" if name == "min" else "Gt"

    def run(*xs: Any, key: Any = None, **default: Any) -> Any:
        if default.keys() - {"default"}:
            return original(*xs, **default)  # Python's error
        if len(xs) == 1 and grown_lists.is_ordered_here(xs[0], key):
            return grown_lists.extreme_item(name, xs[0], key, default)
        if len(xs) == 1 and key is None and isinstance(xs[0], (Staged, TensorList)):
            is_of_numbers = isinstance(xs[0], TensorList) and xs[0].holds_numbers

            def extreme(row: Any) -> Any:
                result = _extreme_of_row(reduce, row)
                return as_weak(result) if is_of_numbers else result

            return _extreme_of_some(name, stack_if_list(xs[0]), extreme, default)
        if not xs:
            return original(**default)  # which raises
        items = _items_of(xs[0]) if len(xs) == 1 else xs
        if key is None and isinstance(items, _COLLECTIONS) and not _needs_trace(items):
            return original(items, **default)
        best: Any = _END
        best_key: Any = None
        for x in items:  # each is compared before the next is made
            x_key = x if key is None else key(x)
            if best is _END:
                best, best_key = x, x_key
                continue
            is_before = _compared(name, order, x_key, best_key)
            best_key = _select(is_before, x_key, best_key)
            best = best_key if key is None else _select(is_before, x, best)
        return original([], **default) if best is _END else best

    return run


def _extreme_of_some(
    name: str, row: Any, extreme: Callable[[Any], Any], default: dict[str, Any]
) -> Any:
    """Return the extreme of an array of numbers; `min` and `max` say what that of none is."""
    type = tensor_type(row)
    if type.shape == ():
        raise TypeError(not_iterable(row))
    if type.rank != 1:
        bool(np.zeros(2))  # NumPy's error for the truth of a row
    (size,) = shaping.shape(row)
    if isinstance(size, int):
        return extreme(row) if size else getattr(builtins, name)([], **default)
    if default:
        (other,) = default.values()
        return if_value(size > 0, lambda: extreme(row), lambda: other, None, name)
    is_empty = ew.equal(size, 0)
    return extreme(checked(row, (is_empty, ValueError, grown_lists.text_of_empty(name))))


def _extreme_of_row(reduce: Callable[..., Any], row: Any) -> Any:
    """Return the extreme of an array as Python finds it: NaN is skipped, unless it is the first."""
    if tensor_type(row).dtype.kind != "f":
        return reduce(row)
    worst = -np.inf if reduce is reducing.max else np.inf
    extreme = reduce(ew.where(ew.isnan(row), worst, row))
    return ew.where(ew.isnan(row[0]), row[0], extreme)


def _needs_trace(items: Collection[Any]) -> bool:
    """Return whether items are traced, or may be compared by the user's code."""
    return any(holds_staged(x) or asks_users(x, "Lt") or asks_users(x, "Gt") for x in items)


def _compared(name: str, order: str, x: Any, best: Any) -> Any:
    """Return whether an item comes before the best of those before it.

    Raises:
        StructureError: only the run knows, and they are lists.
    """
    if not compares_items(x, order, best):
        return operands.compared(order, x, best)
    is_before = compare_items(x, order, best)
    if isinstance(is_before, Staged) and isinstance(x, list):
        raise StructureError(
            explain(
                f"{name}{at(user_source())} compares lists of traced values.",
                cure="give it tuples, or a key= that is one number.",
            )
        )
    return is_before


_COLLECTIONS = (list, tuple, set, frozenset, dict, range)


def has_staged_items(x: Any) -> bool:
    """Return whether a list or tuple holds traced values, at any depth."""
    return isinstance(x, (list, tuple)) and not all(map(_is_known, x))


def _distinct_heads(keys: Sequence[Any]) -> Sequence[Any] | None:
    """Return the parts before the traced ones of tuples or lists, if those alone order them."""
    kinds = {*map(type, keys)}
    if kinds != {tuple} and kinds != {list}:
        return None
    count = min(sum(1 for _ in takewhile(_is_known, key)) for key in keys)
    heads = [key[:count] for key in keys]
    try:
        is_distinct = len({*map(tuple, heads)}) == len(heads)
    except TypeError:  # a part has no hash
        return None
    return heads if is_distinct else None


def _is_known(x: Any) -> bool:
    return not isinstance(x, Staged) and not has_staged_items(x)


_ARRAYS = (Staged, np.ndarray, np.generic, *PYTHON_SCALARS)


def _select(test: Any, then: Any, other: Any) -> Any:
    if not isinstance(test, Staged):
        return then if test else other
    if not all(is_weak(x) or is_scalar_of_numpy(x) for x in (then, other)):
        return if_value(test, lambda: then, lambda: other, None)  # an array stays the same one
    result = ew.where(truth(test), then, other)
    return as_weak(result) if is_weak(then) and is_weak(other) else result


def any_of(xs: Any) -> Any:
    """Return `any(xs)`; only the run knows which item ends the search."""
    xs = stack_if_list(xs)
    is_row = isinstance(xs, Staged) and xs.type.rank == 1
    return as_weak(reducing.any(xs)) if is_row else _Search("any", True, ew.logical_or).of(xs)


def all_of(xs: Any) -> Any:
    """Return `all(xs)`."""
    xs = stack_if_list(xs)
    is_row = isinstance(xs, Staged) and xs.type.rank == 1
    return as_weak(reducing.all(xs)) if is_row else _Search("all", False, ew.logical_and).of(xs)


class _Search:
    """A search for the first item whose truth is `decisive`.

    Items that are computed by calls are computed as Python would, in branches: each only if none
    before it was decisive. Others are all computed.
    """

    def __init__(self, name: str, decisive: bool, join: Callable[[Any, Any], Any]) -> None:
        self._name, self._decisive, self._join = name, decisive, join
        self._is_over = self._is_checked = False

    def of(self, xs: Any) -> Any:
        """Return whether there is such an item, for `any`, or none, for `all`."""
        has_calls, items = _computes_by_calls(xs), iter(xs)
        result: Any = not self._decisive
        while not self._is_over:
            if isinstance(result, Staged) and not self._is_checked:
                self._is_checked = True
                _check_binds_nothing(self._name, xs)
            if has_calls and isinstance(result, Staged):
                result = self._following(result, items)
                if result is self._decisive:  # on the path of this trace
                    return result
                continue
            item = as_test(next(items, _END))
            if item is _END:
                break
            if isinstance(item, Staged):
                test = truth(item)
                result = test if isinstance(result, bool) else self._join(result, test)
            elif bool(item) is self._decisive:
                return self._decisive
        return as_weak(result)

    def _following(self, result: Any, items: Iterator[Any]) -> Any:
        """Return the result after one more item, which is computed if nothing is decided yet."""
        taken: list[Any] = []

        def test_of_item() -> Any:
            if taken:
                raise StructureError(
                    explain(
                        f"{self._name}{at(user_source())} stops where an item decides, which only "
                        "the run knows; but its items change Python objects.",
                        cure="write it as a `for` loop with `break`, or change them before.",
                    )
                )
            taken.append(as_test(next(items, _END)))
            item = taken[0]
            if item is _END or not isinstance(item, Staged):
                self._is_over = item is _END or bool(item) is self._decisive
                return bool(item) if item is not _END else not self._decisive
            return as_weak(truth(item))

        def decided() -> bool:
            return self._decisive

        then, other = (decided, test_of_item) if self._decisive else (test_of_item, decided)
        following = if_value(result, then, other, None, self._name)
        return result if taken and taken[0] is _END else following


def _check_binds_nothing(name: str, xs: Any) -> None:
    """Check that the items of a generator expression bind no names of the code around it.

    Raises:
        ConcreteValueError: one does, by `:=`.
    """
    if not isinstance(xs, types.GeneratorType) or not xs.gi_code.co_freevars:
        return
    outer = xs.gi_code.co_freevars
    instructions = dis.get_instructions(xs.gi_code)
    if any(step.opname == "STORE_DEREF" and step.argval in outer for step in instructions):
        raise ConcreteValueError(
            explain(
                f"{name}{at(user_source())} stops where an item decides, which only the run knows; "
                "but its items bind a name by `:=`.",
                cure="write it as a `for` loop with `break`.",
            )
        )


_END = object()


def _computes_by_calls(xs: Any) -> bool:
    """Return whether items are computed by calls of the user's code, when they are asked for."""
    if isinstance(xs, types.GeneratorType):
        return _has_calls(xs.gi_code)
    return isinstance(xs, map) or (isinstance(xs, ZippedIterable) and xs.function is not None)


def _has_calls(code: types.CodeType) -> bool:
    """Return whether captured code, or code in it, calls something."""
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return (RUNTIME in code.co_freevars and "call" in code.co_names) or any(map(_has_calls, inner))


def sorted_of(xs: Any, *, key: Any = None, reverse: bool = False) -> Any:
    """Return `sorted(xs)`."""
    if grown_lists.is_ordered_here(xs, key):
        return grown_lists.sorted_list(xs, key, reverse=reverse)
    items = list(_items_of(xs))
    keys = items if key is None else [*map(key, items)]
    if len(keys) < 2:
        return items
    if all(map(_is_known, keys)):
        heads: Sequence[Any] | None = keys
    else:
        heads = _distinct_heads(keys)
    if heads is not None:
        order = sorted(range(len(items)), key=heads.__getitem__, reverse=reverse)
        return [items[k] for k in order]
    columns = _columns(keys)
    columns_of_items = columns if key is None else _columns(items)
    if columns is None or columns_of_items is None:
        raise StructureError(
            explain(
                f"sorted{at(user_source())} would put lists, tuples or objects in an order that is "
                "only known when it runs.",
                cure="make them tuples of numbers, all of one length; or keep an array for each "
                "part, and order them by wnp.argsort: x[order].",
            )
        )
    stacked = [shaping.stack(_numbers(column)) for column in columns]
    order = orders.order_by(stacked, reverse=reverse)
    parts = []
    for column in columns_of_items:
        taken = indexing.take(shaping.stack(column), order, axis=0)
        parts.append([_one_of(column, x) for x in taken])
    return [*zip(*parts, strict=True)] if isinstance(items[0], tuple) else parts[0]


def _one_of(items: Sequence[Any], x: Any) -> Any:
    """Return a value that stands for one of some numbers or arrays, only the run knows which."""
    if all(map(is_weak, items)):
        return as_weak(x)
    if not all(is_weak(item) or is_scalar_of_numpy(item) for item in items):
        x.zero_dim = common_value(is_zero_dim(item) for item in items)
        record_merge([x], [[item] for item in items], current())
    return x


def _columns(values: Sequence[Any]) -> list[Sequence[Any]] | None:
    """Return the values as a column, or a column for each part of tuples; None of other values."""
    if all(isinstance(x, _ARRAYS) for x in values):
        return [values]
    lengths = {len(x) if type(x) is tuple else 0 for x in values}
    parts = [part for x in values if type(x) is tuple for part in x]
    if len(lengths) != 1 or 0 in lengths or not all(map(_is_number, parts)):
        return None
    return [*zip(*values, strict=True)]


def _numbers(keys: Sequence[Any]) -> list[Any]:
    """Return keys that are compared: arrays of one element are numbers, others have no order."""
    if any(map(shaping.rank_of, keys)):
        for x, y in pairwise(keys):
            truth(ew.less(y, x))
    return [shaping.reshape(x, ()) if shaping.rank_of(x) else x for x in keys]


def _is_number(x: Any) -> bool:
    return (
        type(x) in PYTHON_SCALARS
        or isinstance(x, np.generic)
        or (isinstance(x, Tracer) and x.type.shape == () and not x.zero_dim)
    )


STAGED: dict[Callable[..., Any], Callable[..., Any]] = {
    builtins.len: length,
    builtins.float: conversions.to_float,
    builtins.int: conversions.to_int,
    builtins.complex: conversions.to_complex,
    builtins.round: conversions.round,
    builtins.pow: power,
    builtins.sum: sum_of,
    builtins.min: min_or_max("min", reducing.min),
    builtins.max: min_or_max("max", reducing.max),
    builtins.sorted: sorted_of,
    builtins.print: effects.print,
    builtins.range: TracedRange,
}
