"""Objects with functions, variables and arrays as attributes, as JSON; and what loads of them."""

from __future__ import annotations

import enum
import functools
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import LoadError, SaveError, TypeMismatchError, explain, listed
from wend.base.source import warn
from wend.function.concrete import ConcreteFunction
from wend.function.function import BoundFunction, Function
from wend.function.signature.spec import TensorSpec
from wend.ir.dtypes import is_supported
from wend.random.generator import Generator
from wend.saving.fields import Fields, pick, tagged
from wend.saving.functions import FunctionWriter, has_traces
from wend.saving.literals import literal_from_json, literal_to_json
from wend.saving.structures import Classes, check_names, class_name, tree_from_json, tree_to_json
from wend.saving.variables import ArrayTable, ArrayWriter, LoadedVariable, VariableWriter
from wend.trace.recording.arguments import LeafType
from wend.trace.state.variable import Variable

_FUNCTIONS = (Function, BoundFunction, ConcreteFunction)
_NUMBERS = (bool, int, float, complex, str)  # and texts, as attributes of classes
_CALL = "__call__"
_PLAIN_PYTHON = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, np.ufunc)
_LIBRARIES = ("wend.", "numpy.", "scipy.", "builtins")
# Instances of these have no attributes of the user's.
_NO_OBJECTS = (
    *(type, types.ModuleType, types.FunctionType, types.MethodType, types.BuiltinFunctionType),
    *(functools.partial, np.ndarray, np.ufunc, str, bytes, int, float, complex),
)


class LoadedObject:
    """Stands for an object that was saved: its functions, variables, arrays and numbers.

    The methods of its class that are no functions of wend are not in the file.

    Example:
        >>> import io, wend
        >>> file = io.BytesIO()
        >>> double = wend.function(lambda x: 2 * x, name="double")
        >>> double(1.0)
        np.float64(2.0)
        >>> wend.save(file, double=double)
        >>> _ = file.seek(0)
        >>> wend.load(file)
        <loaded functions: double>
    """

    def __init__(self, class_name: str, absent: Sequence[str] = ()) -> None:
        self.__dict__["_loaded_as"] = class_name, tuple(absent)

    def __getattr__(self, name: str) -> Any:
        class_name, absent = self.__dict__.get("_loaded_as", ("object", ()))
        if name.startswith("__"):
            raise AttributeError(name)
        names = [attribute for attribute in vars(self) if attribute != "_loaded_as"]
        why = "was left out when it was saved" if name in absent else "is not in the file"
        has = f"it has {listed(names)}" if names else None
        raise AttributeError(
            explain(
                f"{class_name}.{name} {why}.",
                has,
                cure="save it again after a call of that function; plain Python is not saved.",
            )
        )

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the `__call__` that was saved."""
        call = self.__dict__.get(_CALL)
        if call is None:
            what = f"{self._loaded_as[0]} is not callable: the file has no __call__ of it."
            cure = "make that a wend.function, and save the object again after a call."
            raise TypeMismatchError(explain(what, cure=cure))
        return call(*args, **kwargs)

    def __repr__(self) -> str:
        names = ", ".join(name for name in vars(self) if name != "_loaded_as")
        return f"<loaded {self._loaded_as[0].rpartition('.')[2]}: {names}>"


class LeftOutError(SaveError):
    """A value is one that a file cannot hold."""


class ObjectWriter:
    """Writes values: pytrees of arrays, variables, functions, numbers, and objects with these.

    Attributes:
        records: what the manifest says about each object.
    """

    def __init__(
        self, array: ArrayWriter, variables: VariableWriter, functions: FunctionWriter
    ) -> None:
        self._array, self._variables, self._functions = array, variables, functions
        self.records: list[dict[str, Any]] = []
        self._numbers: dict[int, int] = {}
        self._objects: list[Any] = []  # kept alive: ids are keys

    def value(self, value: Any, path: str) -> Any:
        """Return a value as JSON.

        Raises:
            SaveError: a file cannot hold it; `path` names it in the message.
        """
        leaves, treedef = trees.flatten(value)
        paths = trees.paths(treedef, path)
        encoded = [self._leaf(*pair) for pair in zip(leaves, paths, strict=True)]
        return tree_to_json(treedef, path, iter(encoded))

    def _leaf(self, leaf: Any, path: str) -> dict[str, Any]:
        if isinstance(leaf, _FUNCTIONS):
            if not has_traces(leaf):
                what = f"{path} has no trace, and a file holds traces."
                raise LeftOutError(explain(what, cure="call it once before you save it."))
            return {"function": self._functions.number(leaf)}
        if isinstance(leaf, Variable):
            return {"variable": self._variables.number(leaf.storage)}
        if isinstance(leaf, Generator):
            return {"generator": self._variables.number(leaf.state.storage)}
        if isinstance(leaf, np.ndarray) and is_supported(leaf.dtype):
            return {"array": self._array(leaf)}
        if isinstance(leaf, _PLAIN_PYTHON):
            what = f"{path} is plain Python, {leaf.__name__}: a file holds functions of wend."
            raise LeftOutError(explain(what, cure="make it a wend.function, and call it once."))
        try:
            return {"literal": literal_to_json(leaf, path)}
        except SaveError as error:
            if not _is_users_object(leaf):
                raise LeftOutError(*error.args) from None
        return {"object": self._object(leaf, path)}

    def _object(self, x: Any, path: str) -> int:
        """Return the number of an object."""
        if id(x) in self._numbers:
            return self._numbers[id(x)]
        number = self._numbers[id(x)] = len(self.records)
        is_loaded = isinstance(x, LoadedObject)
        name_of_class, absent_before = x._loaded_as if is_loaded else (class_name(type(x)), ())
        record: dict[str, Any] = {"class": name_of_class}
        self.records.append(record)
        self._objects.append(x)
        attributes, absent = [], [*absent_before]
        for name, value in _attributes(x):
            try:
                attributes.append([name, self.value(value, f"{path}.{name}")])
            except LeftOutError:
                absent.append(name)
        record |= {"attributes": attributes, "absent": absent}
        new = absent[len(absent_before) :]
        plain = [name for name in new if not isinstance(getattr(x, name), _FUNCTIONS)]
        if plain:
            names = listed(f"{path}.{name}" for name in plain)
            warn(f"{names}: left out, since files cannot hold them")
        return number


def _is_users_object(x: Any) -> bool:
    """Return whether attributes say what an object is: not of a function, a path or an enum."""
    origin = type(x).__module__.partition(".")[0]
    is_users = origin not in sys.stdlib_module_names or origin == "__main__"
    is_opaque = isinstance(x, (*_NO_OBJECTS, enum.Enum)) or type(x).__module__.startswith(
        _LIBRARIES
    )
    has_attributes = hasattr(x, "__dict__") or bool(getattr(type(x), "__slots__", ()))
    return is_users and has_attributes and not (is_opaque and not isinstance(x, LoadedObject))


def _attributes(x: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object, and the methods of its class that are wend's."""
    names = dict.fromkeys(vars(x) if hasattr(x, "__dict__") else ())
    for cls in type(x).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        names |= dict.fromkeys((slots,) if isinstance(slots, str) else slots)
        names |= dict.fromkeys(name for name, y in vars(cls).items() if _is_saved_of_class(y))
    for name in names:
        is_plain = not name.startswith("__") and name != "_loaded_as"
        if (is_plain or name == _CALL) and hasattr(x, name):
            yield name, _as_function(getattr(x, name))


def _is_saved_of_class(y: Any) -> bool:
    """Return whether an attribute of a class is one of its instances: a function, or a value."""
    if isinstance(y, (staticmethod, classmethod)):
        y = y.__func__
    is_value = isinstance(y, (Variable, Generator, np.ndarray, *_NUMBERS))
    return is_value or isinstance(y, _FUNCTIONS)


def _as_function(x: Any) -> Any:
    """Return a bound function for a method that Python has bound, as that of a class."""
    if not isinstance(x, types.MethodType) or not isinstance(x.__func__, Function):
        return x
    bound = x.__func__.__get__(x.__self__, type(x.__self__))
    # From Python 3.13 on, a class method is called as the function, which has its traces
    for concrete in x.__func__.concrete_functions():
        args, kwargs = concrete.structured_input_signature
        if args and args[0] is x.__self__:
            args, kwargs = trees.tree_map(_example, (args[1:], kwargs))
            bound.get_concrete_function(*args, **kwargs)
    return bound


def _example(leaf: Any) -> Any:
    """Return what a function is traced with, for the type of an argument."""
    if not isinstance(leaf, LeafType):
        return leaf
    if leaf.weak:
        return leaf.type.dtype.type(0).item()
    sizes = leaf.type.shape
    known = None if sizes is None else [x if isinstance(x, int) else None for x in sizes]
    return TensorSpec(known, leaf.type.dtype)


class ObjectReader:
    """Reads values of a file.

    Args:
        records: what the manifest says about each object.
        array: reads an array.
        variables: the variables of the file.
        functions: its functions.
        classes: the classes that it may name.
    """

    def __init__(
        self,
        records: Sequence[Fields],
        array: ArrayTable,
        variables: Sequence[LoadedVariable],
        functions: Sequence[Function],
        classes: Classes,
    ) -> None:
        self._array, self._variables, self._functions = array, variables, functions
        self._classes = classes
        self._objects = [
            LoadedObject(record.get("class", str), record.texts("absent")) for record in records
        ]
        for x, record in zip(self._objects, records, strict=True):
            pairs = record.get("attributes", list)
            if any(type(pair) is not list or len(pair) != 2 for pair in pairs):
                raise LoadError(f"{record.where}: attributes are no names with values")
            names = [name for name, _ in pairs]
            check_names([name for name in names if name != _CALL], record.where)
            if "_loaded_as" in names:
                raise LoadError(f"{record.where}: '_loaded_as' is no name of an attribute")
            for name, (_, value) in zip(names, pairs, strict=True):
                vars(x)[name] = self.value(value, f"{record.where}: {name}")

    def value(self, data: Any, where: str) -> Any:
        """Return a value.

        Raises:
            LoadError: the JSON is of no value.
        """
        return tree_from_json(data, where, self._classes, lambda leaf: self._leaf(leaf, where))

    def _leaf(self, data: Any, where: str) -> Any:
        tag, contents = tagged(data, where)
        readers: dict[str, Callable[[], Any]] = {
            "literal": lambda: literal_from_json(contents, where),
            "array": lambda: self._array(contents).copy(),
            "variable": lambda: self._variable(contents, where),
            "generator": lambda: self._generator(contents, where),
            "function": lambda: pick(self._functions, contents, where),
            "object": lambda: pick(self._objects, contents, where),
        }
        if tag not in readers:
            raise LoadError(f"{where}: there are no values of kind {tag!r:.40}")
        return readers[tag]()

    def _variable(self, number: Any, where: str) -> Variable:
        loaded = pick(self._variables, number, where)
        if loaded.is_placeholder:
            raise LoadError(f"{where}: variable {number} stands for an argument")
        return loaded.variable

    def _generator(self, number: Any, where: str) -> Generator:
        generator = pick(self._variables, number, where).generator
        if generator is None:
            raise LoadError(f"{where}: variable {number} is no state of a generator")
        return generator
