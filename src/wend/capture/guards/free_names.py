"""What code mentions of the outside: globals, closures, attributes of these and of parameters."""

from __future__ import annotations

import dis
import weakref
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from types import CodeType
from typing import Literal

Kind = Literal["global", "closure", "parameter"]

_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME")
_CELL = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")


@dataclass(frozen=True, slots=True)
class Path:
    """A name of a function's surroundings, or of a parameter, and attributes from there on."""

    kind: Kind
    root: str
    attributes: tuple[str, ...]


# By value: what equal code mentions is equal.
_known: weakref.WeakKeyDictionary[CodeType, tuple[Path, ...]] = weakref.WeakKeyDictionary()

Place = tuple[str, int, str]


def place(code: CodeType) -> Place:
    """What tells code from other code of the user's; it is that of the captured form, too."""
    return code.co_filename, code.co_firstlineno, code.co_name


def mentioned(code: CodeType) -> tuple[Path, ...]:
    """The values from outside that code mentions, that of functions inside included."""
    if code not in _known:
        _known[code] = mentioned_without(code, frozenset())
    return _known[code]


def mentioned_without(code: CodeType, left_out: Set[Place]) -> tuple[Path, ...]:
    """As `mentioned`, without some of the functions inside."""
    count = code.co_argcount + code.co_kwonlyargcount
    changed = set(_stored(code))
    scope: dict[str, Kind] = dict.fromkeys(code.co_freevars, "closure")
    scope.update({name: "parameter" for name in code.co_varnames[:count] if name not in changed})
    return tuple(dict.fromkeys(_paths(code, scope, left_out)))


def _paths(code: CodeType, scope: Mapping[str, Kind], left_out: Set[Place]) -> Iterator[Path]:
    root: tuple[Kind, str] | None = None
    attributes: list[str] = []
    # What is loaded of these as if it were no cell is the cell itself, for a function inside: from
    # Python 3.13 on that is no instruction of its own.
    cells = {*code.co_cellvars, *code.co_freevars}
    own = {name: kind for name, kind in scope.items() if name not in cells}
    for step in dis.get_instructions(code):
        if step.opname == "EXTENDED_ARG":
            continue
        if root is not None and step.opname in _ATTRIBUTE:
            attributes.append(step.argval)
            continue
        if root is not None:
            yield Path(*root, tuple(attributes))
        if step.opname.startswith("LOAD_FAST") and isinstance(step.argval, tuple):
            # Two at once, from Python 3.13 on: an attribute is the second's.
            *others, _ = step.argval
            yield from (Path(own[name], name, ()) for name in others if name in own)
        root, attributes = _root(step, scope, own), []
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and place(inner) not in left_out:
            free = {name: scope[name] for name in inner.co_freevars if name in scope}
            yield from _paths(inner, free, left_out)


def _root(
    step: dis.Instruction, scope: Mapping[str, Kind], own: Mapping[str, Kind]
) -> tuple[Kind, str] | None:
    """What an instruction loads of what is outside; `own`: what is in no cell."""
    if step.opname in _GLOBAL:
        return "global", step.argval
    if step.opname in _CELL:
        return (scope[step.argval], step.argval) if step.argval in scope else None
    if step.opname.startswith("LOAD_FAST"):
        name = step.argval[-1] if isinstance(step.argval, tuple) else step.argval
        return (own[name], name) if name in own else None
    return None


def _stored(code: CodeType) -> Iterator[str]:
    """The variables that code binds."""
    for step in dis.get_instructions(code):
        if step.opname.startswith(("STORE_FAST", "STORE_DEREF", "DELETE_FAST", "DELETE_DEREF")):
            yield from step.argval if isinstance(step.argval, tuple) else (step.argval,)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _stored(inner)
