"""Conversion of functions to their captured form, cached per code object."""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import inspect
import operator
import os
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from wend.base.errors import WendError, explain
from wend.capture.builtins import patterns, strings
from wend.capture.builtins.attributes import has_staged_attribute, staged_attribute
from wend.capture.builtins.streams import entered, is_left_before_run
from wend.capture.builtins.world import check_arguments, check_uncaptured
from wend.capture.calls import is_higher_order, is_plain_function, replacement_of
from wend.capture.guards.guards import guard_captured, guard_partial, guard_uncaptured
from wend.capture.guards.outside import (
    entered_items,
    load_closure,
    load_global,
    loaded_attribute,
    read_absence,
    read_arguments,
    read_call,
    reads_arguments,
)
from wend.capture.heap import container_phis
from wend.capture.heap.containers import is_container, mutated_by
from wend.capture.heap.locations import (
    evaluate,
    is_write_logged,
    log_write_arrays_mutated_by,
    log_write_attribute,
    log_write_contents,
    log_write_mutated_by,
    log_write_reachable,
    log_write_variable,
    note_argument,
)
from wend.capture.heap.places import named
from wend.capture.heap.trace_log import is_trace_logged
from wend.capture.heap.unseen_code import note_construction, note_object
from wend.capture.heap.user_operators import note_operands
from wend.capture.libraries import include_package, is_library
from wend.capture.rewrite.jumps import exit_of_finally
from wend.capture.rewrite.scope import mangled
from wend.capture.rewrite.statements import rewrite_function
from wend.capture.rewrite.syntax import RUNTIME, THUNK, definition, fill_positions
from wend.capture.source import FunctionNode, function_node
from wend.capture.stage import guard
from wend.capture.stage.branches import if_, if_return
from wend.capture.stage.float_errors import check_seterr, error_state, refuse_float_operations
from wend.capture.stage.guard import (
    check_caught,
    check_raise,
    translate_errors,
)
from wend.capture.stage.loops import for_, while_
from wend.capture.stage.operators import (
    and_,
    assert_,
    check_filter,
    compare,
    if_expression,
    not_,
    or_,
    require_concrete,
    text,
)
from wend.capture.state import one_shot_iterators
from wend.capture.state.assignments import (
    change_attribute,
    change_item,
    get_item,
    in_place,
    set_attribute,
    set_item,
    set_item_in_place,
    set_item_of,
)
from wend.capture.state.memos import call_memo, is_memo
from wend.capture.state.state import State, is_unbound
from wend.capture.state.unbound import is_maybe_bound, require_bound, unwrap
from wend.capture.state.unbound_attributes import (
    note_first_read,
    note_missing,
    read_attribute,
    variables_of,
)
from wend.capture.syntax.names import PREFIX
from wend.capture.uncaptured import (
    MARKED,
    NOT_CAPTURED,
    OUTLINED_PART,
    WHOLE_FUNCTION,
    WITHOUT_SOURCE,
    is_captured,
)
from wend.eager.dispatch import any_staged
from wend.trace.arrays.concrete_array import adopt_result
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.tensor_list import TensorList
from wend.trace.recording.recording import is_traced_now
from wend.trace.state import templates
from wend.trace.state.templates import Text

_FACTORY = f"{PREFIX}factory"
_FUNCTION = f"{PREFIX}function"  # cannot clash with a user's name: the function may call itself
_RESUMABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class CaptureError(WendError, TypeError):
    """Code that cannot be captured."""


class _CapturedCode(NamedTuple):
    """The captured form of a code object, and its rewritten syntax tree."""

    code: types.CodeType
    tree: ast.FunctionDef


# By file too: equal code objects of two files are one key, but tracebacks must name the file.
_captured_code: weakref.WeakKeyDictionary[types.CodeType, dict[str, _CapturedCode | None]]
_captured_code = weakref.WeakKeyDictionary()


def do_not_capture(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Exclude a function from capture when captured code calls it.

    Its `for` loops then run in Python while it is recorded, and its `if` statements decide there.

    Example:
        >>> import wend
        >>> @wend.do_not_capture
        ... def power(x, n):
        ...     result = x
        ...     for _ in range(n - 1):
        ...         result = result * x
        ...     return result
        >>> cube = wend.function(lambda x: power(x, 3))
        >>> print(cube.get_concrete_function(2.0).graph)
        graph '<lambda>'(%0: f64[]) {
          %1: f64[] = mul(%0, %0)
          %2: f64[] = mul(%1, %0)
          return %2
        }
    """
    fun.__wend_do_not_capture__ = True  # type: ignore[attr-defined]
    return fun


def capture(fun: Any) -> Any:
    """Return the captured form of a function, whose errors show the user's lines."""
    _check_kind(fun)
    code = getattr(inspect.unwrap(fun), "__code__", None)
    if code is not None:
        include_package(code.co_filename)
    captured_fun = captured(fun)
    return (
        translate_errors(captured_fun)
        if captured_fun is not fun or is_plain_function(fun)
        else captured_fun
    )


def _check_kind(fun: Any) -> None:
    """Refuse generators and async functions."""
    target = inspect.unwrap(fun) if is_plain_function(fun) else fun
    name = getattr(target, "__name__", "it")
    if inspect.iscoroutinefunction(target) or inspect.isasyncgenfunction(target):
        cure = "wend.function takes plain functions; await around the call, not in it."
        raise CaptureError(explain(f"`{name}` is an async function.", cure=cure))
    if inspect.isgeneratorfunction(target):
        cure = "collect the values in a list (out.append(x)) and return them."
        raise CaptureError(explain(f"`{name}` is a generator function: it has `yield`.", cure=cure))


def captured(fun: Any) -> Any:
    """Return the captured form of a function; other objects are returned unchanged."""
    if isinstance(fun, types.MethodType):
        return types.MethodType(captured(fun.__func__), fun.__self__)
    if isinstance(fun, functools.partial):
        guard_partial(fun)
        return functools.partial(captured(fun.func), *fun.args, **fun.keywords)
    if not is_plain_function(fun):
        return _capture_object(fun)
    if is_captured(fun.__code__):
        return fun
    if is_trace_logged():
        note_operands(fun)
    is_marked = getattr(fun, "__wend_do_not_capture__", False)
    if is_marked:
        NOT_CAPTURED[fun.__code__] = MARKED
    elif is_library(fun.__code__.co_filename):
        return fun
    conversion = None if is_marked else _captured_code_of(fun)
    if conversion is None:
        guard_uncaptured(fun)
        return fun
    guard_captured(fun)
    return _rebind(fun, conversion.code)


def _capture_object(fun: Any) -> Any:
    """Return the captured `__call__` of a user's object; builtins and classes unchanged."""
    method = getattr(type(fun), "__call__", None)  # noqa: B004  # it returns the function itself
    if isinstance(fun, type) or not is_plain_function(method):
        return fun
    if is_library(method.__code__.co_filename):  # type: ignore[union-attr]
        return fun
    return types.MethodType(captured(method), fun)


def attribute(owner: Any, name: str, is_base: bool = False, /) -> Any:
    """Return `owner.name`; getters of the user's classes run in captured form."""
    if isinstance(owner, Tracer):
        return staged_attribute(owner, name)
    kind = type(owner)
    descriptor = inspect.getattr_static(kind, name, None)
    if isinstance(descriptor, property) and is_plain_function(descriptor.fget):
        return captured(descriptor.fget)(owner)
    if isinstance(descriptor, functools.cached_property):
        value = _cached_property(owner, descriptor)
    else:
        try:
            value = _plain_attribute(owner, name)
        except AttributeError:
            hook = getattr(kind, "__getattr__", None)
            if is_plain_function(hook):
                return captured(hook)(owner, name)
            note_missing(owner, name)
            raise
    return loaded_attribute(owner, name, value, is_base=is_base)


def _plain_attribute(owner: Any, name: str) -> Any:
    """Return an attribute without a call of `__getattr__`."""
    if name == "__dict__":
        read_arguments(owner)
        return read_attribute(owner, name)
    is_hooked = is_plain_function(getattr(type(owner), "__getattr__", None))
    return object.__getattribute__(owner, name) if is_hooked else getattr(owner, name)


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


def get_attribute(owner: Any, name: str, /, *default: Any) -> Any:
    """Return `getattr(owner, name, *default)`."""
    if not default:
        return attribute(owner, name)
    try:
        return attribute(owner, name)
    except AttributeError:
        read_absence(owner, name)
        return default[0]


def has_attribute(owner: Any, name: str, /) -> bool:
    """Return `hasattr(owner, name)`."""
    if isinstance(owner, (Tracer, TensorList)):
        return has_staged_attribute(owner, name)
    absent = object()
    return get_attribute(owner, name, absent) is not absent


def context(manager: Any) -> Any:
    """Return a context manager with captured methods, if they are a user's."""
    if isinstance(manager, np.errstate):
        return error_state(manager)
    if is_left_before_run(manager):
        return entered(manager)
    enter, leave = (getattr(type(manager), n, None) for n in ("__enter__", "__exit__"))
    if not is_plain_function(enter) or not is_plain_function(leave):
        return manager
    if is_library(enter.__code__.co_filename):  # type: ignore[union-attr]
        return manager
    return _Context(manager, captured(enter), captured(leave))


class _Context:
    """A context manager with replaced methods."""

    def __init__(self, manager: Any, enter: Any, leave: Any) -> None:
        self.manager, self.enter, self.leave = manager, enter, leave

    def __enter__(self) -> Any:
        return self.enter(self.manager)

    def __exit__(self, *raised: object) -> Any:
        return self.leave(self.manager, *raised)


def call(fun: Any) -> Any:
    """Return what a call in captured code calls instead of `fun`."""
    callee = resolved = _resolve_callee(fun)
    may_create_arrays = resolved is fun and isinstance(fun, types.BuiltinFunctionType)
    if (
        is_write_logged() or one_shot_iterators.current_region() is not None
    ) and not _is_captured_function(resolved):
        callee = functools.partial(_call_uncaptured, callee, fun)
    enter_result = read_call(fun)
    if enter_result is not None:
        callee = functools.partial(_call_and_enter, callee, enter_result)
    elif reads_arguments(resolved):
        callee = functools.partial(_call_reading_arguments, callee)
    if may_create_arrays:
        callee = functools.partial(_adopt_result, callee)
    is_foreign = may_create_arrays or _is_foreign(resolved)
    return functools.partial(_call_foreign, fun, callee) if is_foreign else callee


def _call_and_enter(fun: Any, enter: Any, /, *args: Any, **kwargs: Any) -> Any:
    return enter(fun(*args, **kwargs))


def _call_reading_arguments(fun: Any, /, *args: Any, **kwargs: Any) -> Any:
    read_arguments(*args, *kwargs.values())
    return fun(*args, **kwargs)


def _adopt_result(fun: Any, /, *args: Any, **kwargs: Any) -> Any:
    return adopt_result(fun(*args, **kwargs))


def _is_foreign(callee: Any) -> bool:
    """Return whether code is neither captured nor wend's."""
    if isinstance(callee, type):
        return True
    if not isinstance(callee, _FOREIGN_TYPES) or _is_captured_function(callee):
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
    if not isinstance(fun, type) or fun.__module__ in _FOREIGN_CLASSES:
        check_arguments(fun, (*args, *kwargs.values()))
    if isinstance(fun, (types.FunctionType, type)):
        check_uncaptured(fun)
    try:
        result = callee(*args, **kwargs)
    except Exception as error:
        if fun is not getattr and any_staged((*args, *kwargs.values())):
            guard.refuse_foreign_error(error, _CALLERS)
        raise
    return Text.adopted(result) if isinstance(result, str) else result


def _resolve_callee(fun: Any) -> Any:
    if container_phis.any_phis() and (owner := mutated_by(fun)) is not None:
        container_phis.check_mutation(owner)
    if fun is np.seterr:
        return check_seterr
    replacement = replacement_of(fun)
    if is_higher_order(fun):
        return functools.partial(_call_higher_order, replacement)
    if replacement is not fun:
        return replacement
    if fun is setattr:
        return _setattr
    if fun is getattr:
        return get_attribute
    if fun is hasattr:
        return has_attribute
    if fun is vars:
        return _vars
    if isinstance(fun, operator.attrgetter):
        return functools.partial(_get_attributes, fun)
    if fun is next:
        return _next
    if is_memo(fun):
        return functools.partial(call_memo, fun)
    if isinstance(fun, functools.partial):
        guard_partial(fun)
        return functools.partial(call(fun.func), *fun.args, **fun.keywords)
    if getattr(fun, "__name__", "") == "sort" and isinstance(getattr(fun, "__self__", None), list):
        return functools.partial(_sort, fun)
    return captured(fun)


_CALLABLE_TYPES = (
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    functools.partial,
    type,
)


def _call_higher_order(fun: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function that calls its arguments, with these captured."""

    def capture_callable(argument: Any) -> Any:
        return call(argument) if isinstance(argument, _CALLABLE_TYPES) else argument

    return fun(
        *map(capture_callable, args),
        **{key: capture_callable(argument) for key, argument in kwargs.items()},
    )


def _sort(method: Any, /, **options: Any) -> None:
    method.__self__[:] = call(sorted)(method.__self__, **options)


def _is_captured_function(fun: Any) -> bool:
    """Return whether a function is captured."""
    code = getattr(getattr(fun, "__func__", fun), "__code__", None)
    return isinstance(code, types.CodeType) and is_captured(code)


def _call_uncaptured(fun: Any, callee: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call uncaptured code inside a loop or branch that is, or may come to be, recorded.

    What it changes is logged as far as that can be determined.
    """
    if type(callee) is np.ufunc and not kwargs and len(args) <= callee.nin:
        return fun(*args)
    one_shot_iterators.check_method_call(callee)
    arguments = (*args, *kwargs.values())
    log_write_mutated_by(callee, args)
    log_write_arrays_mutated_by(callee, args, kwargs)
    if callee is next:
        return fun(*args)
    is_method = isinstance(callee, types.MethodType)
    is_same = fun is callee or (is_method and fun == callee)
    is_pure = not is_same or isinstance(callee, type)
    if is_plain_function(fun) and not is_library(fun.__code__.co_filename):
        log_write_reachable(fun)
    elif isinstance(callee, type):
        note_construction(callee)
    elif is_method and is_trace_logged():
        note_object(named(type(callee.__self__)), callee.__self__, is_here=True)
    for argument in arguments:
        one_shot_iterators.consume(argument)
        log_write_mutated_by(argument)
        if not is_pure:
            _log_write_operands(callee, argument)
    result = fun(*args, **kwargs)
    if not any(result is argument for argument in arguments) and mutated_by(callee) is None:
        one_shot_iterators.register(result)
    return result


def _log_write_operands(fun: Any, argument: Any) -> None:
    """Log that a function may change a container or array that it gets."""
    if type(fun).__module__.startswith("wend."):
        return  # traced functions and gradients refuse to mutate
    module = getattr(fun, "__module__", None) or type(getattr(fun, "__self__", None)).__module__
    if module.startswith("wend."):
        return
    if is_container(argument) and module != "builtins":
        log_write_contents(lambda: argument, f"{named(type(argument))}.")
    note_argument(argument, module)


def _setattr(owner: Any, name: str, value: Any, /) -> None:
    log_write_attribute(lambda: owner, name, f"{type(owner).__name__}.{name}")
    setattr(owner, name, value)


def _vars(*owner: Any) -> Any:
    read_arguments(*owner)
    return variables_of(*owner)


def _get_attributes(getter: Any, owner: Any, /) -> Any:
    """Return what `operator.attrgetter(...)` gets."""
    _, paths = getter.__reduce__()
    values = tuple(functools.reduce(attribute, path.split("."), owner) for path in paths)
    return values[0] if len(values) == 1 else values


def _next(iterator: Any, /, *default: Any) -> Any:
    """Return `next(iterator)`; the `__next__` of a user's iterator is captured."""
    method = getattr(type(iterator), "__next__", None)
    if not is_plain_function(method) or default:
        return next(one_shot_iterators.consume(iterator), *default)
    advance = captured(method)
    return (
        advance(iterator)
        if _is_captured_function(advance)
        else next(one_shot_iterators.consume(iterator))
    )


templates.capture_method = captured

# The code that calls what is not captured
_CALLERS = frozenset(
    caller.__code__
    for caller in (
        *(_adopt_result, _call_and_enter, _call_foreign, _call_reading_arguments),
        _call_uncaptured,
    )
)


# The functions that rewritten code calls.
_RUNTIME = types.SimpleNamespace(
    State=State,
    and_=and_,
    assert_=assert_,
    attribute=attribute,
    call=call,
    change_attribute=change_attribute,
    change_item=change_item,
    check_caught=check_caught,
    check_raise=check_raise,
    compare=compare,
    context=context,
    decided=require_concrete,
    decomposed=patterns.check_match_subject,
    filtered=check_filter,
    for_=for_,
    get_item=get_item,
    gone_through=lambda value: entered_items(one_shot_iterators.consume(value)),
    load_closure=load_closure,
    load_global=load_global,
    if_=if_,
    if_expression=if_expression,
    if_return=if_return,
    in_place=in_place,
    is_of_class=patterns.is_of_class,
    is_perhaps=is_maybe_bound,
    is_sequence=patterns.is_sequence,
    is_unbound=is_unbound,
    known=require_bound,
    made=one_shot_iterators.register,
    matched_part=patterns.matched_part,
    not_=not_,
    or_=or_,
    refuse_float_operations=refuse_float_operations,
    remainder=strings.remainder,
    returned=evaluate,
    set_attribute=set_attribute,
    set_item=set_item,
    set_item_of=set_item_of,
    set_item_in_place=set_item_in_place,
    slice=slice,
    surely=unwrap,
    text=text,
    log_write_attribute=log_write_attribute,
    log_write_contents=log_write_contents,
    log_write_variable=log_write_variable,
    while_=while_,
)


def _captured_code_of(fun: types.FunctionType) -> _CapturedCode | None:
    code = fun.__code__
    by_file = _captured_code.setdefault(code, {})
    if code.co_filename not in by_file:
        is_plain = not code.co_flags & _RESUMABLE
        with _gc_disabled():
            by_file[code.co_filename] = _compile(fun) if is_plain else None
    return by_file[code.co_filename]


@contextlib.contextmanager
def _gc_disabled() -> Iterator[None]:
    """Disable garbage collection: a tree has many nodes and no garbage, and scans are slow."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _compile(fun: types.FunctionType) -> _CapturedCode | None:
    node = function_node(fun.__code__)
    if node is None:
        NOT_CAPTURED[fun.__code__] = WITHOUT_SOURCE
        return None
    _check_finally(node, fun)
    rewritten = rewrite_function(_as_definition(node, fun), fun.__code__.co_freevars)
    user_name, rewritten.name = rewritten.name, _FUNCTION
    factory_parameters = [ast.arg(name) for name in (*fun.__code__.co_freevars, RUNTIME)]
    body: list[ast.stmt] = [rewritten, ast.Return(ast.Name(rewritten.name, ast.Load()))]
    factory = definition(
        _FACTORY, ast.arguments([], factory_parameters, None, [], [], None, []), body
    )
    fill_positions(factory, rewritten)
    module = ast.Module([factory], [])
    compiled = compile(module, fun.__code__.co_filename, "exec", dont_inherit=True)
    outer = _code_in(compiled, _FACTORY)
    code = _with_user_names(_code_in(outer, rewritten.name), fun.__code__, WHOLE_FUNCTION)
    rewritten.name = user_name
    return _CapturedCode(code, rewritten)


def _check_finally(node: FunctionNode, fun: types.FunctionType) -> None:
    """Refuse exits from a `finally`, which discard the pending `return` or error."""
    exit_of = exit_of_finally(node)
    if exit_of is None:
        return
    what = f"`{type(exit_of).__name__.lower()}`"
    where = f"{os.path.basename(fun.__code__.co_filename)}:{exit_of.lineno}"
    raise CaptureError(
        explain(
            f"`{fun.__name__}` leaves a `finally` by {what} at {where}, which would undo the "
            "`return` or error before it.",
            cure="let the `finally` end, and leave after the whole `try`.",
        )
    )


def _as_definition(node: FunctionNode, fun: types.FunctionType) -> ast.FunctionDef:
    if isinstance(node, ast.Lambda):
        returned = ast.copy_location(ast.Return(node.body), node.body)
        node = ast.copy_location(definition(f"{PREFIX}lambda", node.args, [returned]), node)
    parts = fun.__qualname__.split(".")
    if len(parts) > 1 and parts[-2] != "<locals>":
        node = mangled(node, parts[-2])
    # The values of defaults are taken from the function object.
    node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
    node.args.kw_defaults = [d and ast.Constant(None) for d in node.args.kw_defaults]
    return node


def _code_in(code: types.CodeType, name: str) -> types.CodeType:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType) and constant.co_name == name:
            return constant
    raise WendError(explain(f"captured code of {name} is missing"))


def _with_user_names(
    code: types.CodeType, original: types.CodeType, mark: object
) -> types.CodeType:
    """Return the code, marked, with the function's own names for tracebacks."""
    constants = tuple(
        _with_user_name_of_part(constant, original)
        if isinstance(constant, types.CodeType)
        else constant
        for constant in code.co_consts
    )
    is_whole = not code.co_flags & _RESUMABLE  # a generator runs as plain Python
    marks = (mark,) if is_whole else ()
    return code.replace(
        co_consts=(*constants, *marks), co_name=original.co_name, co_qualname=original.co_qualname
    )


def _with_user_name_of_part(code: types.CodeType, original: types.CodeType) -> types.CodeType:
    """Return the code of an outlined part, or of a nested function of the user."""
    if code.co_name.startswith(PREFIX) or THUNK in code.co_varnames:
        return _with_user_names(code, original, OUTLINED_PART)
    return _with_user_names(code, code, WHOLE_FUNCTION)


def _rebind(fun: types.FunctionType, code: types.CodeType) -> types.FunctionType:
    """Return the function on its captured code, with its own globals, closure and defaults."""
    cells = dict(zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True))
    cells[RUNTIME] = types.CellType(_RUNTIME)
    closure = tuple(cells[name] for name in code.co_freevars)
    new = types.FunctionType(code, fun.__globals__, fun.__name__, fun.__defaults__, closure)
    new.__kwdefaults__ = fun.__kwdefaults__
    new.__qualname__, new.__module__ = fun.__qualname__, fun.__module__
    return new


def source(fun: Callable[..., Any]) -> str:
    """Return the rewritten code of a captured function, as text.

    Args:
        fun: a function, plain or decorated.

    Example:
        >>> import wend
        >>> def sign(x):
        ...     return -1.0 if x < 0 else 1.0
        >>> "if_expression(x < 0, " in wend.source(sign)
        True
    """
    plain = inspect.unwrap(fun)
    plain = getattr(plain, "__func__", plain)
    capture(plain)
    conversion = _captured_code.get(plain.__code__, {}).get(plain.__code__.co_filename)
    return inspect.getsource(plain) if conversion is None else ast.unparse(conversion.tree)
