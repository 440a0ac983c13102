"""Rows of `wend.ops.spilling`; tests/ops/test_spilling.py says what happens if a disk fails."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np

from tests.helpers.cases import Case, Given
from wend.ir.types import HOST, ListType, TensorType
from wend.runtime.sequence import Sequence
from wend.runtime.spool import SpoolSegment, current_spool

NUMBERS = ListType(TensorType(np.dtype(np.float64), ()))
X = np.array([[1.0, 2.0, 3.0]])


def segment() -> SpoolSegment:
    values = X, Sequence.of([*np.array([4.0, 5.0])])
    return current_spool(tempfile.gettempdir(), 1 << 20).put(values)


SEGMENT = Given(segment(), HOST)
LOOP = {"loop": " at a.py:1"}
SPILL: dict[str, Any] = {"limit": 1 << 20, "memory": "spill"}
ROWS: dict[str, Any] = {"index": 0, "is_stacked": True, "type": ListType(TensorType(X.dtype, (3,)))}

CASES = [
    Case(
        "spill",
        lambda *_, **__: ...,
        smooth=[(X,)],
        attrs={**SPILL, **LOOP},
    ),
    Case("unspill", lambda *_, **__: X, [(SEGMENT,)], attrs={**ROWS, **LOOP}),
    Case(
        "unspill",
        lambda *_, **__: [np.float64(4.0), np.float64(5.0)],
        [(SEGMENT,)],
        attrs={"index": 1, "is_stacked": False, "type": NUMBERS, **LOOP},
    ),
]
