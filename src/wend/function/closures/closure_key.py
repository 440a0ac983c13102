"""Keys of local functions: equal where one function may use the traces of another."""

from __future__ import annotations

import functools
import types
from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from wend.base.keys import ByIdentity, NotKeyedError, key_of
from wend.capture.guards.kinds import is_of_wend
from wend.capture.guards.operand_reads import is_float
from wend.capture.heap.places import instance_dict
from wend.capture.libraries import is_library
from wend.eager.dispatch import Staged
from wend.function.signature.signature import Arguments
from wend.ir.dtypes import is_supported

_MAX_OBJECTS = 1000  # bounds the time that the key takes
_CALLABLES = (types.FunctionType, types.MethodType, functools.partial)
# Options that say how a function is traced; `eagerly` says what runs in eager mode
_OPTIONS_LEFT_OUT = ("eagerly", "is_users")


class NotShareableError(Exception):
    """A function holds an object that belongs to it alone."""


class ClosureKey:
    """The key of a function and of the functions among the arguments of a call.

    The key of a local function consists of its code, its defaults and the contents of its cells:
    arrays by type, floats by class, other numbers and strings by value, objects by identity.
    Functions with equal keys hold the same objects in the same places, except for arrays,
    containers and functions, which are listed in `objects`.

    Attributes:
        value: the key.
        objects: the objects that may differ between functions with equal keys.
    """

    def __init__(self, fun: Any, arguments: Arguments) -> None:
        self.objects: list[Any] = []
        self._numbers: dict[int, int] = {}  # by id
        self._is_in_library = False
        root = self._part(fun)
        static_keys = tuple(self._static_keys(arguments))
        self.value: Hashable = (root, replace(arguments, static_keys=static_keys).family)

    def numbers(self) -> dict[int, int]:
        """Return the place of each object, by its id."""
        return self._numbers

    def _static_keys(self, arguments: Arguments) -> Iterable[Hashable]:
        traced, keys = {*arguments.traced_positions}, iter(arguments.static_keys)
        for k, leaf in enumerate(arguments.leaves):
            if k not in traced:
                key = next(keys)
                is_callable = issubclass(type(leaf), _CALLABLES) or _is_wend_function(leaf)
                yield self._part(leaf) if is_callable else key

    def _part(self, value: Any) -> Hashable:
        """Return the key of a value, which a function holds."""
        kind: Any = type(value)
        if is_float(value):
            return key_of(value) if self._is_in_library else ("float", kind)
        if kind in _VALUES or issubclass(kind, (np.generic, np.dtype, np.ufunc)):
            return key_of(value)
        if id(value) in self._numbers:
            return "same", self._numbers[id(value)]
        if kind is types.FunctionType:
            return self._function(value) if _is_local(value) else key_of(value)
        if kind is types.MethodType:
            return kind, self._part(value.__func__), self._part(value.__self__)
        if kind is types.BuiltinFunctionType:
            if not isinstance(value.__self__, (types.ModuleType, type(None))):
                raise NotShareableError
            return key_of(value)
        if kind is functools.partial and not vars(value):
            self._note(value)
            parts = value.func, value.args, value.keywords
            return kind, tuple(map(self._part, parts))
        if kind is np.ndarray and not self._is_in_library and is_supported(value.dtype):
            self._note(value)
            return kind, value.dtype.str, value.shape
        if kind is tuple or (kind in (list, dict) and not self._is_in_library):
            return self._container(value)
        if _is_wend_function(value):
            return self._wend_function(value)
        return self._identity(value)

    def _note(self, value: Any) -> None:
        if len(self.objects) == _MAX_OBJECTS:
            raise NotShareableError
        self._numbers[id(value)] = len(self.objects)
        self.objects.append(value)

    def _function(self, fun: types.FunctionType) -> Hashable:
        self._note(fun)
        was_in_library = self._is_in_library
        self._is_in_library = is_library(fun.__code__.co_filename)
        try:
            defaults = self._part(fun.__defaults__), self._part(fun.__kwdefaults__)
            cells = tuple(map(self._cell, fun.__closure__ or ()))
            attributes = tuple([(name, self._part(x)) for name, x in vars(fun).items()])
        finally:
            self._is_in_library = was_in_library
        if id(fun.__globals__) not in self._numbers:
            self._note(fun.__globals__)
        names = fun.__name__, fun.__qualname__, fun.__module__
        code = ByIdentity(fun.__code__), id(fun.__globals__)
        return types.FunctionType, code, names, defaults, cells, attributes

    def _cell(self, cell: types.CellType) -> Hashable:
        if id(cell) in self._numbers:
            return "same", self._numbers[id(cell)]
        self._note(cell)
        try:
            return types.CellType, self._part(cell.cell_contents)
        except ValueError:
            return types.CellType

    def _container(self, value: Any) -> Hashable:
        if len(value) > _MAX_OBJECTS:
            raise NotShareableError
        self._note(value)
        keys = tuple(map(_key, value)) if type(value) is dict else ()
        items = value.values() if type(value) is dict else value
        return type(value), keys, tuple(map(self._part, items))

    def _wend_function(self, function: Any) -> Hashable:
        if function.capture_by_value or function.signature.is_method:
            raise NotShareableError
        self._note(function)
        options = {k: x for k, x in function._options.items() if k not in _OPTIONS_LEFT_OUT}
        keys = tuple([(name, _key_of_option(x)) for name, x in options.items()])
        return type(function), self._part(function.python_function), keys

    def _identity(self, value: Any) -> Hashable:
        if issubclass(type(value), Staged):
            raise NotShareableError
        kind: Any = type(value)
        if is_of_wend(kind) and kind.__eq__ is not object.__eq__:
            return _key(value)
        try:
            return kind, ByIdentity(value)
        except TypeError:  # not weakly referenceable
            raise NotShareableError from None


def closure_key_of(fun: Any, arguments: Arguments) -> ClosureKey | None:
    """Return the key of a wend function and of the functions among its arguments.

    Return None if one of them cannot share traces.
    """
    try:
        return ClosureKey(fun, arguments)
    except (NotShareableError, RecursionError):
        return None


_VALUES = frozenset(
    {type(None), bool, int, str, bytes, type(...), type(NotImplemented), range, slice}
)


def _key(value: Any) -> Hashable:
    try:
        return key_of(value)
    except NotKeyedError:
        raise NotShareableError from None


def _key_of_option(value: Any) -> Hashable:
    return tuple(map(_key, value)) if isinstance(value, (list, tuple)) else _key(value)


def _is_wend_function(value: Any) -> bool:
    return is_of_wend(type(value)) and "capture_by_value" in (instance_dict(value) or ())


def _is_local(fun: types.FunctionType) -> bool:
    """Return whether a function is likely to be made anew."""
    is_inner = fun.__closure__ is not None or "<locals>" in fun.__qualname__
    return is_inner or fun.__name__ == "<lambda>"
