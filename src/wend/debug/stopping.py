"""`breakpoint`: Python's debugger in compiled functions."""

from __future__ import annotations

from types import CodeType, FrameType
from typing import Any

from wend.base import trees
from wend.base.source import user_frame
from wend.capture.syntax.names import PREFIX
from wend.function.host.py_function import py_function
from wend.trace.control.tensor_list import is_list


def breakpoint() -> None:
    """Start the debugger here whenever the compiled function reaches this line.

    The debugger is Python's `sys.breakpointhook`, so `PYTHONBREAKPOINT` selects another one or
    none. It stands at the line of the call and sees the local variables with their current values:
    arrays instead of tracers. They are copies and may be changed. Lists that grow in a loop are
    left out. Under a derivative it stops in the forward run.

    Example:
        >>> import sys, wend
        >>> def show():  # in the place of a debugger
        ...     print(sys._getframe(1).f_locals["x"])
        >>> @wend.function
        ... def halved(x):
        ...     while x > 1.0:
        ...         x = x / 2.0
        ...         wend.debug.breakpoint()
        ...     return x
        >>> hook, sys.breakpointhook = sys.breakpointhook, show
        >>> halved(4.0)
        2.0
        1.0
        np.float64(1.0)
        >>> sys.breakpointhook = hook
    """
    frame = user_frame()
    assert frame is not None, "called by nobody"
    stop = _Stop(frame.f_code.co_filename, frame.f_lineno, frame.f_globals)
    py_function(stop, None, _locals(frame))


def _locals(frame: FrameType) -> dict[str, Any]:
    """Return the local variables of the user's function; loop bodies are nested functions in it."""
    variables, inner_code = dict(frame.f_locals), frame.f_code
    outer = frame.f_back
    while outer is not None:
        outer_code = outer.f_code
        if inner_code in outer_code.co_consts and inner_code.co_qualname == outer_code.co_qualname:
            variables, inner_code = outer.f_locals | variables, outer_code
        outer = outer.f_back
    return {
        name: x
        for name, x in variables.items()
        if name.isidentifier()
        and not name.startswith(PREFIX)
        and not any(map(is_list, trees.flatten(x)[0]))
    }


# Not `breakpoint()`, which may be wend's in the user's scope.
_TEXT = "__import__('sys').breakpointhook()"


class _Stop:
    """A callable that starts the debugger at a line of a file.

    It executes a line of its own there, in a frame with that file name and the values.
    """

    __name__ = "breakpoint"

    def __init__(self, file: str, line: int, scope: dict[str, Any]) -> None:
        self._code: CodeType = compile("\n" * (line - 1) + _TEXT, file, "exec")
        self._scope = scope

    def __call__(self, values: dict[str, Any]) -> None:
        exec(self._code, self._scope, values)
