"""A function gives what Python gives: results, errors, and what it leaves in its arguments."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import wend

BACKENDS = "native", "numpy"


def outcome(fun: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, Any]:
    """The result or the error, in Python's own objects, and the arguments afterwards."""
    args = copy.deepcopy(args)
    try:
        result = fun(*args)
    except Exception as error:
        return (type(error), str(error).split("\n")[0]), _plain(args)
    return _plain(result), _plain(args)


def assert_as_python(fun: Callable[..., Any], *calls: tuple[Any, ...]) -> None:
    """Each call, made twice, is as the plain call, in every backend."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for backend in BACKENDS:
            compiled = wend.function(fun)
            with wend.config(backend=backend):
                for args in calls:
                    expected = repr(outcome(fun, args))
                    assert repr(outcome(compiled, args)) == expected, (backend, args)
                    assert repr(outcome(compiled, args)) == expected, (backend, args)


def raised(fun: Callable[..., Any], *args: Any) -> Exception:
    """The error of the function, which is one in every backend."""
    errors = []
    for backend in BACKENDS:
        with wend.config(backend=backend):
            try:
                wend.function(fun)(*args)
            except Exception as error:
                errors.append(error)
    assert len(errors) == len(BACKENDS)
    assert len({(type(error), str(error)) for error in errors}) == 1
    return errors[0]


def _plain(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(map(_plain, x))
    return x.tolist() if isinstance(x, (np.ndarray, np.generic)) else x
