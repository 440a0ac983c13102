"""Builtins that look at the variables or frames of their caller, or at all names of an object.

Captured code keeps its variables in functions of its own, so these would see other ones.
"""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from wend.base.errors import UnsupportedError, explain
from wend.base.source import at, user_frame, user_source
from wend.capture.builtins.world import check_effects
from wend.capture.guards.kinds import is_library_module
from wend.capture.guards.namespaces import Namespace
from wend.capture.guards.outside import read_arguments
from wend.capture.heap.locations import Global, log_write, log_write_contents
from wend.capture.heap.places import named, original_of
from wend.capture.heap.unseen_code import codes_in
from wend.capture.state.unbound_attributes import variables_of
from wend.eager.dispatch import Staged
from wend.trace.arrays.attributes import class_of
from wend.trace.recording.recording import is_traced_now

Call = Callable[..., Any]


def has_namespace(*owner: Any) -> bool:
    """Return whether these are a module of the user's, whose names a trace reads one by one."""
    return is_traced_now() and any(
        type(x) is ModuleType and not is_library_module(x) for x in owner
    )


def _globals_of_caller() -> Any:
    frame = user_frame()
    assert frame is not None
    return Namespace(frame.f_globals) if is_traced_now() else frame.f_globals


def _refusing(
    name: str, fun: Call, what: str, cure: str, explicit_count: int | None = None
) -> Call:
    """Return a function that refuses to look at its caller.

    Args:
        name: the name of the builtin.
        fun: what to call where it does not look at its caller.
        what: what it would look at.
        cure: what to write instead.
        explicit_count: with how many arguments it does not look at its caller; None: it always
            does.
    """

    def run(*args: Any, **kwargs: Any) -> Any:
        arguments = (*args, *kwargs.values())
        is_explicit = explicit_count is not None and len(arguments) >= explicit_count
        if is_explicit and arguments[-1] is not None:
            return fun(*args, **kwargs)
        text = f"{name}(){at(user_source())} looks at {what}."
        raise UnsupportedError(explain(text, cure=cure))

    return run


_VARIABLES = "the variables of its caller, which captured code keeps elsewhere"
_FRAMES = "the frames of the running code, which are not those of the captured function"
_NAME_THEM = "name the values that you need, for example in a dict: {'x': x}."
_PASS_THEM = "pass a dict of the names that the text uses: eval(text, {'x': x})."
_ASK_OUTSIDE = "ask outside of the function."


def _eval(text: Any, *scopes: Any, **named_scopes: Any) -> Any:
    """Return `eval(text, *scopes)`, which reads what the text names."""
    return _run(eval, text, scopes, named_scopes)


def _exec(text: Any, *scopes: Any, closure: Any = None, **named_scopes: Any) -> None:
    """Run `exec(text, *scopes)`, which may change the dicts that it gets."""
    for scope in (*scopes, *named_scopes.values()):
        if not isinstance(scope, Namespace):
            log_write_contents(functools.partial(_itself, scope), f"{named(type(scope))}.")
    fun = exec if closure is None else functools.partial(exec, closure=closure)
    _run(fun, text, scopes, named_scopes)


def _itself(value: Any) -> Any:
    return value


def _run(fun: Call, text: Any, scopes: tuple[Any, ...], named_scopes: dict[str, Any]) -> Any:
    """Call `eval` or `exec`; what the code may read is guarded, what it binds is logged."""
    if not is_traced_now():
        return fun(text, *scopes, **named_scopes)
    code = text
    if isinstance(text, (str, bytes)):
        mode = "eval" if fun is eval else "exec"
        source = _stripped(text) if fun is eval else text
        code = compile(source, "<string>", mode, dont_inherit=True)
    if not isinstance(code, CodeType):
        return fun(text, *scopes, **named_scopes)  # Python's error
    named = dict(zip(("globals", "locals"), scopes, strict=False)) | named_scopes
    names = {name for part in codes_in(code) for name in part.co_names}
    for kind, scope in named.items():
        is_local = kind == "locals" or named.get("locals") is None
        read = names if names.isdisjoint(_LOOKING) else {*(scope or ())}
        if isinstance(scope, Namespace):
            for name in _bound_names(code, is_local=is_local, is_global=kind == "globals"):
                log_write(Global(name, scope.original), is_certain=True)
            named[kind] = scope.exposed_to(read)
        elif isinstance(scope, dict):
            read_arguments(*[scope[name] for name in read if name in scope])
    variables = {**(named.get("globals") or {}), **(named.get("locals") or {})}
    check_effects(FunctionType(code, variables), "is a text that Python runs")
    keywords = {kind: named[kind] for kind in named_scopes}
    return fun(code, *[named[kind] for kind in named if kind not in keywords], **keywords)


def _stripped(text: str | bytes) -> str | bytes:
    return text.lstrip(" \t") if isinstance(text, str) else text.lstrip(b" \t")


_LOOKING = frozenset({"globals", "locals", "vars", "dir", "eval", "exec"})


def _bound_names(code: CodeType, *, is_local: bool, is_global: bool) -> Iterator[str]:
    """Yield the names that code binds in the dicts of its local and of its global variables."""
    for part in codes_in(code):
        for instruction in dis.get_instructions(part):
            kind = instruction.opname
            if (is_global and kind in ("STORE_GLOBAL", "DELETE_GLOBAL")) or (
                is_local and part is code and kind in ("STORE_NAME", "DELETE_NAME")
            ):
                yield instruction.argval


def _function(*args: Any, **kwargs: Any) -> FunctionType:
    """Return `types.FunctionType(*args, **kwargs)`; its globals are read when it is called."""
    return FunctionType(*map(original_of, args), **{k: original_of(x) for k, x in kwargs.items()})


def _variables_of(*owner: Any) -> Any:
    """Return `vars(owner)`."""
    if has_namespace(*owner):
        return Namespace(vars(*owner))
    read_arguments(*owner)
    return variables_of(*owner)


def _names_of(owner: Any) -> list[str]:
    """Return `dir(owner)`."""
    if isinstance(owner, Staged):
        return dir(class_of(owner))
    read_arguments(owner, *type(owner).__mro__)
    return dir(owner)


# Functions and what captured code calls in their place
REPLACEMENTS: dict[Call, Call] = {
    builtins.globals: _globals_of_caller,
    builtins.locals: _refusing("locals", locals, _VARIABLES, _NAME_THEM),
    builtins.vars: _refusing("vars", _variables_of, _VARIABLES, _NAME_THEM, 1),
    builtins.dir: _refusing("dir", _names_of, _VARIABLES, _NAME_THEM, 1),
    builtins.eval: _refusing("eval", _eval, _VARIABLES, _PASS_THEM, 2),
    builtins.exec: _refusing("exec", _exec, _VARIABLES, _PASS_THEM, 2),
    sys._getframe: _refusing("sys._getframe", sys._getframe, _FRAMES, _ASK_OUTSIDE),
    inspect.currentframe: _refusing("currentframe", inspect.currentframe, _FRAMES, _ASK_OUTSIDE),
    FunctionType: _function,
    inspect.getclosurevars: _refusing(
        "inspect.getclosurevars", inspect.getclosurevars, _VARIABLES, _NAME_THEM
    ),
    inspect.stack: _refusing("inspect.stack", inspect.stack, _FRAMES, _ASK_OUTSIDE),
}
