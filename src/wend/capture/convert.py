"""Makes the captured form of a function; cached per code object."""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

from wend.base.errors import WendError, explain
from wend.capture.assignments import (
    current_array,
    get_item,
    in_place,
    set_item,
    set_item_in_place,
)
from wend.capture.branches import if_, if_return
from wend.capture.calls import is_library, is_plain_function, replaced, take_in
from wend.capture.guard import PARTS, check_caught, check_raise, guarded
from wend.capture.loops import for_, while_
from wend.capture.names import PREFIX
from wend.capture.operators import (
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
from wend.capture.places import (
    read,
    touch_attribute,
    touch_changed_by,
    touch_contents,
    touch_variable,
)
from wend.capture.plain import (
    CAPTURED,
    LEFT_ALONE,
    MARKED,
    WITHOUT_SOURCE,
)
from wend.capture.rewrite.mangle import mangled
from wend.capture.rewrite.statements import rewrite_function
from wend.capture.rewrite.syntax import RUNTIME, THUNK, definition, with_positions
from wend.capture.source import FunctionNode, function_node
from wend.capture.state import State, is_unbound
from wend.capture.unbound import is_perhaps, known, surely

_FACTORY = f"{PREFIX}factory"
_FUNCTION = f"{PREFIX}function"  # no name of the user's: it may call itself
_NOT_RUN_THROUGH = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class CaptureError(WendError, TypeError):
    """Something that cannot be captured."""


# Equal code of two files is one code to Python, but not to who reads an error.
Key = tuple[str, types.CodeType]
_converted: dict[Key, types.CodeType | None] = {}
_sources: dict[Key, ast.FunctionDef] = {}


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
        return types.MethodType(captured(fun.__func__), fun.__self__)
    if isinstance(fun, functools.partial):
        return functools.partial(captured(fun.func), *fun.args, **fun.keywords)
    if not is_plain_function(fun):
        return _capture_object(fun)
    if fun.__code__ in CAPTURED:
        return fun
    if getattr(fun, "__wend_do_not_capture__", False):
        LEFT_ALONE[fun.__code__] = MARKED
        return fun
    if is_library(fun.__code__.co_filename):
        return fun
    code = _captured_code(fun)
    return fun if code is None else _rebuilt(fun, code)


def _capture_object(fun: Any) -> Any:
    """An object with a `__call__` in Python, as that method; builtins and classes as they are."""
    method = getattr(type(fun), "__call__", None)  # noqa: B004  # the function itself is wanted
    if isinstance(fun, type) or not is_plain_function(method):
        return fun
    if is_library(method.__code__.co_filename):  # type: ignore[union-attr]
        return fun
    return types.MethodType(captured(method), fun)


def attribute(owner: Any, name: str) -> Any:
    """`owner.name`, through a captured getter where it is a property of a user's class."""
    found = inspect.getattr_static(type(owner), name, None)
    if isinstance(found, property) and is_plain_function(found.fget):
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
    exchanged = replaced(fun)
    if exchanged is not fun:
        return exchanged
    return _telling(fun) if isinstance(fun, _IN_C) else captured(fun)


_IN_C = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
)
# Modules whose functions change their first argument, a list
_LIST_MODULES = ("_heapq", "_bisect", "_operator")


def _telling(fun: Any) -> Any:
    """A function written in C that tells what it changes."""
    if fun is setattr:
        return _setattr
    if hasattr(fun, "__objclass__"):
        return functools.partial(_telling_first, fun)
    if getattr(fun, "__module__", None) in _LIST_MODULES:
        return functools.partial(_telling_list, fun)
    touch_changed_by(fun, ())
    return fun


def _telling_first(fun: Any, *args: Any, **kwargs: Any) -> Any:
    touch_changed_by(fun, args)
    return fun(*args, **kwargs)


def _telling_list(fun: Any, *args: Any, **kwargs: Any) -> Any:
    if args:
        touch_contents(lambda: args[0], "a list.")
    return fun(*args, **kwargs)


def _setattr(owner: Any, name: str, value: Any) -> None:
    touch_attribute(lambda: owner, name, f"{type(owner).__name__}.{name}")
    setattr(owner, name, value)


# What rewritten code calls.
_RUNTIME = types.SimpleNamespace(
    State=State,
    and_=and_,
    assert_=assert_,
    attribute=attribute,
    call=call,
    check_caught=check_caught,
    check_raise=check_raise,
    compare=compare,
    context=context,
    decided=decided,
    filtered=filtered,
    for_=for_,
    get_item=get_item,
    if_=if_,
    if_expression=if_expression,
    if_return=if_return,
    in_place=in_place,
    is_perhaps=is_perhaps,
    is_unbound=is_unbound,
    known=known,
    not_=not_,
    or_=or_,
    returned=read,
    current_array=current_array,
    set_item=set_item,
    set_item_in_place=set_item_in_place,
    slice=slice,
    surely=surely,
    text=text,
    touch_attribute=touch_attribute,
    touch_contents=touch_contents,
    touch_variable=touch_variable,
    while_=while_,
)


def _captured_code(fun: types.FunctionType) -> types.CodeType | None:
    code = fun.__code__
    key = _key(code)
    if key not in _converted:
        with _without_collector():
            _converted[key] = None if code.co_flags & _NOT_RUN_THROUGH else _compile(fun)
    return _converted[key]


def _key(code: types.CodeType) -> Key:
    return code.co_filename, code


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


def _compile(fun: types.FunctionType) -> types.CodeType | None:
    node = function_node(fun.__code__)
    if node is None:
        LEFT_ALONE[fun.__code__] = WITHOUT_SOURCE
        return None
    rewritten = rewrite_function(_as_definition(node, fun))
    written_name, rewritten.name = rewritten.name, _FUNCTION
    given = [ast.arg(name) for name in (*fun.__code__.co_freevars, RUNTIME)]
    body: list[ast.stmt] = [rewritten, ast.Return(ast.Name(rewritten.name, ast.Load()))]
    factory = definition(_FACTORY, ast.arguments([], given, None, [], [], None, []), body)
    with_positions(factory, rewritten)
    module = ast.Module([factory], [])
    compiled = compile(module, fun.__code__.co_filename, "exec", dont_inherit=True)
    outer = _code_in(compiled, _FACTORY)
    code = _named_as_written(_code_in(outer, rewritten.name), fun.__code__)
    _register(code)
    rewritten.name = written_name
    _sources[_key(fun.__code__)] = rewritten
    return code


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


def _named_as_written(code: types.CodeType, original: types.CodeType) -> types.CodeType:
    """The code with names that tracebacks should show: the function's own."""
    constants = tuple(
        _part_named(constant, original) if isinstance(constant, types.CodeType) else constant
        for constant in code.co_consts
    )
    return code.replace(
        co_consts=constants, co_name=original.co_name, co_qualname=original.co_qualname
    )


def _part_named(code: types.CodeType, original: types.CodeType) -> types.CodeType:
    """The code of a function inside: a part of the user's function, or one of the user's."""
    if code.co_name.startswith(PREFIX) or THUNK in code.co_varnames:
        part = _named_as_written(code, original)
        PARTS.add(part)
        return part
    return _named_as_written(code, code)


def _register(code: types.CodeType) -> None:
    CAPTURED.add(code)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _register(constant)


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
    found = _sources.get(_key(plain.__code__))
    return inspect.getsource(plain) if found is None else ast.unparse(found)
