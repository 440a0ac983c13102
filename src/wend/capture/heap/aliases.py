"""Other names for a list that has become a traced one: they would go on showing the old list."""

from __future__ import annotations

from typing import Any

from wend.base.errors import StructureError, explain
from wend.trace.aliasing.referrers import (
    Test,
    find_referrers,
    frames,
    is_held,
    users_frames,
)
from wend.trace.traced import call_with


def refuse_others(old: list[Any], label: str, where: str) -> None:
    """Refuse a list that variables of the calls under way hold besides `label`.

    `label` and what else the loop knows of hold the traced list already.

    Raises:
        StructureError: with the name of the variable.
    """

    def is_old(value: Any) -> bool:
        return value is old

    if _is_callers(is_old):
        raise StructureError(
            explain(
                f"{where}: `{label}` is an argument, which grows there: the caller would not "
                "see it.",
                cure="change a copy of it, and return that.",
            )
        )
    for name, of, value in find_referrers(is_old):
        same = "is the same list as" if value is old else "holds the list"
        cure = "append in the function that makes the list, and keep one name for it"
        if value is old:
            cure += f"; or let {name} be a copy, list({label})"
        raise StructureError(
            explain(
                f"{where}: `{name}`{of} {same} `{label}`, which grows there.",
                cure=f"{cure}.",
            )
        )


def holder(is_meant: Test, besides: Any = None) -> str | None:
    """Who holds something besides: a variable, the caller, a module; None if nobody."""
    for name, of, _ in find_referrers(is_meant, besides):
        return f"`{name}`{of}"
    if _is_callers(is_meant):
        return "the caller"
    for frame in users_frames():
        for name, value in frame.f_globals.items():
            if isinstance(value, _KEPT) and is_held(value, is_meant, besides):
                return f"`{name}`"
    return None


_KEPT = (list, tuple, dict, set)


def _is_callers(is_meant: Test) -> bool:
    return any(
        frame.f_code is call_with.__code__ and is_held(_given(frame.f_locals), is_meant)
        for frame in frames()
    )


def _given(names: dict[str, Any]) -> tuple[Any, ...]:
    return (tuple(names["args"]), dict(names["kwargs"]))
