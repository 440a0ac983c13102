"""A program to be run in several ways, with its arguments: made at random, or kept as Python."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count, dropwhile
from typing import Any

import numpy as np

import wend

_numbers = count()


class PlainVariable:
    """What stands for a Variable when the oracle runs."""

    def __init__(self, value: Any) -> None:
        self.value = np.array(value)[()]

    def assign(self, value: Any) -> None:
        self.value = np.broadcast_to(value, self.value.shape).astype(self.value.dtype)[()]

    def assign_add(self, value: Any) -> None:
        self.assign(self.value + value)


class RoughNumPy:
    """NumPy with functions that round worse, to see what a program makes of that."""

    _ROUNDED = frozenset(
        {
            *("sin", "cos", "tanh", "arctan", "arctan2", "sinh", "exp", "expm1", "log", "log1p"),
            *("sqrt", "square", "power", "logaddexp", "sum", "mean", "cumsum"),
        }
    )

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)
        if name not in self._ROUNDED:
            return function

        def run(*args: Any, **options: Any) -> Any:
            found = function(*args, **options)
            if found.dtype.kind != "f":
                return found
            return found * found.dtype.type(1 + 4 * np.finfo(found.dtype).eps)

        return run


@dataclass(frozen=True, eq=False, repr=False)
class Program:
    """A plain Python function as text.

    Attributes:
        text: it defines `f`, and may use `np` and `Variable`.
        calls: the arguments of some calls, one after another.
        rounded: the positions of the arguments in which it is smooth.
    """

    text: str
    calls: tuple[tuple[Any, ...], ...]
    rounded: tuple[int, ...]

    def __repr__(self) -> str:
        return self.to_text()

    @property
    def is_single(self) -> bool:
        """Whether anything is of f32, or of f16."""
        arrays = (x for args in self.calls for x in args if isinstance(x, (np.ndarray, np.generic)))
        dtypes = {x.dtype.char for x in arrays}
        return any(f"'{name}'" in self.text for name in ("f4", "f2")) or bool(dtypes & {*"ef"})

    def widened(self) -> Program:
        """The same in double precision."""
        text = self.text
        for narrow, wide in (("'f4'", "'f8'"), ("'f2'", "'f8'"), ("complex64", "complex128")):
            text = text.replace(narrow, wide)
        calls = tuple(tuple(x.astype("f8") if is_float(x) else x for x in c) for c in self.calls)
        return replace(self, text=text, calls=calls)

    def names(self, variable: Any, numpy: Any = np) -> dict[str, Any]:
        """What its text defines, anew; capture can read its lines."""
        file = f"<program {next(_numbers)}>"
        linecache.cache[file] = (len(self.text), None, self.text.splitlines(keepends=True), file)
        names: dict[str, Any] = {"np": numpy, "Variable": variable}
        exec(compile(self.text, file, "exec"), names)
        return names

    def plain(self, numpy: Any = np) -> tuple[Callable[..., Any], list[Any]]:
        """The function for plain NumPy, and its variables."""
        names = self.names(PlainVariable, numpy)
        return names["f"], [x for x in names.values() if isinstance(x, PlainVariable)]

    def staged(self) -> tuple[Callable[..., Any], list[Any]]:
        """The function for wend, and its variables."""
        names = self.names(wend.Variable)
        return names["f"], [x for x in names.values() if isinstance(x, wend.Variable)]

    def to_text(self) -> str:
        """The text that `read` takes."""
        calls = ["CALLS = ["]
        for args in self.calls:
            calls += ["    (", *(f"        {_written(x)}," for x in args), "    ),"]
        rest = [*calls, "]", f"ROUNDED = {self.rounded!r}"]
        return "\n".join([self.text.rstrip(), "", "", *rest]) + "\n"


def read(text: str) -> Program:
    """The program of a text. Comments at its beginning are for readers."""
    names: dict[str, Any] = {"np": np, "Variable": PlainVariable}
    exec(text, names)
    lines = text.partition("\nCALLS = ")[0].rstrip().splitlines()
    body = "\n".join(dropwhile(lambda line: line.startswith("#"), lines)) + "\n"
    return Program(body, tuple(names["CALLS"]), names["ROUNDED"])


def is_float(x: Any) -> bool:
    """Whether it is a float, or an array of such."""
    return isinstance(x, float) or getattr(getattr(x, "dtype", None), "kind", "") == "f"


def _written(x: Any) -> str:
    if not isinstance(x, np.ndarray):
        return repr(x)
    return f"np.array({x.ravel().tolist()!r}, '{x.dtype.str[1:]}').reshape({x.shape!r})"
