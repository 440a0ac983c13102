"""Parts and arrays of lists of unknown lengths are those of NumPy, in derivatives and maps."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.helpers.jax_runs import close

import wend
from wend.base.errors import ShapeError, UnsupportedError


def kept(x: Any) -> Any:
    out = []
    for _ in range(5):
        x = np.sin(x) + 0.2
        if x > 0.9:
            out.append(x)
    return out


def folded(values: Any) -> Any:
    total = 1.0
    for v in values:
        total = 0.5 * total + v * v
    return total


def backwards(x: Any) -> Any:
    return folded(kept(x)[::-1])


def every_other_from_the_end(x: Any) -> Any:
    return folded(kept(x)[-1:-4:-2])


def from_a_computed_position(x: Any) -> Any:
    out = kept(x)
    return folded(out[len(out) // 2 :])


def of_rows(x: Any) -> Any:
    out, h = [], np.stack([x, 2.0 * x, -x])
    for _ in range(5):
        h = np.sin(h) + 0.2
        if h[0] > 0.9:
            out.append(h)
    return np.sum(folded(out[1::2]))


def longer_afterwards(x: Any) -> Any:
    out = kept(x)[::-1]
    for k in range(30):
        out.append(x * k)
    return folded(out)


def spread(x: Any) -> Any:
    a = np.stack(kept(x))
    return np.std(a) + np.mean(a * a) * 2.0 + len(a)


def masked(x: Any) -> Any:
    a = np.array(kept(x))
    return np.sum(np.where(a > 1.0, a, 0.5 * a)[::-1] * a) + np.linalg.norm(a)


def settled(x: Any) -> Any:
    out, h = [], np.stack([x, 2.0 * x, -x])
    for _ in range(5):
        h = np.sin(h) + 0.2
        if h[0] > 0.9:
            out.append(h)
    return np.array(out)


def of_columns(x: Any) -> Any:
    a = settled(x)
    scaled = a / (1.0 + np.sum(a * a, axis=1, keepdims=True))
    return np.sum(np.mean(scaled, axis=0) ** 3) + np.sum(np.prod(a, axis=1))


def running_sums(x: Any) -> Any:
    a = settled(x)
    return np.sum(np.mean(a, axis=0) ** 3) + np.sum(np.cumsum(a, axis=0)[:, 1])


def extremes(x: Any) -> Any:
    a = np.array(kept(x))
    return np.max(a * a) - np.min(2.0 * a)


def ends(x: Any) -> Any:
    out = kept(x)
    a = np.array(out)
    total = max(out) * min(out) + max(out, default=0.0)
    return total + a[-1] * a[0] + np.sin(a[len(a) // 2])


def of_prefixes(x: Any) -> Any:
    values, total = np.sin(x * np.arange(1.0, 7.0)), 0.0
    for k in range(6):
        weights = np.exp(values[: k + 1] * values[k])
        total = total + np.sum(weights * values[: k + 1]) / np.sum(weights)
        total = total + np.sum(np.tanh(values[k:] - np.mean(values[k:]))) * x
    return total


PARTS = [backwards, every_other_from_the_end, from_a_computed_position, of_rows, longer_afterwards]
ARRAYS = [spread, masked, of_columns, running_sums, of_prefixes, extremes]
POINTS = np.linspace(0.3, 2.0, 4)
ERRORS = ValueError, IndexError
MESSAGE = r"as that of a list or of x\[:k\] at test_stacked.py:\d+, and (.|\n)*fix it: run .*a mask"


def check(form: Callable[..., Any], x: Any) -> None:
    with wend.config(backend="numpy"):
        expected = form(x)
    with wend.config(backend="jax"):
        close(form(x), expected)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fun", [*PARTS, *ARRAYS])
def test_values_and_gradients(fun: Callable[..., Any]) -> None:
    check(wend.value_and_grad(fun), 1.1)
    check(wend.value_and_grad(lambda x: np.sum(wend.vmap(fun)(x))), POINTS)


@pytest.mark.sampled
@pytest.mark.parametrize("fun", [*PARTS, *ARRAYS, ends])
def test_second_gradients(fun: Callable[..., Any]) -> None:
    check(wend.vmap(wend.grad(wend.grad(fun))), POINTS)


def test_elements_at_positions() -> None:
    check(wend.value_and_grad(ends), 1.1)
    check(wend.vmap(wend.value_and_grad(ends)), POINTS)
    with wend.config(backend="jax"):  # the pullback of a map does not know how many there may be
        with pytest.raises(UnsupportedError, match="the shape of what scatter_add at"):
            wend.grad(lambda x: np.sum(wend.vmap(ends)(x)))(POINTS)


def test_extremes_in_loops_and_branches() -> None:
    def running(x: Any) -> Any:
        out, total = [], 0.0
        for k in range(5):
            x = np.sin(x) + 0.2
            if x > 0.3:
                out.append(x)
            if k > 2:
                total = total + max(out) - np.min(np.array(out))
        return total

    check(wend.vmap(running), POINTS)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("fun", "text"),
    [
        (lambda out: max(out), r"max\(\) .* empty"),
        (lambda out: min(out), r"min\(\) .* empty"),
        (lambda out: np.max(np.array(out)), "reduction operation maximum which has no identity"),
        (lambda out: np.min(np.array(out)), "reduction operation minimum which has no identity"),
        (lambda out: np.array(out)[-1], "index -1 is out of bounds for axis 0 with size 0"),
        (
            lambda out: np.array(out)[0],
            "index 0 is out of bounds for axis 0 with size 0",
        ),
    ],
)
def test_lists_without_elements_are_numpys_errors(fun: Callable[..., Any], text: str) -> None:
    def run(x: Any) -> Any:
        return fun(kept(x))

    for form, x in (wend.function(run), -3.0), (wend.vmap(run), np.array([1.0, -3.0])):
        for backend in "numpy", "jax":
            with wend.config(backend=backend), pytest.raises(ERRORS, match=text):
                form(x)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i4", "u4", "i8", "u8", "f4", "f8"])
def test_extremes_of_each_dtype(dtype: str) -> None:
    def of_some(x: Any, limit: Any) -> Any:
        out = []
        for k in range(4):
            if k < limit:
                out.append(x[k])
        a = np.array(out)
        return np.max(a), np.min(a), np.any(a), np.all(a)

    x = np.array([1, 0, 1, 1]).astype(dtype)
    for limit in range(1, 5):
        check(lambda x, n=limit: wend.function(of_some)(x, np.int64(n)), x)


def padded(x: Any, i: Any, j: Any) -> Any:
    return np.sum((x[:i] + x[:j]) ** 2)


@pytest.mark.parametrize("form", [wend.function(padded), wend.grad(padded)])
def test_arrays_of_two_lengths_broadcast_as_in_numpy(form: Callable[..., Any]) -> None:
    x, two = np.arange(1.0, 7.0), np.int64(2)
    for other in map(np.int64, (1, 2)):
        for lengths in (two, other), (other, two):
            check(lambda x, lengths=lengths: form(x, *lengths), x)
    with wend.config(backend="jax"):
        with pytest.raises(ShapeError, match=r"broadcast together with shapes \(2,\) \(3,\)"):
            form(x, two, np.int64(3))


def chosen(x: Any, i: Any, j: Any, k: Any) -> Any:
    return np.sum(np.where(x[:i] > 2.0, x[:j] ** 2, -x[:k]))


@pytest.mark.parametrize("form", [wend.function(chosen), wend.grad(chosen)])
def test_arrays_of_three_lengths_broadcast_as_in_numpy(form: Callable[..., Any]) -> None:
    x = np.arange(1.0, 7.0)
    for lengths in itertools.product(map(np.int64, (1, 3)), repeat=3):
        check(lambda x, lengths=lengths: form(x, *lengths), x)
    for lengths in itertools.permutations(map(np.int64, (2, 3, 1))):
        with wend.config(backend="jax"), pytest.raises(ShapeError, match="broadcast together"):
            form(x, *lengths)


def test_rows_for_which_there_is_no_room_are_refused_after_the_run() -> None:
    """One row stands for many; the run knows that there are more of them than the others have."""

    def repeated(x: Any, i: Any, n: Any) -> Any:
        return np.sum(np.broadcast_to(x[:i], (n,)) ** 2)

    f, x, one = wend.function(repeated), np.arange(1.0, 4.0), np.int64(1)
    for n in 1, 2, 3:
        check(lambda x, n=n: f(x, one, np.int64(n)), x)
    check(lambda x: f(x, np.int64(2), np.int64(2)), x)
    with wend.config(backend="jax"):
        with pytest.raises(UnsupportedError, match=r"what broadcast_to at .* depends on data"):
            f(x, one, np.int64(4))
        with pytest.raises(ValueError, match="broadcast"):
            f(x, np.int64(2), np.int64(3))


def trajectory(x: Any) -> Any:
    return settled(x), np.array(kept(x))[1:] * x, len(kept(x))


def test_results_of_unknown_size() -> None:
    """A function that Python calls returns arrays of the sizes that the run has found."""

    def pulled(x: Any) -> Any:
        (rows, parts, _), pull = wend.vjp(trajectory, x)
        return rows, pull((np.ones(rows.shape), parts, None))

    for x in 0.1, 1.1, -3.0:
        check(wend.function(trajectory), x)
        check(lambda x: wend.jvp(trajectory, (x,), (1.0,)), x)
        check(pulled, x)
    repeated = wend.function(lambda n: (np.broadcast_to(2.5, (n,)), np.zeros((n, 2))))
    for n in 0, 3:
        check(lambda n: repeated(np.int64(n)), n)


def test_second_gradients_through_the_rows_of_an_array() -> None:
    def of_rows(x: Any) -> Any:
        return folded([np.sum(row) for row in list(x * x)])

    def slope(x: Any) -> Any:
        return np.sum(wend.grad(of_rows)(x) ** 2)

    check(wend.grad(slope), np.arange(6.0).reshape(3, 2))


def test_arrays_of_unknown_size_are_refused_in_branches_and_maps() -> None:
    def in_a_branch(x: Any, k: Any) -> Any:
        part = x[:k] if k > 2 else x[1:k]
        return np.sum(part)

    with wend.config(backend="jax"):
        with pytest.raises(UnsupportedError, match=MESSAGE):
            wend.function(in_a_branch)(np.arange(5.0), np.int64(3))
        with pytest.raises(UnsupportedError, match=r"list_stack at .* depends on data"):
            wend.vmap(settled)(POINTS)


@pytest.mark.parametrize("fun", [backwards, masked, extremes, of_columns])
def test_pullbacks_of_maps(fun: Callable[..., Any]) -> None:
    """The pullback is another program, which takes arrays of the lengths of each element."""
    check(lambda x: wend.vjp(wend.vmap(fun), x)[1](np.ones(len(x)))[0], POINTS)
