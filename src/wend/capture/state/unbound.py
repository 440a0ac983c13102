"""Why a variable is not bound: which loop or branch may have left it so."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import optree

from wend.base.errors import WendError, explain

_reasons: ContextVar[dict[str, tuple[str, str]] | None] = ContextVar("wend_unbound", default=None)


class UnboundError(WendError, UnboundLocalError):
    """A variable is read that only some runs of a loop or branch would have bound."""


def start() -> None:
    """Forget what was noted."""
    _reasons.set({})


def note(name: str, where: str, cure: str) -> None:
    """Note that `name` is bound only somewhere, and where it would have to be bound."""
    reasons = _reasons.get()
    if reasons is not None:
        reasons[name] = where, cure


def explained(error: NameError) -> UnboundError | None:
    """The error with the place where its variable may not have been bound, if wend knows it."""
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


class Perhaps:
    """What a variable holds that only some runs have bound; the others hold zeros there.

    It lives no longer than the statement whose `:=` made it: after that the variable is unbound,
    or known to be bound.
    """

    def __init__(self, value: Any) -> None:
        self.value = value


def is_perhaps(read: Callable[[], Any]) -> bool:
    """Whether the variable that `read` reads may not be bound."""
    try:
        return isinstance(read(), Perhaps)
    except NameError:
        return False


def surely(value: Any) -> Any:
    """The value of a variable that is bound here."""
    return value.value if isinstance(value, Perhaps) else value


def known(value: Any, name: str) -> Any:
    """The value of a variable; an error where it may not be bound."""
    if isinstance(value, Perhaps):
        raise NameError(f"name '{name}' is not defined")
    return value


def _flatten(perhaps: Any) -> tuple[Any, Any, None]:
    return (perhaps.value,), None, None


def _unflatten(_: Any, values: Any) -> Any:
    return Perhaps(*values)


optree.register_pytree_node(
    Perhaps,  # type: ignore[arg-type]  # it has the methods that are needed
    _flatten,
    _unflatten,
    namespace=getattr(optree.registry, "__GLOBAL_NAMESPACE"),  # the only way to it
)
