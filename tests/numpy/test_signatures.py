"""Calls as NumPy's functions take them: every keyword is taken, or refused by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.array_cases import SAMPLES
from tests.helpers.arrays import flat, quiet
from wend.base.errors import WendError
from wend.numpy.public import STAGED

X = np.arange(6.0).reshape(2, 3)
MASK = np.array([True, False, True])
INTS = np.arange(3)

# Calls of traced arrays with arguments that the staged forms know by other names, or not at all
TAKEN: list[Callable[..., Any]] = [
    lambda x, w, i: np.sum(x, where=w),
    lambda x, w, i: np.sum(a=x),
    lambda x, w, i: x.sum(where=w, initial=3),
    lambda x, w, i: x.sum(0, None, None, True),
    lambda x, w, i: np.prod(x, initial=2, where=w),
    lambda x, w, i: np.max(x, initial=3.0),
    lambda x, w, i: np.max(x[:, :0], axis=1, initial=3.0),
    lambda x, w, i: np.max(x, 0, None, True, 2.5, w),
    lambda x, w, i: np.min(x, axis=1, where=w, initial=9),
    lambda x, w, i: x.max(0, None, True),
    lambda x, w, i: np.any(x, where=w),
    lambda x, w, i: np.all(a=x, axis=0, where=w),
    lambda x, w, i: np.mean(x, axis=0, where=w),
    lambda x, w, i: np.mean(x, where=w, keepdims=True),
    lambda x, w, i: np.var(x, where=w, ddof=1),
    lambda x, w, i: np.var(x, 0, None, None, 1),
    lambda x, w, i: x.var(0, None, None, 1),
    lambda x, w, i: np.var(x, mean=np.mean(x, keepdims=True)),
    lambda x, w, i: np.std(x, axis=1, where=w, keepdims=True),
    lambda x, w, i: np.nansum(x, where=w, initial=1.0),
    lambda x, w, i: np.nanprod(x, where=w),
    lambda x, w, i: np.nanmax(x, where=w, initial=0.0),
    lambda x, w, i: np.nanmin(x, where=w, initial=9.0),
    lambda x, w, i: np.nanmean(x, where=w),
    lambda x, w, i: np.nanvar(x, where=w, ddof=1),
    lambda x, w, i: np.nanstd(x, 0, None, None, 1),
    lambda x, w, i: np.add.reduce(x, where=w, initial=2.0),
    lambda x, w, i: np.maximum.reduce(x, where=w, initial=2.0),
    lambda x, w, i: np.concatenate([x, x], dtype="f4"),
    lambda x, w, i: np.concatenate([x, x], axis=None, casting="unsafe", dtype=int),
    lambda x, w, i: np.stack([i, i], dtype="f4"),
    lambda x, w, i: np.hstack([x, x], dtype="f4", casting="same_kind"),
    lambda x, w, i: np.vstack([i, i], dtype="f8"),
    lambda x, w, i: np.add(x, 1, dtype="f4"),
    lambda x, w, i: np.add(x, 1, dtype=int, casting="unsafe"),
    lambda x, w, i: np.less(x, 1, dtype=bool),
    lambda x, w, i: np.ravel(a=x, order="F"),
    lambda x, w, i: np.zeros_like(x, order="F"),
    lambda x, w, i: np.full_like(x, 3, order="C"),
    lambda x, w, i: np.array(x, order="F", ndmin=3),
    lambda x, w, i: np.asarray(a=x),
    lambda x, w, i: np.where(x),
    lambda x, w, i: np.clip(x, a_min=None, a_max=2),
    lambda x, w, i: np.einsum("ij->i", x, optimize=True),
    lambda x, w, i: np.nanmedian(x, overwrite_input=True),
    lambda x, w, i: np.nanpercentile(x, 20, weights=None),
    lambda x, w, i: np.broadcast_to(array=i, shape=(2, 3)),
    lambda x, w, i: np.broadcast_arrays(x, i, subok=True),
    lambda x, w, i: np.pad(x, ((0, 2), (1, 0)), mode="edge"),
    lambda x, w, i: np.pad(x, 1, mode="reflect"),
    lambda x, w, i: np.pad(x, 2, mode="symmetric"),
    lambda x, w, i: np.pad(x, 4, mode="wrap"),
    lambda x, w, i: x.argpartition(0, axis=0),
]

# What NumPy refuses, too, in the same class
REFUSED: list[Callable[..., Any]] = [
    lambda x, w, i: np.max(x, where=w),
    lambda x, w, i: np.sum(i, where=x > 0),
    lambda x, w, i: np.cumsum(x, foo=2),
    lambda x, w, i: np.add(x, 1, foo=2),
    lambda x, w, i: np.add(x),
    lambda x, w, i: np.add(x, 1, 2, 3),
    lambda x, w, i: np.add(x, 1, dtype=int),
    lambda x, w, i: np.add(i, x, casting="no"),
    lambda x, w, i: np.add(i, x, casting="foo"),
    lambda x, w, i: np.concatenate([x, x], dtype=int),
    lambda x, w, i: np.pad(x, 1, mode="nothing"),
    lambda x, w, i: np.pad(x, 1, mode="edge", constant_values=2),
    lambda x, w, i: np.pad(x, -1),
    lambda x, w, i: np.pad(x, 0.5),
    lambda x, w, i: np.quantile(x, 0.5, method="nothing"),
    lambda x, w, i: np.linalg.qr(x, "nothing"),
]

# What NumPy takes, and wend refuses by name
NOT_TAKEN: dict[str, Callable[..., Any]] = {
    "where=": lambda x, w, i: np.add(x, 1, where=w),
    "where": lambda x, w, i: np.logaddexp.reduce(x, where=w),
    "dtype=": lambda x, w, i: np.clip(x, 1, 2, dtype="f4"),
    "axes=": lambda x, w, i: np.matmul(x, i, axes=[(0, 1), 0, 0]),
    "signature=": lambda x, w, i: np.add(x, 1, signature="dd->d"),
    "writeable=True": lambda x, w, i: np.lib.stride_tricks.sliding_window_view(
        x, 2, 0, writeable=True
    ),
    "reflect_type='odd'": lambda x, w, i: np.pad(x, 1, mode="reflect", reflect_type="odd"),
    "order='K'": lambda x, w, i: x.T.ravel(order="K"),
    "has no mode": lambda x, w, i: np.linalg.qr(x, "raw"),
    "no method": lambda x, w, i: np.quantile(x, 0.5, method="inverted_cdf"),
    "number of bins": lambda x, w, i: np.histogram(x, "auto"),
}


def outcome(run: Callable[..., Any], *args: Any) -> Any:
    try:
        return [np.asarray(x) for x in flat(quiet(lambda: run(*args)))]
    except Exception as error:
        return error


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("call", TAKEN, ids=range(len(TAKEN)))
def test_arguments_are_taken_as_numpy_takes_them(call: Any, backend: str) -> None:
    expected = outcome(call, X, MASK, INTS)
    with wend.config(backend=backend):
        results = outcome(wend.function(call), X, MASK, INTS)
    assert isinstance(results, list), results
    assert [(x.dtype, x.shape) for x in results] == [(x.dtype, x.shape) for x in expected]
    for result, reference in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, reference, rtol=1e-12)


@pytest.mark.parametrize("call", REFUSED, ids=range(len(REFUSED)))
def test_what_numpy_refuses_is_an_error_of_its_class(call: Any) -> None:
    expected = outcome(call, X, MASK, INTS)
    kind = next(c for c in type(expected).__mro__ if c.__module__ == "builtins")
    with pytest.raises(kind):
        wend.function(call)(X, MASK, INTS)


@pytest.mark.parametrize(("text", "call"), NOT_TAKEN.items(), ids=NOT_TAKEN)
def test_what_only_numpy_takes_is_refused_by_name(text: str, call: Any) -> None:
    assert isinstance(outcome(call, X, MASK, INTS), list)
    with pytest.raises(WendError, match="To fix it") as caught:
        wend.function(call)(X, MASK, INTS)
    assert text in str(caught.value)


def parameters(function: Any) -> list[inspect.Parameter]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p for p in inspect.signature(function).parameters.values() if p.kind in kinds]


SIGNED = [
    pytest.param(original, function, id=original.__name__)
    for original, function in STAGED.items()
    if not isinstance(original, np.ufunc) and hasattr(function, "__wrapped__")
]


@pytest.mark.parametrize(("original", "staged"), SIGNED)
def test_positions_are_those_of_numpy(original: Any, staged: Any) -> None:
    try:
        theirs = parameters(original)
    except ValueError:
        pytest.skip("this NumPy gives it no signature")
    for position, parameter in enumerate(parameters(staged)):
        names = {p.name for p in theirs}
        if position < len(theirs):
            assert parameter.name == theirs[position].name or parameter.name not in names
        else:  # only by keyword in this NumPy
            assert parameter.name in inspect.signature(original).parameters


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "sample", [s for s in SAMPLES if s.traced and s.call is None and s.goes_through], ids=str
)
def test_an_unknown_keyword_is_named(sample: Any) -> None:
    options = {**sample.options, "no_such": 1}
    for function in (sample.public, sample.original):
        with pytest.raises(TypeError, match="no_such"):
            wend.function(lambda *xs, f=function: f(*xs, **options))(*sample.arrays)


def test_wends_own_keywords_go_with_numpys() -> None:
    x = np.array([2, 0, 2])
    run = wend.function(lambda x: wnp.bincount(x, minlength=1, length=4))
    np.testing.assert_array_equal(run(x), [1, 0, 2, 0])
