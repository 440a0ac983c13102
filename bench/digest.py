"""Numbers that stand for a result: all of them, or of a large array its sum by fixed weights."""

from __future__ import annotations

from typing import Any

MOST = 100


def numbers(result: Any) -> list[float]:
    """Return the numbers of a result in order, one for each array of more than `MOST`."""
    import numpy as np  # which is a part of what most peers import

    if isinstance(result, (tuple, list)):
        return [number for part in result for number in numbers(part)]
    array = np.asarray(result)
    flat = array.ravel().astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    if flat.size > MOST:
        return [float(np.real(flat @ weights(flat.size)))]
    return [float(number) for number in np.real(flat)]


def weights(size: int) -> Any:
    """Return as many numbers, always the same: of a direction whose length is 1."""
    import numpy as np

    found = np.random.default_rng(size).standard_normal(size)
    return found / np.linalg.norm(found)
