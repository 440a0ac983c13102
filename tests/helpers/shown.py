"""Programs compared with Python by what they show: results, prints, streams, warnings, logs."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from wend.base.errors import WendError

STREAM = io.StringIO()  # of outside, for programs that write
LOGGER = logging.getLogger("wend.tests.shown")


class _Lines(logging.Handler):
    """Prints what is logged, and from where."""

    def emit(self, record: logging.LogRecord) -> None:
        print(record.levelname, record.getMessage(), record.funcName, record.lineno)


LOGGER.addHandler(_Lines())
LOGGER.setLevel(logging.INFO)
LOGGER.propagate = False

Outcome = tuple[str, str, str, list[Any]]


def outcome(fun: Callable[..., Any], *args: Any) -> Outcome:
    """Return what a call returns or raises, prints, writes to the stream, and warns of."""
    STREAM.seek(0)
    STREAM.truncate()
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = repr(np.asarray(fun(*args)).tolist())
        except AssertionError as error:
            result = f"AssertionError: {error}"
    shown = [(str(w.message), w.category, w.filename, w.lineno) for w in caught]
    return result, out.getvalue(), STREAM.getvalue(), shown


def check_same(program: Callable[..., Any], numbers: tuple[float, ...] = (1.0, 1.0, 2.5)) -> None:
    """Check that every call shows what Python shows, on both backends."""
    for backend in ("native", "numpy"):
        fun = wend.function(program, backend=backend)
        for x in numbers:
            assert outcome(fun, x) == outcome(program, x)


def check_refused(program: Callable[..., Any], message: str) -> None:
    """Check that a program is refused with this message and a cure, and shows nothing."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(WendError, match=message) as caught:
        wend.function(program)(1.0)
    assert "To fix it: " in str(caught.value)
    assert out.getvalue() == ""
