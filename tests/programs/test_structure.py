"""What the graphs of loops and their gradients hold: one While, and only the tape that is read."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.graphs import (
    all_graphs,
    float_carries,
    gradient,
    list_carries,
    loops,
    names,
    pushes,
    traced,
)
from tests.helpers.programs import PROGRAMS, newton, square_until
from wend.autodiff.vjp import vjp
from wend.passes.pipeline import OPTIMIZE, run_passes
from wend.runtime.sequence import Sequence


def five_times(body):
    return lambda x, *more: wnp.sum(wend.fori_loop(0, 5, lambda i, v: body(v, *more), x))


V = np.array([0.1, 0.2, 0.3])
W = np.random.default_rng(0).normal(size=(3, 3))


def plus_one(v):
    return v + 1.0


def plus_stopped(v):
    return v + wend.stop_gradient(v * v)


IDENTITIES = (plus_one, plus_stopped)
# name, body, further arguments, argnums, how many values are taped per trip
TAPES = [
    ("v·2", lambda v: v * 2.0, (), 0, 0),
    ("v+1", plus_one, (), 0, 0),
    ("v·v", lambda v: v * v, (), 0, 1),
    ("sin v", wnp.sin, (), 0, 1),
    ("exp v", wnp.exp, (), 0, 1),
    ("tanh v", wnp.tanh, (), 0, 1),
    ("sin v · cos v", lambda v: wnp.sin(v) * wnp.cos(v), (), 0, 1),
    ("v + sg(v²)", plus_stopped, (), 0, 0),
    ("v·c, only dv", lambda v, c: v * c, (V,), 0, 0),
    ("v·c, dv and dc", lambda v, c: v * c, (V,), (0, 1), 1),
    ("tanh(v·c), dv and dc", lambda v, c: wnp.tanh(v * c), (V,), (0, 1), 1),
    ("tanh(h@W), only dh", lambda h, w: wnp.tanh(h @ w), (W,), 0, 1),
    ("tanh(h@W), dh and dW", lambda h, w: wnp.tanh(h @ w), (W,), (0, 1), 1),
    ("h@W, only dh", lambda h, w: h @ w, (W,), 0, 0),
    ("h@W, dh and dW", lambda h, w: h @ w, (W,), (0, 1), 1),
    ("v / (1 + c²), only dv", lambda v, c: v / (1.0 + c * c), (V,), 0, 0),
]


@pytest.mark.parametrize(
    ("body", "more", "argnums", "taped"),
    [row[1:] for row in TAPES],
    ids=[row[0] for row in TAPES],
)
def test_what_is_taped(body, more, argnums, taped):
    """T59."""
    graph = gradient(five_times(body), V, *more, argnums=argnums)
    forward, *backward = loops(graph)
    assert len(pushes(graph)) == taped == len(list_carries(forward))
    assert not any(map(list_carries, backward))  # read by position, as invariants
    assert backward or body in IDENTITIES  # the cotangent of which no trip changes


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_values_need_no_tape(program):
    """Only the stacked results of scan and map are pushed."""
    graph = traced(program.fun, *program.args, optimize=True)
    stacks = {"scan", "map"} & set(program.fun.__code__.co_names)
    assert bool(pushes(graph)) == (bool(stacks) and graph.count("list_stack") > 0)


def test_one_while():
    for fun in (square_until, newton):
        graph = traced(fun, 2.0)
        assert graph.count("while") == len(loops(graph)) == 1
        graph = gradient(fun, 2.0)
        assert graph.count("while") == len(loops(graph)) == 2


def test_size_is_independent_of_the_trip_count():
    """T64."""

    def rnn(n):
        return lambda h: wnp.sum(wend.fori_loop(0, n, lambda i, h: wnp.tanh(h @ W), h))

    def unrolled(n):
        def fun(h):
            for _ in wend.unroll(range(n)):
                h = wnp.tanh(h @ W)
            return wnp.sum(h)

        return fun

    short, long = traced(rnn(2), V), traced(rnn(200), V)
    assert names(short) == names(long)
    assert len(names(long)) < 12
    assert names(gradient(rnn(2), V)) == names(gradient(rnn(200), V))
    assert len(names(traced(unrolled(200), V))) >= 400
    np.testing.assert_allclose(rnn(200)(V), unrolled(200)(V), rtol=1e-12)


def test_counters_constants_and_invariants_are_not_taped():
    def fun(x, a):
        def body(i, v):
            return wnp.sin(v) * (i + 1) * a + 3.0 * wnp.cos(a) * i * i

        return wend.fori_loop(0, 5, body, x)

    graph = gradient(fun, 0.3, 0.7, argnums=(0, 1))
    forward, _ = loops(graph)
    (taped,) = pushes(graph)
    assert str(taped.operands[1].type) == "f64[]"  # v; the counter is an i64
    assert len(list_carries(forward)) == 1


def test_counter_by_an_invariant_step_is_not_taped():
    def fun(x, step):
        def body(s):
            k, v = s
            return k + step, wnp.sin(v) * (1.0 + k)

        return wend.while_loop(lambda s: s[0] < 10, body, (1, x))[1]

    value_and_grad = wend.value_and_grad(fun)
    graph = run_passes(value_and_grad.get_concrete_function(0.3, np.int64(3)).graph, OPTIMIZE)
    assert [str(push.operands[1].type) for push in pushes(graph)] == ["f64[]"]
    _, slope = value_and_grad(0.3, np.int64(3))
    ahead, behind = fun(0.3 + 1e-6, np.int64(3)), fun(0.3 - 1e-6, np.int64(3))
    np.testing.assert_allclose(slope, (ahead - behind) / 2e-6, rtol=1e-8)


def test_carries_nobody_asked_for_have_no_cotangent():
    """Of three independent carries only one is summed: the backward loop moves one."""

    def fun(x, y, z):
        def body(i, c):
            return wnp.sin(c[0]), wnp.cos(c[1]), c[2] * c[2]

        return wend.fori_loop(0, 4, body, (x, y, z))[1]

    graph = gradient(fun, 0.1, 0.2, 0.3, argnums=(0, 1, 2))
    forward, backward = loops(graph)
    assert len(float_carries(backward)) == 1
    assert len(list_carries(forward)) == len(pushes(graph)) == 1


def test_unused_carries_are_removed():
    """T62: what feeds nothing is not run; where it is used, it stays."""

    def both(x):
        return wend.fori_loop(0, 4, lambda i, c: (wnp.sin(c[0]), wnp.exp(c[1]) * c[0]), (x, x))

    one = traced(lambda x: both(x)[0], 0.1)
    assert "exp" not in names(one)
    assert len(float_carries(loops(one)[0])) == 1
    two = traced(lambda x: both(x)[1], 0.1)  # the second reads the first
    assert len(float_carries(loops(two)[0])) == 2
    assert {"sin", "exp"} <= set(names(two))


def test_unused_counter_feeds_the_predicate_only():
    graph = traced(lambda x: wend.fori_loop(0, 4, lambda i, v: v * v, x), 0.1)
    assert loops(graph)[0].attrs["carry"] == 2


def test_unchanged_carries_are_invariants():
    def fun(x, y):
        return wend.while_loop(lambda c: c[0] < c[1], lambda c: (c[0] * 2.0, c[1]), (x, y))

    graph = traced(fun, 1.0, 100.0)
    (loop,) = loops(graph)
    assert loop.attrs["carry"] == 1
    assert graph.results[1] is graph.params[1]


def test_second_order_adds_no_second_tape_of_the_first():
    """T60: the gradient of the gradient of v·v three times."""

    def fun(x):
        return wend.fori_loop(0, 3, lambda i, v: v * v, x)

    first = gradient(fun, 1.1)
    again = run_passes(first, OPTIMIZE)
    assert len(pushes(first)) == len(pushes(again)) == 1
    second = gradient(wend.grad(fun), 1.1)
    assert len(loops(second)) == 4
    # The carry, by the forward loop for either order, and the cotangent by the backward one,
    # which reads the carry where it is.
    assert len(pushes(second)) == 3
    assert {str(push.operands[1].type) for push in pushes(second)} == {"f64[]"}


def test_nested_pushes():
    """T61: 5 × 3 × 3 trips push 45 records of one value, and no constant."""

    def fun(x):
        def innermost(k, v):
            return wnp.sin(v) * 1.2

        def middle(j, v):
            return wend.fori_loop(0, 3, innermost, v)

        def outer(i, v):
            return wend.fori_loop(0, 3, middle, v)

        return wend.fori_loop(0, 5, outer, x)

    graph = gradient(fun, 0.3)
    floats = [push for push in pushes(graph) if str(push.operands[1].type) == "f64[]"]
    assert len(floats) == 1
    found = wend.vjp(fun, 0.3)[1].residuals
    assert sum(map(_records, found)) == 45


def _records(residual):
    """How many numbers a residual of nested lists holds."""
    if isinstance(residual, Sequence):
        return sum(map(_records, residual.items()))
    return int(isinstance(residual, np.floating))


def residual_results(fun, *args):
    """How many results the `if` of the forward form has beyond its own."""
    forward = vjp(traced(fun, *args), [0], [0]).forward
    (branch,) = [node for node in forward.nodes if node.op.name == "if"]
    return len(branch.results) - 1


def _where_positive(fun, x):
    return wend.cond(x > 0.0, fun, lambda x: x, x)


def test_residuals_of_a_branch():
    """T63: what is cheap is computed again from the operands; a product of matrices is kept."""
    for cheap in (lambda x: x * 2.0, lambda x: x * x, wnp.tanh):
        guarded = functools.partial(_where_positive, cheap)
        assert residual_results(guarded, 1.0) == 0

    def fun(x):
        return wnp.sum(wend.cond(x[0] > 0.0, lambda: wnp.sin(x @ W), lambda: x))

    assert residual_results(fun, V) == 1


def test_no_loop_where_nothing_depends():
    """K55: where no seeded result depends on the inputs, there is no backward loop."""
    graph = gradient(
        lambda x: wend.while_loop(lambda v: v < 8.0, lambda v: v * v, 2.0) + 0.0 * x, 1.0
    )
    assert len(loops(graph)) == 1
    graph = gradient(lambda x: wend.stop_gradient(square_until(x)) + x, 2.0)
    assert len(loops(graph)) == 1


def test_regions_are_closed():
    """D8: regions have no captures; what they use comes in as operands."""
    c = np.array([1.0, 2.0, 3.0])

    def fun(x):
        y = wnp.sin(x)
        return wnp.sum(
            wend.fori_loop(
                0, 3, lambda i, v: wend.cond(v[0] > 0.0, lambda: v * y * c, lambda: v - y), x
            )
        )

    graph = traced(fun, V)
    assert len(graph.captures) == 1
    for region in all_graphs(graph):
        if region is not graph:
            assert not region.captures
