"""Traces that an error ends: what they have recorded is run before it is raised (D36)."""

from __future__ import annotations

from typing import Any

from wend.base import trees
from wend.base.marked_text import has_marks
from wend.eager.dispatch import Staged
from wend.trace.recording.recording import Recording
from wend.trace.state.raised_errors import raise_in_run

_ATTRIBUTE = "_wend_recorded_before"
_ARGUMENTS = "_wend_recorded_for"


def attach_recorded(error: Exception, traced: Any) -> None:
    """Attach what was recorded before an error to it."""
    setattr(error, _ATTRIBUTE, traced)


def attach_arguments(error: Exception, arguments: Any) -> None:
    """Attach the arguments for which was traced to the error that has ended the trace."""
    if _ATTRIBUTE in vars(error):
        setattr(error, _ARGUMENTS, arguments)


def take_arguments(error: Exception) -> Any:
    """Return the arguments for which was recorded, and detach them; None if none are attached."""
    return vars(error).pop(_ARGUMENTS, None)


def take_recorded(error: Exception) -> Any:
    """Return what was recorded before an error, and detach it; None if it is not to be run."""
    return vars(error).pop(_ATTRIBUTE, None)


def has_effects(recording: Recording) -> bool:
    """Return whether a run of what is recorded would be noticed."""
    is_changed = any(
        argument.value is not param
        for argument, param in zip(recording.arguments, recording.b.params, strict=False)
    )
    return (
        is_changed
        or recording.world_param is not None
        or bool(recording.variables.assigned())
        or (recording.containers is not None and recording.containers.is_changed())
    )


def result_of(recording: Recording) -> Any:
    """Return the result of a trace that an error ends: what it leaves in containers."""
    return None if recording.containers is None else recording.containers.result()


def record_error(error: Exception) -> bool:
    """Record the raise of an error that holds traced values; return whether it does."""
    parts, cause = [error.args, vars(error)], error.__cause__
    while cause is not None:
        parts += [cause.args, vars(cause)]
        cause = cause.__cause__
    if not any(map(_is_traced, trees.flatten(parts)[0])):
        return False
    raise_in_run(error)
    return True


def _is_traced(x: Any) -> bool:
    return isinstance(x, Staged) or (isinstance(x, str) and has_marks(x))
