"""Floating-point errors that code asks NumPy to raise; a run gives inf or nan for them (D45)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from wend.base.errors import StagedRaiseError, explain
from wend.base.source import at, user_source
from wend.ir.dtypes import INEXACT
from wend.ir.types import TensorType
from wend.trace.recording.recording import current

# What else NumPy may do with a floating-point error than warn
_LOUD_MODES = frozenset(["raise", "call", "print", "log"])


@contextmanager
def error_state(manager: np.errstate) -> Iterator[Any]:
    """Enter `np.errstate`, and refuse what is recorded inside if its errors raise."""
    with manager as entered:
        modes = sorted(_LOUD_MODES & {*np.geterr().values()})
        if not modes:
            yield entered
            return
        with refuse_float_operations(f"np.errstate({modes[0]!r})"):
            yield entered


@contextmanager
def refuse_float_operations(what: str) -> Iterator[None]:
    """Refuse operations on floats that are recorded inside: a run gives inf and nan for errors."""
    recording = current()
    start = 0 if recording is None else len(recording.b.nodes)
    yield
    if recording is None or recording.runs_now():
        return
    for node in recording.b.nodes[start:]:
        if any(isinstance(r.type, TensorType) and r.type.dtype in INEXACT for r in node.results):
            raise StagedRaiseError(
                explain(
                    f"`{what}` asks for the floating-point errors of `{node.op.name}`"
                    f"{at(node.source)}, which is recorded: a run gives inf or nan for them.",
                    cure="test the result: np.isfinite(y).all(); or use wend.config(nans=True), "
                    "which raises where a result is not finite.",
                )
            )


def check_seterr(**modes: str | None) -> Any:
    """Call `np.seterr`; refuse modes that a run does not follow."""
    if current() is None or not _LOUD_MODES & {*modes.values()}:
        return np.seterr(**modes)  # type: ignore[arg-type]
    raise StagedRaiseError(
        explain(
            f"np.seterr{at(user_source())} asks for floating-point errors, but a run gives inf or "
            "nan for them.",
            cure="use wend.config(nans=True), which raises where a result is not finite.",
        )
    )
