"""`linearize`: its interface, and that the linear part does not run the function again."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.graphs import names, traced

import wend
import wend.numpy as wnp
from wend.autodiff.linearize import linearize
from wend.base.errors import NotDifferentiableError, ShapeError, StructureError
from wend.passes.pipeline import OPTIMIZE, run_passes


def linear_graph(fun, *args):
    graph = traced(fun, *args)
    wrt = range(len(graph.params) - len(graph.captures))
    split = linearize(graph, wrt, range(len(graph.results)))
    return run_passes(split.linear, OPTIMIZE)


def test_value_and_linear_part():
    value, f_lin = wend.linearize(lambda x, y: wnp.sin(x) * y, 2.0, 3.0)
    assert value == np.sin(2.0) * 3.0
    for t in ((1.0, 0.0), (0.5, 2.0)):
        expected = wend.jvp(lambda x, y: wnp.sin(x) * y, (2.0, 3.0), t)[1]
        np.testing.assert_allclose(f_lin(*t), expected, rtol=1e-14)


def test_what_the_function_computes_is_not_computed_again():
    graph = linear_graph(lambda x: wnp.sin(wnp.exp(x)), 1.0)
    assert not {"sin", "exp"} & set(names(graph))
    assert sum(name == "mul" for name in names(graph)) <= 2


def test_a_loop_is_not_run_again():
    """Its records are read; of the loops of the linear part none decides by data."""
    matrix = np.array([[0.5, 1.0], [1.5, -0.5]])

    def grow(v):
        return wnp.tanh(matrix @ v) + v

    graph = linear_graph(
        lambda x: wend.while_loop(lambda v: wnp.sum(v) < 8.0, grow, x), np.array([0.1, 0.2])
    )
    found = names(graph)
    assert "lt" not in found
    assert "list_push" not in found
    assert "list_get" in found
    assert found.count("dot_general") == 1  # the tangent's own


def test_pytrees_integers_and_zeros():
    def fun(p, n):
        return {"y": p["w"] * n, "n": n, "z": wnp.floor(p["s"])}

    p = {"w": np.arange(2.0), "s": 1.5}
    _value, f_lin = wend.linearize(fun, p, 3)
    tangent = f_lin({"w": np.ones(2), "s": 1.0}, None)
    np.testing.assert_array_equal(tangent["y"], [3, 3])
    assert tangent["n"] is None
    assert tangent["z"] == 0.0


def test_has_aux():
    value, f_lin, aux = wend.linearize(lambda x: (x * x, {"n": 3}), 2.0, has_aux=True)
    assert (value, f_lin(1.0), aux) == (4.0, 4.0, {"n": 3})


def test_it_keeps_the_values_of_its_run():
    captured = np.array([2.0, 3.0])
    x = np.array([0.5, 0.6])
    value, f_lin = wend.linearize(
        lambda x: wend.fori_loop(0, 2, lambda i, v: wnp.tanh(v) * captured, x), x
    )
    expected = f_lin(np.ones(2)).copy()
    x[...] = value[...] = captured[...] = 9.0
    np.testing.assert_array_equal(f_lin(np.ones(2)), expected)


def test_in_traces_and_loops():
    @wend.function
    def fun(x):
        _value, f_lin = wend.linearize(lambda x: wend.fori_loop(0, 3, lambda i, v: v * v, x), x)
        return wend.fori_loop(0, 2, lambda i, t: f_lin(t), 1.0)

    assert fun(2.0) == (8 * 2.0**7) ** 2
    assert wend.grad(fun)(1.0) == 64 * 14.0
    assert wend.jvp(fun, (1.0,), (1.0,))[1] == 64 * 14.0


def test_outside_a_trace_the_records_of_a_loop_stay_there():
    _, f_lin = wend.linearize(lambda x: wend.fori_loop(0, 3, lambda i, v: wnp.sin(v), x), 2.0)
    with pytest.raises(NotImplementedError, match="inside the traced function"):
        wend.function(lambda t: f_lin(t))(1.0)
    _, f_lin = wend.linearize(lambda x: wnp.sin(x), 2.0)
    assert wend.function(lambda t: f_lin(t))(1.0) == np.cos(2.0)


def test_effects_belong_to_the_run(capsys):
    def fun(x):
        wend.print("x is {}", x)
        return x * x

    _, f_lin = wend.linearize(fun, 2.0)
    assert (f_lin(1.0), f_lin(2.0)) == (4.0, 8.0)
    assert capsys.readouterr().out.count("x is") == 1


def test_complex_numbers():
    z, t = 1.0 + 2.0j, 0.5 - 1.0j
    _, f_lin = wend.linearize(lambda z: wnp.abs(z * z), z)
    np.testing.assert_allclose(f_lin(t), wend.jvp(lambda z: wnp.abs(z * z), (z,), (t,))[1])


def test_mistakes():
    _, f_lin = wend.linearize(lambda x, n: x * n, np.ones(2), 3)
    with pytest.raises(StructureError, match="2 primals and 1 tangents"):
        f_lin(np.ones(2))
    with pytest.raises(ShapeError, match=r"tangent of x is f64\[3\]"):
        f_lin(np.ones(3), None)
    with pytest.raises(NotDifferentiableError, match="n has a tangent"):
        f_lin(np.ones(2), 1.0)


def test_a_tape_may_follow_what_it_is_given():
    """A tape runs what it records: so the records of a loop can be there."""

    def fun(x):
        while x < 8.0:
            x = x * x
        return x

    _, f_lin = wend.linearize(fun, 2.0)
    _, pullback = wend.vjp(fun, 2.0)
    for linear in (f_lin, lambda ct: pullback(ct)[0]):
        with wend.GradientTape() as outer:
            y = outer.watch(3.0)
            with wend.GradientTape() as tape:
                tape.watch(y)
                z = linear(y) * y * y
            slope = tape.gradient(z, y)
        assert (slope, outer.gradient(slope, y)) == (32.0 * 27.0, 32.0 * 18.0)
