"""Promotion and broadcasting, made explicit in the graph as NumPy makes them while it runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import wend
import wend.numpy as wnp
from tests.helpers.traced import assert_alike, outcome, scalars
from wend.eager.promotion import broadcast, cast, common_shape, result_dtype, tensor_type
from wend.ir.types import Symbol

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
N, M = Symbol("n"), Symbol("m")


@given(
    dtypes=st.lists(st.sampled_from(DTYPES), min_size=1, max_size=3),
    numbers=st.lists(scalars, max_size=2),
)
def test_result_dtype_is_numpys(dtypes: list[str], numbers: list[Any]) -> None:
    xs = [*(np.ones(1, dtype) for dtype in dtypes), *numbers]
    assert result_dtype(*xs) == np.result_type(*xs)


@pytest.mark.sampled(30)
@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.parametrize("right", [*DTYPES, True, 2, 0.5, 1j])
def test_every_pair_of_dtypes(left: str, right: Any) -> None:
    """A plain array, an array that is traced and a Python number, weak in either form."""
    x = np.ones(2, left)
    y = np.ones(2, right) if isinstance(right, str) else right
    for function in (np.add, np.true_divide, np.power, np.less, np.maximum, np.arctan2):
        expected = outcome(partial(function, x, y))
        for call in (function, getattr(wnp, function.__name__)):
            assert_alike(outcome(partial(of_one(call, y), x)), expected)
        assert_alike(outcome(partial(of_two(function), x, y)), expected)


def of_one(call: Callable[..., Any], y: Any, *, swap: bool = False) -> Any:
    """Recorded, with `y` known."""
    return wend.function(lambda x: call(y, x) if swap else call(x, y))


def of_two(call: Callable[..., Any]) -> Any:
    return wend.function(lambda x, y: call(x, y))


def test_python_numbers_alone_have_their_own_dtypes() -> None:
    add = wend.function(lambda x, y: x + y)
    for x, y in [(1, 2), (True, 2), (1, 0.5), (1.0, 1j)]:
        assert_alike(add(x, y), np.asarray(x) + np.asarray(y))
    # Still weak, so what they meet decides.
    assert wend.function(lambda x, a: (x + 1) * a)(2, np.float32(3)).dtype == np.float32
    assert wend.function(lambda x, a: -abs(x) * a)(2, np.int8(3)).dtype == np.int8


def test_a_python_number_that_does_not_fit() -> None:
    for x, y in [(np.int8(1), 200), (np.uint8(1), -1), (np.int64(1), 10**30)]:
        with pytest.raises(OverflowError):
            of_one(np.add, y)(x)
    assert wend.function(lambda x: x * 10**30)(np.float64(2)) == 2e30
    for y in (-1, 300, 10**30, -(10**30)):
        for function in (np.less, np.greater_equal, np.equal, np.not_equal):
            x = np.array([0, 255], np.uint8)
            assert_alike(of_one(function, y)(x), function(x, y))
            assert_alike(of_one(function, y, swap=True)(x), function(y, x))


def test_comparison_of_integers_of_both_kinds_is_by_value() -> None:
    signed = np.array([-1, 0, 2**62, np.iinfo(np.int64).min])
    unsigned = np.array([0, 2**64 - 1, 2**62, 2**63], np.uint64)
    for function in (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal):
        assert_alike(of_two(function)(signed, unsigned), function(signed, unsigned))
        assert_alike(of_two(function)(unsigned, signed), function(unsigned, signed))


@given(found=hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=3))
def test_common_shape_and_broadcasting(found: Any) -> None:
    assert common_shape(found.input_shapes) == found.result_shape
    xs = broadcast(*(np.ones(shape) for shape in found.input_shapes))
    assert {np.shape(x) for x in xs} == {found.result_shape}


def test_common_shape_of_unknown_sizes() -> None:
    assert common_shape([(N, 1), (N, 3)]) == (N, 3)
    assert common_shape([(1,), (N,)]) == (N,)
    assert common_shape([(N,), (4,)]) == (4,)
    assert common_shape([None, (4,)]) is None
    (size,) = common_shape([(N,), (M,)]) or ()
    assert isinstance(size, Symbol)
    assert size not in (N, M)
    with pytest.raises(ValueError, match=r"\(2,\) \(3,\)"):
        common_shape([(2,), (3,)])


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (1, 3), (3, 1), (0, 1), (2, 3)])
def test_sizes_that_meet_when_it_runs(rows: int, columns: int) -> None:
    specs = [wend.TensorSpec([None], "float64"), wend.TensorSpec([None], "float64")]
    add = wend.function(lambda x, y: x + 2 * y, input_signature=specs)
    x, y = np.arange(rows) + 0.5, np.arange(columns) + 1.0
    assert_alike(outcome(lambda: add(x, y)), outcome(lambda: x + 2 * y))
    if 1 in (rows, columns) or rows == columns:
        total = wend.grad(lambda x, y: wnp.sum(add(x, y) ** 2), argnums=(0, 1))
        wide = 2 * (x + 2 * y)
        spread = wide if rows == wide.size else wide.sum(keepdims=True)
        np.testing.assert_allclose(total(x, y)[0], spread)


def test_what_is_no_array_of_numbers() -> None:
    for x in ("text", object(), [None], np.array(["a"])):
        with pytest.raises(TypeError, match="array of numbers"):
            tensor_type(x)
        with pytest.raises(TypeError):
            of_one(np.add, x)(np.ones(2))
    assert cast(2, np.dtype("f4")).dtype == np.float32
