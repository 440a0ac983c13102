"""Aliases of containers: who else holds a list that becomes a traced one, or that may change."""

from __future__ import annotations

import gc
from collections import deque
from contextvars import ContextVar
from types import GeneratorType
from typing import Any

from wend.base.errors import StructureError, explain
from wend.base.source import frames, users_frames
from wend.trace.aliasing.passed_containers import passed_containers
from wend.trace.aliasing.referrers import Predicate, find_referrers, is_held
from wend.trace.control.tensor_list import TensorList
from wend.trace.trace_function import call_with


def refuse_others(old: list[Any], new: TensorList, label: str, where: str) -> None:
    """Refuse to promote a list that other variables of the active calls hold besides `label`.

    `label` and the other locations that the loop knows hold the traced list `new` already. The
    caller, if it has passed the list, gets what that holds in the end.

    Raises:
        StructureError: with the name of the variable.
    """

    def is_old(value: Any) -> bool:
        return value is old or _goes_through(value, old)

    if any(map(is_old, gone_through.get())):
        raise _refusal_of_loop(where, label)
    passed = passed_containers()
    by_caller = passed if passed is not None and passed.holds(old) else None
    if by_caller is None and _is_held_by_caller(is_old):
        raise StructureError(
            explain(
                f"{where}: `{label}` is an argument, which grows there: the caller would not "
                "see it.",
                cure="change a copy of it, and return that.",
            )
        )
    for name, of, value in find_referrers(is_old):
        if _goes_through(value, old):
            raise _refusal_of_loop(where, label)
        same = "is the same list as" if value is old else "holds the list"
        cure = "append in the function that makes the list, and keep one name for it"
        if value is old:
            cure += f"; or make {name} a copy, list({label})"
        raise StructureError(
            explain(f"{where}: `{name}`{of} {same} `{label}`, which grows there.", cure=f"{cure}.")
        )
    if by_caller is not None:
        by_caller.promoted[id(old)] = new


# The iterators of the `for` loops that Python runs now
gone_through: ContextVar[tuple[Any, ...]] = ContextVar("wend_gone_through", default=())
_ITERATORS: tuple[type, ...] = (
    *(type(iter([])), type(reversed([])), type(iter(deque())), type(reversed(deque()))),
    *(enumerate, zip, map, filter, GeneratorType),
)


def _goes_through(value: Any, old: Any) -> bool:
    """Return whether an iterator takes items of a list, which it would not find in a traced one."""
    if type(value) not in _ITERATORS:
        return False
    parts = gc.get_referents(value)
    parts += [part for several in parts if type(several) is tuple for part in several]
    return any(part is old or _goes_through(part, old) for part in parts)


def _refusal_of_loop(where: str, label: str) -> StructureError:
    return StructureError(
        explain(
            f"{where}: the length of `{label}` changes there, while a loop or an iterator goes "
            "through it.",
            cure=f"go through a copy: `for item in list({label})`; or through positions in a "
            "`while` loop.",
        )
    )


def find_holder(predicate: Predicate, excluding: Any = None) -> str | None:
    """Return who else holds a matching value: a variable, the caller, a module; or None."""
    for name, of, _ in find_referrers(predicate, excluding):
        return f"`{name}`{of}"
    if _is_held_by_caller(predicate):
        return "the caller"
    modules = {id(frame.f_globals): frame.f_globals for frame in users_frames()}
    for module in modules.values():
        for name, value in module.items():
            if name == "__builtins__":
                continue
            is_container = isinstance(value, _CONTAINER_TYPES)
            if is_held(value, predicate, excluding) if is_container else predicate(value):
                return f"`{name}`"
    return None


_CONTAINER_TYPES = (list, tuple, dict, set)


def _is_held_by_caller(predicate: Predicate) -> bool:
    return any(
        frame.f_code is call_with.__code__ and is_held(_call_arguments(frame.f_locals), predicate)
        for frame in frames()
    )


def _call_arguments(frame_locals: dict[str, Any]) -> tuple[Any, ...]:
    return (tuple(frame_locals["args"]), dict(frame_locals["kwargs"]))
