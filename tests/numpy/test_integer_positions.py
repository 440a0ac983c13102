"""Whole numbers of all narrow dtypes, at their limits, wherever an array function takes one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from tests.helpers.arrays import flat, quiet
from tests.numpy.integer_positions import ANY, LARGEST, SIZES
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


def check(call: Callable[..., Any], largest: float, backend: str) -> None:
    with wend.config(backend=backend):
        compiled = wend.function(call)
        for k in (k for dtype in DTYPES for k in numbers(dtype, largest)):
            result, expected = outcome(compiled, X, M, k), outcome(call, X, M, k)
            if isinstance(result, Exception):
                if is_refusal(result) or (isinstance(result, OverflowError) and k >= 2**63):
                    continue
                assert isinstance(expected, Exception), f"{k!r}: {result!r}, not {expected}"
                kind = next(c for c in type(expected).__mro__ if c.__module__ == "builtins")
                assert isinstance(result, kind), f"{k!r}: {result!r}, not {expected!r}"
                continue
            assert not isinstance(expected, Exception), f"{k!r}: {result}, not {expected!r}"
            for x, y in zip(result, expected, strict=True):
                assert (x.dtype, x.shape) == (y.dtype, y.shape), f"{k!r}: {x!r}, not {y!r}"
                np.testing.assert_allclose(x, y, rtol=1e-12, err_msg=repr(k))


BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.slow)]


@pytest.mark.sampled
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("call", ANY.values(), ids=ANY)
def test_any_number(call: Callable[..., Any], backend: str) -> None:
    check(call, np.inf, backend)


@pytest.mark.sampled
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("call", SIZES.values(), ids=SIZES)
def test_sizes(call: Callable[..., Any], backend: str) -> None:
    check(call, LARGEST, backend)
