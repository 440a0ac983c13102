"""Run-time checks of numbers, which raise the errors of Python (D36)."""

from __future__ import annotations

from typing import Any

from wend.eager import raising
from wend.eager.dispatch import Staged, apply
from wend.eager.promotion import as_array
from wend.ops import effects

# A predicate, an exception class and its text, in which `{}` is the number
Check = tuple[Any, type[BaseException], str]


def checked_as_python(x: Any, *checks: Check) -> Any:
    """Return a number, `checked` for errors that Python raises, too: a recorded handler gets them.

    Other checks are of limits of the graph, which no handler may catch.
    """
    return checked(x, *unhandled(x, *checks))


def unhandled(x: Any, *checks: Check) -> list[Check]:
    """Lead errors that Python raises to their recorded handlers; return the checks of others."""
    return [check for check in checks if not _is_handled(x, *check)]


def _is_handled(x: Any, predicate: Any, error: type[BaseException], text: str) -> bool:
    return isinstance(predicate, Staged) and raising.divert(
        lambda: predicate, error, lambda: raising.Filled(text, x)
    )


def checked(x: Any, *checks: Check) -> Any:
    """Return a number; the first check whose predicate holds raises its error, when run."""
    live = [check for check in checks if check[0] is not False]
    if not live:
        return x
    predicates, errors, texts = zip(*live, strict=True)
    result = apply(
        effects.checked,
        as_array(x),
        *predicates,
        errors=tuple(map(effects.error_name, errors)),
        texts=texts,
    )
    is_weak = isinstance(x, Staged) and x.weak
    return result.as_weak() if is_weak and isinstance(result, Staged) else result  # type: ignore[attr-defined]
