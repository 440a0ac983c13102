"""Unbound variables: which loop or branch may have left a variable without a value."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import optree

from wend.base.errors import WendError, explain
from wend.capture.heap.locations import UNBOUND, evaluate
from wend.numpy.elementwise import logical_not
from wend.trace.state.effects import raise_if

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


def reasons() -> dict[str, tuple[str, str]]:
    """Return the names that were unbound as a branch or loop could not keep what they were."""
    return dict(_reasons.get() or {})


def restore_reasons(reasons: dict[str, tuple[str, str]]) -> None:
    """Forget what was noted since `reasons` was returned."""
    if _reasons.get() is not None:
        _reasons.set(dict(reasons))


def explain_error(error: NameError) -> UnboundError | None:
    """Return the error with the place that may leave its variable unbound, if known."""
    quoted = re.search(r"'(\w+)'", str(error))
    return None if quoted is None else error_of(quoted[1])


def error_of(name: str) -> UnboundError | None:
    """Return the error for a variable that a branch or loop may have left unbound."""
    reasons = _reasons.get()
    if not reasons or name not in reasons:
        return None
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


class BoundInRun:
    """The value of a variable that only some runs bind, and whether this run has.

    The value is zeros where it has not.
    """

    def __init__(self, value: Any, is_bound: Any) -> None:
        self.value, self.is_bound = value, is_bound


def possible_value(value: Any) -> Any:
    """Return the value of a variable that only some runs bind; other values unchanged."""
    return value.value if isinstance(value, (BoundInRun, MaybeBound)) else value


def check_bound(thunk: Callable[[], Any], name: str, is_free: bool) -> Any:
    """Return the value of a variable, with the check that the run has bound it.

    Raises:
        UnboundLocalError: it is known to be unbound; NameError if it is a function's around it.
    """
    value = evaluate(thunk)
    if value is not UNBOUND and not isinstance(value, BoundInRun):
        return value
    text = f"cannot access local variable '{name}' where it is not associated with a value"
    error: type[NameError] = UnboundLocalError
    if is_free:
        error = NameError
        text = (
            f"cannot access free variable '{name}' where it is not associated with a value in "
            "enclosing scope"
        )
    if not isinstance(value, BoundInRun):
        raise error(text)
    raise_if(logical_not(value.is_bound), error, text)
    return value.value


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


def _register(cls: Any, flatten: Callable[[Any], Any]) -> None:
    optree.register_pytree_node(
        cls,
        flatten,
        lambda _, values: cls(*values),
        namespace=getattr(optree.registry, "__GLOBAL_NAMESPACE"),  # there is no public name for it
    )


_register(MaybeBound, lambda bound: ((bound.value,), None, None))
_register(BoundInRun, lambda bound: ((bound.value, bound.is_bound), None, None))
