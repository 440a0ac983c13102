"""Gradients of plain functions by differences."""

from __future__ import annotations

from typing import Any

import numpy as np


def central_differences(fun: Any, k: int, *args: Any, step: float) -> np.ndarray:
    """Return the gradient of a number with respect to the elements of one argument."""
    result = np.zeros_like(args[k])
    for place in np.ndindex(result.shape):
        ends = []
        for change in (step, -step):
            moved = [x.copy() for x in args]
            moved[k][place] += change
            ends.append(fun(*moved))
        result[place] = (ends[0] - ends[1]) / (2 * step)
    return result
