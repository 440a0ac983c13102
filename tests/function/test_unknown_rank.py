"""One trace for arrays of any rank, and its gradients."""

from __future__ import annotations

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.base.errors import ShapeError

ANY = wend.TensorSpec(None, "float64")
SHAPES = [((), ()), ((3,), ()), ((2, 3), (3,)), ((3,), (2, 1)), ((0, 3), (1,)), ((2, 1, 3), (4, 1))]


def broadcast(x, y):
    return wnp.sum(wnp.sin(x) * y + 2.0 * x)


def chosen(x, y):
    return wnp.mean(wnp.where(x > 0.1, x * y, -x * x))


def largest(x, y):
    return wnp.max(x) * x.size + wnp.prod(y)


def in_a_branch(x, y):
    return wnp.sum(wend.cond(wnp.sum(x) > 0.0, lambda: x * y, lambda: wnp.zeros_like(x * y)))


def in_a_loop(x, y):
    total = wnp.sum(x)
    while total < 100.0:
        total = total * 1.5 + wnp.sum(y * y) + 1.0
    return total


FUNCTIONS = [broadcast, chosen, largest, in_a_branch, in_a_loop]
CASES = [
    (fun, shapes)
    for fun in FUNCTIONS
    for shapes in SHAPES
    # Nothing has no mean and no maximum.
    if 0 not in np.broadcast_shapes(*shapes) or fun not in (chosen, largest)
]


@pytest.mark.sampled(9)
@pytest.mark.parametrize(("fun", "shapes"), CASES)
def test_one_trace_serves_any_rank(fun, shapes):
    rng = np.random.default_rng(0)
    args = [rng.normal(size=shape) + 0.5 for shape in shapes]
    general = wend.function(fun, input_signature=(ANY, ANY))
    np.testing.assert_allclose(general(*args), wend.function(fun)(*args), rtol=1e-14)
    for argnums in (0, (0, 1)):
        found = wend.grad(general, argnums)(*args)
        expected = wend.grad(fun, argnums)(*args)
        for mine, theirs in zip(
            *(x if isinstance(x, tuple) else (x,) for x in (found, expected)), strict=True
        ):
            np.testing.assert_allclose(mine, theirs, rtol=1e-13)


def test_what_needs_the_rank_says_so():
    general = wend.function(lambda x: wnp.sum(x, axis=0), input_signature=(ANY,))
    with pytest.raises(ShapeError, match=r"rank .* is not known.*reshape it first"):
        general(np.ones(3))
