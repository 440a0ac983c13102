"""Random calls of every function against NumPy, and the differences that the page lists."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special

import wend
import wend.numpy as wnp
from tests.helpers.array_cases import SAMPLES
from tests.numpy.oracle.calls import MAKERS, make_call
from tests.numpy.oracle.search import differences
from tests.numpy.oracle.shape_calls import UNCOMPARED

PAGE = " ".join((Path(__file__).parents[2] / "docs" / "from-numpy.md").read_text().split())
NAN, INF = np.nan, np.inf
NEWEST = np.lib.NumpyVersion(np.__version__) >= "2.4.0"
newest = pytest.mark.skipif(not NEWEST, reason="values and errors of other functions changed")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@pytest.mark.sampled(3)
@newest
@pytest.mark.parametrize("first", range(0, 4 * len(MAKERS), 80))
def test_every_function_is_numpys(first: int) -> None:
    found = differences([make_call(seed) for seed in range(first, first + 80)], "numpy")
    assert [f"{call}: {words}" for call, words in found if not words.startswith("refused")] == []


@newest
@pytest.mark.slow
@pytest.mark.parametrize("first", range(10**6, 10**6 + 40_000, 400))
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_many_calls_are_numpys(first: int, backend: str) -> None:
    count = 400 if backend == "numpy" else 40
    found = differences([make_call(seed) for seed in range(first, first + count)], backend)
    assert [f"{call}: {words}" for call, words in found if not words.startswith("refused")] == []


def test_every_function_of_the_namespace_is_called() -> None:
    names = {sample.name for sample in SAMPLES if not sample.name.startswith("_")}
    assert names - set(MAKERS) == UNCOMPARED


def _float16(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float16)


def _float32(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


VALUES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    # Powers of a half are roots, of one dtype but not of another; the root of a real variance
    (lambda x: np.power(x, 0.5), (np.array([-0.0, -INF, 4.0]),)),
    (lambda x: np.power(x, 0.5), (_float32(-0.0, -INF, 4.0),)),
    (lambda x: np.power(x, 0.5), (_float16(-0.0, -INF, 4.0),)),
    (lambda x: np.std(x, axis=1, dtype=float), (np.array([[0.1 + 10j], [2.0 + 0j]]),)),
    # Reductions and the methods of ufuncs: type resolution and identities before sizes
    (np.hypot.reduce, (np.array([-3.0]),)),
    (lambda x: np.hypot.reduce(x, axis=1), (-np.ones((2, 1)),)),
    (np.gcd.reduce, (np.array([-4]),)),
    (np.hypot.reduce, (np.array([4]),)),
    (np.logaddexp.reduce, (np.array([0]),)),
    (np.logical_xor.reduce, (np.array([2.0]),)),
    (np.logaddexp.reduce, (np.zeros(0),)),
    (lambda x: np.hypot.reduce(x, axis=None), (np.ones((2, 3)),)),
    (lambda x: np.bitwise_xor.reduce(x, axis=(0, 1), keepdims=True), (np.arange(6).reshape(2, 3),)),
    (np.logical_and.accumulate, (np.array([2.0, 3.0]),)),
    (np.logaddexp.accumulate, (np.array([True, False]),)),
    (np.nanmedian, (np.array([True, False, True]),)),
    (np.nanmedian, (np.array(True),)),
    (lambda b: np.einsum("i->", b), (np.array([True, False]),)),
    (lambda b: np.einsum("ij->j", b), (np.array([[True, False], [True, False]]),)),
    (lambda x: np.full_like(x, [1, 300]), (np.array([1, 2], np.uint8),)),
    (lambda x: np.nanmedian(x, axis=(0, 1)), (np.array([[1.0, NAN], [2.0, 5.0]]),)),
    (np.nanmedian, (np.zeros(0),)),
    (np.nanvar, (np.array([1, INF]),)),
    (np.nanstd, (np.array([1, 2, INF]),)),
    (np.nanvar, (np.array([1 + 1j, INF + 1j, NAN]),)),
    (lambda x: np.mean(x, dtype=int), (np.array([1.0, 2.5, 4.0]),)),
    (lambda x: np.var(x, dtype=int), (np.array([1, 2, 6]),)),
    (lambda x: np.sum(x, dtype=bool, initial=True), (np.array([0, 0]),)),
    (lambda x: np.prod(x, dtype=bool, initial=3), (np.array([2, 2]),)),
    (lambda x: np.add.reduce(x, dtype=bool, axis=None, keepdims=True), (np.eye(2) * 0.5,)),
    (lambda x: np.multiply.reduce(x, dtype=bool), (np.array([[2, 0.5], [1, 0]]),)),
    (lambda x: np.add.accumulate(x, dtype=bool), (np.array([0, 2, 0]),)),
    (lambda x: np.cumulative_prod(x, dtype=bool, include_initial=True), (np.array([3, 0, 2]),)),
    (lambda x: np.nanmean(x, dtype=bool), (np.array([0, 0, 2], np.int8),)),
    (lambda x: np.round(x, -1), (np.array([5, 15, -25, 124], np.int8),)),
    (lambda x: np.round(x, -2), (np.array([49, 151, 2**62 + 1]),)),
    (lambda x: np.std(x, dtype=int), (np.array([1, 2, 9]),)),
    (lambda x: np.var(x, dtype="f4"), (np.array([1 + 1j, 3j]),)),
    (np.median, (np.array([complex(NAN, 1)]),)),
    (np.median, (np.array([1 + 1j, complex(1, NAN)]),)),
    # Elementwise
    (np.ldexp, (_float16(0, 1e-7), 16)),
    (np.ldexp, (_float32(0, 1, 1e38, 1e-38), np.array([200, 200, -160, 140]))),
    (np.ldexp, (np.array([0, 1e-300, 1e300, 5e-324]), np.array([2000, 2000, -1100, 1500]))),
    (lambda x: x**2, (np.array([True, False]),)),
    (lambda x: x**0.5, (np.array([-0.0, -INF, 4]),)),
    (lambda x: x**-1, (np.array([INF + 0j, 1 - 0j]),)),
    (lambda x: x == None, (np.ones(2),)),  # noqa: E711
    (np.fmax, (np.array([complex(NAN, 1)]), NAN)),
    (np.sign, (np.array([complex(0, -0.0), complex(-0.0, 0)]),)),
    (lambda x: np.round(x, 1), (np.array([complex(0.26, INF)]),)),
    # Where results are written, and by which rule
    (lambda x: np.equal(x, -1, casting="unsafe"), (np.array([0, 2**32 - 1], np.uint32),)),
    (lambda x: np.less(x, 300, casting="safe"), (np.array([0, 255], np.uint8),)),
    (
        lambda x, out: np.add(x, x, out=out.copy(), where=np.array([True, False])),
        (np.array([2**61 + 1, 5], np.uint64), np.array([3, 2**62 + 1])),
    ),
    (
        lambda x, n, out: np.power(x, n, out=out.copy(), where=n > 0),
        (np.array([2, 2]), np.array([3, -1]), np.array([0, 7])),
    ),
    (
        lambda x, out: np.sum(x, axis=1, out=out.copy()),
        (np.array([[100, 100]], np.int8), np.zeros(1, np.int16)),
    ),
    (
        lambda x, out: np.sum(x, axis=1, out=out.copy()),
        (np.array([[100, 100]], np.int16), np.zeros(1, np.int8)),
    ),
    (
        lambda x, out: np.sum(x, out=out.copy()),
        (np.array([2**40, 300]), np.array(5, np.int8)),
    ),
    (
        lambda x, out: np.subtract(x, 1, out=out.copy()),
        (np.array(-(2**40)), np.array(5, np.int8)),
    ),
    (lambda x, out: np.clip(x, 0, 1, out=out.copy()), (np.array([3.0]), np.zeros((2, 3)))),
    (lambda x: np.std(x, axis=0, where=np.array(True)), (np.array(2.0),)),
    # Functions
    (lambda x: np.linalg.pinv(x, hermitian=True), (np.array([[1.0, 2], [0, 1]]),)),
    (lambda x: np.geomspace(1, x, 3), (np.float32(3),)),
    (lambda x: np.geomspace(1, x, 3), (np.uint16(3),)),
    (lambda x: np.geomspace(1, x, 3), (-3.0,)),
    (lambda x: np.geomspace(1, x, 3), (-1 + 1j,)),
    (lambda x: np.geomspace(x, 7, 3)[-1], (np.array([complex(NAN, -INF)]),)),
    (lambda x: np.median(x, axis=[0]), (np.zeros((0, 2)),)),
    (lambda x: np.median(x, axis=[-1], keepdims=True), (np.eye(2),)),
    (lambda x: np.geomspace(x, -8.0, 4, axis=-1), (np.array([-1.0, -2.0]),)),
    (np.setdiff1d, (np.array([1, 2, 3]), np.array([2.0]))),
    (lambda x: np.quantile(x, 1), (np.array([1, 5, 2]),)),
    (lambda x: np.quantile(x, np.array([0, 1])), (np.array([1, 5, 2]),)),
    (lambda x: np.quantile(x, np.array([[0.3]])), (np.ones(3),)),
    (lambda x: np.quantile(x, np.array([[0.3]]), axis=-1, keepdims=True), (np.eye(2),)),
    (np.cov, (np.empty((3, 0)),)),
    (lambda x: np.unwrap(x, period=2), (np.array([0, 1, 2], np.int8),)),
    (np.diag, (np.array([True, False]),)),
    (np.diagflat, (np.array([True, False]),)),
    (np.tril, (np.eye(2, dtype=bool),)),
    (np.correlate, (np.array([True, False]), np.array([True]))),
    (np.convolve, (np.array([True, False]), np.array([True, True]))),
    (lambda x: np.linalg.norm(x, -1), (np.zeros(0),)),
    (lambda x: np.linalg.norm(x, -2), (np.zeros(0),)),
    (lambda x: np.linalg.lstsq(x, np.ones(3))[1], (np.ones((3, 2)),)),
    (lambda x: np.linalg.lstsq(x, np.ones(3))[1], (np.eye(3, 2),)),
    (lambda x: np.interp(x, [0, 1, 2], [1, INF, 3]), (np.array([0.0, 1.0, 0.5]),)),
    (np.linalg.pinv, (np.empty((0, 3), int),)),
    (np.argwhere, (np.array(3.0),)),
    (np.linalg.solve, (np.array([[2, 1], [1, 3]], np.int8), _float32(1, 2))),
    (np.bitwise_and.reduce, (np.array(1, np.uint16),)),
    (lambda x: np.bitwise_and.reduce(x, axis=1), (np.zeros((1, 1), np.uint64),)),
    (np.median, (_float16(65504, 65504, 60000, 65504),)),
    (np.nanmedian, (_float16(65504, NAN, 60000, 65504),)),
    (lambda x: np.nanmedian(x, axis=1), (_float16(65504, NAN, 60000, 65504).reshape(1, 4),)),
    (lambda x: np.nanmedian(x, axis=0), (_float16(40000, NAN, NAN).reshape(3, 1),)),
    (lambda x: np.nanmedian(x, axis=0), (np.full((601, 1), 40000, np.float16),)),
    (lambda x: np.nanmedian(x, axis=(1, 0)), (_float16(65504, 65504, NAN, 9).reshape(2, 2),)),
    (np.nanmedian, (np.array([1.7e308, NAN]),)),
    (lambda x: np.nanmedian(x, axis=1), (np.array([[1.7e308, NAN], [1.7e308, 1.0]]),)),
    (lambda x: np.quantile(x, np.array([0, 1]), method="weibull"), (np.array([7, 1, 5]),)),
    (lambda x: np.quantile(x, np.array([0, 1]), method="weibull"), (np.array([7, 1], np.int8),)),
    (lambda x, q: np.quantile(x, q, method="weibull"), (np.array([7, 2**62 + 1]), 1)),
    (lambda x, q: np.nanquantile(x, q, method="interpolated_inverted_cdf"), (_float32(7, INF), 0)),
    (lambda x: np.nanquantile(x, np.array([0]), method="weibull"), (_float32(7, NAN),)),
    (lambda x: np.var(x, dtype=int, axis=0), (np.array([[100], [2**64 - 1]], np.uint64),)),
    (lambda x: np.nanvar(x, dtype=float), (_float32(1, NAN, 1e30),)),
    (lambda x: np.nanvar(x, dtype="f4"), (np.array([1, NAN, 1e30]),)),
    (lambda x: np.nanstd(x, dtype="c16"), (np.array([1, 1e30j], np.complex64),)),
    (np.digitize, (np.array([1, 3, 10, 11, 0]), np.array([10, 3, 1]))),
    (lambda x, b: np.digitize(x, b, right=True), (np.array([1, 3, 10]), np.array([10, 3, 1]))),
    (lambda x: np.histogram(x, 3, (0, 3))[1], (_float16(1, 2),)),
    (np.less_equal, (np.array(complex(-INF, NAN)), np.int8(-1))),
    (np.vecmat, (np.array([True, False]), np.array([[3], [1]], np.uint8))),
    (lambda x: np.average(x, axis=[0]), (np.eye(2),)),
    (np.linalg.cond, (np.zeros((2, 2)),)),
    (lambda x: np.linalg.norm(x, axis=0.0), (np.eye(2),)),
    (lambda x: np.linalg.vector_norm(x, axis=0.0), (np.eye(2),)),
    (lambda x: np.interp(x, [0, 1, 2], [True, True, False]), (np.array([NAN, 0.5]),)),
    (lambda x: np.interp(x, [0, 1], [1j, 1j], 7, 8), (np.array([NAN, 0.5]),)),
    (lambda x: np.interp(x, [0], [3], period=2), (np.array([NAN, INF]),)),
    (lambda x: np.interp(x, [0], [3]), (np.array([NAN, INF]),)),
]  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("number", range(len(VALUES)))
def test_values_and_dtypes(number: int, backend: str) -> None:
    function, operands = VALUES[number]
    traced = wend.function(lambda *xs: function(*xs), backend=backend)
    result, reference = traced(*operands), function(*operands)
    assert (np.asarray(result).dtype, np.shape(result)) == (reference.dtype, reference.shape)
    np.testing.assert_allclose(result, reference, rtol=1e-6)
    is_number = ~np.isnan(reference)
    signs = [np.signbit(np.real(x))[is_number] for x in (result, reference)]
    np.testing.assert_array_equal(*signs)


ERRORS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (lambda x: np.histogram(x, 3), (np.array([2**60]),)),
    (lambda x: np.swapaxes(x, -4, [0]), (np.ones((2, 2)),)),
    (lambda x: np.linalg.vector_norm(x, axis=1.0, keepdims=True), (np.ones((2, 2)),)),
    (lambda x: np.linalg.vector_norm(x, axis=1.0, keepdims=True), (np.ones(2, np.uint8),)),
    (lambda x: np.linalg.vector_norm(x, axis="a"), (np.ones(2),)),
    (lambda x: np.linalg.norm(x, axis="a"), (np.ones(2),)),
    (lambda x: np.fft.ihfft(x, axis=-3, norm="none"), (np.eye(2),)),
    (lambda x: np.fft.ihfft(x, axis=1.0, norm="none"), (np.eye(2),)),
    (lambda x: np.fft.fft(x, 2.0, axis=-3), (np.eye(2),)),
    (lambda x: np.fft.irfft(x, 2.0, norm="none"), (np.eye(2),)),
    (lambda x: np.fft.rfft(x, 2.0), (np.eye(2),)),
    (lambda x: np.linalg.matrix_rank(x, hermitian=True), (np.ones((2, 3), np.float16),)),
    (np.bitwise_and.reduce, (np.array([1.5]),)),
    (np.gcd.reduce, (np.array([1.5]),)),
    (np.gcd.accumulate, (np.zeros(0, complex),)),
    (lambda x: np.multiply.accumulate(x, axis=None), (np.eye(2),)),
    (lambda x: np.logical_or.reduce(x, dtype=complex), (np.array([1], np.uint32),)),
    (lambda x: np.lcm.reduce(x, axis=None), (np.ones((2, 2), int),)),
    (lambda x: np.sum(x, axis=True), (np.eye(2),)),
    (lambda x: np.max(x, axis=[0]), (np.eye(2),)),
    (lambda x: np.cumsum(x, axis=True), (np.eye(2),)),
    (lambda x: np.cumprod(x, axis=True), (np.eye(2),)),
    (lambda x: np.argsort(x, axis=True), (np.eye(2),)),
    (lambda x: np.argmax(x, axis=True), (np.eye(2),)),
    (lambda x: np.ptp(x, axis=[0]), (np.eye(2),)),
    (lambda x: np.trapezoid(x, axis=True), (np.eye(2),)),
    (np.isposinf, (np.array([1j]),)),
    (lambda x: np.geomspace(0, x, 3), (2.0,)),
    (lambda x: np.quantile(x, 0.5), (np.array([1j]),)),
    (lambda x: np.einsum("ii->i", x), (np.ones((3, 4)),)),
    (lambda x: np.einsum("iij->j", x), (np.ones((3, 4, 2)),)),
    (np.linalg.solve, (np.eye(2), _float16(1, 2))),
    (lambda x: np.ediff1d(x, to_begin=2.5), (np.array([1, 2]),)),
    (np.ediff1d, (np.array([True, False]),)),
    (np.gradient, (np.array([True, False]),)),
    (lambda x: np.nanmean(x, dtype=int), (np.ones(2),)),
    (lambda x: np.std(x, axis=0, dtype=int), (np.eye(2),)),
    (lambda x: np.std(x, axis=0, dtype="i4"), (np.ones((1, 3), np.int32),)),
    (lambda x: np.nanmedian(x, axis=[0]), (np.zeros((2, 0)),)),
    (np.linalg.matrix_rank, (np.zeros((0, 0), np.float16),)),
    (np.linalg.cholesky, (np.ones((2, 3)),)),
    (np.linalg.cholesky, (np.ones((2, 3), np.float16),)),
    (np.linalg.solve, (np.ones((2, 3), np.float16), np.ones(2, np.float16))),
    (np.linalg.cond, (np.zeros((0, 0)),)),
    (np.linalg.outer, (np.eye(2), np.ones(2))),
    (lambda x: np.concatenate(x, axis=1.0), (np.int64(1),)),
    (lambda x: np.max(x, axis=1.0, where=x > 0), (np.eye(2),)),
    (lambda x: np.min(x, axis=2, where=x > 0), (np.eye(2),)),
    (lambda x: np.var(x, dtype=bool), (np.array([True, False]),)),
    (lambda x: np.split(x, 0), (np.ones(2),)),
    (lambda x: np.rollaxis(x, 0, 4), (np.eye(2),)),
    (lambda x, n: np.arange(x, 5, n), (np.int64(0), 0)),
    (lambda n: np.arange(0, 5, n), (0,)),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number: int) -> None:
    function, operands = ERRORS[number]
    with pytest.raises(Exception) as expected:
        function(*operands)
    kind = TypeError if isinstance(expected.value, TypeError) else type(expected.value)
    with pytest.raises(kind):
        wend.function(lambda *xs: function(*xs))(*operands)


SPECIAL = [
    ("beta", (np.array([1.0, 2, -3, INF, 0, 100]), np.array([1e17, 1e10, 2, 1, 0, 100]))),
    ("beta", (np.array([-3.25, -170.5, 7.25, -171.25]), np.array([0.5, 3, -170.5, -0.5]))),
    ("betaln", (np.array([1.0, 1, 0, 1e7, 3]), np.array([1e17, 1e10, 0, 0.5, 1e6]))),
    ("rel_entr", (np.array([1.0, INF, 0]), np.array([1e-310, -INF, 0]))),
    ("kl_div", (np.array([0.0, 1, 2]), np.array([-INF, 1e-300, 2 + 1e-9]))),
    ("softmax", (np.array([1, -2, 3], np.int8),)),
    ("log_softmax", (np.array([1, -2, 3], np.int16),)),
    ("entr", (np.array([0.0, -1, 2]),)),
]


@pytest.mark.parametrize(("name", "operands"), SPECIAL)
def test_special_functions_are_scipys(name: str, operands: tuple[Any, ...]) -> None:
    function = getattr(wnp.special, name)
    reference = getattr(scipy.special, name)(*operands)
    result = wend.function(lambda *xs: function(*xs))(*operands)
    assert result.dtype == reference.dtype
    np.testing.assert_allclose(result, reference, rtol=1e-10 if result.itemsize > 4 else 1e-2)
    np.testing.assert_array_equal(np.signbit(result), np.signbit(reference))


def test_beta_is_0_between_its_poles() -> None:
    x, y = np.array([-3.5, -2.5, 0.5, -0.5]), np.array([0.5, 1.5, -170.5, 0.5])
    np.testing.assert_array_equal(wend.function(wnp.special.beta)(x, y), 0)
    np.testing.assert_array_equal(scipy.special.beta(x, y), 0)


def test_softmax_takes_no_bools() -> None:
    with pytest.raises(TypeError, match="boolean subtract"):
        wend.function(wnp.special.softmax)(np.array([True]))


# The differences that docs/from-numpy.md lists: (words of the page, a call, what comes out)
LISTED: list[tuple[str, Callable[..., Any], tuple[Any, ...], Any]] = [
    (
        "put the axes of a `q` of two or more dimensions first",
        lambda x: np.nanpercentile(x, [[50.0]], axis=(0, 1)),
        (np.arange(12.0).reshape(2, 3, 2),),
        np.array([[[5.0, 6.0]]]),
    ),
    (
        "may be that of `sqrt`",
        lambda x, y: np.float_power(x, y),
        (np.array([-INF, 4.0]), np.float64(0.5)),
        np.array([NAN, 2.0]),
    ),
    ("leaves out what it scales by 0", np.dot, (0.0, np.array([INF, NAN, 1.0])), [NAN, NAN, 0]),
    ("leaves out what it scales by 0", np.inner, (0.0, np.array([INF, NAN, 1.0])), [NAN, NAN, 0]),
    ("`polymul` keeps leading zeros", np.polymul, (np.array([0.0, 1]), np.ones(2)), [0, 1, 1]),
    ("`keepdims=np.True_`", lambda x: np.sum(x, keepdims=np.True_), (np.ones(2),), [2]),
    ("`arange` counts", np.arange, (np.uint8(2), np.uint8(0)), []),
    ("`arange` counts", np.arange, (np.int8(-100), 100, np.int8(100)), [-100, 0]),
    ("`arange` counts", np.arange, (np.uint8(1), -1, -1), [1, 0]),
    ("unsigned", wnp.special.softmax, (np.array([0, 1], np.uint8),), [0.269, 0.731]),
]  # fmt: skip


@pytest.mark.parametrize(("words", "function", "operands", "result"), LISTED)
def test_differences_are_as_listed(
    words: str, function: Callable[..., Any], operands: tuple[Any, ...], result: Any
) -> None:
    assert words in PAGE
    traced = wend.function(lambda *xs: function(*xs))(*operands)
    np.testing.assert_allclose(traced, result, rtol=1e-2)
    try:
        plain = function(*operands)
    except Exception:
        return
    assert np.shape(plain) != np.shape(result) or not np.allclose(plain, result, rtol=1e-2)


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize(("dtype", "n"), [(np.uint8, -1), (np.int8, 300)])
def test_where_takes_integers_out_of_range_as_numpy_does(dtype: type, n: int, backend: str) -> None:
    def chosen(x: np.ndarray, n: int) -> np.ndarray:
        return np.where(x > 1, n, x)

    traced, x = wend.function(chosen, backend=backend), np.array([1, 2], dtype)
    try:
        expected = chosen(x, n)
    except OverflowError as error:  # from NumPy 2.5 on
        with pytest.raises(OverflowError, match=str(error)):
            traced(x, n)
    else:
        np.testing.assert_array_equal(traced(x, n), expected, strict=True)


def test_extremes_of_zeros_are_zeros() -> None:
    assert "two signs" in PAGE
    traced = wend.function(lambda x, y: (np.fmax(x, y), np.clip(x, y, 1)))
    for x in traced(np.array([0.0, -0.0]), np.array([-0.0, 0.0])):
        np.testing.assert_array_equal(x, 0)


def test_repeats_of_unknown_sizes_are_checked() -> None:
    repeat = wend.function(lambda a, b: np.repeat(a, b, axis=0))
    counts = np.array([1, 2, 0])
    np.testing.assert_array_equal(repeat(np.ones((3, 3)), counts), np.ones((3, 3)))
    for rows in (2, 4):
        with pytest.raises(ValueError):
            repeat(np.ones((rows, 3)), np.array([1, 2, 0]))


@newest
def test_one_row_of_many_variables_has_a_matrix_of_covariances() -> None:
    x = np.arange(3.0)[None]
    for function in (np.cov, np.corrcoef):
        result = wend.function(lambda x, f=function: f(x, rowvar=False))(x)
        np.testing.assert_array_equal(result, function(x, rowvar=False))
