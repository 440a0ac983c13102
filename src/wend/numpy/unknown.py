"""The error for functions that do not take traced arrays, which suggests a replacement."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from wend.base.errors import TypeMismatchError, explain
from wend.base.source import at, user_source


def unknown(function: Any, method: str = "__call__") -> TypeMismatchError:
    """Return the error for a function; `method` is that of a ufunc, such as `accumulate`."""
    name = getattr(function, "__name__", str(function))
    whole = f"{_module(function, name)}.{name}"
    if method != "__call__":
        whole += f".{method}"
    replacement = None if method != "__call__" else _counterpart(name)
    cure = "write it with what wend.numpy has (docs/coverage.md), or compute it before the call "
    cure = f"use {replacement}." if replacement else f"{cure}and pass the result as an argument."
    what = f"{whole} is not known for traced arrays{at(user_source())}."
    return TypeMismatchError(explain(what, cure=cure))


def _module(function: Any, name: str) -> str:
    """Return the module that a user imports the function from; ufuncs do not record it."""
    module = getattr(function, "__module__", None)
    if module is not None:
        return str(module)
    special = sys.modules.get("scipy.special")
    return "scipy.special" if getattr(special, name, None) is function else "numpy"


def _counterpart(name: str) -> str | None:
    """Return the qualified name of wend's function of this name, or of a similar one."""
    known = dict(_names())
    if name in known:
        return known[name]
    import difflib  # takes 1 ms and is needed for errors only

    close_matches = difflib.get_close_matches(name, known, 1, 0.9)
    return known[close_matches[0]] if close_matches else None


def _names() -> Iterator[tuple[str, str]]:
    wnp = sys.modules["wend.numpy"]  # not imported: its modules import this one
    for module in (wnp.linalg, wnp.fft, wnp.special, wnp):
        for name, function in vars(module).items():
            if callable(function) and not name.startswith("_"):
                yield name, f"{module.__name__}.{name}"
