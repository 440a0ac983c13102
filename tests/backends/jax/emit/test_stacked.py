"""Parts and arrays of lists of unknown lengths are those of NumPy, in derivatives and maps."""

from __future__ import annotations

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


def of_columns(x: Any) -> Any:
    out, h = [], np.stack([x, 2.0 * x, -x])
    for _ in range(5):
        h = np.sin(h) + 0.2
        if h[0] > 0.9:
            out.append(h)
    a = np.array(out)
    return np.sum(np.mean(a, axis=0) ** 3) + np.sum(np.cumsum(a, axis=0)[:, 1])


def of_prefixes(x: Any) -> Any:
    values, total = np.sin(x * np.arange(1.0, 7.0)), 0.0
    for k in range(6):
        weights = np.exp(values[: k + 1] * values[k])
        total = total + np.sum(weights * values[: k + 1]) / np.sum(weights)
        total = total + np.sum(np.tanh(values[k:] - np.mean(values[k:]))) * x
    return total


PARTS = [backwards, every_other_from_the_end, from_a_computed_position, of_rows, longer_afterwards]
ARRAYS = [spread, masked, of_columns, of_prefixes]
POINTS = np.linspace(0.3, 2.0, 4)


def check(form: Callable[..., Any], x: Any) -> None:
    with wend.config(backend="numpy"):
        expected = form(x)
    with wend.config(backend="jax"):
        close(form(x), expected)


@pytest.mark.parametrize("fun", [*PARTS, *ARRAYS])
def test_values_and_gradients(fun: Callable[..., Any]) -> None:
    check(wend.value_and_grad(fun), 1.1)
    check(wend.value_and_grad(lambda x: np.sum(wend.vmap(fun)(x))), POINTS)


@pytest.mark.sampled
@pytest.mark.parametrize("fun", [*PARTS, *ARRAYS])
def test_second_gradients(fun: Callable[..., Any]) -> None:
    check(wend.vmap(wend.grad(wend.grad(fun))), POINTS)


def test_rows_scaled_by_their_sums() -> None:
    def scaled(x: Any) -> Any:
        out, h = [], np.stack([x, 2.0 * x, -x])
        for _ in range(5):
            h = np.sin(h) + 0.2
            if h[0] > 0.9:
                out.append(h)
        a = np.array(out)
        return np.sum((a / (1.0 + np.sum(a * a, axis=1, keepdims=True))) ** 2)

    check(wend.value_and_grad(scaled), 1.1)


def test_extremes() -> None:
    """No elements are an error, and so refused where no error is expected: in a map."""

    def span(x: Any) -> Any:
        a = np.array(kept(x))
        return np.max(a * a) - np.min(2.0 * a)

    check(wend.value_and_grad(span), 1.1)
    with wend.config(backend="jax"):
        with pytest.raises(ValueError, match="zero-size array to reduction operation maximum"):
            wend.function(span)(-3.0)
        with pytest.raises(UnsupportedError, match="the shape of what reduce_max at"):
            wend.vmap(span)(POINTS)


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


@pytest.mark.parametrize("fun", [backwards, masked])
def test_pullbacks_of_maps(fun: Callable[..., Any]) -> None:
    """The pullback is another program, which takes arrays of the lengths of each element."""
    check(lambda x: wend.vjp(wend.vmap(fun), x)[1](np.ones(len(x)))[0], POINTS)
