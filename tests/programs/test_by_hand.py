"""Loops made by hand and read from text: they differentiate like traced ones (D1, D29)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
from tests.helpers.graphs import check_graph, loops
from wend.autodiff.vjp import joint, vjp
from wend.backends.protocol import choose
from wend.ir import Graph, equal, lift, parse, verify
from wend.ir.types import tensor
from wend.ops.build import Build
from wend.ops.control import WhileParts
from wend.passes.pipeline import OPTIMIZE, run_passes

F64 = tensor("f8")


def mid_body_exit() -> Graph:
    """p = x·y; stop unless p < 10; x ← p + 1. Gives (p, x at exit)."""
    before = Build("before")
    x, y = before.param(F64), before.param(F64)
    p = before.mul(x, y)
    before_graph = before.finish([before.lt(p, before.constant(10.0)), p, x])
    after = Build("after")
    p, _, _ = after.param(F64), after.param(F64), after.param(F64)
    after_graph = after.finish([after.add(p, after.constant(1.0))])
    b = Build("mid_body_exit")
    x, y = b.param(F64), b.param(F64)
    loop = b.while_([x], [y], before_graph, after_graph)
    return verify(b.finish(loop.results))


TEXT = """
graph mid_body_exit(%0: f64[], %1: f64[]) {
  %2: f64[], %3: f64[] = while(%0, %1) {carry=1}
    before(%4: f64[], %5: f64[]) {
      %6: f64[] = mul(%4, %5)
      %7: f64[] = constant() {value=f64[]<10.0>}
      %8: bool[] = lt(%6, %7)
      return %8, %6, %4
    }
    after(%9: f64[], %10: f64[], %11: f64[]) {
      %12: f64[] = constant() {value=f64[]<1.0>}
      %13: f64[] = add(%9, %12)
      return %13
    }
  return %2, %3
}
"""


def run(graph: Graph, *args: Any, backend: str = "numpy") -> Any:
    execute = choose(backend).compile(run_passes(verify(graph), OPTIMIZE))
    return tuple(execute([np.float64(arg) if isinstance(arg, float) else arg for arg in args]))


@pytest.fixture(params=["built", "parsed", "built, then printed and parsed"])
def graph(request: pytest.FixtureRequest) -> Graph:
    if request.param == "built":
        return mid_body_exit()
    return parse(TEXT) if request.param == "parsed" else check_graph(mid_body_exit())


@pytest.fixture(params=["numpy", "native"])
def backend(request: pytest.FixtureRequest) -> str:
    return request.param


# x, y, p, x at exit, dp/dx, dp/dy: K1 after two trips, K2 after none
CASES = [(1.0, 2.0, 14.0, 7.0, 8.0, 17.0), (6.0, 2.0, 12.0, 6.0, 2.0, 6.0)]


def test_parsed_is_built():
    assert equal(parse(TEXT), mid_body_exit())


@pytest.mark.parametrize(("x", "y", "p", "last", "dx", "dy"), CASES)
def test_value(graph, backend, x, y, p, last, dx, dy):
    assert run(graph, x, y, backend=backend) == (p, last)


@pytest.mark.parametrize(("x", "y", "p", "last", "dx", "dy"), CASES)
def test_forward_and_backward(graph, x, y, p, last, dx, dy):
    pair = vjp(graph, [0, 1], [0])
    assert pair.connected == (True, True)
    check_graph(pair.forward)
    check_graph(pair.backward)
    found, at_exit, *residuals = run(pair.forward, x, y)
    assert (found, at_exit) == (p, last)
    assert run(pair.backward, *residuals, 1.0) == (dx, dy)


@pytest.mark.parametrize(("x", "y", "p", "last", "dx", "dy"), CASES)
def test_joint(graph, backend, x, y, p, last, dx, dy):
    both, connected = joint(graph, [0, 1], 0)
    assert connected == (True, True)
    assert run(check_graph(both), x, y, backend=backend) == (p, last, dx, dy)


@pytest.mark.parametrize(("x", "y", "p", "last", "dx", "dy"), CASES)
def test_value_forwarded_to_the_exit_only(graph, x, y, p, last, dx, dy):
    """The carry at the exit is forwarded, and read by nothing in `after`."""
    both, _ = joint(graph, [0, 1], 1)
    h = 1e-6
    expected = [
        (run(graph, x + h, y)[1] - run(graph, x - h, y)[1]) / (2 * h),
        (run(graph, x, y + h)[1] - run(graph, x, y - h)[1]) / (2 * h),
    ]
    np.testing.assert_allclose(run(both, x, y)[2:], expected, rtol=1e-8)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("x", "y", "p", "last", "dx", "dy"), CASES)
def test_second_order(graph, backend, x, y, p, last, dx, dy):
    """The gradient of dp/dx and of dp/dy, against differences of the gradient."""
    both, _ = joint(graph, [0, 1], 0)
    h = 1e-5
    for part in (2, 3):
        twice, connected = joint(both, [0, 1], part)
        found = list(run(check_graph(twice), x, y, backend=backend)[4:])
        for k, is_connected in enumerate(connected):
            dx, dy = (h, 0.0) if k == 0 else (0.0, h)
            ahead, behind = run(both, x + dx, y + dy), run(both, x - dx, y - dy)
            expected = (ahead[part] - behind[part]) / (2 * h)
            value = found.pop(0) if is_connected else 0.0
            np.testing.assert_allclose(value, expected, rtol=1e-7, atol=1e-7)


def test_before_runs_once_more_than_after():
    """Records of `before`: one for each trip and one for the exit; of `after`: none needed here."""
    pair = vjp(mid_body_exit(), [0, 1], [0])
    (loop,) = loops(pair.forward)
    residuals = run(pair.forward, 1.0, 2.0)[2:]
    lists = [r for r in residuals if hasattr(r, "items")]
    assert sorted(len(items) for items in lists) == [3]  # the carry x, T + 1 = 3 times
    (backward,) = loops(pair.backward)
    assert WhileParts.of(backward).predicate.node.op.name == "gt"  # counted, not decided again
    assert loop.op is backward.op


def test_do_while_and_while_share_a_node():
    """K6: count < 4 tested after the body runs 5 bodies; tested before it, count < 5 does."""
    text = """
    graph f(%0: i64[]) {{
      %1: i64[] = while(%0) {{carry=1}}
        before(%2: i64[]) {{
          {first}
          %8: i64[] = constant() {{value=i64[]<{limit}>}}
          %9: bool[] = lt({tested}, %8)
          return %9, {tested}
        }}
        after(%10: i64[]) {{
          {second}
          return {last}
        }}
      return %1
    }}
    """
    step = "%{0}: i64[] = constant() {{value=i64[]<1>}} %{1}: i64[] = add(%{2}, %{0})"
    do_while = text.format(first=step.format(3, 4, 2), limit=5, tested="%4", second="", last="%10")
    while_ = text.format(first="", limit=5, tested="%2", second=step.format(11, 12, 10), last="%12")
    for source in (do_while, while_):
        graph = verify(parse(source))
        (loop,) = loops(graph)
        assert loop.op.name == "while"
        assert run(graph, np.int64(0)) == (5,)


def test_symbols_in_a_parsed_loop():
    """A carry that grows, read from text; its gradient."""
    text = """
    graph grow(%0: f64[2], %1: i64[]) {
      %2: f64[n0], %3: i64[] = while(%0, %1) {carry=2}
        before(%4: f64[n1], %5: i64[]) {
          %6: i64[] = constant() {value=i64[]<3>}
          %7: bool[] = lt(%5, %6)
          return %7, %4, %5
        }
        after(%8: f64[n1], %9: i64[]) {
          %10: f64[n1] = sin(%8)
          %11: f64[n2] = concat(%8, %10) {axis=0}
          %12: i64[] = constant() {value=i64[]<1>}
          %13: i64[] = add(%9, %12)
          return %11, %13
        }
      %14: f64[] = reduce_sum(%2) {axes=(0,), keepdims=False}
      return %14
    }
    """
    graph = verify(parse(text))

    def plain(x: np.ndarray) -> Any:
        for _ in range(3):
            x = np.concatenate([x, np.sin(x)])
        return np.sum(x)

    x = np.array([0.3, -0.8])
    both, _ = joint(graph, [0], 0)
    value, gradient = run(check_graph(both), x, np.int64(0))
    np.testing.assert_allclose(value, plain(x), rtol=1e-12)
    for k in range(2):
        moved = x.astype(complex)
        moved[k] += 1e-30j
        np.testing.assert_allclose(gradient[k], np.imag(plain(moved)) / 1e-30, rtol=1e-12)


def test_a_loop_nobody_uses_is_dropped():
    """K5."""
    graph = wend.function(
        lambda x: (wend.while_loop(lambda v: v < 8.0, lambda v: v * v, x), x + 1.0)[1]
    ).get_concrete_function(2.0)
    assert not loops(graph.graph)


def test_the_same_exit_by_a_carry():
    """The same by a carry that is computed before the test: two products a trip."""

    def fun(x, y):
        return wend.while_loop(lambda p: p < 10.0, lambda p: (p + 1.0) * y, x * y)

    for x, y, p, _, dx, dy in CASES:
        assert wend.function(fun)(x, y) == p
        assert wend.grad(fun, (0, 1))(x, y) == (dx, dy)


def test_a_lifted_loop_differentiates():
    """D29: what a loop is part of, and where it was made, does not matter."""
    graph = wend.function(lambda x, a: (wend.fori_loop(0, 3, lambda i, v: v * a, x) + 1.0) * x)
    graph = graph.get_concrete_function(2.0, 3.0).graph
    (loop,) = loops(graph)
    b = Build("lifted")
    params = [b.param(param.type) for param in graph.params]
    found = lift(loop.results, b.nodes, dict(zip(graph.params, params, strict=True)))
    alone = verify(b.finish([found[loop.results[-1]]]))
    assert alone.count("add") == 1  # the counter's
    pair = vjp(alone, [0, 1], [0])
    value, *residuals = run(pair.forward, 2.0, 3.0)
    assert value == 2.0 * 27.0
    assert run(pair.backward, *residuals, 1.0) == (27.0, 2.0 * 27.0)
    whole, _ = joint(alone, [0], 0)
    assert run(whole, 2.0, 3.0) == (54.0, 27.0)


def test_lifting_wants_its_sources():
    graph = mid_body_exit()
    with pytest.raises(ValueError, match="not at hand"):
        lift(graph.results, [], {graph.params[0]: graph.params[0]})
