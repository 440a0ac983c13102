"""Parameters of draws: numbers that are known, or traced."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from wend.eager.dispatch import Staged
from wend.eager.promotion import cast, tensor_type
from wend.ir.dtypes import FLOAT64, INT64
from wend.numpy.operands import staged


def is_real(x: Any) -> bool:
    """Return whether a parameter is one real number."""
    if not isinstance(x, (bool, int, float, np.generic, Staged)):
        return False
    type = tensor_type(x)
    return type.shape == () and type.dtype.kind in "biuf"


def is_integer(x: Any) -> bool:
    """Return whether a parameter is one integer that 64 bits hold, also where bounds are added."""
    if not is_real(x) or tensor_type(x).dtype.kind not in "bi":
        return False
    return isinstance(x, Staged) or abs(operator.index(x)) < 2**62


def as_double(x: Any) -> Any:
    """Return a parameter as a value of the graph, a double."""
    return cast(staged(x if isinstance(x, Staged) else FLOAT64.type(x)), FLOAT64)


def as_int64(x: Any) -> Any:
    """Return a parameter as a value of the graph, an integer of 64 bits."""
    return cast(staged(x if isinstance(x, Staged) else INT64.type(x)), INT64)
