"""Optional values: numbers and arrays that are None in some runs, as `best` before a first one."""

from __future__ import annotations

import builtins
import operator
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import numpy as np
import optree

from wend.base.context_values import scoped
from wend.base.errors import ConcreteValueError, explain
from wend.base.instances import is_replaceable
from wend.base.keys import attributes_of
from wend.base.source import at, user_source
from wend.capture.heap.locations import UNBOUND
from wend.capture.state import operands
from wend.capture.state.paths import decided_truth, ends_without_path, may_decide
from wend.eager import raising
from wend.eager.dispatch import Staged
from wend.eager.promotion import as_array, is_weak, tensor_type
from wend.ir.types import TensorType
from wend.numpy import elementwise as ew
from wend.ops.elementwise import bit_not
from wend.trace.arrays.attributes import class_of
from wend.trace.arrays.resolve import call_function, call_ufunc
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.returned_optional import ReturnedOptional
from wend.trace.control.tensor_list import is_list
from wend.trace.recording.arguments import is_array_leaf
from wend.trace.recording.recording import Recording
from wend.trace.state.effects import raise_if

# Whether the trace has such a value
_is_in_use: ContextVar[bool] = ContextVar("wend_optional_value", default=False)


def _binary(symbol: str, function: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """Return an operator and its reflection, on the number."""

    def forward(self: OptionalValue, other: Any) -> Any:
        return function(self.required(symbol, other), _read(other))

    def reflected(self: OptionalValue, other: Any) -> Any:
        return function(_read(other), self.required(symbol, other, is_right=True))

    return forward, reflected


_NEEDED = "a number is needed where this run has None ({})"


def _of_value(function: Callable[[Any], Any], text: str = _NEEDED) -> Any:
    """Return a function of the number; `text` is the error where the run has None."""
    return lambda self: function(self._checked(text.format("'NoneType'")))


class OptionalValue(Staged):
    """A number or array, or a tuple of these, that is None in some runs.

    It holds zeros there, with a flag. An operation that needs the number checks the flag.
    """

    __slots__ = ("is_none", "value")
    is_optional_value = True
    __array_priority__ = 1000

    def __init__(self, value: Any, is_none: Any) -> None:
        self.value, self.is_none = value, is_none
        _is_in_use.set(True)

    @property
    def type(self) -> TensorType:  # type: ignore[override]
        return tensor_type(self.value)

    @property
    def weak(self) -> bool:  # type: ignore[override]
        return is_weak(self.value)

    def read(self) -> Any:
        """Return the number, with the check that the run has one."""
        return self._checked(_NEEDED.format("'NoneType'"))

    def required(self, symbol: str, other: Any, *, is_right: bool = False) -> Any:
        """Return the number as an operand, with the check that the run has one."""
        kinds = ["'NoneType'", repr(_name_of_class(other))]
        if is_right:
            kinds.reverse()
        if symbol in _ORDERS:
            return self._checked(
                f"'{symbol}' not supported between instances of {' and '.join(kinds)}"
            )
        return self._checked(f"unsupported operand type(s) for {symbol}: {' and '.join(kinds)}")

    def _checked(self, text: str, error: builtins.type[Exception] = TypeError) -> Any:
        if not raising.divert(lambda: self.is_none, error, lambda: text):
            raise_if(self.is_none, error, text)
        return self.value

    def truth(self, truth: Callable[[Any], Any]) -> Any:
        """Return its truth: None is false."""
        if isinstance(self.value, tuple):
            return self != None  # noqa: E711
        value = as_array(self.value)
        test = truth(value) if isinstance(value, Staged) else np.bool_(bool(value))
        return ew.logical_and(ew.logical_not(self.is_none), test)

    def equals(self, other: Any) -> Any:
        """Return `self == other`, which is False of a number and None."""
        if other is None:
            return _as_bool(self.is_none)
        if isinstance(other, OptionalValue):
            both = ew.logical_and(self.is_none, other.is_none)
            neither = ew.logical_not(ew.logical_or(self.is_none, other.is_none))
            are_equal = compare(self.value, "Eq", other.value)
            return _as_bool(ew.logical_or(both, ew.logical_and(neither, are_equal)))
        is_equal = compare(self.value, "Eq", other)
        return _as_bool(ew.logical_and(ew.logical_not(self.is_none), is_equal))

    def decided(self, use: str) -> Any:
        """Return None or the number, as this trace is for.

        Raises:
            ConcreteValueError: only the run knows which.
        """
        outcome, site = decided_truth(self.is_none)
        if outcome is not None:
            return None if outcome else self.value
        error = ConcreteValueError(
            explain(
                f"{use}{at(user_source())}: only the run knows whether {self.described()} is None.",
                cure="ask before: `if x is None`; or use a number that stands for None: -1 for a "
                "position, np.nan for a value.",
            )
        )
        error.deciding_test = site  # type: ignore[attr-defined]
        raise error

    def described(self) -> str:
        """Return a text for messages."""
        return f"{self.value!r}, or None,"

    def __repr__(self) -> str:
        return repr(self.decided("a text is needed"))

    def __str__(self) -> str:
        return str(self.decided("a text is needed"))

    def __format__(self, spec: str) -> str:
        return format(self.decided("a text is needed"), spec)

    def __hash__(self) -> int:
        return hash(self.decided("a hash is needed"))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return call_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call_function(function, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        kind = class_of(self.value) if isinstance(self.value, Tracer) else builtins.type(self.value)
        text = f"'NoneType' object has no attribute {name!r}"
        if name.startswith("_") or not hasattr(kind, name):
            raise AttributeError(text, name=name, obj=self)
        return getattr(self._checked(text, AttributeError), name)

    def __getitem__(self, key: Any) -> Any:
        return self._checked("'NoneType' object is not subscriptable")[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._checked("'NoneType' object does not support item assignment")[key] = value

    __neg__ = _of_value(operator.neg, "bad operand type for unary -: {}")
    __pos__ = _of_value(operator.pos, "bad operand type for unary +: {}")
    __abs__ = _of_value(operator.abs, "bad operand type for abs(): {}")
    __invert__ = _of_value(operator.invert, "bad operand type for unary ~: {}")
    __int__ = _of_value(int)
    __float__ = _of_value(float)
    __complex__ = _of_value(complex)
    __index__ = _of_value(operator.index, "{} object cannot be interpreted as an integer")
    __len__ = _of_value(len, "object of type {} has no len()")
    __iter__ = _of_value(iter, "{} object is not iterable")

    def __eq__(self, other: object) -> Any:
        return self.equals(other)

    def __ne__(self, other: object) -> Any:
        return _as_bool(ew.logical_not(self.equals(other)))


_ORDERS = {operands.COMPARISONS[name][2]: operands.COMPARISONS[name] for name in operands.ORDERS}


def _add_operators() -> None:
    """Give optional values the operators of numbers."""
    for name, symbol, operate in (*operands.BINARY.values(), ("divmod", "divmod()", divmod)):
        forward, reflected = _binary(symbol, operate)
        setattr(OptionalValue, f"__{name}__", forward)
        setattr(OptionalValue, f"__r{name}__", reflected)
    for symbol, (method, _, _, operate) in _ORDERS.items():
        setattr(OptionalValue, method, _binary(symbol, operate)[0])


_add_operators()


def _name_of_class(x: Any) -> str:
    """Return the name of a class in messages; beside None NumPy has Python's numbers."""
    if isinstance(x, (Staged, np.ndarray, np.generic)):
        return {"b": "bool", "f": "float", "c": "complex"}.get(tensor_type(x).dtype.kind, "int")
    return builtins.type(x).__name__


def _read(x: Any) -> Any:
    return x.read() if isinstance(x, OptionalValue) else x


def _as_bool(x: Any) -> Any:
    return x.as_weak() if isinstance(x, Tracer) else bool(x)


def numbers(left: Any, symbol: str, right: Any) -> tuple[Any, Any]:
    """Return the operands of an operator, with the check that the run has numbers."""
    if isinstance(left, OptionalValue):
        left = left.required(symbol, right)
    if isinstance(right, OptionalValue):
        right = right.required(symbol, left, is_right=True)
    return left, right


# A higher layer sets it
compare: Callable[[Any, str, Any], Any] = lambda left, name, right: left == right  # noqa: E731

# Whether Python runs a trip of a loop
_is_in_loop: ContextVar[bool] = ContextVar("wend_is_in_loop", default=False)


def in_loop() -> AbstractContextManager[object]:
    """Mark a block as a trip of a loop that Python runs."""
    return scoped(_is_in_loop, True)


def may_be_none(value: Any) -> bool:
    """Return whether a value may be None in some runs: a number, an array, a tuple of these."""
    if isinstance(value, OptionalValue):
        return True
    if isinstance(value, tuple) and value:
        return all(map(may_be_none, value)) and not any(isinstance(v, OptionalValue) for v in value)
    return value is not UNBOUND and is_array_leaf(value) and not is_list(value)


def optional_values(values: Sequence[Any], zeros: Callable[[Any], Any]) -> list[Any]:
    """Return values as optional ones, if one is None and the others are numbers or arrays.

    `zeros` returns what stands for None beside a value.
    """
    values = [*values]
    some_is_none = any(value is None or isinstance(value, OptionalValue) for value in values)
    numbers = [value for value in values if value is not None]
    if not some_is_none or not numbers or not all(map(may_be_none, numbers)):
        return values
    example = numbers[0].value if isinstance(numbers[0], OptionalValue) else numbers[0]
    return [
        value
        if isinstance(value, OptionalValue)
        else OptionalValue(zeros(example) if value is None else value, np.bool_(value is None))
        for value in values
    ]


def narrowed(pair: Sequence[Any], test: Any) -> list[Any]:
    """Return what the paths of a test leave, where the test may be that one of it is None.

    The first path is the one that is taken where the test fails.
    """
    return [_narrowed(value, test, holds=bool(k)) for k, value in enumerate(pair)]


def _narrowed(value: Any, test: Any, *, holds: bool) -> Any:
    flag = value.is_none if isinstance(value, OptionalValue) else None
    if not isinstance(flag, Tracer) or not isinstance(test, Tracer):
        return value
    if test.value is flag.value:
        return None if holds else value.value
    node = test.value.node
    is_negation = node is not None and node.op is bit_not and node.operands[0] is flag.value
    if is_negation:
        return value.value if holds else None
    return value


def merged_optional(pair: list[Any], zeros: Callable[[Any], Any], outer: Recording) -> list[Any]:
    """Return what two paths leave as optional values, if it is None on one of them.

    Where the outcome of the test may be part of the trace, it is instead.
    """
    is_carried = any(isinstance(value, OptionalValue) for value in pair)
    return optional_values(pair, zeros) if is_carried or merges_options(outer) else pair


def merges_options(outer: Recording) -> bool:
    """Return whether the outcome of a test cannot become part of the trace in its place."""
    return outer.is_region or _is_in_loop.get() or not may_decide()


def settle(result: Any, *others: Any) -> list[Any]:
    """Return values in which each part is None or a number, as this trace is for.

    Lists, dicts and objects change in place. Parts of the result may be left to the run.

    Raises:
        ConcreteValueError: only the run knows.
    """
    if not _is_in_use.get():
        return [result, *others]
    if ends_without_path():
        result = _left_to_run(result)
    seen: dict[int, tuple[Any, Any]] = {}
    return [_settled(value, seen) for value in (result, *others)]


def _left_to_run(result: Any) -> Any:
    """Return a result, or a tuple of results, whose optional values the run makes."""
    if isinstance(result, OptionalValue) and not isinstance(result.value, tuple):
        return ReturnedOptional(result.value, result.is_none)
    return tuple(map(_left_to_run, result)) if type(result) is tuple else result


def _settled(part: Any, seen: dict[int, tuple[Any, Any]]) -> Any:
    """Return a part as it is settled; `seen` has, by their numbers, parts and what they became."""
    if isinstance(part, OptionalValue):
        return part.decided("None or a number outlives the call")
    if id(part) in seen:
        return seen[id(part)][1]
    seen[id(part)] = part, part
    if isinstance(part, tuple):
        items = [_settled(item, seen) for item in part]
        if not all(map(operator.is_, items, part)):
            new = part._make(items) if hasattr(part, "_make") else tuple(items)
            seen[id(part)] = part, new
        return seen[id(part)][1]
    places: dict[Any, Any] = {}
    if isinstance(part, (list, deque)):
        places = dict(enumerate(part))
    elif isinstance(part, dict):
        places = part
    elif is_replaceable(part):
        places = dict(attributes_of(part))
    for key, value in [*places.items()]:
        settled = _settled(value, seen)
        if settled is value:
            continue
        if is_replaceable(part):
            object.__setattr__(part, key, settled)
        else:
            part[key] = settled
    return part


def _flatten(x: Any) -> tuple[Any, None, None]:
    return (x.value, x.is_none), None, None


optree.register_pytree_node(
    OptionalValue,
    _flatten,
    lambda _, parts: OptionalValue(*parts),
    namespace=getattr(optree.registry, "__GLOBAL_NAMESPACE"),  # there is no public name for it
)
