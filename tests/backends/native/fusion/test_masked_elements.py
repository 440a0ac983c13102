"""What is computed from the elements that a mask selects, in one nest with the mask."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.helpers.graphs import traced

import wend
from wend.backends.native.module import fuse_array_loops, prepare_for_emission
from wend.ir.dtypes import FLOAT64
from wend.ir.types import TensorType
from wend.ops.build import Build
from wend.ops.indexing import nonzero


def picked(x: Any, table: Any, least: Any) -> Any:
    part, parts = x[x > least], table[table > least]
    return part.sum(), part.mean(), len(part), parts.sum(), parts.prod(), (x[x > least] > 9).any()


@pytest.mark.parametrize("least", [0.3, -9.0, 9.0])
@pytest.mark.parametrize("sizes", [(1000, 7), (0, 0)])
@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
def test_reductions_of_what_a_mask_picks(least: float, sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    arguments = rng.standard_normal(sizes[0]), rng.standard_normal((sizes[1], 9)), least
    found = wend.function(picked, backend="native")(*arguments)
    for mine, theirs in zip(found, picked(*arguments), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-13, equal_nan=True)


def test_what_is_not_picked_does_not_count() -> None:
    x = np.array([1.0, np.nan, np.inf, 2.0])
    of = wend.function(lambda x, mask: (x[mask].sum(), x[mask].prod()), backend="native")
    assert of(x, np.array([True, False, False, True])) == (3.0, 2.0)
    assert np.isnan(of(x, np.array([True, True, False, True]))).all()


def test_the_largest_of_nothing_is_refused() -> None:
    largest = wend.function(lambda x: x[x > 1].max(), backend="native")
    assert largest(np.arange(4.0)) == 3.0
    with pytest.raises(ValueError, match="zero-size array"):
        largest(np.zeros(4))


def test_no_positions_are_looked_for() -> None:
    b = Build("f")
    x = b.param(TensorType(FLOAT64, (100,)))
    positions = b.emit_node(nonzero, [b.gt(x, b.zeros_like(x))]).results[0]
    part = b.gather(x, positions)
    ops = [
        node.op.name for node in fuse_array_loops(b.finish([b.reduce_sum(part, axes=(0,))])).walk()
    ]
    assert "nonzero" not in ops
    assert "gather" not in ops
    # Where somebody else wants what is picked it is.
    ops = [
        node.op.name
        for node in fuse_array_loops(b.finish([b.reduce_sum(part, axes=(0,)), part])).walk()
    ]
    assert "nonzero" in ops


def updated(x: Any, y: Any, c: Any) -> Any:
    x, y = x.copy(), y * 1.0
    inside = (x > -0.5) & (y < c)
    x[inside] = x[inside] ** 2 + y[inside]
    y[~inside] -= 2.0 * np.abs(x[~inside]) + c
    y[inside] = c
    total = np.sqrt(x[x > 0.0]).sum()
    np.add.at(x, inside, 1.5)
    return x, y, total, x[inside].sum() / (1 + np.sum(inside))


def masked_loop(x: Any, c: Any) -> Any:
    z, steps = x * 0.0, np.zeros(x.shape, int)
    for k in range(6):
        near = np.abs(z) < 2.0
        steps[near] = k
        z[near] = z[near] ** 2 + x[near] * c
    return z, steps, z[np.abs(z) < 2.0].sum()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", [(60,), (7, 9), (0,), (1,)])
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
def test_updates_of_what_a_mask_selects(shape: tuple[int, ...], dtype: str) -> None:
    rng = np.random.default_rng(1)
    x = (2.0 * rng.standard_normal(shape)).astype(dtype)
    tolerance = {"rtol": 1e-5 if dtype == "f4" else 1e-12}
    programs: list[tuple[Any, tuple[Any, ...]]] = [(masked_loop, (x, x.dtype.type(0.7)))]
    if dtype != "c16" and x.size:
        programs.append((updated, (x, x[::-1].copy(), x.dtype.type(0.3))))
    for fun, arguments in programs:
        found = wend.function(fun, backend="native")(*arguments)
        for mine, theirs in zip(found, fun(*arguments), strict=True):
            assert np.asarray(mine).dtype == np.asarray(theirs).dtype
            np.testing.assert_allclose(mine, theirs, **tolerance)


def test_derivatives_of_updates_do_not_reach_outside_the_mask() -> None:
    def logarithms(x: Any) -> Any:
        y = np.zeros_like(x)
        y[x > 0] = np.log(x[x > 0]) / x[x > 0]
        return y.sum()

    x = np.array([1.5, 0.0, -0.0, -2.0, np.nan, 0.25])
    positive = x > 0
    expected = np.zeros(6)
    expected[positive] = (1 - np.log(x[positive])) / x[positive] ** 2
    for backend in ("native", "numpy"):
        with wend.config(backend=backend):
            np.testing.assert_allclose(wend.grad(logarithms)(x), expected, rtol=1e-14)
            second = wend.grad(lambda x: wend.grad(logarithms)(x).sum())(x)
    expected[positive] = (2 * np.log(x[positive]) - 3) / x[positive] ** 3
    np.testing.assert_allclose(second, expected, rtol=1e-14)


def ops_of(fun: Any, *arguments: Any) -> list[str]:
    graph = prepare_for_emission(traced(fun, *arguments, optimize=True))
    return [node.op.name for node in graph.walk()]


def test_updates_look_for_no_positions() -> None:
    x = np.linspace(-1.0, 1.0, 100)

    def update(x: Any) -> Any:
        x = x.copy()
        x[x > 0] = x[x > 0] * 2.0
        return x

    def costly(x: Any) -> Any:
        x = x.copy()
        x[x > 0] = np.tan(np.sin(x[x > 0]))
        return x

    assert not {"nonzero", "gather", "scatter_set"} & {*ops_of(update, x)}
    slope = wend.grad(lambda x: update(x).sum())
    assert not {"nonzero", "gather", "scatter_set", "scatter_add"} & {*ops_of(slope, x)}
    assert "nonzero" in ops_of(costly, x)  # computed for the selected elements alone


def test_updates_of_complex_numbers_look_for_no_positions() -> None:
    z = np.linspace(-0.2, 0.2, 100) * (1 + 2j)

    def iterate(z: Any, c: Any) -> Any:
        z = z.copy()
        near = np.abs(z) < 0.3
        for _ in range(30):  # many uses of a mask may cost more together than one may
            z[near] = z[near] ** 2 + c[near]
        return z

    assert not {"nonzero", "gather", "scatter_set"} & {*ops_of(iterate, z, z)}
    found = wend.function(iterate, backend="native")(z, 0.3 * z)
    np.testing.assert_allclose(found, iterate(z, 0.3 * z), rtol=1e-12)
