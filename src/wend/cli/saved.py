"""The functions of a file of `wend.save`, for the command line: `model.wend:step`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import wend
from wend.base import trees
from wend.base.errors import explain, listed
from wend.cli.target import TargetError
from wend.saving.objects import LoadedObject

SUFFIX = ".wend"


def is_saved(target: str) -> bool:
    """Return whether a target is in a file of `wend.save`."""
    return SUFFIX in target and ".py:" not in target


def names_a_function(target: str) -> bool:
    """Return whether a target names a function, or the file has one function only."""
    return bool(_split(target)[1]) or len(_functions_of(target)) == 1


def saved_function(target: str) -> wend.Function:
    """Return the function that a target names; the only one, if it names none.

    Raises:
        TargetError: there is no such function.
        LoadError: the file is none of `wend.save`.
    """
    file, name = _split(target)
    functions = _functions_of(target)
    if not name and len(functions) == 1:
        return next(iter(functions.values()))
    if name in functions:
        return functions[name]
    what = f"there is no function {name!r} in {file}." if name else f"{file} has several functions."
    names = listed(functions) or "no function"
    raise TargetError(explain(what, f"it has {names}", cure=f"write {file}:NAME."))


def saved_trace(target: str) -> wend.ConcreteFunction:
    """Return the first trace of the function that a target names."""
    return saved_function(target).concrete_functions()[0]


def listing(target: str) -> str:
    """Return a line for each trace in a file."""
    lines = []
    for name, function in _functions_of(target).items():
        lines.append(f"{name}: {function.explain().partition(': ')[2]}")
    return "\n".join(lines) or "no functions"


def _split(target: str) -> tuple[str, str]:
    stem, _, name = target.partition(SUFFIX)
    return stem + SUFFIX, name.removeprefix(":")


def _functions_of(target: str) -> dict[str, wend.Function]:
    file, _ = _split(target)
    return dict(_functions(wend.load(Path(file)), "", set()))


def _functions(value: Any, path: str, seen: set[int]) -> Iterator[tuple[str, wend.Function]]:
    """Yield the functions in a loaded value with the attributes and keys that lead to them."""
    if isinstance(value, wend.Function):
        yield path or value.name, value
    elif isinstance(value, LoadedObject):
        if id(value) not in seen:
            seen.add(id(value))
            for name, child in vars(value).items():
                if not name.startswith("_"):
                    yield from _functions(child, f"{path}.{name}" if path else name, seen)
    else:
        for name, child in trees.children(value) or ():
            yield from _functions(child, f"{path}.{name}" if path else str(name), seen)
