"""Calls of captured code: what is called in place of a function, and what it may change."""

from __future__ import annotations

import contextvars
import copy
import dataclasses
import functools
import gc
import operator
import os
import sys
import types
from typing import Any

import numpy as np

from wend.base.instances import stored_attribute
from wend.base.source import user_frame
from wend.capture.attributes import (
    attribute,
    get_attribute,
    get_attributes,
    has_attribute,
    is_attribute_getter,
    is_attribute_setter,
    method,
    run_getter,
    run_setter,
)
from wend.capture.builtins import grown_lists
from wend.capture.builtins.along_axis import apply_along_axis, apply_over_axes, call_vectorized
from wend.capture.builtins.conversions import call_with_integers
from wend.capture.builtins.refused_calls import array_refusal
from wend.capture.builtins.world import check_arguments, check_finalizer, check_uncaptured
from wend.capture.conversion import (
    captured,
    is_captured_function,
    note_callback,
    note_plain,
)
from wend.capture.guards.guards import guard_partial
from wend.capture.guards.namespaces import Namespace
from wend.capture.guards.outside import (
    entered_arguments,
    entered_items,
    entered_parts,
    look,
    read_arguments,
    read_call,
    read_descriptor,
    read_dispatch,
    read_method,
    reads_arguments,
    watch_called,
    watch_class,
)
from wend.capture.heap import container_phis
from wend.capture.heap.containers import is_container, mutated_by
from wend.capture.heap.hidden_state import looks
from wend.capture.heap.locations import (
    is_write_logged,
    log_write_arrays_mutated_by,
    log_write_contents,
    log_write_mutated_by,
    log_write_object,
    log_write_reachable,
    note_argument,
)
from wend.capture.heap.places import instance_dict, named
from wend.capture.heap.snapshots import container_kind, items_of
from wend.capture.heap.trace_log import is_trace_logged, note_constructed
from wend.capture.heap.unseen_code import note_construction, note_object
from wend.capture.libraries import is_library
from wend.capture.lookups.traced_keys import reader_of_items
from wend.capture.replacements import (
    calls_arguments,
    is_higher_order,
    is_plain_function,
    replacement_of,
    with_own_errors,
)
from wend.capture.stage import guard
from wend.capture.stage.float_errors import check_seterr
from wend.capture.state import one_shot_iterators, unbound_attributes
from wend.capture.state.memos import call_memo, is_memo
from wend.capture.state.special_methods import caller_with_proxies
from wend.capture.uncaptured import is_part_of_captured
from wend.eager.dispatch import Staged, any_staged
from wend.trace.aliasing.referrers import is_node
from wend.trace.arrays.concrete_array import ConcreteTracedArray, adopt_result, without_stale_memory
from wend.trace.recording.recording import current, is_traced_now
from wend.trace.state.passed_texts import known_texts, mapped_call, takes_texts
from wend.trace.state.templates import Text


def call(fun: Any) -> Any:
    """Return what a call in captured code calls instead of `fun`."""
    if fun is os.getenv:
        fun = method(attribute(os, "environ"), "get")  # the same, and guarded
    if isinstance(fun, type) and is_traced_now():
        watch_class(fun)
        check_finalizer(fun)
        if _is_initialized_by_users_code(fun):
            return functools.partial(_construct, fun)
        if _is_initialized_by_a_dataclass(fun):
            return functools.partial(_construct_dataclass, fun)
    callee = with_own_errors(fun, resolved := _resolve_callee(fun))
    if (call_with_proxies := caller_with_proxies(fun)) is not None:
        callee = functools.partial(call_with_proxies, fun, callee)
    if container_phis.any_phis() and _may_compare_or_hash(fun):
        callee = functools.partial(_call_comparing, fun, callee)
    may_create_arrays = resolved is fun and isinstance(fun, types.BuiltinFunctionType)
    has_region = is_write_logged() or one_shot_iterators.current_region() is not None
    if has_region and not is_captured_function(resolved):
        callee = functools.partial(_call_uncaptured, callee, fun)
    enter_result = read_call(fun)
    if enter_result is not None:
        callee = functools.partial(_call_and_enter, callee, enter_result)
    elif reads_arguments(resolved):
        callee = functools.partial(_call_reading_arguments, callee)
    if fun is copy.copy or fun is copy.deepcopy:
        callee = functools.partial(_call_copying, callee)
    elif calls_arguments(fun):
        callee = functools.partial(_call_calling_arguments, callee)
    for function in gc.get_referents(fun) if isinstance(fun, np.ufunc) else ():
        note_callback(function)  # of `np.frompyfunc`
    if may_create_arrays:
        callee = functools.partial(_adopt_result, callee)
    if may_create_arrays or _is_foreign(resolved):
        callee = functools.partial(_call_foreign, fun, callee)
    callee = functools.partial(mapped_call, callee) if takes_texts(fun) else callee
    return reader_of_items(fun, callee)


def _is_initialized_by_users_code(cls: type) -> bool:
    """Return whether making an instance is `object.__new__` and a user's `__init__`, no more."""
    return _is_made_by_object_new(cls) and _is_users_captured(getattr(cls, "__init__", None))


def _is_made_by_object_new(cls: type) -> bool:
    makes = getattr(type(cls), "__call__", None)  # noqa: B004
    return makes is type.__call__ and getattr(cls, "__new__", None) is object.__new__


def _is_users_captured(method: Any) -> bool:
    return _is_users(method) and is_captured_function(captured(method))


def _construct(cls: type, /, *args: Any, **kwargs: Any) -> Any:
    """Make an instance of a class whose `__init__` is captured."""
    instance: Any = object.__new__(cls)
    result = call(types.MethodType(get_attribute(cls, "__init__"), instance))(*args, **kwargs)
    if result is not None:
        raise TypeError(f"__init__() should return None, not '{type(result).__name__}'")
    note_constructed(instance)
    return instance


def _is_initialized_by_a_dataclass(cls: type) -> bool:
    """Return whether `dataclass` has made the `__init__`, which calls a user's `__post_init__`."""
    assign: Any = getattr(cls, "__setattr__", None)
    return bool(
        dataclasses.is_dataclass(cls)
        and _is_made_by_object_new(cls)
        and _is_generated(getattr(cls, "__init__", None))
        and (assign is object.__setattr__ or _is_generated(assign))
        and _is_users_captured(getattr(cls, "__post_init__", None))
        and cls.__dictoffset__ != 0
    )


def _is_generated(fun: Any) -> bool:
    """Return whether `dataclass` has made a function: by a function of its own."""
    return is_plain_function(fun) and fun.__code__.co_qualname.startswith("__create_fn__.")


def _construct_dataclass(cls: type, /, *args: Any, **kwargs: Any) -> Any:
    """Make an instance of a dataclass whose `__post_init__` is captured."""
    instance: Any = object.__new__(cls)
    hook = call(types.MethodType(get_attribute(cls, "__post_init__"), instance))

    def run_hook(*args: Any) -> None:
        del vars(instance)["__post_init__"]
        hook(*args)

    vars(instance)["__post_init__"] = run_hook  # what the generated code finds
    get_attribute(cls, "__init__")(instance, *args, **kwargs)
    note_constructed(instance)
    return instance


def _call_and_enter(fun: Any, enter: Any, /, *args: Any, **kwargs: Any) -> Any:
    return enter(fun(*args, **kwargs))


def _call_reading_arguments(fun: Any, /, *args: Any, **kwargs: Any) -> Any:
    read_arguments(*args, *kwargs.values())
    return fun(*args, **kwargs)


def _call_calling_arguments(fun: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call code that may call the functions that it gets, which run as plain Python then."""
    for argument in (*args, *kwargs.values()):
        is_container = type(argument) in (list, tuple, dict)
        for part in items_of(argument) if is_container else (argument,):
            note_callback(part)
    return fun(*args, **kwargs)


def _call_copying(fun: Any, value: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Copy a value; the hooks of the objects in it run as plain Python."""
    parts, seen = [value], set[int]()
    while parts:
        part = parts.pop()
        if id(part) in seen or not is_node(part) or isinstance(part, types.FunctionType | type):
            continue
        seen.add(id(part))
        note_callback(part)
        parts += items_of(part) if container_kind(type(part)) is not None else ()
        parts += (instance_dict(part) or {}).values()
    return fun(value, *args, **kwargs)


def _adopt_result(fun: Any, /, *args: Any, **kwargs: Any) -> Any:
    return adopt_result(fun(*args, **kwargs))


def _is_foreign(callee: Any) -> bool:
    """Return whether code is neither captured nor wend's."""
    if isinstance(callee, type):
        return True
    if not isinstance(callee, _FOREIGN_TYPES) or is_captured_function(callee):
        return False
    module = getattr(callee, "__module__", None)
    return not isinstance(module, str) or not module.startswith("wend.")


# Modules whose classes look at the texts that they get
_FOREIGN_CLASSES = frozenset(
    {"builtins", "datetime", "decimal", "fractions", "pathlib", "re", "uuid", "collections"}
)
_FOREIGN_TYPES = (
    types.FunctionType,
    types.MethodType,
    types.MethodWrapperType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
)


def _call_foreign(fun: Any, callee: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call code that is not captured: it may make texts, and must not look at traced ones.

    An error that it raises for a traced value is a refusal.
    """
    if not is_traced_now():
        return callee(*args, **kwargs)
    args, kwargs = known_texts(fun, args, kwargs)
    if not any(fun is reader for reader in _READERS_OF_NAMES):
        args = tuple(x.exposed() if isinstance(x, Namespace) else x for x in args)
        kwargs = {k: x.exposed() if isinstance(x, Namespace) else x for k, x in kwargs.items()}
    if _may_read_memory(fun):
        args = without_stale_memory(args)
        kwargs = without_stale_memory(kwargs)
    if not isinstance(fun, type) or fun.__module__ in _FOREIGN_CLASSES:
        check_arguments(fun, (*args, *kwargs.values()))
    watch_called(*args, *kwargs.values())
    if isinstance(fun, (types.FunctionType, type)):
        check_uncaptured(fun)
    try:
        result = call_with_integers(callee, args, kwargs)
    except Exception as error:
        if fun is not getattr and any_staged((*args, *kwargs.values())):
            guard.refuse_foreign_error(error, _CALLERS)
        raise
    return Text.adopted(result) if isinstance(result, str) else result


# Methods that hash an argument, and those that compare the items of containers
_KEYED_METHODS = frozenset(
    {
        *("get", "pop", "setdefault", "add", "discard"),
        *("__getitem__", "__setitem__", "__delitem__"),
    }
)
_COMPARING_METHODS = frozenset(
    {
        *("index", "remove", "count", "__contains__"),
        *("union", "intersection", "difference", "symmetric_difference"),
        *("intersection_update", "difference_update", "symmetric_difference_update"),
        *("isdisjoint", "issubset", "issuperset", "update"),
        *("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"),
    }
)
_METHOD_TYPES = (types.BuiltinMethodType, types.MethodWrapperType)
_DESCRIPTOR_TYPES = (types.MethodDescriptorType, types.WrapperDescriptorType)


def _may_compare_or_hash(fun: Any) -> bool:
    """Return whether a function that is not captured may compare or hash its arguments."""
    if isinstance(fun, type):
        return issubclass(fun, (set, frozenset, dict))
    if isinstance(fun, (*_METHOD_TYPES, *_DESCRIPTOR_TYPES)):
        return fun is hash or fun is id or fun.__name__ in _COMPARING_METHODS | _KEYED_METHODS
    return is_memo(fun) or fun is copy.deepcopy


def _call_comparing(fun: Any, callee: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Check that it is known which arguments are one object, and call a comparing function."""
    name = stored_attribute(fun, "__name__", "")
    subjects = args
    if isinstance(fun, _METHOD_TYPES) and fun is not hash and fun is not id:
        subjects = (fun.__self__, *args)
    if isinstance(fun, type):
        return container_phis.with_known_keys(callee(*args, **kwargs))
    if fun is copy.deepcopy or name in _COMPARING_METHODS:
        container_phis.check_distinct(*subjects)
    elif name in _KEYED_METHODS:
        container_phis.check_identity(*subjects[1:2])
    else:
        container_phis.check_identity(*args, *kwargs.values())
    return callee(*args, **kwargs)


def _may_read_memory(fun: Any) -> bool:
    """Return whether code may look at the memory of arrays that it is given, past their methods."""
    if any(fun is reader for reader in _READERS_OF_MEMORY):
        return True
    owner = stored_attribute(fun, "__self__")
    module = getattr(fun, "__module__", None) or type(owner).__module__
    return str(module).partition(".")[0] not in _KEEPERS


# They read the names of the variables of a module, or single ones
_READERS_OF_NAMES = (list, tuple, set, frozenset, iter, enumerate, dict, getattr)
_READERS_OF_MEMORY = (bytes, bytearray, memoryview)
# They hold values, compare their identity and call their methods
_KEEPERS = frozenset({"builtins", *sys.stdlib_module_names} - {"array", "struct", "statistics"})


def _resolve_callee(fun: Any) -> Any:
    if container_phis.any_phis() and (owner := mutated_by(fun)) is not None:
        container_phis.check_mutation(owner)
    if fun is np.seterr:
        return check_seterr
    if fun is np.apply_along_axis:
        return apply_along_axis(call)
    if fun is np.apply_over_axes:
        return apply_over_axes(call)
    if type(fun) is np.vectorize:
        return functools.partial(call_vectorized, call, fun)
    if (refusing := array_refusal(fun)) is not None:
        return refusing
    replacement = replacement_of(fun)
    if is_higher_order(fun):
        return functools.partial(_call_higher_order, replacement, fun.__name__)
    if replacement is not fun:
        return replacement
    if isinstance(fun, types.BuiltinMethodType) and _reads_array(fun):
        return functools.partial(_call_method_of_array, fun)
    if isinstance(fun, _SLOT_TYPES) and fun.__objclass__ is np.ndarray:
        return functools.partial(_call_array_method, fun)
    if fun is setattr or fun is delattr or is_attribute_setter(fun):
        return functools.partial(run_setter, fun)
    if fun is getattr:
        return get_attribute
    if fun is hasattr:
        return has_attribute
    if isinstance(fun, operator.attrgetter):
        return functools.partial(get_attributes, fun)
    if isinstance(fun, operator.methodcaller):
        return functools.partial(_call_method, fun)
    if fun is getattr(operator, "call", operator) or _is_context_run(fun):
        return functools.partial(_call_called, fun)
    if is_attribute_getter(fun):
        return functools.partial(run_getter, fun)
    if fun is next:
        return _next
    if looks(fun):
        return functools.partial(look, fun)
    if is_memo(fun):
        return functools.partial(call_memo, fun)
    if isinstance(fun, types.MethodType) and is_memo(fun.__func__):
        return functools.partial(call_memo, fun.__func__, fun.__self__)
    if _is_generic(fun):
        return functools.partial(_call_generic, fun)
    if isinstance(fun, functools.partial):
        guard_partial(fun)
        arguments, keywords = entered_parts(fun.args), entered_parts(fun.keywords)
        return functools.partial(call(fun.func), *arguments, **keywords)
    owner = stored_attribute(fun, "__self__")
    if grown_lists.is_sort(fun, owner):
        return functools.partial(_call_higher_order, grown_lists.sort, "sort", owner)
    return captured(fun)


_EXAMPLES: Any = functools.singledispatch(len), functools.singledispatchmethod(len).__get__(0)
_GENERIC = [getattr(example, "__code__", None) for example in _EXAMPLES]


def _is_generic(fun: Any) -> bool:
    """Return whether a function is one of `functools.singledispatch`, or a method of that kind."""
    return isinstance(fun, types.FunctionType) and fun.__code__ in _GENERIC


def _call_generic(fun: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a generic function with the implementation for the class that a value stands for."""
    if not args:
        return fun(**kwargs)  # Python's error
    kind = call(type)(args[0])
    cells = dict(zip(fun.__code__.co_freevars, fun.__closure__, strict=True))
    if "obj" not in cells:
        return call(read_dispatch(fun.dispatch, kind))(*args, **kwargs)
    values = {name: cell.cell_contents for name, cell in cells.items()}
    dispatch = values.get("dispatch") or values["self"].dispatcher.dispatch
    implementation = read_dispatch(dispatch, kind)
    return call(implementation.__get__(values["obj"], values["cls"]))(*args, **kwargs)


# Which argument of a function is called; `key=` of all others is
_CALLED_ARGUMENTS = {"accumulate": 1, "groupby": 1} | dict.fromkeys(
    ("map", "filter", "reduce", "takewhile", "dropwhile", "filterfalse", "starmap"), 0
)


def _call_higher_order(fun: Any, name: str, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function that calls one of its arguments, with this captured."""
    position = _CALLED_ARGUMENTS.get(name)
    args = tuple(call(x) if k == position and callable(x) else x for k, x in enumerate(args))
    for keyword in {"key", "func"} & kwargs.keys():
        if callable(kwargs[keyword]):
            kwargs[keyword] = call(kwargs[keyword])
    return fun(*args, **kwargs)


def _call_uncaptured(fun: Any, callee: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call uncaptured code inside a loop or branch that is, or may come to be, recorded.

    What it changes is logged as far as that can be determined.
    """
    entered, kwargs = entered_arguments(callee, args, kwargs)
    args = (*entered,)
    if type(callee) is np.ufunc and not kwargs and len(args) <= callee.nin:
        return fun(*args)
    one_shot_iterators.consume(stored_attribute(callee, "__self__"))
    one_shot_iterators.check_change(callee)
    arguments = (*args, *kwargs.values())
    log_write_mutated_by(callee, args)
    log_write_arrays_mutated_by(callee, args, kwargs)
    if callee is next:
        return entered_items(fun(*args))
    is_method = isinstance(callee, types.MethodType)
    is_same = fun is callee or (is_method and fun == callee) or _is_captured_generator(fun)
    is_pure = not is_same or isinstance(callee, type)
    if is_same and _is_users(callee):
        log_write_reachable(callee)
    elif isinstance(callee, type):
        note_construction(callee)
    elif is_method:
        if is_trace_logged():
            note_object(named(type(callee.__self__)), callee.__self__, is_here=True)
        log_write_object(callee.__self__)
    for argument in arguments:
        one_shot_iterators.consume(argument)
        log_write_mutated_by(argument)
        if not is_pure:
            _log_write_operands(callee, argument)
    result = fun(*args, **kwargs)
    if isinstance(result, type) and result.__module__.startswith("wend.capture."):
        frame = user_frame()  # `type` and `namedtuple` ask who calls them
        result.__module__ = frame.f_globals.get("__name__", "builtins") if frame else "builtins"
    if not any(result is argument for argument in arguments) and mutated_by(callee) is None:
        one_shot_iterators.register(result)
    return entered_items(result) if type(result) is np.ndarray else result


def _is_captured_generator(fun: Any) -> bool:
    """Return whether a function, or that of a method, is a generator with captured expressions."""
    function = getattr(fun, "__func__", fun)
    return is_plain_function(function) and is_part_of_captured(function.__code__)


_CLASS_HOOKS = ("__prepare__", "__new__", "__init__", "__call__")


def derive_from(base: Any) -> Any:
    """Return a base, or the metaclass, of a class that captured code makes.

    What they run when a class is made runs as plain Python.
    """
    if not isinstance(base, type) or not is_trace_logged():
        return base
    metaclass = base if issubclass(base, type) else type(base)
    hooks = [(metaclass, name) for name in _CLASS_HOOKS]
    for owner, name in (*hooks, (base, "__init_subclass__")):
        read_descriptor(owner, name)
        hook = getattr(owner, name, None)
        note_plain(getattr(hook, "__func__", hook), "makes a class", base)
    return base


def _is_users(fun: Any) -> bool:
    """Return whether a function is written in Python, and not part of a library."""
    return is_plain_function(fun) and not is_library(fun.__code__.co_filename)


def _log_write_operands(fun: Any, argument: Any) -> None:
    """Log that a function may change a container or array that it gets."""
    module = getattr(fun, "__module__", None) or type(stored_attribute(fun, "__self__")).__module__
    if module != "builtins" and not _is_users(fun):
        called = stored_attribute(fun, "__name__", fun)
        unbound_attributes.check_whole(argument, f"what `{called}` is given")
    if type(fun).__module__.startswith("wend."):
        return  # traced functions and gradients refuse to mutate
    if module.startswith("wend."):
        return
    if is_container(argument) and module != "builtins":
        log_write_contents(lambda: argument, f"{named(type(argument))}.")
    note_argument(argument, module)


_SLOT_TYPES = types.MethodDescriptorType, types.WrapperDescriptorType


def _call_array_method(fun: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a method of `np.ndarray`, like `np.ndarray.sum`."""
    if args and isinstance(args[0], Staged):
        return getattr(args[0], fun.__name__)(*args[1:], **kwargs)
    return fun(*args, **kwargs)


def _call_method(caller: Any, owner: Any, /) -> Any:
    """Call the method that an `operator.methodcaller` names."""
    maker, arguments = caller.__reduce__()
    keywords: dict[str, Any] = {}
    if isinstance(maker, functools.partial):
        arguments, keywords = (*maker.args, *arguments), maker.keywords
    name, *arguments = arguments
    return call(get_attribute(owner, name))(*arguments, **keywords)


def _is_context_run(fun: Any) -> bool:
    return (
        isinstance(stored_attribute(fun, "__self__"), contextvars.Context) and fun.__name__ == "run"
    )


def _call_called(fun: Any, called: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function that calls its first argument, with this captured."""
    return fun(call(called), *args, **kwargs)


def _reads_array(fun: types.BuiltinMethodType) -> bool:
    """Return whether this is a method of a concrete array that takes other arrays to read."""
    return isinstance(fun.__self__, np.ndarray) and fun.__name__ in _READING_METHODS


_READING_METHODS = ("dot", "clip", "searchsorted", "take", "repeat")


def _call_method_of_array(fun: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a method of a concrete array, which may be given traced values: `a.dot(x)`."""
    recording = current()
    if recording is None or not any_staged((*args, *kwargs.values())):
        return fun(*args, **kwargs)
    if isinstance(array := fun.__self__, ConcreteTracedArray):
        return getattr(array.lazy_ref(), fun.__name__)(*args, **kwargs)
    traced = recording.wrap(recording.lift(array))
    traced.link_view(array)  # in NumPy, a write to the result may change the array
    return getattr(traced, fun.__name__)(*args, **kwargs)


def _next(iterator: Any, /, *default: Any) -> Any:
    """Return `next(iterator)`; the `__next__` of a user's iterator is captured."""
    method = getattr(type(iterator), "__next__", None)
    if not is_plain_function(method) or default:
        return next(one_shot_iterators.consume(iterator), *default)
    read_method(iterator, "__next__")
    advance = captured(method)
    is_users = is_captured_function(advance)
    return advance(iterator) if is_users else next(one_shot_iterators.consume(iterator))


# The code that calls what is not captured
_CALLERS = frozenset(
    caller.__code__
    for caller in (
        *(_adopt_result, _call_and_enter, _call_copying, _call_foreign, _call_reading_arguments),
        *(_call_calling_arguments, _call_uncaptured),
    )
)
