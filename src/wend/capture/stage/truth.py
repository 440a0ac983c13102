"""The truth value of operands that may be traced."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from wend.base import refusals
from wend.base.errors import ConcreteValueError, ShapeError, explain
from wend.base.refusals import refusal
from wend.base.source import at, user_source
from wend.capture.libraries import is_library
from wend.capture.state import operands
from wend.capture.state.optional_value import OptionalValue
from wend.eager.dispatch import Staged
from wend.ir.dtypes import BOOL
from wend.numpy import elementwise as ew
from wend.numpy import shaping
from wend.trace.arrays.attributes import class_of
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.tensor_list import TensorList
from wend.trace.recording.recording import current
from wend.trace.state.text_choice import TextChoice


def as_test(x: Any) -> Any:
    """Return what decides as a value does: whether a list has items, what `__bool__` returns."""
    kind = type(x)
    if isinstance(x, OptionalValue):
        return x.truth(truth)
    if isinstance(x, TextChoice):
        return x.mapped(bool)
    if kind is bool or isinstance(x, Staged):
        return x
    if isinstance(x, TensorList):
        return x.length() > 0
    method = getattr(kind, "__bool__", None)
    if method is None and operands.defines(x, "__len__"):
        return operands.call(len)(x) != 0
    if not isinstance(method, types.FunctionType) or is_library(method.__code__.co_filename):
        return x
    test = operands.call_method(x, "__bool__")
    if isinstance(test, bool) or _is_bool(test):
        return test
    kind_of_test = class_of(test) if isinstance(test, Tracer) else type(test)
    raise TypeError(f"__bool__ should return bool, returned {kind_of_test.__name__}")


def _is_bool(x: Any) -> bool:
    """Return whether a value is a traced Python bool."""
    return isinstance(x, Tracer) and class_of(x) is bool


def is_traced(x: Any) -> bool:
    """Return whether the truth of a value is unknown now; a tape knows it as it runs eagerly.

    What depends on arrays of outside alone is known, under a guard.
    """
    if not isinstance(x, Staged):
        return False
    recording = current()
    if recording is None:
        return True
    return not recording.runs_now() and recording.known_elements(x, of_outside=True) is None


def truth_of(x: Any) -> Any:
    """Return the truth of a value of which nothing else is asked, traced or not."""
    test = as_test(x)
    return truth(test) if is_traced(test) else bool(test)


def truth(x: Any) -> Any:
    """Return the truth of a traced scalar, as Python defines it, as a traced bool."""
    dims = x.type.shape
    if dims is None or any(dim != 1 for dim in dims):
        raise _ambiguous(x)
    number = shaping.reshape(x, ()) if dims else x
    return number if x.type.dtype == BOOL else ew.not_equal(number, 0)


def _ambiguous(x: Any) -> Exception:
    """Return NumPy's error for the truth of an array, or a refusal if only some runs raise it."""
    cure = "use .any() or .all(); or choose element by element with np.where."
    dims = x.type.shape
    is_known = dims is not None and all(isinstance(dim, int) for dim in dims)
    needed = f"the truth value of {x!r} is needed{at(user_source())}"
    if not is_known:
        text = f"{needed}, but it may have more than one element, or none."
        return refusal(ShapeError(explain(text, cure=cure)))
    try:
        bool(np.empty(dims))
    except ValueError as error:  # the text is NumPy's: a handler may print it
        error.add_note(explain(f"{needed}.", cure=cure))
        return error
    raise AssertionError("NumPy has taken an array for a truth value")


def truth_error(predicate: Any) -> Exception:
    """Return the error for the traced test of a loop that could not be staged."""
    try:
        with refusals.tentative():
            bool(predicate)
    except ConcreteValueError as error:
        return error
    raise AssertionError
