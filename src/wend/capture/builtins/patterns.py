"""What `case` asks of a subject: its class, its parts, its length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wend.base import trees
from wend.base.errors import ConcreteValueError, explain
from wend.base.source import at, user_source
from wend.capture.builtins.builtins import is_instance
from wend.eager.dispatch import Staged
from wend.trace.control.tensor_list import TensorList

# `case float(x)` binds the subject itself.
_THEMSELVES = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)


def is_of_class(subject: Any, kind: type, count: int, attributes: Sequence[str]) -> bool:
    """Whether `case kind(…)` with so many positional parts and these attributes may match."""
    if not is_instance(subject, kind):
        return False
    if count:
        names = _positional(kind)
        if len(names) < count:
            raise TypeError(
                f"{kind.__name__}() accepts {len(names)} positional sub-patterns ({count} given)"
            )
        attributes = [*names[:count], *attributes]
    return all(not name or hasattr(subject, name) for name in attributes)


def matched_part(subject: Any, kind: type, place: int) -> Any:
    """What the positional part of `case kind(…)` is about."""
    name = _positional(kind)[place]
    return getattr(subject, name) if name else subject


def _positional(kind: type) -> Sequence[str]:
    is_itself = issubclass(kind, _THEMSELVES) and not hasattr(kind, "__match_args__")
    return ("",) if is_itself else getattr(kind, "__match_args__", ())


def is_sequence(subject: Any, count: int) -> bool:
    """Whether `case [a, b]` may match: a sequence of that length, no array and no text."""
    if isinstance(subject, TensorList):
        raise ConcreteValueError(
            explain(
                f"`case`{at(user_source())} asks for the length of {subject!r}, known only when "
                "it runs.",
                cure="compare its length by an `if`: if len(out) == 2.",
            )
        )
    match subject:
        case [*items]:
            return len(items) == count
    return False


def decomposed(subject: Any) -> Any:
    """The subject of a `match` that is left to Python, which knows no class of what is traced."""
    if any(isinstance(leaf, (Staged, TensorList)) for leaf in trees.flatten(subject)[0]):
        raise ConcreteValueError(
            explain(
                f"`match`{at(user_source())} asks for the class of parts of a sequence or mapping "
                "of any length, which holds traced values.",
                cure="write it as a chain of `if`, with isinstance.",
            )
        )
    return subject
