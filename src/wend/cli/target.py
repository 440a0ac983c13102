"""Targets of commands: `FILE.py:CALL`, a function with arguments to trace it with."""

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
    """The target is missing or ambiguous."""


def concrete_of(text: str) -> wend.ConcreteFunction:
    """Trace the target and return its concrete function.

    Args:
        text: `file.py:f(np.ones(3), 2.0)`, where only the types of the arguments matter;
            `file.py:wend.grad(f)(2.0)`; or `file.py:f` for a function that has an input signature,
            or that the file has called.

    Raises:
        TargetError: there is no such file or function, or the argument types are unknown.
    """
    tree, names, file = _parsed(text)
    expression = text.partition(".py:")[2]
    if isinstance(tree, ast.Call):
        fun = _value(tree.func, names, file)
        if not _is_transform(fun):
            args, kwargs = _arguments(tree, names, file)
            return _trace(_function(fun, expression), args, kwargs)
    return _trace_without_arguments(_function(_value(tree, names, file), expression), text)


def function_of(text: str) -> wend.Function | BoundFunction:
    """Return the function of a target without arguments, such as `file.py:wend.grad(f)`.

    Raises:
        TargetError: there is no such file or function.
    """
    tree, names, file = _parsed(text)
    return _function(_value(tree, names, file), text.partition(".py:")[2])


def _parsed(text: str) -> tuple[ast.expr, Mapping[str, Any], Path]:
    """Return the expression of a target, the names of its file, and the file."""
    path, colon, expression = text.partition(".py:")
    file = Path(path + ".py")
    if not colon or not expression:
        what = f"{text!r} is not of the form FILE.py:CALL."
        raise TargetError(explain(what, cure="write 'newton.py:root(2.0)', for example."))
    if not file.is_file():
        raise TargetError(f"there is no file {str(file)!r}")
    names = {"np": np, "wend": wend, "wnp": wend.numpy, **_import_file(file)}
    try:
        return ast.parse(expression, mode="eval").body, names, file
    except SyntaxError as error:
        raise TargetError(f"{expression!r} is not valid Python: {error.msg}") from None


def _trace(
    fun: wend.Function | BoundFunction, args: Sequence[Any] = (), kwargs: Mapping[str, Any] = {}
) -> wend.ConcreteFunction:
    """Return the trace for these arguments; nodes without a user line belong to `<wend show>`."""
    names = {"trace": fun.get_concrete_function, "args": args, "kwargs": kwargs}
    concrete: wend.ConcreteFunction = eval(
        compile("trace(*args, **kwargs)", "<wend show>", "eval"), names
    )
    return concrete


def _import_file(file: Path) -> dict[str, Any]:
    """Run a file as if it were imported, and return its names."""
    spec = spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.path.insert(0, str(file.resolve().parent))  # it may import modules beside it
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return vars(module)


def _value(tree: ast.expr, names: Mapping[str, Any], file: Path) -> Any:
    try:
        return eval(compile(ast.Expression(tree), "<wend show>", "eval"), dict(names))
    except NameError as error:
        functions = [name for name, thing in names.items() if _is_defined_in(thing, file)]
        known = f"it has {listed(functions)}" if functions else None
        raise TargetError(explain(f"{error} in {file}", known)) from None


def _is_defined_in(thing: Any, file: Path) -> bool:
    return callable(thing) and getattr(thing, "__module__", None) == file.stem


def _is_transform(fun: Any) -> bool:
    """Return whether it is `wend.grad` or the like, whose call returns the function to show."""
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
        raise TargetError(f"{expression} is not a function, but of type {type(fun).__name__}")
    staged: wend.Function = wend.function(fun)
    return staged


def _trace_without_arguments(
    fun: wend.Function | BoundFunction, text: str
) -> wend.ConcreteFunction:
    """Return the trace for the input signature, or the last existing one."""
    parameters = _required(fun.python_function)
    if getattr(fun, "input_signature", None) is not None or not parameters:
        return _trace(fun)
    traces = fun.concrete_functions()
    if traces:
        return traces[-1]
    example = ", ".join(["2.0", "np.ones(3)", "1"][k % 3] for k in range(len(parameters)))
    raise TargetError(
        explain(
            f"{text} needs arguments to be traced: {', '.join(parameters)}.",
            cure=f"write a call, which is traced and not run: '{text}({example})'; or "
            "wend.TensorSpec([None, 3]) for an argument; or give the function an input_signature.",
        )
    )


def _required(fun: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters without a default."""
    named = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [
        name
        for name, parameter in inspect.signature(fun).parameters.items()
        if parameter.kind in (*named, inspect.Parameter.KEYWORD_ONLY)
        and parameter.default is inspect.Parameter.empty
    ]
