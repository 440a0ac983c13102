"""The reasons why some code runs as plain Python, which cannot branch on traced values."""

from __future__ import annotations

import inspect
import linecache
import os
import weakref
from types import CodeType

from wend.base.errors import ConcreteValueError, explain
from wend.capture.libraries import is_library

# The last constant of captured code marks it, so that no registry is needed: one marker for whole
# functions, one for outlined bodies, branches and operands, one for generators, whose statements
# run as plain Python; before that one is the code as the user wrote it, or None.
WHOLE_FUNCTION, OUTLINED_PART, PLAIN_PART = object(), object(), object()
# Code that is not captured -> the reason
NOT_CAPTURED: weakref.WeakKeyDictionary[CodeType, str] = weakref.WeakKeyDictionary()

MARKED = "is marked with @wend.do_not_capture"
IN_LIBRARY = "is library code"
WITHOUT_SOURCE = "has no source text"

_CURES = {
    MARKED: "remove the decorator, or use wend.cond, wend.while_loop or wnp.where in it.",
    IN_LIBRARY: "use functions of wend.numpy in its place, or write it out in your own code.",
    WITHOUT_SOURCE: "put the function in a file, or define it in IPython, Jupyter or the prompt of "
    "Python 3.13; or use wend.cond, wend.while_loop or wnp.where in it.",
}


_COMPARED_IN_C = (
    "Python compares the items in code of its own: `==` of lists, tuples or dicts, list.index, "
    "list.remove, list.count, bisect, heapq, itertools.groupby, functools.cmp_to_key."
)
_CURE_OF_COMPARED = (
    "compare the numbers themselves (a[0] == b[0] and a[1] == b[1]); or keep them in an array: "
    "np.argmax(items == x) for index, np.searchsorted for bisect, np.sort or np.argmin for heapq; "
    "write a loop for groupby, and a key that is a number for cmp_to_key; "
    "or use wend.cond, wend.while_loop, wnp.where."
)


def is_captured(code: CodeType) -> bool:
    """Return whether code is the captured form of a user's function."""
    marker = code.co_consts[-1] if code.co_consts else None
    return marker is WHOLE_FUNCTION or marker is OUTLINED_PART


def is_part_of_captured(code: CodeType) -> bool:
    """Return whether code is captured, or made by captured code."""
    return is_captured(code) or (bool(code.co_consts) and code.co_consts[-1] is PLAIN_PART)


def as_written(code: CodeType) -> CodeType:
    """Return code as the user wrote it, if it is of a generator with captured expressions."""
    is_captured_generator = is_part_of_captured(code) and not is_captured(code)
    return (is_captured_generator and code.co_consts[-2]) or code


def is_outlined(code: CodeType | None) -> bool:
    """Return whether code is an outlined body, branch or operand of captured code."""
    return code is not None and bool(code.co_consts) and code.co_consts[-1] is OUTLINED_PART


def explain_error(error: ConcreteValueError) -> ConcreteValueError | None:
    """Return the error with the reason why its code is not captured; None if it is."""
    code = error.code
    if code is None:
        return None
    if is_captured(code):
        is_truth = error.summary.startswith("the truth value")
        text = explain(error.summary, _COMPARED_IN_C, cure=_CURE_OF_COMPARED)
        return ConcreteValueError(text) if is_truth else None
    where = f"`{code.co_qualname}` at {os.path.basename(code.co_filename)}:{code.co_firstlineno}"
    reason, cure = _reason(code)
    return ConcreteValueError(
        explain(error.summary, f"{where} runs as plain Python: it {reason}.", cure=cure)
    )


def _reason(code: CodeType) -> tuple[str, str]:
    if code.co_flags & inspect.CO_GENERATOR:
        return (
            "is a generator, which is run piece by piece",
            "collect the values in a list (out.append(x)) and return them.",
        )
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return "is async", "write it as a plain function."
    reason = IN_LIBRARY if is_library(code.co_filename) else NOT_CAPTURED.get(code)
    if reason is WITHOUT_SOURCE:
        return f"{reason}: it comes from {code.co_filename}, not from a file", _CURES[reason]
    if reason is not None:
        return reason, _CURES[reason]
    if not linecache.getlines(code.co_filename) and code.co_name.startswith("__"):
        return (
            "is generated code, as of a dataclass",
            "compare the fields themselves: a.x == b.x and a.y == b.y.",
        )
    return (
        "is called by an operator or by library code, not by a call in captured code",
        "call it there by name, as a function or method.",
    )
