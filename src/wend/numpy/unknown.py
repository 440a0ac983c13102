"""The error for a function that traced arrays do not know, and what to write instead."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from wend.base.errors import TypeMismatchError, explain
from wend.base.source import at, user_source


def unknown(function: Any, method: str = "__call__") -> TypeMismatchError:
    """The error; `method` is that of a ufunc, such as `accumulate`."""
    name = getattr(function, "__name__", str(function))
    whole = f"{_module(function, name)}.{name}"
    if method != "__call__":
        whole += f".{method}"
    found = None if method != "__call__" else _counterpart(name)
    cure = "write it with what wend.numpy has (docs/coverage.md), or compute it before the call "
    cure = f"use {found}." if found else f"{cure}and pass the result as an argument."
    what = f"{whole} is not known for traced arrays{at(user_source())}."
    return TypeMismatchError(explain(what, cure=cure))


def _module(function: Any, name: str) -> str:
    """Where a user finds the function; ufuncs do not say."""
    module = getattr(function, "__module__", None)
    if module is not None:
        return str(module)
    special = sys.modules.get("scipy.special")
    return "scipy.special" if getattr(special, name, None) is function else "numpy"


def _counterpart(name: str) -> str | None:
    """The function of wend that has this name, or nearly."""
    known = dict(_names())
    if name in known:
        return known[name]
    import difflib  # 1 ms, for an error

    nearly = difflib.get_close_matches(name, known, 1, 0.9)
    return known[nearly[0]] if nearly else None


def _names() -> Iterator[tuple[str, str]]:
    wnp = sys.modules["wend.numpy"]  # which is made of rooms that import this one
    for module in (wnp.linalg, wnp.special, wnp):
        for name, thing in vars(module).items():
            if callable(thing) and not name.startswith("_"):
                yield name, f"{module.__name__}.{name}"
