"""Forward mode over graphs: one While, zeros that cost nothing, and random programs."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, reject, settings

import wend
import wend.numpy as wnp
from tests.helpers.cases import run
from tests.helpers.graphs import all_graphs, check_graph, loops, names, traced
from tests.helpers.random_programs import Program, complex_step, plain, programs, staged
from wend.autodiff.jvp import jvp
from wend.base.errors import CarryError, TypeMismatchError
from wend.ir import parse
from wend.passes.pipeline import CANONICALIZE, OPTIMIZE, run_passes

AT = np.array([0.4, -0.7, 0.3, -0.2, 0.9])
ALONG = np.array([1.0, 2.0, -1.0, 0.5, 3.0])
ARGS, TANGENTS = (AT[0], AT[1], AT[2:]), (ALONG[0], ALONG[1], ALONG[2:])


def pushed(fun, *args, wrt=None):
    """The optimized graph of values and tangents."""
    graph = traced(fun, *args)
    found = jvp(graph, range(len(graph.params)) if wrt is None else wrt)
    check_graph(found.graph)
    return run_passes(found.graph, OPTIMIZE)


# Graphs
def test_a_loop_stays_one_node():
    graph = pushed(lambda x: wend.while_loop(lambda v: v < 8.0, lambda v: v * v, x), 2.0)
    assert graph.count("while") == 1
    assert "list_push" not in names(graph)


def test_a_loop_in_a_branch_in_a_loop_is_two_loops():
    def body(v):
        return wend.cond(
            v > 1.0, lambda v: wend.fori_loop(0, 3, lambda i, u: u * 1.1, v), lambda v: v + 0.5, v
        )

    graph = pushed(lambda x: wend.while_loop(lambda v: v < 8.0, body, x), 0.1)
    assert (graph.count("while"), graph.count("if")) == (2, 1)
    h = 1e-7

    def fun(x):
        return wend.while_loop(lambda v: v < 8.0, body, x)

    slope = (fun(0.1 + h) - fun(0.1 - h)) / (2 * h)
    np.testing.assert_allclose(wend.jvp(fun, (0.1,), (1.0,))[1], slope, rtol=1e-6)


def test_what_does_not_move_costs_nothing():
    """A loop that the tangents do not reach is left as it is."""

    def fun(x, y):
        z = wend.fori_loop(0, 3, lambda i, v: wnp.sin(v), y)
        return x * 2.0 + z

    graph = pushed(fun, 1.0, 2.0, wrt=[0])
    (loop,) = loops(graph)
    assert names(graph).count("cos") == 0
    assert sum(type.dtype == np.float64 for type in [v.type for v in loop.operands]) == 1
    assert names(graph).count("mul") == 2  # x·2 and its tangent


def test_a_sum_with_what_does_not_move_adds_no_zeros():
    graph = pushed(lambda x, y: (x + y) - y, np.ones(2), np.ones(2), wrt=[0])
    assert sorted(names(graph)) == ["add", "sub"]
    graph = pushed(lambda x, y: y - x, np.ones(2), np.ones(2), wrt=[0])
    assert sorted(names(graph)) == ["neg", "sub"]


def test_a_carry_that_moves_only_from_the_second_trip_on():
    """z gets y's tangent, which gets x's: the fixpoint needs three rounds."""

    def fun(x):
        return wend.fori_loop(
            0, 4, lambda i, c: (c[0], c[0] * 2.0, c[1] * 3.0, c[3] + 1.0), (x, 1.0, 1.0, 1.0)
        )

    found = jvp(traced(fun, 1.0), [0])
    assert sum(found.connected) == 3
    assert run(found.graph, [5.0, 1.0]) == [5, 10, 30, 5, 1, 2, 6]


def test_results_that_do_not_move_have_no_tangent():
    found = jvp(traced(lambda x, n: (x, n, wnp.floor(x), 3.0), 2.5, 3), [0])
    assert found.connected == (True, False, False, False)


def test_source_lines_are_kept():
    def fun(x):
        return wnp.tanh(x)

    line = fun.__code__.co_firstlineno + 1
    nodes = list(pushed(fun, 1.0).walk())
    assert {node.source.line for node in nodes} == {line}


def test_parsed_loops_move():
    """Nothing depends on how a node was made: a test in the middle, values for the exit only."""
    text = """
    graph g(%0: f64[]) {
      %1: f64[], %2: f64[] = while(%0) {carry=1}
        before(%3: f64[]) {
          %4: f64[] = constant() {value=f64[]<8.0>}
          %5: f64[] = mul(%3, %3)
          %6: bool[] = lt(%3, %4)
          return %6, %5, %3
        }
        after(%7: f64[], %8: f64[]) {
          return %7
        }
      return %1, %2
    }
    """
    found = jvp(parse(text), [0])
    check_graph(found.graph)
    assert run(found.graph, [2.0, 1.0]) == [256.0, 16.0, 8 * 2.0**7, 32.0]


def test_a_matrix_of_unknown_rank():
    text = """
    graph g(%0: f64[...]) {
      %1: f64[...] = sin(%0)
      %2: f64[...] = mul(%1, %0)
      return %2
    }
    """
    found = jvp(parse(text), [0])
    check_graph(found.graph)
    x, t = np.ones((2, 3)), np.full((2, 3), 0.5)
    _value, tangent = run(found.graph, [x, t])
    np.testing.assert_allclose(tangent, t * (np.cos(1) + np.sin(1)))


def test_lists_have_lists_of_tangents():
    """The forward form of a gradient, with its records, is a graph like any other."""
    slope = wend.grad(lambda x: wend.while_loop(lambda v: v < 8.0, lambda v: v * v, x))
    graph = run_passes(traced(slope, 2.0), OPTIMIZE)
    found = jvp(graph, [0])
    check_graph(found.graph)
    lists = [v for g in all_graphs(found.graph) for v in g.params if "list" in str(v.type)]
    assert lists
    assert run(found.graph, [2.0, 1.0]) == [32.0, 48.0]
    assert run(jvp(run_passes(found.graph, CANONICALIZE), [0]).graph, [2.0, 0.0, 1.0])[-2:] == [
        48.0,
        0.0,
    ]


# Random programs
def examples(number: int) -> settings:
    return settings(max_examples=number, suppress_health_check=list(HealthCheck))


def check_tangent(program: Program, fun=None) -> None:
    fun = fun or staged(program)
    value, tangent = wend.jvp(fun, ARGS, TANGENTS)
    np.testing.assert_allclose(value, plain(program, *ARGS)[0], rtol=1e-9, atol=1e-9)
    expected, _ = complex_step(program, AT)
    np.testing.assert_allclose(tangent, expected @ ALONG, rtol=1e-8, atol=1e-9)
    _, f_lin = wend.linearize(fun, *ARGS)
    np.testing.assert_allclose(f_lin(*TANGENTS), tangent, rtol=1e-9, atol=1e-10)


def check_orders(program: Program, fun=None) -> None:
    """Forward over forward, over reverse, and reverse over forward against reverse twice."""
    fun = fun or staged(program)
    signature = fun.input_signature if isinstance(fun, wend.Function) else None

    def forward(x, y, v):
        return wend.jvp(fun, (x, y, v), TANGENTS)[1]

    def reverse(x, y, v):
        dx, dy, dv = wend.grad(fun, (0, 1, 2))(x, y, v)
        return ALONG[0] * dx + ALONG[1] * dy + wnp.sum(ALONG[2:] * dv)

    def gradient_of(inner):
        inner = wend.function(inner, input_signature=signature)
        grads = wend.grad(inner, (0, 1, 2))(*ARGS)
        return sum(np.sum(g * t) for g, t in zip(grads, TANGENTS, strict=True))

    def tangent_of(inner):
        inner = wend.function(inner, input_signature=signature)
        return wend.jvp(inner, ARGS, TANGENTS)[1]

    expected = gradient_of(reverse)
    for found in (tangent_of(forward), tangent_of(reverse), gradient_of(forward)):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)


@examples(3 * settings().max_examples)
@given(programs(depth=2))
def test_random_programs(program):
    check_tangent(program)


@examples(settings().max_examples)
@given(programs(depth=3, length=2))
def test_random_deep_programs(program):
    check_tangent(program)


@examples(settings().max_examples)
@given(programs(depth=2))
def test_random_programs_twice(program):
    check_orders(program)


@examples(settings().max_examples)
@given(programs(depth=2))
def test_random_programs_of_unknown_size(program):
    spec = wend.TensorSpec
    signature = [spec([]), spec([]), spec([None], name="v")]
    fun = wend.function(staged(program), input_signature=signature)
    try:
        fun(*ARGS)
    except (CarryError, TypeMismatchError):
        reject()  # a carry that may change its size is refused, and rightly
    check_tangent(program, fun)
    check_orders(program, fun)
