"""Makes the public function of a ufunc that is composed of other functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wend.numpy.operands import staged
from wend.numpy.ufuncs import made_of


def composed(original: np.ufunc, compute: Callable[..., Any], note: str = "") -> Callable[..., Any]:
    """Make the public function of a ufunc; `compute` gets every operand as a value of the graph.

    So it may use it often, and an array that the user may change is read once, at the run.
    """
    return made_of(original, compute, note, prepare=staged)
