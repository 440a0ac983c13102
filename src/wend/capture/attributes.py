"""Attributes that captured code reads and sets: getters of the user's classes are captured, too."""

from __future__ import annotations

import contextlib
import functools
import math
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.backends.fastcall import MISSING
from wend.base.errors import UnsupportedError, explain
from wend.base.instances import stored_attribute
from wend.base.refusals import is_refusal, refusal
from wend.base.source import at, user_source
from wend.capture.builtins.attributes import has_staged_attribute, staged_attribute
from wend.capture.builtins.namespaces import has_namespace
from wend.capture.conversion import captured
from wend.capture.guards.namespaces import Namespace
from wend.capture.guards.outside import (
    entered_items,
    loaded_attribute,
    read_arguments,
    read_descriptor,
    read_finalizer,
    read_method,
)
from wend.capture.guards.reads import class_attribute
from wend.capture.heap import locations
from wend.capture.heap.locations import has_custom_setter, write_log
from wend.capture.heap.places import instance_dict
from wend.capture.libraries import is_library
from wend.capture.replacements import is_plain_function, replacement_of
from wend.capture.stage import raises
from wend.capture.state import one_shot_iterators, operands
from wend.capture.state.assignments import note_attribute_write
from wend.capture.state.unbound_attributes import (
    deleted_from,
    note_first_read,
    note_missing,
    read_attribute,
)
from wend.capture.syntax.names import PREFIX, RUNTIME
from wend.eager.dispatch import Staged, any_staged
from wend.trace.arrays.attributes import class_of, example_of
from wend.trace.arrays.concrete_array import ConcreteTracedArray
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.tensor_list import TensorList
from wend.trace.recording.recording import current
from wend.trace.state import templates
from wend.trace.state.text_choice import TextChoice, mapped


def attribute(owner: Any, name: str, is_base: bool = False, /) -> Any:
    """Return `owner.name`; getters of the user's classes run in captured form."""
    if type(owner) is np.ndarray:
        owner = entered_items(owner)
    if type(owner) is TextChoice:
        return _attribute_of_text(owner, name)
    if isinstance(owner, Tracer):
        return _method_of_number(owner, name) or staged_attribute(owner, name)
    if name == "base" and isinstance(owner, ConcreteTracedArray):
        whole = owner.root()  # which is a view of memory that only wend knows
        return None if whole is owner else whole
    if isinstance(owner, weakref.finalize):
        read_finalizer(owner)
    if type(owner) is super:
        cls = owner.__self_class__  # type: ignore[attr-defined]
        loaded_attribute(cls, "__mro__", cls.__mro__)
    if isinstance(owner, (types.FunctionType, types.CodeType)) and name in _NAMES_OF_CODE:
        return _as_written(owner, name)
    descriptor, subject, kind = _descriptor(owner, name)
    is_property = isinstance(descriptor, property) and subject is not None
    if is_property and is_plain_function(descriptor.fget):
        read_descriptor(owner, name)
        return _got(descriptor.fget, owner, name, subject)
    getter = getattr(type(descriptor), "__get__", None)
    if is_plain_function(getter) and _takes_precedence(descriptor, subject, name):
        read_descriptor(owner, name)
        return _got(getter, owner, name, descriptor, subject, kind)
    if isinstance(descriptor, functools.cached_property):
        value = _cached_property(owner, descriptor)
    else:
        try:
            value = _plain_attribute(owner, name)
        except AttributeError:
            read_descriptor(owner, name)
            hook = getattr(type(owner), "__getattr__", None)
            note_missing(owner, name)
            if is_plain_function(hook):
                read_method(owner, "__getattr__")
                return _ask(hook, owner, name, owner, name)
            raise
    return loaded_attribute(owner, name, value, is_base=is_base)


templates.attribute_of = attribute


def _attribute_of_text(choice: TextChoice, name: str) -> Any:
    """Return an attribute of the text that the run knows: none of the choice itself."""
    held = [class_attribute(type(option), name) for option in choice.options]
    if all(x is MISSING or _is_of_str(x) for x in held) and any(map(_is_of_str, held)):
        return functools.partial(_call_of_text, choice, name)
    kinds = (types.FunctionType, classmethod, staticmethod)
    if any(isinstance(x, kinds) for x in held):
        return functools.partial(_call_of_member, choice, name)
    if any(isinstance(x, types.DynamicClassAttribute) and not _is_of_enum(x) for x in held):
        use = f"`{name}`, which a function computes, is needed"
        return attribute(choice.decided(use, _CURE_OF_MEMBERS), name)
    return _read(choice, name, lambda option: attribute(option, name))


_CURE_OF_MEMBERS = "ask each of them: `if state is State.A: … elif state is State.B: …`."


def _is_of_str(held: Any) -> bool:
    is_method = isinstance(held, (types.MethodDescriptorType, types.WrapperDescriptorType))
    return is_method and held.__objclass__ in (str, object)


def _is_of_enum(held: types.DynamicClassAttribute) -> bool:
    return held.fget is None or is_library(held.fget.__code__.co_filename)


def _read(choice: TextChoice, name: str, read: Callable[[Any], Any]) -> Any:
    """Return what is read of the text; getters, which may have effects, run for one of them."""
    is_got = any(_is_got(option, name) for option in choice.options)
    return choice.by_branches(read) if is_got else choice.mapped(read)


def _is_got(owner: Any, name: str) -> bool:
    held = class_attribute(type(owner), name)
    return isinstance(held, functools.cached_property) or _runs_getter(owner, name)


def _call_of_text(choice: TextChoice, name: str, /, *args: Any, **kwargs: Any) -> Any:
    """Call a method of `str`."""
    if not all(_is_plain(x) for x in (*args, *kwargs.values())):
        use = f"`{name}` is called with what may have effects: the text is needed"
        return operands.call(attribute(choice.decided(use), name))(*args, **kwargs)

    def called(option: Any, *args: Any) -> Any:
        return operands.call(attribute(option, name))(*args, **kwargs)

    return mapped(called, choice, *args)


def _is_plain(x: Any) -> bool:
    if type(x) in (list, tuple):
        return all(map(_is_plain, x))
    return x is None or type(x) in (str, int, float, bool, TextChoice) or isinstance(x, Staged)


def _call_of_member(choice: TextChoice, name: str, /, *args: Any, **kwargs: Any) -> Any:
    """Call a method of the user's, for the member that it is."""
    return choice.by_branches(
        lambda option: operands.call(attribute(option, name))(*args, **kwargs)
    )


_NAMES_OF_CODE = frozenset({"__closure__", "co_freevars", "co_cellvars", "co_varnames"})


def _as_written(owner: Any, name: str) -> Any:
    """Return an attribute of a function or its code, without the names of captured code."""
    value = getattr(owner, name)
    if name != "__closure__":
        return tuple(part for part in value if not part.startswith(PREFIX))
    names = owner.__code__.co_freevars
    if RUNTIME not in names:
        return loaded_attribute(owner, name, value)
    cells = zip(names, value, strict=True)
    return tuple(cell for part, cell in cells if not part.startswith(PREFIX)) or None


def _got(getter: Any, owner: Any, name: str, /, *arguments: Any) -> Any:
    """Return what a getter gives, or the `__getattr__` of the class where that finds nothing."""
    try:
        return _ask(getter, owner, name, *arguments)
    except AttributeError as error:
        hook = getattr(type(owner), "__getattr__", None)
        if not is_plain_function(hook) or is_refusal(error):
            raise
        read_method(owner, "__getattr__")
        return _ask(hook, owner, name, owner, name)


def _ask(getter: Any, owner: Any, name: str, /, *arguments: Any) -> Any:
    """Call a getter of the user's; an error that it raises tells which attribute is missing."""
    try:
        return captured(getter)(*arguments)
    except AttributeError as error:
        if error.name is None and error.obj is None:
            error.name, error.obj = name, owner
        raise


def method(owner: Any, name: str, /) -> Any:
    """Return the method `owner.name`, to be called."""
    if type(owner) is np.ndarray:
        owner = entered_items(owner)
    if isinstance(owner, Tracer):
        if not name.startswith("__"):
            return getattr(owner, name)
        called = _method_of_number(owner, name) or staged_attribute(owner, name)
        is_number = class_of(owner) in _NUMBERS and callable(called)
        return functools.partial(_call_of_number, owner, name, called) if is_number else called
    if type(owner) in _NUMBERS and name.startswith("__"):
        return functools.partial(_call_of_number, owner, name, getattr(owner, name))
    return attribute(owner, name)


_NUMBERS = (bool, int, float, complex)


def _call_of_number(x: Any, name: str, fun: Any, /, *arguments: Any) -> Any:
    """Call a special method of one of Python's numbers, which may take no number of a class."""
    recording = current()
    if recording is None or not any_staged((x, *arguments)):
        return fun(*arguments)
    self, *others = [
        example_of(class_of(y)) if isinstance(y, Staged) else y for y in (x, *arguments)
    ]
    with contextlib.suppress(ArithmeticError, ValueError):
        if getattr(self, name)(*others) is NotImplemented:
            return NotImplemented
    if not isinstance(x, Staged):
        fun = getattr(recording.wrap(recording.lift(x)).as_weak(), name)
    return fun(*arguments)


# The functions that call special methods which numbers have and traced numbers do not
_CALLERS_OF_METHODS: dict[str, Callable[..., Any]] = {
    "__round__": round,
    "__floor__": math.floor,
    "__ceil__": math.ceil,
    "__trunc__": math.trunc,
    "__float__": float,
    "__int__": int,
    "__bool__": bool,
    "__str__": str,
    "__repr__": repr,
    "__format__": format,
}


def _method_of_number(x: Any, name: str) -> Any:
    """Return a special method of the number that a traced one stands for, or None."""
    caller = _CALLERS_OF_METHODS.get(name) if isinstance(x, Tracer) else None
    if caller is None or x.type.shape != () or not hasattr(class_of(x), name):
        return None
    return functools.partial(replacement_of(caller), x)


def peek(owner: Any, name: str, /) -> Any:
    """Return `owner.name`, of which something is about to be written.

    The code reads it once more: what a getter of the user's has done here is undone.
    """
    recording = current()
    if recording is None or isinstance(owner, Staged) or not _runs_getter(owner, name):
        return getattr(owner, name)
    effects, rests = recording.effects(), raises.mark()
    with write_log() as log, one_shot_iterators.peeled_trip():
        try:
            return attribute(owner, name)
        finally:
            for location, old in reversed(log.values()):
                location.undo(old)
            raises.reinstate(rests)
            recording.restore_effects(effects)


locations.peek = peek


def _runs_getter(owner: Any, name: str) -> bool:
    """Return whether code of the user's class finds an attribute."""
    descriptor, subject, _ = _descriptor(owner, name)
    if isinstance(descriptor, property):
        return subject is not None and is_plain_function(descriptor.fget)
    getter = getattr(type(descriptor), "__get__", None)
    if is_plain_function(getter):
        return _takes_precedence(descriptor, subject, name)
    is_missing = descriptor is MISSING and name not in (instance_dict(owner) or ())
    return is_missing and is_plain_function(getattr(type(owner), "__getattr__", None))


def _descriptor(owner: Any, name: str) -> tuple[Any, Any, type]:
    """Return what classes hold under a name; for which object and class it gives the attribute."""
    kind = type(owner)
    if kind is super:
        order = owner.__self_class__.__mro__
        bases = order[order.index(owner.__thisclass__) + 1 :]
        held = next((base.__dict__[name] for base in bases if name in base.__dict__), MISSING)
        subject = owner.__self__
        return held, None if subject is owner.__self_class__ else subject, owner.__self_class__
    held = class_attribute(kind, name)
    if issubclass(kind, type) and not isinstance(held, property):
        return class_attribute(owner, name), None, owner
    return held, owner, kind


def _takes_precedence(descriptor: Any, owner: Any, name: str) -> bool:
    """Return whether a descriptor of a class is used, and not what the object itself holds."""
    kind = type(descriptor)
    is_data = hasattr(kind, "__set__") or hasattr(kind, "__delete__")
    is_library_code = is_library(kind.__get__.__code__.co_filename)
    return not is_library_code and (is_data or name not in (instance_dict(owner) or ()))


def _plain_attribute(owner: Any, name: str) -> Any:
    """Return an attribute without a call of `__getattr__`."""
    if name == "__dict__":
        if has_namespace(owner):
            return Namespace(vars(owner))
        read_arguments(owner)
        return read_attribute(owner, name)
    kind: Any = type(owner)
    is_hooked = is_plain_function(getattr(kind, "__getattr__", None))
    return kind.__getattribute__(owner, name) if is_hooked else getattr(owner, name)


def _cached_property(owner: Any, descriptor: functools.cached_property[Any]) -> Any:
    """Return the value of a cached property, computed by its captured function."""
    name = descriptor.attrname
    if name is None or not hasattr(owner, "__dict__"):
        return descriptor.__get__(owner)
    variables = vars(owner)
    if name not in variables:
        note_first_read(owner, name)
        variables[name] = captured(descriptor.func)(owner)
    return variables[name]


def attribute_target(owner: Any, name: str, /) -> Any:
    """Return what `owner.name = value` sets: a setter of the user's runs in captured form.

    Raises:
        AttributeError: a number, array or list has no such attribute to be set.
    """
    if isinstance(owner, (Tracer, TensorList)):
        _check_settable(owner, name)
    if current() is None or isinstance(owner, (Staged, type, types.ModuleType)):
        return owner
    if type(owner) is TextChoice:
        owner = owner.decided(f"whose `{name}` is set is needed", _CURE_OF_MEMBERS)
    kind = type(owner)
    hook = class_attribute(kind, "__setattr__")
    if is_plain_function(hook):
        return _Target(owner, functools.partial(captured(hook), owner, name))
    descriptor = class_attribute(kind, name)
    setter: Any = getattr(type(descriptor), "__set__", None)
    arguments: tuple[Any, ...] = (descriptor, owner)
    if isinstance(descriptor, property):
        setter, arguments = descriptor.fset, (owner,)
    if not is_plain_function(setter) or is_library(setter.__code__.co_filename):
        return owner
    return _Target(owner, functools.partial(captured(setter), *arguments))


class _Target:
    """An object whose attribute is set by a function."""

    __slots__ = ("_owner", "_setter")

    def __init__(self, owner: Any, setter: Callable[[Any], None]) -> None:
        object.__setattr__(self, "_owner", owner)
        object.__setattr__(self, "_setter", setter)

    def __getattr__(self, name: str) -> Any:
        return attribute(self._owner, name)  # of `x.a += 1`

    def __setattr__(self, name: str, value: Any) -> None:
        self._setter(value)


def set_attribute(value: Any, owner: Any, name: str) -> None:
    """Run `owner.name = value`, with `value` evaluated first."""
    target = attribute_target(owner, name)
    note_attribute_write(lambda: owner, name, f"{type(owner).__name__}.{name}")
    try:
        setattr(target, name, value)
    except TypeError as error:
        if target is not owner or isinstance(owner, type) or not isinstance(value, Staged):
            raise
        what = f"`{type(owner).__name__}.{name}`{at(user_source())} takes numbers of Python only."
        cure = "set it before the call; or do what depends on it in wend.py_function(…)."
        raise refusal(UnsupportedError(explain(what, cure=cure))) from error


# Attributes of arrays that may be set, and others that NumPy allows
_SETTABLE, _LAYOUT = frozenset({"shape", "dtype", "flat", "real", "imag"}), ("strides", "data")


def _check_settable(owner: Any, name: str) -> None:
    """Raise Python's error where a number, array or list has no such attribute to be set."""
    kind = list if isinstance(owner, TensorList) else class_of(owner)
    if kind is np.ndarray and name in _SETTABLE:
        return
    if kind is not np.ndarray or name not in _LAYOUT:
        setattr(example_of(kind), name, None)
    what = f"`{kind.__name__}.{name}` is set{at(user_source())}, which is not recorded."
    raise refusal(UnsupportedError(explain(what, cure="use x.view(dtype) or x.reshape(shape).")))


def set_again(owner: Any, name: str) -> None:
    """Run `owner.name = owner.name`: only what code of the user's does then is seen."""
    hook = class_attribute(type(owner), "__setattr__")
    if hook is not vars(object)["__setattr__"] or has_custom_setter(owner, name):
        set_attribute(attribute(owner, name), owner, name)


def change_attribute(owner: Any, name: str, operator: str, value: Callable[[], Any]) -> None:
    """Run `owner.name += value`, or another in-place operator."""
    old = attribute(owner, name)
    set_attribute(operands.in_place(operator, old, value()), owner, name)


def get_attribute(owner: Any, name: Any, /, *default: Any) -> Any:
    """Return `getattr(owner, name, *default)`."""
    if type(name) is TextChoice:
        is_got = any(_is_got(owner, option) for option in name.options if type(option) is str)
        of_names = name.by_branches if is_got else name.mapped
        return of_names(lambda option: get_attribute(owner, option, *default))
    if not default:
        return attribute(owner, name)
    if type(owner) is TextChoice and not has_all(owner, name):
        return _read(owner, name, lambda option: get_attribute(option, name, *default))
    try:
        return attribute(owner, name)
    except AttributeError:
        return default[0]


def has_attribute(owner: Any, name: str, /) -> bool:
    """Return `hasattr(owner, name)`."""
    if isinstance(owner, (Tracer, TensorList)):
        return has_staged_attribute(owner, name)
    if type(owner) is TextChoice:
        is_known = isinstance(name, str) and has_all(owner, name)
        return is_known or _read(owner, name, lambda option: has_attribute(option, name))
    absent = object()
    return get_attribute(owner, name, absent) is not absent


def has_all(choice: TextChoice, name: str) -> bool:
    """Return whether the classes of all texts have an attribute."""
    return all(hasattr(type(option), name) for option in choice.options)


def is_attribute_getter(fun: Any) -> bool:
    """Return whether a function is a `__getattribute__` in C, or the `__get__` of a property."""
    if not isinstance(fun, (types.WrapperDescriptorType, types.MethodWrapperType)):
        return False
    is_of_property = isinstance(stored_attribute(fun, "__self__"), property)
    return fun.__name__ == "__getattribute__" or (fun.__name__ == "__get__" and is_of_property)


def run_getter(fun: Any, /, *args: Any) -> Any:
    """Run `object.__getattribute__(…)`, or the `__get__` of a property."""
    bound: Any = stored_attribute(fun, "__self__")
    if fun.__name__ == "__getattribute__":
        is_bound = isinstance(fun, types.MethodWrapperType)
        owner, name = (bound, *args) if is_bound else args
        return loaded_attribute(owner, name, fun(*args))
    if not args or args[0] is None or not is_plain_function(bound.fget):
        return fun(*args)
    return captured(bound.fget)(args[0])


def is_attribute_setter(fun: Any) -> bool:
    """Return whether a function is the `__setattr__` or `__delattr__` of a class written in C."""
    is_slot = isinstance(fun, (types.WrapperDescriptorType, types.MethodWrapperType))
    return is_slot and fun.__name__ in ("__setattr__", "__delattr__")


def run_setter(fun: Any, /, *args: Any) -> None:
    """Run `setattr(…)`, `delattr(…)`, or the method of an object or class that does it."""
    is_bound = isinstance(fun, types.MethodWrapperType)
    if len(args) < 2 - is_bound:
        fun(*args)  # Python's error
    owner, name = (fun.__self__, *args[:1]) if is_bound else args[:2]
    kind = owner if isinstance(owner, type) else type(owner)
    if fun is delattr or fun.__name__ == "__delattr__":
        deleted_from(owner, name)
    note_attribute_write(lambda: owner, name, f"{kind.__name__}.{name}")
    if fun is setattr and len(args) == 3:
        setattr(attribute_target(owner, name), name, args[2])
    else:
        fun(*args)


def get_attributes(getter: Any, owner: Any, /) -> Any:
    """Return what `operator.attrgetter(...)` gets."""
    _, paths = getter.__reduce__()
    values = tuple(functools.reduce(attribute, path.split("."), owner) for path in paths)
    return values[0] if len(values) == 1 else values
