"""Calls of captured code that are refused: a trace makes them once, Python at every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from wend.base.errors import UnsupportedError, explain
from wend.base.source import at, user_source
from wend.eager.dispatch import any_staged

Call: TypeAlias = Callable[..., Any]
# What a call does, and what to write instead
DRAW = (
    "draws a random number",
    (
        "draw with wend.random, draw before the call and pass the numbers as an argument, or draw "
        "in wend.py_function(…)."
    ),
)
FILE = (
    "uses a file",
    (
        "read it before the call and pass its contents as an argument, write what the function "
        "returns, or do it in wend.py_function(…)."
    ),
)
SYSTEM = (
    "asks the operating system",
    (
        "ask before the call and pass the answer as an argument, static if Python decides by it, "
        "or ask in wend.py_function(…)."
    ),
)
CLOCK = (
    "reads the clock",
    (
        "read it before the call and pass it as an argument, or call time.time() or "
        "time.perf_counter(), which are read in each run."
    ),
)
FOREIGN = (
    "runs code in C that may read and change whatever it likes",
    "call it before and pass the result as an argument, or call it in wend.py_function(…).",
)
INPUT = ("waits for input", "ask before the call, and pass the answer as an argument.")


def refusal(name: str, reason: tuple[str, str]) -> UnsupportedError:
    """Return the error for a call that a trace cannot stand for."""
    what, cure = reason
    return UnsupportedError(
        explain(
            f"{name}{at(user_source())} {what}, which Python would do at each call: a trace does "
            "it once.",
            cure=cure,
        )
    )


def refusing(name: str, reason: tuple[str, str]) -> Call:
    """Return a function that raises this error when it is called."""

    def run(*args: Any, **kwargs: Any) -> Any:
        raise refusal(name, reason)

    return run


def name_of(fun: Any) -> str:
    """Return the name of what is called, for messages."""
    return str(getattr(fun, "__qualname__", type(fun).__name__))


def array_refusal(fun: Any) -> Call | None:
    """Return what is called in place of a function that takes no traced arrays, by NumPy's rules.

    NumPy asks no `__array_function__` here: the function would want the numbers.
    """
    module = str(getattr(fun, "__module__", ""))
    if fun is np.lib.stride_tricks.as_strided:
        name, cure = "np.lib.stride_tricks.as_strided", _WINDOWS
    elif module.startswith("numpy.ma"):
        name, cure = f"np.ma.{name_of(fun)}", _MASKS
    else:
        return None

    def run(*args: Any, **kwargs: Any) -> Any:
        if any_staged((*args, *kwargs.values())):
            what = f"{name}{at(user_source())} is not known for traced arrays."
            raise UnsupportedError(explain(what, cure=cure))
        return fun(*args, **kwargs)

    return run


_WINDOWS = (
    "use np.lib.stride_tricks.sliding_window_view, or take the elements by their positions: "
    "x[np.arange(n)[:, None] + np.arange(width)]."
)
_MASKS = (
    "keep the mask as an array of bools: np.where(mask, 0.0, x).sum() / (~mask).sum() is the mean."
)

_OS_FILES = frozenset(
    {
        *("access", "chdir", "chmod", "exists", "getmtime", "getsize", "isdir", "isfile", "islink"),
        *("lexists", "link", "listdir", "lstat", "makedirs", "mkdir", "open", "popen", "read"),
        *("readlink", "remove", "removedirs", "rename", "renames", "replace", "rmdir", "scandir"),
        *("stat", "symlink", "system", "truncate", "unlink", "utime", "walk", "write"),
    }
)
_OS_QUESTIONS = frozenset({"getcwd", "getloadavg", "getpid", "getppid", "putenv", "times", "uname"})
_NUMPY_FILES = frozenset(
    {
        *("fromfile", "fromregex", "genfromtxt", "load", "loadtxt", "memmap", "save", "savetxt"),
        *("savez", "savez_compressed"),
    }
)
PATH_FILES = frozenset(
    {
        *("absolute", "chmod", "cwd", "exists", "glob", "home", "is_dir", "is_file", "iterdir"),
        *("lstat", "mkdir", "open", "read_bytes", "read_text", "rename", "replace", "resolve"),
        *("rglob", "rmdir", "samefile", "stat", "touch", "unlink", "walk", "write_bytes"),
        "write_text",
    }
)
# Modules with functions that are refused
REFUSED_FAMILIES = (
    *("builtins", "posix", "nt", "os", "posixpath", "ntpath", "genericpath", "uuid", "secrets"),
    *("getpass", "tempfile", "shutil", "glob", "fileinput", "subprocess", "socket", "urllib"),
)


def reason_to_refuse(module: str, name: str) -> tuple[str, str] | None:
    """Return why a function of a module is refused, or None."""
    match module.partition(".")[0], name:
        case ("uuid", "uuid1" | "uuid4" | "uuid6" | "uuid7"):
            return DRAW
        case ("secrets", _) | ("posix" | "nt" | "os", "urandom" | "getrandom"):
            return DRAW
        case ("builtins", "input") | ("getpass", _):
            return INPUT
        case ("_io" | "io", "open" | "open_code" | "FileIO"):
            return FILE
        case ("posix" | "nt" | "os" | "posixpath" | "ntpath" | "genericpath", _):
            if name in _OS_FILES:
                return FILE
            return SYSTEM if name in _OS_QUESTIONS else None
        case ("numpy", _) if name in _NUMPY_FILES:
            return FILE
        case ("tempfile" | "shutil" | "glob" | "fileinput", _):
            return FILE
        case ("subprocess" | "socket" | "urllib", _):
            return SYSTEM
    return None
