"""What each pass makes of graphs as they are recorded; the texts are cases of `test_golden`."""

from __future__ import annotations

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.graphs import check_graph
from wend.ir import Graph, equal, parse, to_text, verify
from wend.passes.algebra import algebra
from wend.passes.canonicalize_loops import canonicalize_loops
from wend.passes.cse import cse
from wend.passes.dce import dce
from wend.passes.fold import fold
from wend.passes.hoist import hoist
from wend.passes.inline import inline_calls
from wend.passes.pipeline import OPTIMIZE, run_passes
from wend.trace.recording.arguments import leaf_type
from wend.trace.trace_function import trace_function


def recorded(fun, *args) -> Graph:
    """The graph as it is recorded, before any pass."""
    types = [leaf_type(arg) if not hasattr(arg, "leaf_type") else arg.leaf_type() for arg in args]
    return trace_function(fun, types, lambda fun, leaves: fun(*leaves), fun.__name__).graph


# dce
def unused_nodes(x):
    wnp.sin(x)
    y = x * 2.0
    wnp.exp(y) + wnp.cos(y)
    return y


def unused_carry(x):
    return wend.fori_loop(0, 4, lambda i, c: (wnp.sin(c[0]), wnp.exp(c[1]) * c[0]), (x, x))[0]


def unused_loop(x):
    wend.while_loop(lambda v: v < 8.0, lambda v: v * v, x)
    return x + 1.0


def unused_branch_result(x):
    y = x * 3.0
    return wend.cond(x > 0.0, lambda: (x, wnp.exp(y)), lambda: (-x, y))[0]


def unused_call_result(x):
    inner = wend.function(lambda a, b: (a * 2.0, wnp.exp(b)), name="inner")
    return inner(x, x * 3.0)[0]


def effects_stay(x):
    wend.print("x", x)
    wend.assert_(x > 0.0, "positive")
    wend.fori_loop(0, 2, lambda i, c: (wend.print(i), c)[1], ())
    return 1.0


# cse
def equal_nodes(x):
    return wnp.sin(x) * 2.0 + wnp.sin(x) * 2.0


def nearly_equal_nodes(x):
    return x * 0.0 + x * -0.0 + wnp.sum(wnp.ones((2, 3)) * x) + wnp.sum(wnp.ones((3, 2)) * x)


def equal_in_a_body(x):
    return wend.fori_loop(0, 3, lambda i, v: wnp.sin(v) * wnp.sin(v) + wnp.sin(v), x)


def equal_effects_stay(x):
    wend.print("x", x)
    wend.print("x", x)
    return x


def equal_of_unknown_size(x):
    twice = wnp.concatenate([x, x]), wnp.concatenate([x, x])
    return wnp.sin(twice[0]), wnp.cos(twice[1])


# fold
def constant_arithmetic(x):
    k = wend.fori_loop(0, 3, lambda i, v: v * wnp.asarray(x * 0 + 2.0), 1.0)
    del k
    return x + (wnp.stack([x, x])[0] * 0.0) * np.float64(3.0)


def constant_predicate(x):
    return wend.cond(np.bool_(True), lambda: wnp.sin(x), lambda: wnp.cos(x))


def constant_selector(x):
    return wend.switch(np.int64(7), [lambda: x, lambda: x * 2.0, lambda: x * 3.0])


def constant_in_a_body(x):
    return wend.fori_loop(0, 3, lambda i, v: v + wnp.broadcast_to(np.float64(2.0), (2,))[0], x)


# inline
def calls(x):
    inner = wend.function(lambda a, b: (a * b, wnp.sin(b)), name="inner")
    middle = wend.function(lambda a: inner(a, a)[0], name="middle")
    return middle(x) + wend.fori_loop(0, 2, lambda i, v: middle(v), x)


def call_of_unknown_size(x):
    inner = wend.function(lambda a: wnp.concatenate([a, a]), name="inner")
    return wnp.sin(inner(x)), wnp.cos(inner(inner(x)))


def call_with_effects(x):
    inner = wend.function(lambda a: (wend.print("a", a), a * 2.0)[1], name="inner")
    return inner(inner(x))


# loops
def unchanged_carry(x, y):
    return wend.while_loop(lambda c: c[0] < c[1], lambda c: (c[0] * 2.0, c[1]), (x, y))


def unchanged_in_an_inner_loop(x, y):
    def inner(c):
        return wend.while_loop(lambda c: c[0] < c[1], lambda c: (c[0] * 2.0, c[1]), c)

    return wend.fori_loop(0, 2, lambda i, c: inner(c), (x, y))


def swapped_carries(x, y):
    return wend.fori_loop(0, 3, lambda i, c: (c[1], c[0]), (x, y))


# algebra
def identities(x):
    y = (x * 1.0 - 0.0) / wnp.ones(3)
    return wnp.where(~(x > 0.0), wnp.negative(-y), y + -x), x * -1.0


def not_identities(x):
    return x + 0.0, x * 0.0, x - x, x / x


def moves(x):
    return wnp.reshape(wnp.reshape(x.T, (3, 2)).T, (2, 3)).T.T, (x.T @ x).T


def moves_of_unknown_size(x):
    return wnp.broadcast_to(x, x.shape) + wnp.reshape(x, x.shape)


# hoist
def steady_in_body_and_test(x, w):
    return wend.while_loop(
        lambda v: wnp.sum(v) < wnp.sum(w * w), lambda v: v + wnp.exp(w) * 2.0, wnp.ones(3) * x
    )


def steady_in_two_loops(x, w):
    def inner(v):
        return wend.fori_loop(0, 3, lambda i, u: u * wnp.sin(w) + wnp.cos(v), v)

    return wend.fori_loop(0, 3, lambda i, v: inner(v), x)


def what_may_fail_stays(x, k):
    return wend.fori_loop(0, x, lambda i, v: v + wnp.take(wnp.asarray([2, 3]), k) + x**k, 0)


def what_takes_long_behind_a_guard(a, b, n):
    return wend.fori_loop(0, n, lambda i, v: v + np.linalg.solve(a, b), b)


def what_takes_long_and_a_known_trip(b):
    return wend.fori_loop(0, 3, lambda i, v: v * np.sort(b), b)


def effects_in_a_loop_stay(x):
    return wend.fori_loop(0, 3, lambda i, v: (wend.print(x * 2.0), v)[1], x)


def steady_of_unknown_size(x):
    return wend.fori_loop(0, 3, lambda i, v: v + wnp.concatenate([x, x])[0], 0.0)


SIZE = wend.TensorSpec([None])
TABLE = wend.TensorSpec([2, 3])
ROWS = [
    ("algebra", algebra, identities, (np.ones(3),)),
    ("algebra", algebra, not_identities, (1.0,)),
    ("algebra", algebra, moves, (TABLE,)),
    ("algebra", algebra, moves_of_unknown_size, (SIZE,)),
    ("dce", dce, unused_nodes, (1.0,)),
    ("dce", dce, unused_carry, (1.0,)),
    ("dce", dce, unused_loop, (1.0,)),
    ("dce", dce, unused_branch_result, (1.0,)),
    ("dce", dce, unused_call_result, (1.0,)),
    ("dce", dce, effects_stay, (1.0,)),
    ("cse", cse, equal_nodes, (1.0,)),
    ("cse", cse, nearly_equal_nodes, (1.0,)),
    ("cse", cse, equal_in_a_body, (1.0,)),
    ("cse", cse, equal_effects_stay, (1.0,)),
    ("cse", cse, equal_of_unknown_size, (SIZE,)),
    ("fold", fold, constant_arithmetic, (1.0,)),
    ("fold", fold, constant_predicate, (1.0,)),
    ("fold", fold, constant_selector, (1.0,)),
    ("fold", fold, constant_in_a_body, (1.0,)),
    ("hoist", hoist, steady_in_body_and_test, (1.0, np.ones(3))),
    ("hoist", hoist, steady_in_two_loops, (1.0, 2.0)),
    ("hoist", hoist, what_may_fail_stays, (2, 1)),
    ("hoist", hoist, what_takes_long_behind_a_guard, (np.eye(2), np.ones(2), 3)),
    ("hoist", hoist, what_takes_long_and_a_known_trip, (np.ones(2),)),
    ("hoist", hoist, effects_in_a_loop_stay, (1.0,)),
    ("hoist", hoist, steady_of_unknown_size, (SIZE,)),
    ("inline", inline_calls, calls, (1.0,)),
    ("inline", inline_calls, call_of_unknown_size, (SIZE,)),
    ("inline", inline_calls, call_with_effects, (1.0,)),
    ("canonicalize_loops", canonicalize_loops, unchanged_carry, (1.0, 2.0)),
    ("canonicalize_loops", canonicalize_loops, unchanged_in_an_inner_loop, (1.0, 2.0)),
    ("canonicalize_loops", canonicalize_loops, swapped_carries, (1.0, 2.0)),
]


@pytest.mark.parametrize(
    ("name", "transform", "fun", "args"), ROWS, ids=[f"{row[0]}-{row[2].__name__}" for row in ROWS]
)
def test_before_and_after(name, transform, fun, args, golden):
    graph = recorded(fun, *args)
    before = to_text(graph, table=[])
    after = check_graph(transform(graph))
    assert to_text(graph, table=[]) == before, "a pass changed its input"
    golden.check(f"{name}/recorded_{fun.__name__}.wir", f"{before}\n====\n{after}")
    assert equal(transform(after), after), "a second time there is nothing to do"


@pytest.mark.parametrize(("name", "transform", "fun", "args"), ROWS, ids=lambda x: None)
def test_optimizing_twice_changes_nothing(name, transform, fun, args):
    once = run_passes(recorded(fun, *args), OPTIMIZE)
    assert equal(run_passes(once, OPTIMIZE), once)


def test_a_branch_that_is_known_may_give_a_maybe():
    """The gradient of a branch with a constant predicate: one side has nothing for a residual."""
    w = np.array([[1.0, 2.0], [3.0, -1.0]])

    def fun(x):
        return wend.cond(np.bool_(True), lambda: wnp.sum(wnp.sin(x @ w)), lambda: wnp.sum(x))

    x = np.array([0.5, 0.7])
    np.testing.assert_allclose(wend.grad(fun)(x), w @ np.cos(x @ w))
    second = wend.grad(lambda x: wnp.sum(wend.grad(fun)(x)))
    np.testing.assert_allclose(second(x), -w @ (np.sin(x @ w) * w.sum(0)))


def test_a_steady_value_that_no_trip_uses_has_no_derivative():
    """log(0) is moved out of a loop of no trips, after its gradient was made."""

    def fun(a, n):
        return wend.fori_loop(0, n, lambda i, v: v + wnp.log(a), 1.0)

    assert wend.value_and_grad(fun)(0.0, 0) == (1.0, 0.0)
    assert wend.value_and_grad(fun)(0.5, 2) == (1.0 + 2 * np.log(0.5), 4.0)


def test_what_fails_in_a_loop_fails_only_there():
    """A power of integers that NumPy refuses is refused where the loop makes a trip."""
    fun = wend.function(lambda x, k, n: wend.fori_loop(0, n, lambda i, v: v + x**k, 0))
    assert fun(2, -1, 0) == 0
    with pytest.raises(ValueError, match="negative integer powers"):
        fun(2, -1, 1)


def test_dce_of_carries_that_feed_one_another():
    """b feeds a, a feeds c, c is asked for; d feeds itself only."""
    text = """
    graph f(%0: f64[], %1: f64[], %2: f64[], %3: f64[]) {
      %4: f64[], %5: f64[], %6: f64[], %7: f64[] = while(%0, %1, %2, %3) {carry=4}
        before(%8: f64[], %9: f64[], %10: f64[], %11: f64[]) {
          %12: f64[] = constant() {value=f64[]<9.0>}
          %13: bool[] = lt(%10, %12)
          return %13, %8, %9, %10, %11
        }
        after(%14: f64[], %15: f64[], %16: f64[], %17: f64[]) {
          %18: f64[] = sin(%15)
          %19: f64[] = add(%16, %14)
          %20: f64[] = exp(%17)
          return %18, %15, %19, %20
        }
      return %6
    }
    """
    graph = dce(verify(parse(text)))
    (loop,) = graph.nodes
    assert loop.attrs["carry"] == 3
    assert "exp" not in str(graph)
    assert len(graph.params) == 4  # a function keeps its params
