"""Traces that an error ends: what they have recorded is run before it is raised (D36)."""

from __future__ import annotations

from types import WrapperDescriptorType
from typing import Any

from wend.base.errors import StagedRaiseError, explain
from wend.base.marked_text import has_marks
from wend.base.source import at, raised_at
from wend.eager.dispatch import Staged
from wend.trace.recording.recording import Recording
from wend.trace.state.effects import raise_if
from wend.trace.state.templates import Text

_ATTRIBUTE = "_wend_recorded_before"


def attach_recorded(error: Exception, traced: Any) -> None:
    """Attach what was recorded before an error to it."""
    setattr(error, _ATTRIBUTE, traced)


def take_recorded(error: Exception) -> Any:
    """Return what was recorded before an error, and detach it; None if it is not to be run."""
    return vars(error).pop(_ATTRIBUTE, None)


def has_effects(recording: Recording) -> bool:
    """Return whether a run of what is recorded would be noticed."""
    is_changed = any(
        argument.value is not param
        for argument, param in zip(recording.arguments, recording.b.params, strict=False)
    )
    return is_changed or recording.world_param is not None or bool(recording.variables.assigned())


def record_error(error: Exception) -> bool:
    """Record the raise of an error whose text names traced values; return whether it does.

    Raises:
        StagedRaiseError: it holds traced values otherwise.
    """
    if not any(map(_is_traced, (*error.args, *vars(error).values()))):
        return False
    match error.args:
        case (str() as text,) if not vars(error) and _takes_a_text(type(error)):
            raise_if(True, type(error), Text.adopted(text))
            return True
    raise StagedRaiseError(
        explain(
            f"{type(error).__name__} is raised{at(raised_at(error))} with a traced value, which "
            "is only known when the function runs.",
            cure="name it in the text alone: raise ValueError(f'… {x}').",
        )
    )


def _is_traced(x: Any) -> bool:
    return isinstance(x, Staged) or (isinstance(x, str) and has_marks(x))


def _takes_a_text(error: type[Exception]) -> bool:
    """Return whether calling a class with a text makes the error that has it."""
    return all(isinstance(getattr(error, name), _BUILT_IN) for name in ("__init__", "__new__"))


_BUILT_IN = (WrapperDescriptorType, type(object.__new__))
