"""The smoke test: every room once, in seconds. Run it after each edit."""

from __future__ import annotations

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.ir import parse, to_text, verify


def square(x: float) -> float:
    return wend.while_loop(lambda v: v < 8.0, lambda v: v * v, x)


def test_a_loop_has_a_value_and_derivatives_to_any_order() -> None:
    found = []
    fun = square
    for _ in range(4):
        found.append(fun(2.0))
        fun = wend.grad(fun)
    assert found == [16.0, 32.0, 48.0, 48.0]


def test_zero_trips_are_the_identity() -> None:
    assert wend.value_and_grad(square)(9.0) == (9.0, 1.0)


def test_the_graph_has_one_while_and_reads_back() -> None:
    graph = wend.function(square).get_concrete_function(2.0).graph
    assert graph.count("while") == 1
    assert to_text(verify(parse(str(graph)))) == str(graph)


def test_arrays_branches_and_nested_loops() -> None:
    def fun(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        def step(i: int, h: np.ndarray) -> np.ndarray:
            h = wnp.tanh(h @ w)
            return wend.cond(wnp.sum(h) > 0, lambda: h + i, lambda: -h)

        return wnp.sum(wend.fori_loop(0, 4, step, x))

    rng = np.random.default_rng(0)
    x, w = rng.normal(size=3), rng.normal(size=(3, 3))
    dx, dw = wend.grad(fun, (0, 1))(x, w)
    eps = 1e-6
    for grad, array in ((dx, x), (dw, w)):
        direction = rng.normal(size=array.shape)
        array += eps * direction
        high = fun(x, w)
        array -= 2 * eps * direction
        low = fun(x, w)
        array += eps * direction
        assert np.sum(grad * direction) == pytest.approx((high - low) / (2 * eps), rel=1e-5)


def test_scan_vjp_and_pytrees() -> None:
    def fun(c: dict[str, float], xs: np.ndarray) -> tuple[dict[str, float], np.ndarray]:
        return wend.scan(lambda s, x: ({"v": s["v"] * x}, s["v"]), c, xs)

    (last, rows), pullback = wend.vjp(fun, {"v": 2.0}, np.array([3.0, 4.0]))
    assert last == {"v": 24.0}
    assert rows.tolist() == [2.0, 6.0]
    carry, xs = pullback(({"v": 1.0}, np.array([0.0, 1.0])))
    assert carry == {"v": 15.0}  # 3·4 + 3
    assert xs.tolist() == [10.0, 6.0]  # 2·4 + 2, 2·3


def test_effects_happen_when_the_function_runs(capsys: pytest.CaptureFixture[str]) -> None:
    @wend.function
    def fun(x: float) -> float:
        wend.print("x is", x)
        wend.assert_(x < 5.0, "x is too large: {}", x)
        return x

    fun(1.0)
    fun(2.0)
    assert capsys.readouterr().out == "x is 1.0\nx is 2.0\n"
    assert fun.trace_count == 1
    with pytest.raises(AssertionError, match=r"too large: 7\.0"):
        fun(7.0)


def test_unknown_sizes_share_one_trace() -> None:
    fun = wend.function(
        lambda x: wnp.sum(x * x), input_signature=[wend.TensorSpec([None], "float64")]
    )
    assert [fun(np.ones(n)) for n in (0, 1, 5)] == [0.0, 1.0, 5.0]
    assert fun.trace_count == 1


def test_native_agrees() -> None:
    fast = wend.function(square, backend="native")
    assert fast(2.0) == 16.0
    assert wend.value_and_grad(fast)(2.0) == (16.0, 32.0)
    assert wend.grad(wend.grad(fast))(2.0) == 48.0


def test_functions_draw_what_python_draws() -> None:
    plain, traced = wend.random.Generator(0), wend.random.Generator(0)
    draw = wend.function(lambda: traced.normal(size=3))
    assert np.array_equal([draw(), draw()], [plain.normal(size=3) for _ in range(2)])
