"""The differences from NumPy that docs/from-numpy.md lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.numpy.oracle.comparing import Call


def is_listed(call: Call, result: Any, reference: Any) -> bool:
    """Whether the page lists the difference of the outcome of a call from NumPy's."""
    name = call.name.partition(".reduce")[0].partition(".accumulate")[0]
    return name in _LISTED and _LISTED[name](call, result, reference)


def _has_pairs(call: Call, result: Any, reference: Any) -> bool:
    """Vectors of two elements, which NumPy deprecates."""
    return any(x.shape[-1:] == (2,) for x in call.operands)


def _has_leading_zero(call: Call, result: Any, reference: Any) -> bool:
    return any(x.size and x[0] == 0 for x in call.operands)


def _has_integers(call: Call, result: Any, reference: Any) -> bool:
    """Differences of integers that wrap in SciPy."""
    return any(x.dtype.kind in "iu" for x in call.operands)


def _are_signs_of_infinity(call: Call, result: Any, reference: Any) -> bool:
    return all(np.array_equal(np.abs(x), np.abs(y)) for x, y in zip(result, reference, strict=True))


def _overflows(call: Call, result: Any, reference: Any) -> bool:
    """Whether the least common multiple of all elements is out of range of their dtype."""
    (x,) = call.operands
    return x.dtype.kind in "iu" and np.lcm.reduce(x.ravel().astype(object)) > np.iinfo(x.dtype).max


def _are_signs_of_zero(call: Call, result: Any, reference: Any) -> bool:
    """Results that are equal, but for the signs of zeros."""
    both = (result, reference)
    return all(isinstance(x, Sequence) for x in both) and all(
        np.array_equal(x, y, equal_nan=True) for x, y in zip(*both, strict=True)
    )


_LISTED: dict[str, Callable[[Call, Any, Any], bool]] = {
    "cross": _has_pairs,
    "polymul": _has_leading_zero,
    "special.softmax": _has_integers,
    "special.log_softmax": _has_integers,
    "special.beta": _are_signs_of_infinity,
    "lcm": _overflows,
    **dict.fromkeys("clip maximum minimum fmax fmin".split(), _are_signs_of_zero),
}
