"""NumPy's result beside wend's: at once, recorded, and recorded through NumPy's own functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import wend
import wend.numpy as wnp

DTYPES = [np.dtype(name) for name in ("f4", "f8", "i1", "i4", "i8", "u1", "?", "c8", "c16")]
REAL_DTYPES = [dtype for dtype in DTYPES if dtype.kind != "c"]
_BUILT_IN = (
    IndexError,
    OverflowError,
    ZeroDivisionError,
    NotImplementedError,
    ValueError,
    TypeError,
)
_ULPS = 8


# Strategies
any_dtype = st.sampled_from(DTYPES)
any_shape = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)


@st.composite
def laid_out(draw: st.DrawFn, array: np.ndarray) -> np.ndarray:
    """The same numbers, perhaps not contiguous."""
    layout = draw(st.sampled_from(["as it is", "columns first", "every other", "backwards"]))
    if array.ndim and layout == "columns first":
        return np.asfortranarray(array)
    if array.ndim and layout == "every other":
        return np.repeat(array, 2, axis=-1)[..., ::2]
    if array.ndim and layout == "backwards":
        return np.ascontiguousarray(array[::-1])[::-1]
    return array


@st.composite
def arrays(
    draw: st.DrawFn,
    dtypes: Any = any_dtype,
    shapes: Any = any_shape,
    *,
    whole: bool = False,
) -> np.ndarray:
    """Arrays of every dtype and layout; `whole`: no NaN, no infinities, small numbers."""
    dtype = np.dtype(draw(dtypes) if isinstance(dtypes, st.SearchStrategy) else dtypes)
    shape = draw(shapes) if isinstance(shapes, st.SearchStrategy) else shapes
    array = draw(hnp.arrays(dtype, shape, elements=numbers(dtype, whole=whole)))
    return draw(laid_out(array))


def numbers(dtype: np.dtype, *, whole: bool = False) -> Any:
    """Numbers of a dtype: often the odd ones."""
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind == "c":
        part = numbers(np.dtype("f4"), whole=whole)
        return st.builds(complex, part, part)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        some = st.integers(max(-9, int(limits.min)), 9)
        return some if whole else some | st.sampled_from([int(limits.min), int(limits.max)])
    some = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 0.1]) | st.floats(-4, 4, width=16)
    return some if whole else some | st.sampled_from([np.nan, np.inf, -np.inf])


@st.composite
def broadcastable(
    draw: st.DrawFn, count: int, dtypes: Any = any_dtype, *, whole: bool = False
) -> tuple[np.ndarray, ...]:
    """Arrays of shapes that broadcast."""
    found = draw(hnp.mutually_broadcastable_shapes(num_shapes=count, max_dims=3, max_side=3))
    return tuple(draw(arrays(dtypes, shape, whole=whole)) for shape in found.input_shapes)


scalars = st.sampled_from([True, False, 0, 1, 2, -3, 0.5, -0.0, 2.0, 1j, 2 - 1j])
"""Python's own numbers: weak."""


# Comparison
def outcome(run: Callable[[], Any]) -> Any:
    """What a call gives, or the error it raises."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return run()
    except Exception as error:
        return error


def assert_alike(
    found: Any, expected: Any, *, ulps: float = _ULPS, signs: bool = True, role: str = ""
) -> None:
    """Equal in dtype, shape and value up to rounding, or errors of one class.

    `signs`: of zeros as well.
    """
    if isinstance(expected, Exception):
        kind = next(kind for kind in _BUILT_IN if isinstance(expected, kind))
        assert isinstance(found, kind), f"{role}: {found!r}, not {expected!r}"
        return
    if isinstance(found, Exception):
        raise AssertionError(f"{role}: raises, NumPy gives {expected!r}") from found
    if isinstance(expected, (list, tuple)):
        assert isinstance(found, (list, tuple)), role
        assert len(found) == len(expected), role
        for a, b in zip(found, expected, strict=True):
            assert_alike(a, b, ulps=ulps, signs=signs, role=role)
        return
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype, f"{role}: {found.dtype}, not {expected.dtype}"
    assert found.shape == expected.shape, f"{role}: {found.shape}, not {expected.shape}"
    if found.dtype.kind not in "fc":
        np.testing.assert_array_equal(found, expected, err_msg=role)
        return
    eps = ulps * float(np.finfo(found.dtype).eps)
    np.testing.assert_allclose(found, expected, rtol=eps, atol=eps * 1e-3, err_msg=role)
    if signs and found.dtype.kind == "f":
        zero = (found == 0) & (expected == 0)
        wrong = zero & (np.signbit(found) != np.signbit(expected))
        assert not wrong.any(), f"{role}: the sign of a zero differs: {found!r}, {expected!r}"


def check(
    call: Callable[..., Any],
    *args: Any,
    ulps: float = _ULPS,
    signs: bool = True,
    through: bool = True,
) -> None:
    """`call(module, *args)` is the same for NumPy and for `wend.numpy`, at once and recorded.

    `through`: recorded with `module` NumPy itself as well.
    """
    expected = outcome(lambda: call(np, *args))
    assert_alike(outcome(lambda: call(wnp, *args)), expected, ulps=0, role="at once")
    traced = outcome(lambda: wend.function(lambda *xs: call(wnp, *xs))(*args))
    assert_alike(traced, expected, ulps=ulps, signs=signs, role="recorded")
    if through:
        traced = outcome(lambda: wend.function(lambda *xs: call(np, *xs))(*args))
        assert_alike(traced, expected, ulps=ulps, signs=signs, role="recorded through numpy")


def slope(function: Callable[..., Any], *args: np.ndarray, step: float = 1e-6) -> None:
    """The gradient of the sum of `function`, against central differences along two directions."""
    rng = np.random.default_rng(len(args))
    weights = rng.standard_normal(np.shape(function(*args)))

    def scalar(*xs: Any) -> Any:
        return wnp.sum(function(*xs) * weights)

    grads = wend.grad(scalar, argnums=tuple(range(len(args))))(*args)
    for _ in range(2):
        along = [rng.standard_normal(np.shape(x)) for x in args]
        ahead, behind = (
            scalar(*(x + sign * step * t for x, t in zip(args, along, strict=True)))
            for sign in (1, -1)
        )
        found = sum(np.sum(g * t) for g, t in zip(grads, along, strict=True))
        np.testing.assert_allclose(found, (ahead - behind) / (2 * step), rtol=2e-6, atol=2e-6)
