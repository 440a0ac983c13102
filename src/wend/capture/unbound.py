"""Why a variable is not bound: which loop or branch may have left it so."""

from __future__ import annotations

import re
from contextvars import ContextVar

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
