"""Operators in captured code: those that a user's class defines are called captured.

They are found by Python's rules: reflected methods, the priority of subclasses, `NotImplemented`,
in-place methods, and what comparisons fall back to.
"""

from __future__ import annotations

import functools
import operator
import types
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.capture.guards.outside import read_method
from wend.capture.heap.container_phis import compare_by_identity, is_same_object
from wend.capture.heap.user_operators import has_operators
from wend.capture.lookups.traced_keys import is_traced_key, item_or, key_to_read, key_to_store
from wend.trace.arrays.attributes import class_of
from wend.trace.arrays.tracer import Tracer
from wend.trace.state.chosen_keys import DICTS, at_choice, has_choice, store_at_choice

_Operator = Callable[[Any, Any], Any]

# By the names of their nodes in `ast`: the method's name, the symbol and what it does
BINARY: dict[str, tuple[str, str, _Operator]] = {
    "Add": ("add", "+", operator.add),
    "Sub": ("sub", "-", operator.sub),
    "Mult": ("mul", "*", operator.mul),
    "Div": ("truediv", "/", operator.truediv),
    "FloorDiv": ("floordiv", "//", operator.floordiv),
    "Mod": ("mod", "%", lambda left, right: remainder(left, right)),
    "Pow": ("pow", "** or pow()", operator.pow),
    "MatMult": ("matmul", "@", operator.matmul),
    "BitAnd": ("and", "&", operator.and_),
    "BitOr": ("or", "|", operator.or_),
    "BitXor": ("xor", "^", operator.xor),
    "LShift": ("lshift", "<<", operator.lshift),
    "RShift": ("rshift", ">>", operator.rshift),
}
_IN_PLACE: dict[str, _Operator] = {
    name: getattr(operator, f"i{method}") for name, (method, _, _) in BINARY.items()
}
_IN_PLACE["Mod"] = lambda left, right: (remainder if isinstance(left, str) else operator.imod)(
    left, right
)
UNARY: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "USub": ("__neg__", operator.neg),
    "UAdd": ("__pos__", operator.pos),
    "Invert": ("__invert__", operator.invert),
}
# The method, the one that is asked of the right operand, and the symbol
COMPARISONS: dict[str, tuple[str, str, str, _Operator]] = {
    "Lt": ("__lt__", "__gt__", "<", operator.lt),
    "LtE": ("__le__", "__ge__", "<=", operator.le),
    "Gt": ("__gt__", "__lt__", ">", operator.gt),
    "GtE": ("__ge__", "__le__", ">=", operator.ge),
    "Eq": ("__eq__", "__eq__", "==", operator.eq),
    "NotEq": ("__ne__", "__ne__", "!=", operator.ne),
}
ORDERS = frozenset({"Lt", "LtE", "Gt", "GtE"})
_SEQUENCES = (str, bytes, bytearray, list, tuple)
HEAP_TYPE = 1 << 9  # `Py_TPFLAGS_HEAPTYPE`: made by a `class` statement, or dynamically
_MISSING = object()

# Classes without methods of users: the first look at most operands is enough. None of them ends.
_PLAIN_KINDS: set[type] = {int, float, complex, bool, str, list, tuple, np.ndarray}


# Higher layers set these
call: Callable[[Any], Any] = lambda fun: fun  # noqa: E731
not_: Callable[[Any], Any] = operator.not_
remainder: _Operator = operator.mod
# Returns the operands of a symbol; those that are None in some runs are checked
numbers: Callable[[Any, str, Any], tuple[Any, Any]] = lambda left, symbol, right: (left, right)  # noqa: E731


def binary(name: str, left: Any, right: Any) -> Any:
    """Return `left + right`, or what another binary operator gives."""
    if _PLAIN_KINDS.issuperset((type(left), type(right))) or not any_users(left, right):
        return BINARY[name][2](*numbers(left, BINARY[name][1], right))
    return _binary(left, name, right, "")


def in_place(name: str, left: Any, right: Any) -> Any:
    """Return what `left += right`, or another in-place operator, assigns to `left`."""
    if _PLAIN_KINDS.issuperset((type(left), type(right))) or not any_users(left, right):
        return _IN_PLACE[name](*numbers(left, BINARY[name][1].split()[0] + "=", right))
    if not _is_joined(left, name):  # Python asks a list last
        result = ask(left, f"__i{BINARY[name][0]}__", right)
        if result is not NotImplemented:
            return result
    return _binary(left, name, right, "=")


def unary(name: str, x: Any) -> Any:
    """Return `-x`, or what another unary operator gives."""
    method, operate = UNARY[name]
    if type(x) in _PLAIN_KINDS or not defines(x, method):
        return operate(x)
    return ask(x, method)


def position(key: Any) -> Any:
    """Return the key of a sequence or array with the integers that users' objects stand for."""
    if isinstance(key, slice):  # a plain kind, whose parts may be of users' classes
        return slice(*map(position, (key.start, key.stop, key.step)))
    if type(key) in _PLAIN_KINDS:
        return key
    if not defines(key, "__index__"):
        return key
    if isinstance(key, int):  # is one, whatever its `__index__` returns
        return int.__index__(key)
    return operator.index(ask(key, "__index__"))


def get_item(owner: Any, key: Any) -> Any:
    """Return `owner[key]`."""
    if type(owner) is Counter and is_traced_key(owner, key):
        return item_or(owner, key, 0, functools.partial(get_item, owner))
    key = key_to_read(owner, key)
    if has_choice(key):
        return at_choice(owner, functools.partial(get_item, owner), key)
    if type(owner) in _PLAIN_KINDS or not defines(owner, "__getitem__"):
        return owner[key]
    return ask(owner, "__getitem__", key)


def set_item(owner: Any, key: Any, value: Any) -> None:
    """Run `owner[key] = value`."""
    key = key_to_store(owner, key)
    if has_choice(key) and type(owner) in DICTS:
        store_at_choice(owner, key, value)
        return
    if type(owner) in _PLAIN_KINDS or not defines(owner, "__setitem__"):
        owner[key] = value
    else:
        ask(owner, "__setitem__", key, value)


def compared(name: str, left: Any, right: Any) -> Any:
    """Return `left < right`, or another comparison by the methods of the operands."""
    method, reflected, symbol, operate = COMPARISONS[name]
    if _PLAIN_KINDS.issuperset((type(left), type(right))) or not any_users(left, right):
        if name in ("Eq", "NotEq") and compare_by_identity(left, right):
            return operate(is_same_object(left, right, f"`{symbol}`"), True)
        return operate(*compared_numbers(left, name, right))
    asks = [(left, method, right), (right, reflected, left)]
    if _is_subclass(type(right), type(left)):
        asks.reverse()
    for owner, asked, other in asks:
        result = _ask_comparison(owner, asked, other)
        if result is not NotImplemented:
            return result
    if name in ("Eq", "NotEq"):
        return operate(is_same_object(left, right, f"`{symbol}`"), True)
    kinds = f"{_name_of_class(left)!r} and {_name_of_class(right)!r}"
    raise TypeError(f"{symbol!r} not supported between instances of {kinds}")


def compared_numbers(left: Any, name: str, right: Any) -> tuple[Any, Any]:
    """Return the operands of a comparison; of an order those that are None in some runs checked."""
    return numbers(left, COMPARISONS[name][2], right) if name in ORDERS else (left, right)


# By the names of their nodes in `ast`: what captured code calls
RUNTIME_FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: functools.partial(function, name)
    for function, names in ((binary, BINARY), (unary, UNARY), (compared, COMPARISONS))
    for name in names
}


# By the functions of `operator` that run them
BY_FUNCTION: dict[_Operator, _Operator] = {
    getattr(operator, f"__{method}__"): functools.partial(binary, name)
    for name, (method, _, _) in BINARY.items()
}


def operate(operation: _Operator, left: Any, right: Any) -> Any:
    """Return what a function of `operator`, or `divmod`, gives by the methods of the operands."""
    return call(operation)(left, right)


def _binary(left: Any, name: str, right: Any, suffix: str) -> Any:
    method, symbol, _ = BINARY[name]
    kind, other_kind = type(left), type(right)
    plain, reflected = f"__{method}__", f"__r{method}__"
    is_overridden = _method(other_kind, reflected) is not _method(kind, reflected)
    is_right_first = _is_subclass(other_kind, kind) and is_overridden
    if is_right_first and (result := ask(right, reflected, left)) is not NotImplemented:
        return result
    if name == "Mod" and isinstance(left, str):  # formats, and asks the right operand for its text
        return remainder(left, right)
    is_joined = _is_joined(left, name)
    if not is_joined and (result := ask(left, plain, right)) is not NotImplemented:
        return result
    if other_kind is not kind and not is_right_first:
        result = ask(right, reflected, left)
        if result is not NotImplemented:
            return result
    if is_joined:
        if name == "Mult" and not hasattr(other_kind, "__index__"):
            raise TypeError(f"can't multiply sequence by non-int of type {_name_of_class(right)!r}")
        right = position(right) if name == "Mult" else right
        return (_IN_PLACE[name] if suffix else BINARY[name][2])(left, right)
    symbol = symbol.split()[0] + "=" if suffix else symbol
    kinds = f"{_name_of_class(left)!r} and {_name_of_class(right)!r}"
    raise TypeError(f"unsupported operand type(s) for {symbol}: {kinds}")


def _is_joined(left: Any, name: str) -> bool:
    """Return whether `+` and `*` are of Python's sequences, which are asked last."""
    return name in ("Add", "Mult") and type(left) in _SEQUENCES


def _ask_comparison(owner: Any, method: str, other: Any) -> Any:
    """Call a method that compares; `object.__ne__` negates what `__eq__` returns."""
    if method != "__ne__" or _method(type(owner), method) is not object.__ne__:
        return ask(owner, method, other)
    is_equal = ask(owner, "__eq__", other)
    return is_equal if is_equal is NotImplemented else not_(is_equal)


def ask(owner: Any, name: str, *operands: Any, **options: Any) -> Any:
    """Call a special method, captured if it is a user's; `NotImplemented` where there is none."""
    kind = type(owner)
    method = _method(kind, name)
    if method is _MISSING:
        return NotImplemented
    if owner is None:  # `__get__` takes None for access through the class
        return getattr(owner, name)(*operands, **options)
    bind = getattr(type(method), "__get__", None)
    bound = method if bind is None else bind(method, owner, kind)
    if not isinstance(method, types.FunctionType) or not any_users(owner):
        return bound(*operands, **options)
    read_method(owner, name)
    return call(bound)(*operands, **options)


def call_method(owner: Any, name: str, *operands: Any) -> Any:
    """Call a special method of an object of a user's class, captured."""
    read_method(owner, name)
    return call(types.MethodType(getattr(type(owner), name), owner))(*operands)


def _method(kind: type, name: str) -> Any:
    """Return what a class or a base of it defines under a name, unbound."""
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return _MISSING


def defines(owner: Any, name: str) -> bool:
    """Return whether an object of a user's class has a special method."""
    return any_users(owner) and _method(type(owner), name) is not _MISSING


def is_users(owner: Any, name: str) -> bool:
    """Return whether a special method of an object is code that a user wrote."""
    method = _method(type(owner), name) if any_users(owner) else None
    return isinstance(method, types.FunctionType) and not method.__code__.co_filename.startswith(
        ("<string>", "<attrs generated")
    )


def _is_subclass(kind: type, base: type) -> bool:
    return kind is not base and base in kind.__mro__


def any_users(*operands: Any) -> bool:
    """Return whether an operand is of a class that defines operators in the user's code."""
    for operand in operands:
        kind = type(operand)
        if kind in _PLAIN_KINDS:
            continue
        if not kind.__flags__ & HEAP_TYPE or kind.__module__.startswith(("wend.", "numpy.")):
            _PLAIN_KINDS.add(kind)
        elif has_operators(kind):
            return True
    return False


def _name_of_class(x: Any) -> str:
    kind: type = class_of(x) if isinstance(x, Tracer) else type(x)
    return kind.__name__
