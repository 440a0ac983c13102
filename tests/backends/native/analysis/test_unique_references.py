"""Arrays that loops update in place without looking for other references to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.helpers.graphs import traced

import wend
from wend.backends.native.backend import BACKEND


def counting(x: Any, n: Any) -> Any:
    out = np.zeros(19)
    for k in range(n):
        out[k % 19] = out[k % 19] + x[k % 5]
    return out


def nested(x: Any, n: Any) -> Any:
    out = np.zeros((4, 5))
    for i in range(n):
        for k in range(5):
            out[i % 4, k] = x[k] + out[i % 4 - 1, k]
    return out


def branching(x: Any, n: Any) -> Any:
    out = x.copy()
    for k in range(n):
        if out[k % 5] > 0.5:
            out[k % 5] = -out[k % 5]
        else:
            out[(k + 1) % 5] += 1.0
    return out


def new_in_each_trip(x: Any, n: Any) -> Any:
    before = np.zeros(18)
    for i in range(n):
        out = np.zeros(18)
        for k in range(17):
            if x[k] < x[i]:
                out[k + 1] = before[k] + x[k]
            else:
                out[k + 1] = max(before[k + 1], out[k])
        before = out
    return before


def stopping(x: Any, n: Any) -> Any:
    out = x.copy()
    k = 0
    while k < n and out[k % 5] < 3.0:
        out[k % 5] += 1.0
        k += 2
    return out


def two_arrays(x: Any, n: Any) -> Any:
    x = x.copy()
    y = x.copy()
    for k in range(n):
        y[k % 5] = x[(k + 1) % 5]
    return x + y


# Each trip, or the world around the loop, keeps another reference.
def kept_in_a_list(x: Any, n: Any) -> Any:
    out, seen = x.copy(), [x]
    for k in range(n):
        seen.append(out.copy())
        out[k % 5] = 7.0
    return out, np.sum(np.stack(seen))


def kept_as_another(x: Any, n: Any) -> Any:
    out, before = x.copy(), x.copy()
    for k in range(n):
        before = out.copy()
        out[k % 5] += 1.0
    return out, before


def exchanged(x: Any, n: Any) -> Any:
    a, b = x.copy(), 2.0 * x
    for k in range(n):
        a, b = b, a
        a[k % 5] = b[(k + 1) % 5]
    return a, b


def shared_before(x: Any, n: Any) -> Any:
    start = np.sin(x)
    total = 0.0
    for _ in range(n):
        out = start.copy()
        for k in range(3):
            out[k] = out[k + 1] + 1.0
        total += np.sum(out * start)
    return total, start


def shared_by_two(x: Any, n: Any) -> Any:
    start = np.sin(x)
    a, b = start.copy(), start.copy()
    for k in range(n):
        a[k % 5] = 1.0
        b[(k + 1) % 5] = 2.0
    return a, b, start


def kept_after(x: Any, n: Any) -> Any:
    out = x.copy()
    for k in range(n):
        out[k % 5] = 0.0
    first = out.copy()
    out[2] = 9.0
    return first, out


def perhaps_another(x: Any, n: Any) -> Any:
    a, b = x.copy(), 2.0 * x
    for k in range(n):
        if k % 3 == 1:
            a = b.copy()
        a[k % 5] += 1.0
        b[(k + 2) % 5] -= 1.0
    return a, b


ALONE = [counting, nested, branching, new_in_each_trip, stopping]
SHARED = [two_arrays, kept_in_a_list, kept_as_another, exchanged, shared_before, shared_by_two]
SHARED += [kept_after, perhaps_another]
X = np.random.default_rng(0).uniform(0.0, 2.0, 17)


@pytest.mark.parametrize("program", [*ALONE, *SHARED])
def test_values(program: Callable[..., Any]) -> None:
    fun = wend.function(program)
    for n in (0, 1, 2, 5, 12):
        x = X.copy()
        found, expected = fun(x, n), program(X.copy(), n)
        pairs = (
            zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
        )
        for a, b in pairs:
            np.testing.assert_allclose(a, b, rtol=1e-14)
        np.testing.assert_array_equal(x, X)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("program", [*ALONE, *SHARED])
def test_gradients(program: Callable[..., Any]) -> None:
    def total(x: Any, n: Any) -> Any:
        results = program(x, n)
        results = results if isinstance(results, tuple) else (results,)
        return sum(np.sum(result * result) for result in results)

    reference = wend.function(wend.grad(total), backend="numpy")
    slope = wend.function(wend.grad(total))
    for n in (0, 1, 7):
        np.testing.assert_allclose(slope(X, n), reference(X, n), rtol=1e-13)


@pytest.mark.parametrize("program", ALONE)
def test_trips_do_not_ask(program: Callable[..., Any]) -> None:
    text = BACKEND.text(traced(program, X, 3, optimize=True))
    assert text.count("label %own") <= 1


@pytest.mark.parametrize("n", [0, 1, 6])
def test_positions_from_both_ends(n: int) -> None:
    def program(x: Any, n: Any) -> Any:
        out = np.zeros(26)
        for k in range(-n, n):
            out[k] = x[k] + 1.0
        return out

    np.testing.assert_array_equal(wend.function(program)(X, n), program(X, n))


@pytest.mark.parametrize("first", [17, -18, 2**62, -(2**62), 2**63 - 1, -(2**63)])
def test_positions_outside_are_refused(first: int) -> None:
    fun = wend.function(lambda x, k: x[k] + 1.0)
    with pytest.raises(IndexError):
        fun(X, np.int64(first))
