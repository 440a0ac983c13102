"""Context managers of captured code."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import numpy as np

from wend.base.errors import StructureError, explain
from wend.base.handling.handlers import note_entered, note_left
from wend.base.source import at, user_source
from wend.capture.builtins.streams import entered, is_left_before_run
from wend.capture.conversion import captured
from wend.capture.guards.outside import (
    read_method,
)
from wend.capture.libraries import is_library
from wend.capture.replacements import is_plain_function
from wend.capture.stage.cleanup import Cleanup
from wend.capture.stage.float_errors import error_state
from wend.capture.stage.guard import user_traceback


def context(manager: Any) -> Any:
    """Return a context manager with captured methods, if they are a user's."""
    if isinstance(manager, np.errstate):
        return error_state(manager)
    if is_left_before_run(manager):
        return entered(manager)
    enter, leave = (getattr(type(manager), n, None) for n in ("__enter__", "__exit__"))
    if enter is None or leave is None:
        return manager
    if _is_users_function(enter) and _is_users_function(leave):
        read_method(manager, "__enter__")
        read_method(manager, "__exit__")
        enter, leave = captured(enter), captured(leave)
    return _Context(manager, enter, leave)


def check_suppress(manager: Any, *classes: Any) -> None:
    """Check that a name stands for `contextlib.suppress`, as when the code was rewritten.

    Raises:
        StructureError: it does not, or one of several classes is a tuple of them.
    """
    if manager is not contextlib.suppress:
        what, cure = (
            f"a name stands for {manager!r:.60}",
            "give the other manager a name of its own",
        )
    elif len(classes) > 1 and not all(isinstance(kind, type) for kind in classes):
        what, cure = "there is a tuple among the classes", "name each class: suppress(A, *others)"
    else:
        return
    raise StructureError(
        explain(
            f"`with`{at(user_source())} was rewritten for contextlib.suppress, but {what}.",
            cure=f"{cure}.",
        )
    )


def _is_users_function(fun: Any) -> bool:
    return is_plain_function(fun) and not is_library(fun.__code__.co_filename)


class _Context:
    """A context manager with replaced methods, noted as one that may swallow exceptions."""

    def __init__(self, manager: Any, enter: Any, leave: Any) -> None:
        self.manager, self.enter, self.leave = manager, enter, leave

    def __enter__(self) -> Any:
        value = self.enter(self.manager)
        note_entered(self.manager, sys._getframe(1))
        self.cleanup = Cleanup("with")
        return value

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> Any:
        note_left()
        self.cleanup.begin()
        swallows = self.leave(self.manager, kind, error, user_traceback(traceback))
        self.cleanup.check()
        return swallows
