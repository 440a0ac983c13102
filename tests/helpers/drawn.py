"""Arrays that Hypothesis draws, and NumPy's results beside wend's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import wend
import wend.numpy as wnp
from tests.helpers.arrays import assert_same, flat, quiet
from tests.helpers.shares import sized

REAL = ["f4", "f8", "i1", "i4", "i8", "u1", "?"]
FLOATS = ["f4", "f8"]
INEXACT = ["f4", "f8", "c8", "c16"]
ALL = [*REAL, "c8", "c16"]
_BUILT_IN = (IndexError, OverflowError, NotImplementedError, ValueError, TypeError)

few = settings(max_examples=sized(6, 12), deadline=None, derandomize=True)


def numbers(dtype: np.dtype, *, odd: bool = False) -> Any:
    """Small numbers; `odd`: NaN and infinities as well."""
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind in "iu":
        return st.integers(0 if dtype.kind == "u" else -9, 9)
    if dtype.kind == "c":
        part = numbers(np.dtype("f4"), odd=odd)
        return st.builds(complex, part, part)
    some = st.sampled_from([0.0, 1.0, -1.0, 0.5, -2.0, 3.0]) | st.floats(-4, 4, width=16)
    return some | st.sampled_from([np.nan, np.inf, -np.inf]) if odd else some


@st.composite
def drawn(
    draw: st.DrawFn,
    dtypes: list[str] = REAL,
    shape: Any = None,
    *,
    dims: tuple[int, int] = (0, 3),
    least: int = 0,
    odd: bool = False,
) -> np.ndarray:
    """An array, perhaps not contiguous."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    if shape is None:
        shape = hnp.array_shapes(min_dims=dims[0], max_dims=dims[1], min_side=least, max_side=3)
    size = draw(shape) if isinstance(shape, st.SearchStrategy) else shape
    array = draw(hnp.arrays(dtype, size, elements=numbers(dtype, odd=odd)))
    return np.asfortranarray(array) if draw(st.booleans()) else array


@st.composite
def spread(draw: st.DrawFn, count: int, dtypes: list[str] = REAL, odd: bool = False) -> Any:
    """Arrays of shapes that broadcast."""
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=count, max_dims=2, max_side=3))
    return tuple(draw(drawn(dtypes, shape, odd=odd)) for shape in shapes.input_shapes)


axes = st.none() | st.integers(-3, 2)


def outcome(run: Callable[[], Any]) -> Any:
    """What a call gives, as a flat list, or the error it raises."""
    try:
        return flat(quiet(run))
    except Exception as error:
        return error


def alike(found: Any, expected: Any, ulps: float, role: str) -> None:
    """Equal results, or errors of one class."""
    if isinstance(expected, Exception):
        kind = next(kind for kind in _BUILT_IN if isinstance(expected, kind))
        assert isinstance(found, (kind, NotImplementedError)), f"{role}: {found!r}, {expected!r}"
        return
    if isinstance(found, NotImplementedError):
        return  # refused by name
    if isinstance(found, Exception):
        raise AssertionError(f"{role}: raises, NumPy gives {expected!r}") from found
    assert_same(found, expected, ulps, role)


def check(
    call: Callable[..., Any], *args: Any, ulps: float = 64, module: Any = np, through: bool = True
) -> None:
    """`call(module, *args)` is the same for NumPy and for wend, at once and recorded."""
    own = wnp if module is np else wnp.special
    expected = outcome(lambda: call(module, *args))
    alike(outcome(lambda: call(own, *args)), expected, 0, "at once")
    recorded = outcome(lambda: wend.function(lambda *xs: call(own, *xs))(*args))
    alike(recorded, expected, ulps, "recorded")
    if through and module is np:
        recorded = outcome(lambda: wend.function(lambda *xs: call(np, *xs))(*args))
        alike(recorded, expected, ulps, "recorded through numpy")
