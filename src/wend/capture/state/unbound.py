"""Unbound variables: which loop or branch may have left a variable without a value."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import optree

from wend.base.errors import WendError, explain

_reasons: ContextVar[dict[str, tuple[str, str]] | None] = ContextVar("wend_unbound", default=None)


class UnboundError(WendError, UnboundLocalError):
    """A variable is read that a loop or branch binds in some runs only."""


def reset() -> None:
    """Forget the recorded reasons."""
    _reasons.set({})


def note_reason(name: str, where: str, cure: str) -> None:
    """Record where `name` is bound, and where it would have to be bound."""
    reasons = _reasons.get()
    if reasons is not None:
        reasons[name] = where, cure


def explain_error(error: NameError) -> UnboundError | None:
    """Return the error with the place that may leave its variable unbound, if known."""
    quoted = re.search(r"'(\w+)'", str(error))
    reasons = _reasons.get()
    if quoted is None or not reasons or quoted[1] not in reasons:
        return None
    name = quoted[1]
    where, cure = reasons[name]
    return UnboundError(
        explain(
            f"`{name}` is read, but it is bound only {where}.",
            cure=f"give `{name}` a value {cure}.",
        )
    )


class MaybeBound:
    """The value of a variable that is bound in some runs only; zeros in the others.

    It exists only within the statement of its `:=`. Afterwards the variable is unbound, or known to
    be bound.
    """

    def __init__(self, value: Any) -> None:
        self.value = value


def is_maybe_bound(thunk: Callable[[], Any]) -> bool:
    """Return whether the variable that a thunk reads may be unbound."""
    try:
        return isinstance(thunk(), MaybeBound)
    except NameError:
        return False


def unwrap(value: Any) -> Any:
    """Return the value of a variable that is bound at this point."""
    return value.value if isinstance(value, MaybeBound) else value


def require_bound(value: Any, name: str) -> Any:
    """Return the value of a variable, or raise an error if it may be unbound."""
    if isinstance(value, MaybeBound):
        raise NameError(f"name '{name}' is not defined")
    return value


def _flatten(maybe_bound: Any) -> tuple[Any, Any, None]:
    return (maybe_bound.value,), None, None


def _unflatten(_: Any, values: Any) -> Any:
    return MaybeBound(*values)


optree.register_pytree_node(
    MaybeBound,  # type: ignore[arg-type]  # it has the methods that optree needs
    _flatten,
    _unflatten,
    namespace=getattr(optree.registry, "__GLOBAL_NAMESPACE"),  # there is no public name for it
)
