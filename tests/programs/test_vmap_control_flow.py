"""What JAX's tests ask of `vmap` of functional control flow: which parts the elements share.

In each program some of carries, operands, limits and predicates have an axis and others do not.
The expected values are those of a Python loop over the elements.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp

COUNT = 5


def to_limit(x: Any, limit: Any, step: Any) -> Any:
    return wend.while_loop(lambda x: x < limit, lambda x: x + step, x)


def pair_to_limit(x: Any, limit: Any, step: Any) -> Any:
    """A carry of which one part never changes."""

    def advance(pair: Any) -> Any:
        return pair[0] + step, pair[1]

    return wend.while_loop(lambda pair: pair[0] + pair[1] < limit, advance, (x, 0.25 * x))


def nested(x: Any, limit: Any, step: Any) -> Any:
    """A loop in a loop; the limits of both may differ from element to element."""

    def outer(state: Any) -> Any:
        total, k = state
        total, _ = wend.while_loop(
            lambda inner: inner[1] < limit,
            lambda inner: (inner[0] + inner[1] * step, inner[1] + step),
            (total, k),
        )
        return total, k + 1.0

    return wend.while_loop(lambda state: state[1] < limit + 0.5, outer, (x, 0.0 * step))[0]


def never(x: Any, limit: Any, step: Any) -> Any:
    return wend.while_loop(lambda x: False, lambda x: x + step * limit, x)


def counted(x: Any, limit: Any, step: Any) -> Any:
    count = wnp.asarray(limit).astype(np.int64)
    return wend.fori_loop(0, count, lambda k, x: x + step * k, x)


def counted_by_all(x: Any, limit: Any, step: Any) -> Any:
    return wend.fori_loop(0, 4, lambda k, pair: (pair[0] * step, pair[1] + limit), (x, 0.0))[1]


def scanned(x: Any, limit: Any, step: Any) -> Any:
    steps = step * wnp.arange(4.0)
    total, rows = wend.scan(lambda x, s: (x + s * limit, x * s), x, steps)
    return total, rows


def branch(x: Any, limit: Any, step: Any) -> Any:
    return wend.cond(x < limit, lambda x: x * step, lambda x: x - limit, x)


def branch_on_both(x: Any, limit: Any, step: Any) -> Any:
    return wend.cond(
        limit > 2.0,
        lambda: wend.cond(x > step, lambda: x, lambda: step),
        lambda: (x + step) * limit,
    )


def one_of_three(x: Any, limit: Any, step: Any) -> Any:
    index = wnp.asarray(limit).astype(np.int64) - 2  # out of range at both ends
    return wend.switch(index, [lambda x: x, lambda x: x * step, lambda x: -x], x)


def loop_in_branch(x: Any, limit: Any, step: Any) -> Any:
    return wend.cond(step > 0.75, lambda: to_limit(x, limit, step), lambda: x)


PROGRAMS: list[Callable[..., Any]] = [
    to_limit,
    pair_to_limit,
    nested,
    never,
    counted,
    counted_by_all,
    scanned,
    branch,
    branch_on_both,
    one_of_three,
    loop_in_branch,
]
VALUES = np.array([0.3, 1.7, 2.2, 0.9, 3.6]), np.arange(COUNT) + 0.8, np.linspace(0.5, 1.5, COUNT)
AXES = [axes for axes in itertools.product([0, None], repeat=3) if 0 in axes]


def leaves(result: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in wend.tree.leaves(result)]


def arguments(axes: tuple[Any, ...]) -> tuple[list[Any], list[list[Any]]]:
    """Return the arguments of all elements, and those of each."""
    whole = [x if axis == 0 else x[2] for x, axis in zip(VALUES, axes, strict=True)]
    single = [
        [x[k] if axis == 0 else x for x, axis in zip(whole, axes, strict=True)]
        for k in range(COUNT)
    ]
    return whole, single


@pytest.mark.sampled(30)
@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("program", PROGRAMS)
def test_values_and_gradients(program: Any, axes: tuple[Any, ...]) -> None:
    """Of whatever the elements share, by plain and by reverse mode."""
    whole, single = arguments(axes)
    found = wend.vmap(program, in_axes=axes)(*whole)
    for k, expected in enumerate(map(leaves, (program(*args) for args in single))):
        for x, y in zip(leaves(found), expected, strict=True):
            np.testing.assert_allclose(x[k], y, rtol=1e-12)

    def total(*args: Any) -> Any:
        return sum(wnp.sum(x * x) for x in wend.tree.leaves(program(*args)))

    slopes = wend.grad(total, argnums=(0, 2))
    found = wend.vmap(slopes, in_axes=axes)(*whole)
    expected_slopes = [slopes(*args) for args in single]
    for x, y in zip(found, zip(*expected_slopes, strict=True), strict=True):
        np.testing.assert_allclose(x, np.stack(y), rtol=1e-11, atol=1e-12)
    joint = wend.grad(lambda *args: wnp.sum(wend.vmap(total, in_axes=axes)(*args)), argnums=(0, 2))
    for x, y, axis in zip(joint(*whole), found, axes[::2], strict=True):
        np.testing.assert_allclose(x, y if axis == 0 else np.sum(y, axis=0), rtol=1e-11, atol=1e-12)


def test_a_branch_that_is_not_taken_has_no_nan() -> None:
    """Nor has its derivative: √ at negative numbers is not computed."""

    def safe(x: Any) -> Any:
        return wend.cond(x > 0.0, np.sqrt, lambda x: 0.0 * x, x)

    xs = np.array([-1.0, 0.0, 4.0])
    np.testing.assert_array_equal(wend.vmap(safe)(xs), [0.0, 0.0, 2.0])
    np.testing.assert_array_equal(wend.vmap(wend.grad(safe))(xs), [0.0, 0.0, 0.25])


def test_loops_that_draw() -> None:
    """A key in the carry: each element draws as it would alone."""

    def until_large(key: Any) -> Any:
        def draw(state: Any) -> Any:
            key, _, count = state
            key, own = wend.random.split(key)
            return key, wend.random.uniform(own), count + 1

        start = (key, 0.0, 0)
        return wend.while_loop(lambda state: state[1] < 0.8, draw, start)[1:]

    keys = wend.random.split(wend.random.key(3), 50)
    found = wend.vmap(until_large)(keys)
    single = [until_large(key) for key in keys]
    for column, expected in zip(found, zip(*single, strict=True), strict=True):
        np.testing.assert_array_equal(column, np.stack(expected))


def test_map_and_associated_axes() -> None:
    """`map` inside, `out_axes`, and a vmap in a vmap over the axes of a matrix."""
    a = np.arange(12.0).reshape(3, 4)

    def squares(row: Any) -> Any:
        return wend.map(lambda x: to_limit(x, 5.0, 1.0), row)

    expected = np.where(a < 5.0, 5.0, a)
    np.testing.assert_array_equal(wend.vmap(squares)(a), expected)
    np.testing.assert_array_equal(wend.vmap(squares, in_axes=1, out_axes=1)(a), expected)
    np.testing.assert_array_equal(
        wend.vmap(wend.vmap(lambda x: to_limit(x, 5.0, 1.0)), in_axes=1)(a), expected.T
    )
