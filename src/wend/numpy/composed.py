"""Public functions of ufuncs that are composed of other functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wend.numpy.operands import staged
from wend.numpy.ufuncs import make_ufunc


def composed(original: np.ufunc, compute: Callable[..., Any], note: str = "") -> Callable[..., Any]:
    """Make the public function of a ufunc; `compute` gets every operand as a graph value.

    Thus `compute` may use an operand several times, while an array that the user may mutate is read
    only once, at run time.
    """
    return make_ufunc(original, compute, note, prepare=staged)
