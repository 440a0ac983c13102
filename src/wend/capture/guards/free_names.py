"""Free paths of code: globals, closure variables and parameters, with their attributes."""

from __future__ import annotations

import dis
import weakref
from collections.abc import Iterator, Mapping, Set
from types import CodeType
from typing import Literal

from wend.base.lazy.dataclass import dataclass

Kind = Literal["global", "closure", "parameter", "local"]

_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL")
_CELL = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR")


@dataclass(frozen=True, slots=True)
class Path:
    """A global, closure variable or parameter, and a chain of attributes.

    One of kind "local", without a name, is an attribute of anything else.
    """

    kind: Kind
    root: str
    attributes: tuple[str, ...]


# Keyed by value: equal code has equal free paths.
_free_paths_cache: weakref.WeakKeyDictionary[CodeType, tuple[Path, ...]] = (
    weakref.WeakKeyDictionary()
)

CodeKey = tuple[str, int, str]


def code_key(code: CodeType) -> CodeKey:
    """Return a key that identifies code, the same for its captured form."""
    return code.co_filename, code.co_firstlineno, code.co_name


def free_paths(code: CodeType) -> tuple[Path, ...]:
    """Return the values that code mentions, including code of nested functions."""
    if code not in _free_paths_cache:
        _free_paths_cache[code] = free_paths_excluding(code, frozenset())
    return _free_paths_cache[code]


def free_paths_excluding(code: CodeType, excluded: Set[CodeKey]) -> tuple[Path, ...]:
    """Return the free paths of code, without those of some nested functions."""
    count = code.co_argcount + code.co_kwonlyargcount
    changed = set(stored_names(code))
    scope: dict[str, Kind] = dict.fromkeys(code.co_freevars, "closure")
    scope.update({name: "parameter" for name in code.co_varnames[:count] if name not in changed})
    return tuple(dict.fromkeys(_paths(code, scope, excluded)))


def _paths(code: CodeType, scope: Mapping[str, Kind], excluded: Set[CodeKey]) -> Iterator[Path]:
    root: tuple[Kind, str] | None = None
    attributes: list[str] = []
    # LOAD_FAST of these loads the cell itself, for a nested function: from Python 3.13 on there is
    # no separate instruction for that.
    cells = {*code.co_cellvars, *code.co_freevars}
    plain_scope = {name: kind for name, kind in scope.items() if name not in cells}
    for instruction in dis.get_instructions(code):
        if instruction.opname == "EXTENDED_ARG":
            continue
        if root is not None and instruction.opname in _ATTRIBUTE:
            attributes.append(instruction.argval)
            continue
        if root is not None:
            yield Path(*root, tuple(attributes))
        elif instruction.opname in _ATTRIBUTE:
            yield Path("local", "", (instruction.argval,))
        if instruction.opname.startswith("LOAD_FAST") and isinstance(instruction.argval, tuple):
            # Python 3.13 loads two names at once: an attribute belongs to the second.
            *others, _ = instruction.argval
            yield from (Path(plain_scope[name], name, ()) for name in others if name in plain_scope)
        root, attributes = _root(instruction, scope, plain_scope), []
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and code_key(inner) not in excluded:
            free = {name: scope[name] for name in inner.co_freevars if name in scope}
            yield from _paths(inner, free, excluded)


def _root(
    instruction: dis.Instruction, scope: Mapping[str, Kind], plain_scope: Mapping[str, Kind]
) -> tuple[Kind, str] | None:
    """Return the outside name that an instruction loads; `plain_scope`: names not in cells."""
    if instruction.opname in _GLOBAL:
        return "global", instruction.argval
    if instruction.opname in _CELL:
        return (
            (scope[instruction.argval], instruction.argval) if instruction.argval in scope else None
        )
    if instruction.opname.startswith("LOAD_FAST"):
        name = (
            instruction.argval[-1] if isinstance(instruction.argval, tuple) else instruction.argval
        )
        return (plain_scope[name], name) if name in plain_scope else None
    return None


def stored_names(code: CodeType) -> Iterator[str]:
    """Yield the variables that code binds."""
    for instruction in dis.get_instructions(code):
        if instruction.opname.startswith(
            ("STORE_FAST", "STORE_DEREF", "DELETE_FAST", "DELETE_DEREF")
        ):
            yield from (
                instruction.argval
                if isinstance(instruction.argval, tuple)
                else (instruction.argval,)
            )
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from stored_names(inner)
