"""Reductions of what a mask picks, in one nest with what computes the mask."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
from wend.backends.native.module import fuse_array_loops
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
