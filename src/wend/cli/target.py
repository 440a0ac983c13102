"""What `wend show` shows: `FILE.py:CALL`, a function with arguments to trace it for."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

import wend
from wend.base.errors import WendError, explain, listed
from wend.function.function import BoundFunction


class TargetError(WendError, ValueError):
    """It is not said, or not clearly, what to show."""


def concrete_of(text: str) -> wend.ConcreteFunction:
    """The trace that a text names, made now.

    Args:
        text: `file.py:f(np.ones(3), 2.0)`, where the arguments are only there for their types;
            `file.py:wend.grad(f)(2.0)`; or `file.py:f` of a function that says what it takes,
            or that the file has called.

    Raises:
        TargetError: there is no such file or function, or nothing says with what to trace it.
    """
    path, colon, expression = text.partition(".py:")
    file = Path(path + ".py")
    if not colon or not expression:
        found = f"wend show takes FILE.py:CALL, not {text!r}."
        raise TargetError(explain(found, cure="write 'newton.py:root(2.0)', for example."))
    if not file.is_file():
        raise TargetError(f"wend show: there is no file {str(file)!r}")
    names = {"np": np, "wend": wend, "wnp": wend.numpy, **_run(file)}
    try:
        tree = ast.parse(expression, mode="eval").body
    except SyntaxError as error:
        raise TargetError(f"wend show: {expression!r} is no Python: {error.msg}") from None
    if isinstance(tree, ast.Call):
        fun = _value(tree.func, names, file)
        if not _makes_functions(fun):
            args, kwargs = _arguments(tree, names, file)
            return _traced(_function(fun, expression), args, kwargs)
    return _without_arguments(_function(_value(tree, names, file), expression), text)


def _traced(
    fun: wend.Function | BoundFunction, args: Sequence[Any] = (), kwargs: Mapping[str, Any] = {}
) -> wend.ConcreteFunction:
    """The trace for these arguments; what belongs to no line of the file, to `<wend show>`."""
    names = {"trace": fun.get_concrete_function, "args": args, "kwargs": kwargs}
    found: wend.ConcreteFunction = eval(
        compile("trace(*args, **kwargs)", "<wend show>", "eval"), names
    )
    return found


def _run(file: Path) -> dict[str, Any]:
    """The names of a file, run as if it were imported."""
    spec = spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.path.insert(0, str(file.resolve().parent))  # it may import what lies beside it
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return vars(module)


def _value(tree: ast.expr, names: Mapping[str, Any], file: Path) -> Any:
    try:
        return eval(compile(ast.Expression(tree), "<wend show>", "eval"), dict(names))
    except NameError as error:
        functions = [name for name, thing in names.items() if _is_own(thing, file)]
        known = f"it has {listed(functions)}" if functions else None
        raise TargetError(explain(f"wend show: {error} in {file}", known)) from None


def _is_own(thing: Any, file: Path) -> bool:
    return callable(thing) and getattr(thing, "__module__", None) == file.stem


def _makes_functions(fun: Any) -> bool:
    """Whether it is `wend.grad` or its like, whose call gives what is to be shown."""
    module = str(getattr(fun, "__module__", ""))
    is_traced = isinstance(fun, (wend.Function, BoundFunction))
    return module.partition(".")[0] == "wend" and not is_traced


def _arguments(
    tree: ast.Call, names: Mapping[str, Any], file: Path
) -> tuple[list[Any], dict[str, Any]]:
    args: list[Any] = []
    for arg in tree.args:
        if isinstance(arg, ast.Starred):
            args += _value(arg.value, names, file)
        else:
            args.append(_value(arg, names, file))
    kwargs: dict[str, Any] = {}
    for keyword in tree.keywords:
        value = _value(keyword.value, names, file)
        kwargs |= value if keyword.arg is None else {keyword.arg: value}
    return args, kwargs


def _function(fun: Any, expression: str) -> wend.Function | BoundFunction:
    if isinstance(fun, (wend.Function, BoundFunction)):
        return fun
    if not callable(fun):
        raise TargetError(
            f"wend show: {expression} is no function, but of type {type(fun).__name__}"
        )
    made: wend.Function = wend.function(fun)
    return made


def _without_arguments(fun: wend.Function | BoundFunction, text: str) -> wend.ConcreteFunction:
    """The trace for what the function says it takes, or the last one that there is."""
    parameters = _required(fun.python_function)
    if getattr(fun, "input_signature", None) is not None or not parameters:
        return _traced(fun)
    made = fun.concrete_functions()
    if made:
        return made[-1]
    example = ", ".join(["2.0", "np.ones(3)", "1"][k % 3] for k in range(len(parameters)))
    raise TargetError(
        explain(
            f"wend show: with what is {text} to be traced? It takes {', '.join(parameters)}.",
            cure=f"write a call, which is traced and not run: wend show '{text}({example})'; or "
            "wend.TensorSpec([None, 3]) for an argument; or give the function an input_signature.",
        )
    )


def _required(fun: Callable[..., Any]) -> list[str]:
    """The arguments that have no default."""
    named = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [
        name
        for name, parameter in inspect.signature(fun).parameters.items()
        if parameter.kind in (*named, inspect.Parameter.KEYWORD_ONLY)
        and parameter.default is inspect.Parameter.empty
    ]
