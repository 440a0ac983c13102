"""Builtins that look at the variables or frames of their caller, or at all names of an object.

Captured code keeps its variables in functions of its own, so these would see other ones.
"""

from __future__ import annotations

import builtins
import inspect
import sys
from collections.abc import Callable
from typing import Any

from wend.base.errors import UnsupportedError, explain
from wend.base.source import at, user_frame, user_source
from wend.capture.guards.outside import load_namespace, read_arguments
from wend.capture.state.unbound_attributes import variables_of
from wend.eager.dispatch import Staged
from wend.trace.arrays.attributes import class_of

Call = Callable[..., Any]


def _globals_of_caller() -> dict[str, Any]:
    frame = user_frame()
    assert frame is not None
    return load_namespace(frame.f_globals)


def _refusing(
    name: str, fun: Call, what: str, cure: str, explicit_count: int | None = None
) -> Call:
    """Return a function that refuses to look at its caller.

    Args:
        name: the name of the builtin.
        fun: what to call where it does not look at its caller.
        what: what it would look at.
        cure: what to write instead.
        explicit_count: with how many arguments it does not look at its caller; None: it always
            does.
    """

    def run(*args: Any, **kwargs: Any) -> Any:
        if explicit_count is not None and len(args) >= explicit_count and args[-1] is not None:
            return fun(*args, **kwargs)
        text = f"{name}(){at(user_source())} looks at {what}."
        raise UnsupportedError(explain(text, cure=cure))

    return run


_VARIABLES = "the variables of its caller, which captured code keeps elsewhere"
_FRAMES = "the frames of the running code, which are not those of the captured function"
_NAME_THEM = "name the values that you need, for example in a dict: {'x': x}."
_PASS_THEM = "pass a dict of the names that the text uses: eval(text, {'x': x})."
_ASK_OUTSIDE = "ask outside of the function."


def _variables_of(*owner: Any) -> Any:
    """Return `vars(owner)`."""
    read_arguments(*owner)
    return variables_of(*owner)


def _names_of(owner: Any) -> list[str]:
    """Return `dir(owner)`."""
    if isinstance(owner, Staged):
        return dir(class_of(owner))
    read_arguments(owner, *type(owner).__mro__)
    return dir(owner)


# Functions and what captured code calls in their place
REPLACEMENTS: dict[Call, Call] = {
    builtins.globals: _globals_of_caller,
    builtins.locals: _refusing("locals", locals, _VARIABLES, _NAME_THEM),
    builtins.vars: _refusing("vars", _variables_of, _VARIABLES, _NAME_THEM, 1),
    builtins.dir: _refusing("dir", _names_of, _VARIABLES, _NAME_THEM, 1),
    builtins.eval: _refusing("eval", eval, _VARIABLES, _PASS_THEM, 2),
    builtins.exec: _refusing("exec", exec, _VARIABLES, _PASS_THEM, 2),
    sys._getframe: _refusing("sys._getframe", sys._getframe, _FRAMES, _ASK_OUTSIDE),
    inspect.currentframe: _refusing("currentframe", inspect.currentframe, _FRAMES, _ASK_OUTSIDE),
    inspect.stack: _refusing("inspect.stack", inspect.stack, _FRAMES, _ASK_OUTSIDE),
}
