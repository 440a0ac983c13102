"""Whole numbers of all narrow dtypes, at their limits, wherever an array function takes one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from tests.helpers.arrays import flat, quiet
from tests.numpy.integer_positions import ANY, EXACT, LARGEST, PERIODS, SIZES
from wend.base.refusals import is_refusal

DTYPES = "i1 u1 i2 u2 i4 u4 i8 u8".split()
X, M = np.arange(6.0), np.arange(12.0).reshape(3, 4)


def numbers(dtype: str, largest: float) -> list[Any]:
    limits = np.iinfo(dtype)
    values = {limits.min, limits.max, limits.max - 1, 0, 1, 2, 5, max(limits.min, -1)}
    return [np.dtype(dtype).type(v) for v in sorted(values) if abs(v) <= largest]


def outcome(run: Callable[..., Any], *args: Any) -> Any:
    try:
        return [np.asarray(x) for x in flat(quiet(lambda: run(*copy.deepcopy(args))))]
    except Exception as error:
        return error


def equal_number(name: str, k: Any) -> Any:
    """Return the number that NumPy is asked with: equal, or the same position."""
    if name in PERIODS and abs(int(k)) >= 2**31:
        signed = int(k) - (2**64 if k >= 2**63 else 0)  # NumPy reads it as an int64
        return k.dtype.type(signed % PERIODS[name])
    if name in EXACT and (k.dtype.itemsize < 8 or name != "arange(k, 130)"):
        return max(min(int(k), LARGEST), -LARGEST)
    return k


def check(name: str, call: Callable[..., Any], largest: float, backend: str) -> None:
    with wend.config(backend=backend):
        compiled = wend.function(call)
        for k in (k for dtype in DTYPES for k in numbers(dtype, largest)):
            result, expected = (
                outcome(compiled, X, M, k),
                outcome(call, X, M, equal_number(name, k)),
            )
            if isinstance(result, Exception):
                if is_refusal(result) or (isinstance(result, OverflowError) and k >= 2**63):
                    continue
                assert isinstance(expected, Exception), f"{k!r}: {result!r}, not {expected}"
                kind = next(c for c in type(expected).__mro__ if c.__module__ == "builtins")
                assert isinstance(result, kind), f"{k!r}: {result!r}, not {expected!r}"
                continue
            assert not isinstance(expected, Exception), f"{k!r}: {result}, not {expected!r}"
            for x, y in zip(result, expected, strict=True):
                if name == "int(k) * 2" and y.dtype != np.int64:
                    continue  # beyond 64 bits
                assert (x.dtype, x.shape) == (y.dtype, y.shape), f"{k!r}: {x!r}, not {y!r}"
                np.testing.assert_allclose(x, y, rtol=1e-12, err_msg=repr(k))


BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.slow)]


@pytest.mark.sampled(30)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ANY)
def test_any_number(name: str, backend: str) -> None:
    check(name, ANY[name], np.inf, backend)


@pytest.mark.sampled
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", SIZES)
def test_sizes(name: str, backend: str) -> None:
    check(name, SIZES[name], LARGEST, backend)
