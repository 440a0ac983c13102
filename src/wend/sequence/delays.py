"""Delays of sequences: the values of earlier or later steps."""

from __future__ import annotations

from typing import Any

import wend.numpy as wnp
from wend.base.errors import ShapeError


def past_value(x: Any, initial: Any = 0.1, steps: int = 1) -> Any:
    """Return a sequence whose rows are those of `x` some steps before.

    Args:
        x: an array with a row for each step.
        initial: what comes before the first row: a number, or an array of the shape of a row.
        steps: how many steps before; positive.

    Raises:
        ShapeError: `x` is a scalar.
        ValueError: `steps` is not positive.

    Example:
        >>> import numpy as np, wend.sequence
        >>> wend.sequence.past_value(np.arange(1.0, 5.0), 0.1)
        array([0.1, 1. , 2. , 3. ])
    """
    x, pad = _padded(x, initial, steps, "past_value")
    return wnp.concatenate([pad, x])[: x.shape[0]]


def future_value(x: Any, initial: Any = 0.1, steps: int = 1) -> Any:
    """Return a sequence whose rows are those of `x` some steps later.

    Args:
        x: an array with a row for each step.
        initial: what comes after the last row: a number, or an array of the shape of a row.
        steps: how many steps later; positive.

    Raises:
        ShapeError: `x` is a scalar.
        ValueError: `steps` is not positive.

    Example:
        >>> import numpy as np, wend.sequence
        >>> wend.sequence.future_value(np.arange(1.0, 5.0), 0.1)
        array([2. , 3. , 4. , 0.1])
    """
    x, pad = _padded(x, initial, steps, "future_value")
    return wnp.concatenate([x, pad])[steps:]


def _padded(x: Any, initial: Any, steps: int, name: str) -> tuple[Any, Any]:
    """Return the sequence, and the rows that are put before or after it, of its dtype."""
    if not isinstance(steps, int) or steps < 1:
        raise ValueError(f"{name}: steps must be a positive int, not {steps!r}")
    x = wnp.asarray(x)
    if not x.ndim:
        raise ShapeError(f"{name}: a scalar is no sequence, it has no rows")
    pad = wnp.broadcast_to(wnp.asarray(initial), (steps, *x.shape[1:]))
    return x, wnp.astype(pad, x.dtype) if x.dtype.kind in "fc" else pad
