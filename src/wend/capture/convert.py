"""Makes the captured form of a function; cached per code object."""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import inspect
import os
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from wend.base.errors import WendError, explain
from wend.capture.builtins import patterns, strings
from wend.capture.calls import is_plain_function, replaced, takes_functions
from wend.capture.guards.reads import note, note_method
from wend.capture.heap import container_phis
from wend.capture.heap.containers import changed_by, is_container
from wend.capture.heap.locations import (
    is_write_logged,
    log_write_arrays_changed_by,
    log_write_attribute,
    log_write_changed_by,
    log_write_contents,
    log_write_reached,
    log_write_variable,
    read,
)
from wend.capture.libraries import is_library, take_in
from wend.capture.rewrite.jumps import exit_of_finally
from wend.capture.rewrite.scope import mangled
from wend.capture.rewrite.statements import rewrite_function
from wend.capture.rewrite.syntax import RUNTIME, THUNK, definition, with_positions
from wend.capture.source import FunctionNode, function_node
from wend.capture.stage.branches import if_, if_return
from wend.capture.stage.guard import check_caught, check_raise, guarded
from wend.capture.stage.loops import for_, while_
from wend.capture.stage.operators import (
    and_,
    assert_,
    compare,
    decided,
    filtered,
    if_expression,
    not_,
    or_,
    text,
)
from wend.capture.stage.uncaptured import (
    LEFT_ALONE,
    MARKED,
    PART,
    WHOLE,
    WITHOUT_SOURCE,
    is_captured,
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
from wend.capture.state.state import State, is_unbound
from wend.capture.state.unbound import is_perhaps, surely
from wend.capture.state.unbound import known as known_bound
from wend.capture.syntax.names import PREFIX
from wend.trace.arrays.concrete_array import known

_FACTORY = f"{PREFIX}factory"
_FUNCTION = f"{PREFIX}function"  # no name of the user's: it may call itself
_NOT_RUN_THROUGH = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class CaptureError(WendError, TypeError):
    """Something that cannot be captured."""


class _Converted(NamedTuple):
    """The captured form of a code object, and how it is written."""

    code: types.CodeType
    tree: ast.FunctionDef


# By file too: equal code of two files is one code to Python, but not to who reads an error.
_converted: weakref.WeakKeyDictionary[types.CodeType, dict[str, _Converted | None]]
_converted = weakref.WeakKeyDictionary()


def do_not_capture(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Leave a function as it is when captured code calls it.

    Its `for` then runs in Python while it is recorded, and its `if` decides there.

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
    """A function whose control flow can be recorded, and whose errors show the user's lines."""
    _check_kind(fun)
    code = getattr(inspect.unwrap(fun), "__code__", None)
    if code is not None:
        take_in(code.co_filename)
    found = captured(fun)
    return guarded(found) if found is not fun or is_plain_function(fun) else found


def _check_kind(fun: Any) -> None:
    """Refuse what runs piece by piece."""
    what = inspect.unwrap(fun) if is_plain_function(fun) else fun
    name = getattr(what, "__name__", "it")
    if inspect.iscoroutinefunction(what) or inspect.isasyncgenfunction(what):
        cure = "wend.function takes plain functions; await around the call, not in it."
        raise CaptureError(explain(f"`{name}` is an async function.", cure=cure))
    if inspect.isgeneratorfunction(what):
        cure = "collect the values in a list (out.append(x)) and return them."
        raise CaptureError(explain(f"`{name}` is a generator function: it has `yield`.", cure=cure))


def captured(fun: Any) -> Any:
    """A function whose control flow can be recorded; anything else as it is."""
    if isinstance(fun, types.MethodType):
        note_method(fun.__func__, fun.__self__)
        return types.MethodType(captured(fun.__func__), fun.__self__)
    if isinstance(fun, functools.partial):
        return functools.partial(captured(fun.func), *fun.args, **fun.keywords)
    if not is_plain_function(fun):
        return _capture_object(fun)
    note(fun)
    if is_captured(fun.__code__):
        return fun
    if getattr(fun, "__wend_do_not_capture__", False):
        LEFT_ALONE[fun.__code__] = MARKED
        return fun
    if is_library(fun.__code__.co_filename):
        return fun
    found = _conversion(fun)
    return fun if found is None else _rebuilt(fun, found.code)


def _capture_object(fun: Any) -> Any:
    """An object with a `__call__` in Python, as that method; builtins and classes as they are."""
    method = getattr(type(fun), "__call__", None)  # noqa: B004  # the function itself is wanted
    if isinstance(fun, type) or not is_plain_function(method):
        return fun
    if is_library(method.__code__.co_filename):  # type: ignore[union-attr]
        return fun
    note_method(method, fun)
    return types.MethodType(captured(method), fun)


def attribute(owner: Any, name: str) -> Any:
    """`owner.name`, through a captured getter where it is a property of a user's class."""
    found = inspect.getattr_static(type(owner), name, None)
    if isinstance(found, property) and is_plain_function(found.fget):
        note_method(found.fget, owner)
        return captured(found.fget)(owner)
    return getattr(owner, name)


def context(manager: Any) -> Any:
    """A context manager whose methods are captured, if they are a user's."""
    enter, leave = (getattr(type(manager), n, None) for n in ("__enter__", "__exit__"))
    if not is_plain_function(enter) or not is_plain_function(leave):
        return manager
    if is_library(enter.__code__.co_filename):  # type: ignore[union-attr]
        return manager
    return _Context(manager, captured(enter), captured(leave))


class _Context:
    """A context manager with other methods."""

    def __init__(self, manager: Any, enter: Any, leave: Any) -> None:
        self.manager, self.enter, self.leave = manager, enter, leave

    def __enter__(self) -> Any:
        return self.enter(self.manager)

    def __exit__(self, *raised: object) -> Any:
        return self.leave(self.manager, *raised)


def call(fun: Any) -> Any:
    """What a call in captured code calls in place of `fun`."""
    found = _called(fun)
    makes_arrays = found is fun and isinstance(fun, types.BuiltinFunctionType)
    if (is_write_logged() or one_shot_iterators.region() is not None) and not _is_converted(found):
        found = functools.partial(_watched, found, fun)
    return functools.partial(_made_by, found) if makes_arrays else found


def _called(fun: Any) -> Any:
    if container_phis.are_there() and (owner := changed_by(fun)) is not None:
        container_phis.check_change(owner)
    exchanged = replaced(fun)
    if takes_functions(fun):
        return functools.partial(_with_functions, exchanged)
    if exchanged is not fun:
        return exchanged
    if fun is setattr:
        return _setattr
    if fun is next:
        return _next
    if isinstance(fun, functools.partial):
        return functools.partial(call(fun.func), *fun.args, **fun.keywords)
    if getattr(fun, "__name__", "") == "sort" and isinstance(getattr(fun, "__self__", None), list):
        return functools.partial(_sort, fun)
    return captured(fun)


def _made_by(fun: Any, *args: Any, **kwargs: Any) -> Any:
    return known(fun(*args, **kwargs))


_FUNCTIONS = (
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    functools.partial,
    type,
)


def _with_functions(fun: Any, *args: Any, **kwargs: Any) -> Any:
    """A call of what calls the functions it is given."""

    def prepared(given: Any) -> Any:
        return call(given) if isinstance(given, _FUNCTIONS) else given

    return fun(*map(prepared, args), **{key: prepared(given) for key, given in kwargs.items()})


def _sort(method: Any, **options: Any) -> None:
    method.__self__[:] = call(sorted)(method.__self__, **options)


def _is_converted(fun: Any) -> bool:
    """Whether a function is one whose control flow can be recorded."""
    code = getattr(getattr(fun, "__func__", fun), "__code__", None)
    return isinstance(code, types.CodeType) and is_captured(code)


def _watched(fun: Any, written: Any, *args: Any, **kwargs: Any) -> Any:
    """A call of what is not captured, in a loop or branch: being recorded, or perhaps yet to be.

    It tells what it changes, as far as that can be seen.
    """
    one_shot_iterators.asked(written)
    given = (*args, *kwargs.values())
    log_write_changed_by(written, args)
    log_write_arrays_changed_by(written, args, kwargs)
    if written is next:
        return fun(*args)
    is_pure = fun is not written or isinstance(written, type)
    if is_plain_function(fun) and not is_library(fun.__code__.co_filename):
        log_write_reached(fun)
    for argument in given:
        one_shot_iterators.taken_from(argument)
        log_write_changed_by(argument)
        if not is_pure:
            _log_write_operands(written, argument)
    found = fun(*args, **kwargs)
    if not any(found is argument for argument in given) and changed_by(written) is None:
        one_shot_iterators.made(found)
    return found


def _log_write_operands(fun: Any, argument: Any) -> None:
    """Say that a function may change a container or array that it is given."""
    if type(fun).__module__.startswith("wend."):
        return  # a traced function, a gradient: they refuse to
    if is_container(argument) and getattr(fun, "__module__", None) != "builtins":
        log_write_contents(lambda: argument, f"a {type(argument).__name__}.")


def _setattr(owner: Any, name: str, value: Any) -> None:
    log_write_attribute(lambda: owner, name, f"{type(owner).__name__}.{name}")
    setattr(owner, name, value)


def _next(iterator: Any, *default: Any) -> Any:
    """`next(iterator)`; what a user's own iterator does is captured, its changes seen."""
    method = getattr(type(iterator), "__next__", None)
    if not is_plain_function(method) or default:
        return next(one_shot_iterators.taken_from(iterator), *default)
    found = captured(method)
    return (
        found(iterator) if _is_converted(found) else next(one_shot_iterators.taken_from(iterator))
    )


# What rewritten code calls.
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
    decided=decided,
    decomposed=patterns.decomposed,
    filtered=filtered,
    for_=for_,
    get_item=get_item,
    gone_through=one_shot_iterators.taken_from,
    if_=if_,
    if_expression=if_expression,
    if_return=if_return,
    in_place=in_place,
    is_of_class=patterns.is_of_class,
    is_perhaps=is_perhaps,
    is_sequence=patterns.is_sequence,
    is_unbound=is_unbound,
    known=known_bound,
    made=one_shot_iterators.made,
    matched_part=patterns.matched_part,
    not_=not_,
    or_=or_,
    remainder=strings.remainder,
    returned=read,
    set_attribute=set_attribute,
    set_item=set_item,
    set_item_of=set_item_of,
    set_item_in_place=set_item_in_place,
    slice=slice,
    surely=surely,
    text=text,
    log_write_attribute=log_write_attribute,
    log_write_contents=log_write_contents,
    log_write_variable=log_write_variable,
    while_=while_,
)


def _conversion(fun: types.FunctionType) -> _Converted | None:
    code = fun.__code__
    known = _converted.setdefault(code, {})
    if code.co_filename not in known:
        is_whole = not code.co_flags & _NOT_RUN_THROUGH
        with _without_collector():
            known[code.co_filename] = _compile(fun) if is_whole else None
    return known[code.co_filename]


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Let no garbage be collected: of the many nodes of a tree none is, and looking takes long."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _compile(fun: types.FunctionType) -> _Converted | None:
    node = function_node(fun.__code__)
    if node is None:
        LEFT_ALONE[fun.__code__] = WITHOUT_SOURCE
        return None
    _check_finally(node, fun)
    rewritten = rewrite_function(_as_definition(node, fun))
    written_name, rewritten.name = rewritten.name, _FUNCTION
    given = [ast.arg(name) for name in (*fun.__code__.co_freevars, RUNTIME)]
    body: list[ast.stmt] = [rewritten, ast.Return(ast.Name(rewritten.name, ast.Load()))]
    factory = definition(_FACTORY, ast.arguments([], given, None, [], [], None, []), body)
    with_positions(factory, rewritten)
    module = ast.Module([factory], [])
    compiled = compile(module, fun.__code__.co_filename, "exec", dont_inherit=True)
    outer = _code_in(compiled, _FACTORY)
    code = _named_as_written(_code_in(outer, rewritten.name), fun.__code__, WHOLE)
    rewritten.name = written_name
    return _Converted(code, rewritten)


def _check_finally(node: FunctionNode, fun: types.FunctionType) -> None:
    """Refuse to leave a `finally`: that undoes the `return` or the error that came to it."""
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
    # The values of defaults come from the function itself.
    node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
    node.args.kw_defaults = [d and ast.Constant(None) for d in node.args.kw_defaults]
    return node


def _code_in(code: types.CodeType, name: str) -> types.CodeType:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType) and constant.co_name == name:
            return constant
    raise WendError(explain(f"captured code of {name} is missing"))


def _named_as_written(
    code: types.CodeType, original: types.CodeType, mark: object
) -> types.CodeType:
    """The code, marked, with names that tracebacks should show: the function's own."""
    constants = tuple(
        _part_named(constant, original) if isinstance(constant, types.CodeType) else constant
        for constant in code.co_consts
    )
    is_whole = not code.co_flags & _NOT_RUN_THROUGH  # a generator decides as plain Python
    marks = (mark,) if is_whole else ()
    return code.replace(
        co_consts=(*constants, *marks), co_name=original.co_name, co_qualname=original.co_qualname
    )


def _part_named(code: types.CodeType, original: types.CodeType) -> types.CodeType:
    """The code of a function inside: a part of the user's function, or one of the user's."""
    if code.co_name.startswith(PREFIX) or THUNK in code.co_varnames:
        return _named_as_written(code, original, PART)
    return _named_as_written(code, code, WHOLE)


def _rebuilt(fun: types.FunctionType, code: types.CodeType) -> types.FunctionType:
    """The function on its captured code, with its own globals, closure and defaults."""
    cells = dict(zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True))
    cells[RUNTIME] = types.CellType(_RUNTIME)
    closure = tuple(cells[name] for name in code.co_freevars)
    new = types.FunctionType(code, fun.__globals__, fun.__name__, fun.__defaults__, closure)
    new.__kwdefaults__ = fun.__kwdefaults__
    new.__qualname__, new.__module__ = fun.__qualname__, fun.__module__
    return new


def source(fun: Callable[..., Any]) -> str:
    """The rewritten code of a captured function, as text.

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
    found = _converted.get(plain.__code__, {}).get(plain.__code__.co_filename)
    return inspect.getsource(plain) if found is None else ast.unparse(found.tree)
