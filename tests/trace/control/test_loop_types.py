"""Carries whose sizes change: the values and derivatives of the same trips without a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp

X = np.array([0.7, -0.4, 1.3, 0.2])
W = np.array([0.9, 1.1, 1.2, 0.8])
ROWS = X.reshape(2, 2)

# What a trip makes of a row `a`: `k` is the number of the trip, `w` a row of known size
STEPS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "doubled": lambda k, a, w: wnp.concatenate([a, wnp.sin(a)]),
    "appended": lambda k, a, w: wnp.concatenate([a, a[-1:] * w[0]]),
    "known_appended": lambda k, a, w: wnp.concatenate([w, a * a])[:6],
    "repeated": lambda k, a, w: wnp.repeat(wnp.sin(a), 2),
    "padded": lambda k, a, w: wnp.pad(a * w[1], 1),
    "tiled": lambda k, a, w: wnp.tile(a * 0.5, 2),
    "without_first": lambda k, a, w: a[1:] * a[0],
    "without_last": lambda k, a, w: wnp.sin(a[:-1]),
    "every_other": lambda k, a, w: a[::2] * w[0] + a[0],
    "cut_by_the_trip": lambda k, a, w: (a * a)[: 4 - k],
    "masked": lambda k, a, w: wnp.cos(a)[a > -0.3],
    "multiplied_by_known": lambda k, a, w: a * w,
    "added_to_known": lambda k, a, w: wnp.sin(w + a),
    "becomes_known": lambda k, a, w: w[:2] * wnp.sum(a * a),
    "of_its_own_size": lambda k, a, w: a * wnp.arange(a.shape[0]) + wnp.sum(a),
    "zeros_of_its_size": lambda k, a, w: wnp.zeros(a.shape[0] + 1) + wnp.prod(wnp.cos(a)),
    "of_the_trip": lambda k, a, w: wnp.ones(k + 1) * wnp.sum(wnp.sin(a)),
    "outer_reduced": lambda k, a, w: wnp.sum(a[:, None] * a[None, :], axis=0),
    "outer_with_known": lambda k, a, w: wnp.sin(wnp.ravel(a[:, None] * w[:2])),
    "reversed": lambda k, a, w: a[::-1] * a,
    "rolled": lambda k, a, w: wnp.roll(a, 1) * a,
    "sorted": lambda k, a, w: wnp.sort(a) * w[0],
    "summed_up": lambda k, a, w: wnp.cumsum(a) * 0.5,
    "set_in_place": lambda k, a, w: changed(a, w),
    "in_a_branch": lambda k, a, w: wend.cond(wnp.sum(a) > 0.5, lambda: wnp.sin(a), lambda: a * a),
    "differenced": lambda k, a, w: wnp.diff(a) * w[0] + a[1:],
    "indexed": lambda k, a, w: wnp.sin(a)[wnp.arange(a.shape[0] + 1) // 2],
    "emptied": lambda k, a, w: a[:0] * 2.0,
}
# Of two rows
TABLE_STEPS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "rows_doubled": lambda k, a, w: wnp.concatenate([a, wnp.sin(a)]),
    "columns_doubled": lambda k, a, w: wnp.concatenate([a, wnp.sin(a)], axis=1),
    "transposed": lambda k, a, w: (a[:, :1] * a).T,
    "rows_multiplied": lambda k, a, w: a @ (a.T @ a) * 0.1,
    "columns_multiplied": lambda k, a, w: a * w[:2],
    "rows_cut": lambda k, a, w: wnp.sin(a)[1:],
    "raveled": lambda k, a, w: wnp.reshape(a * a, (-1, 2)),
    "stacked": lambda k, a, w: wnp.concatenate([a, wnp.sum(a, axis=0)[None]]),
}


def changed(a: Any, w: Any) -> Any:
    b = a * w[0]
    b[0] = wnp.sum(a)
    return b


# Loops of some trips of `step` from `a`, whose carry has sizes that `shape` leaves open
def counted(step, trips, shape, a):
    return wend.while_loop(
        lambda c: c[0] < trips,
        lambda c: (c[0] + 1, step(c[0], c[1])),
        (0, a),
        shape_invariants=((), shape),
    )[1]


def bounded(step, trips, shape, a):
    return wend.while_loop(
        lambda c: True,
        lambda c: {"k": c["k"] + 1, "a": step(c["k"], c["a"])},
        {"k": 0, "a": a},
        maximum_iterations=trips,
        shape_invariants={"k": (), "a": shape},
    )["a"]


def by_data(step, trips, shape, a):
    """The test reads elements; what it reads has a derivative, too."""
    return wend.while_loop(
        lambda c: c[1] < trips + 0.5,
        lambda c: (step(c[2], c[0]), c[1] + 1.0 + 0.0 * wnp.sum(c[0]), c[2] + 1),
        (a, 1.0 + 0.0 * wnp.sum(a), 0),
        shape_invariants=(shape, (), ()),
    )[0]


def in_a_branch(step, trips, shape, a):
    return wend.cond(
        wnp.sum(a * a) > -1.0,
        lambda: counted(step, trips, shape, a) * 1.0,
        lambda: counted(step, 0, shape, a),
    )


def from_a_spec(step, trips, shape, a):
    return wend.while_loop(
        lambda c: c[0] < trips,
        lambda c: (c[0] + 1, step(c[0], c[1])),
        (0, a),
        shape_invariants=((), wend.TensorSpec(shape, np.float64)),
    )[1]


def exchanged(step, trips, shape, a):
    """Two carries of changing sizes that trade places."""
    return wend.while_loop(
        lambda c: c[0] < 2 * trips,
        lambda c: (c[0] + 1, c[2], step(c[0] // 2, c[1])),
        (0, a, a[:1]),
        shape_invariants=((), shape, shape),
    )[1]


def nested(step, trips, shape, a):
    """The trips of an outer loop, each of which runs an inner loop of one trip."""

    def one(k, a):
        return wend.while_loop(
            lambda c: c[0] < k + 1,
            lambda c: (c[0] + 1, step(c[0], c[1])),
            (k, a),
            shape_invariants=((), shape),
        )[1]

    return counted(one, trips, shape, a)


def called(step, trips, shape, a):
    return wend.function(lambda a: counted(step, trips, shape, a))(a)


def checkpointed(step, trips, shape, a):
    return wend.checkpoint(lambda a: counted(step, trips, shape, a))(a)


def forgetful(step, trips, shape, a):
    return wend.while_loop(
        lambda c: c[0] < trips,
        lambda c: (c[0] + 1, step(c[0], c[1])),
        (0, a),
        memory="recompute",
        shape_invariants=((), shape),
    )[1]


LOOPS = (counted, bounded, by_data, in_a_branch, from_a_spec, exchanged, nested, called)
LOOPS += (checkpointed, forgetful)


def written_out(step, trips, shape, a):
    for k in range(trips):
        a = step(k, a)
    return a


def score(run: Callable, step: Callable, shape: Any, trips: int) -> Callable:
    def fun(x, w):
        a = run(lambda k, a: step(k, a, w), trips, shape, x)
        return wnp.sum(a * a) + wnp.sum(a) * w[0]

    return fun


def derivatives(fun: Callable, x: np.ndarray, w: np.ndarray) -> dict[str, Any]:
    """The value, the gradients and what differentiates them, forwards and backwards."""
    tangent, weights = np.linspace(-1.0, 2.0, x.size).reshape(x.shape), np.cos(x)

    def slope(x, w):
        return wnp.sum(wend.grad(fun)(x, w) * weights)

    return {
        "value": fun(x, w),
        "gradients": wend.grad(fun, argnums=(0, 1))(x, w),
        "jvp": wend.jvp(lambda x: fun(x, w), (x,), (tangent,)),
        "reverse over reverse": wend.grad(slope, argnums=(0, 1))(x, w),
        "forward over reverse": wend.jvp(lambda x: wend.grad(fun)(x, w), (x,), (tangent,)),
        "reverse over forward": wend.grad(
            lambda x: wend.jvp(lambda x: fun(x, w), (x,), (tangent,))[1]
        )(x),
    }


CASES = [
    *((name, loop) for name in STEPS for loop in LOOPS),
    *((name, loop) for name in TABLE_STEPS for loop in LOOPS if loop is not exchanged),
]


@pytest.mark.sampled(96)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize(("name", "loop"), CASES, ids=lambda x: getattr(x, "__name__", x))
def test_carries_of_changing_sizes(name, loop, backend):
    step = (STEPS | TABLE_STEPS)[name]
    x, shape = (X, (None,)) if name in STEPS else (ROWS, (None, None))
    for trips in (0, 1, 3):
        found, expected = (score(run, step, shape, trips) for run in (loop, written_out))
        with wend.config(backend=backend):
            mine, its = derivatives(found, x, W), derivatives(expected, x, W)
        for order in its:
            for a, b in zip(
                wend.tree.leaves(mine[order]), wend.tree.leaves(its[order]), strict=True
            ):
                assert np.shape(a) == np.shape(b), (trips, order)
                np.testing.assert_allclose(
                    a, b, rtol=1e-11, atol=1e-13, err_msg=f"{trips} trips: {order}"
                )
