"""Concrete functions: three forms, each with its graph; structure; composition."""

from __future__ import annotations

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.graphs import check_graph
from wend.ir import equal

F64 = wend.TensorSpec([], "float64")


@wend.function
def looping(x, k):
    while x < 100.0:
        x = x * k + wnp.sin(x)
    return {"x": x, "k": k * 2}


@wend.function
def z1(x, y):
    return x + y


def test_functions_of_functions():
    """T100: z0(x) = z1(x, x²)."""
    z0 = wend.function(lambda x: z1(x, x * x))
    assert (z0(2.0), z1(2.0, 2.0)) == (6.0, 4.0)
    assert (wend.grad(z0)(2.0), wend.grad(wend.grad(z0))(2.0)) == (5.0, 2.0)


def test_derivatives_to_the_fifth_order():
    """T100: cos at 1."""
    fun = wend.function(wnp.cos)
    found = []
    for _ in range(5):
        fun = wend.grad(fun)
        found.append(fun(1.0))
    expected = [-0.8414710, -0.5403023, 0.8414710, 0.5403023, -0.8414710]
    np.testing.assert_allclose(found, expected, atol=1e-7)


# The three forms
def test_forms_are_made_when_asked_for():
    concrete = looping.get_concrete_function(F64, F64)
    again = wend.function(looping.python_function).get_concrete_function(F64, F64)
    again(2.0, 3.0)
    assert "forms" not in vars(again)
    assert again.forward_graph is again.forward_graph
    assert again.backward_graph is again.backward_graph
    assert equal(again.forward_graph, concrete.forward_graph)
    for graph in (again.graph, again.forward_graph, again.backward_graph):
        check_graph(graph)


def test_what_the_forms_take_and_give():
    concrete = looping.get_concrete_function(F64, F64)
    own, kept = len(concrete.graph.results), len(concrete.forward_graph.results)
    assert concrete.forward_graph.param_types == concrete.graph.param_types
    assert concrete.forward_graph.result_types[:own] == concrete.graph.result_types
    assert len(concrete.backward_graph.params) == kept - own + 2  # a cotangent for each result
    assert concrete.backward_graph.result_types == concrete.graph.param_types


def test_forward_and_backward_of_arrays():
    concrete = looping.get_concrete_function(F64, F64)
    value, run = concrete.forward(2.0, 3.0)
    assert value == looping(2.0, 3.0)
    dx, dk = concrete.backward(run, {"x": 1.0, "k": None})
    (expected,) = wend.vjp(lambda p: looping(*p)["x"], (2.0, 3.0))[1](1.0)
    np.testing.assert_allclose((dx, dk), expected)


@pytest.mark.parametrize("number", [2.0, 200.0], ids=["trips", "no trips"])
def test_forward_and_backward_in_a_trace(number):
    """The gradient of the gradient, by hand."""
    concrete = looping.get_concrete_function(F64, F64)

    @wend.function
    def slope(x):
        _, run = concrete.forward(x, 3.0)
        return concrete.backward(run, {"x": 1.0, "k": None})[0]

    by_wend = wend.grad(lambda x: looping(x, 3.0)["x"])
    np.testing.assert_allclose(slope(number), by_wend(number))
    np.testing.assert_allclose(wend.grad(slope)(number), wend.grad(by_wend)(number))


@pytest.mark.parametrize("number", [2.0, 200.0], ids=["trips", "no trips"])
def test_forward_and_backward_under_a_tape(number):
    concrete = looping.get_concrete_function(F64, F64)
    with wend.GradientTape() as tape:
        x = tape.watch(number)
        _, run = concrete.forward(x, 3.0)
        slope = concrete.backward(run, {"x": 1.0, "k": None})[0]
    curve = tape.gradient(slope, x, unconnected_gradients="zero")
    by_wend = wend.grad(lambda x: looping(x, 3.0)["x"])
    np.testing.assert_allclose(float(np.asarray(slope)), by_wend(number))
    np.testing.assert_allclose(curve, wend.grad(by_wend)(number))


def test_forward_assigns():
    v = wend.Variable(1.0)
    concrete = wend.function(lambda x: v.assign_add(x).value * x).get_concrete_function(F64)
    value, run = concrete.forward(2.0)
    assert (value, v) == (6.0, 3.0)
    assert concrete.backward(run, 1.0) == (5.0,)
    assert concrete.backward(run, 1.0, captures=True) == (5.0, 2.0)
    assert v == 3.0


@pytest.mark.parametrize("backend", ["numpy", "native", "dataflow"])
@pytest.mark.parametrize("number", [2.0, -2.0], ids=["reached", "not reached"])
def test_backward_gives_cotangents_of_captures(number, backend):
    """Arrays, variables and integers of outside, and a branch that does not read them."""
    v, w, n = wend.Variable(3.0), np.array([1.0, 2.0]), np.array([4, 5])

    def fun(x):
        return wend.cond(x > 0, lambda: np.sum(x * v * w * n), lambda: x)

    concrete = wend.function(fun, backend=backend).get_concrete_function(F64)
    _, run = concrete.forward(number)
    dx, *others = concrete.backward(run, 1.0, captures=True)
    names = ["v" if x is v else "w" if x is w else "n" for x in concrete.captured_inputs]
    cts = dict(zip(names, others, strict=True))
    reached = number > 0
    assert dx == (3.0 * (4.0 + 10.0) if reached else 1.0)
    assert cts["v"] == (2.0 * 14.0 if reached else 0.0)
    np.testing.assert_array_equal(cts["w"], 6.0 * n if reached else [0.0, 0.0])
    assert cts["n"] is None
    assert concrete.backward(run, None, captures=True) == (None,) * 4


def test_cotangents_of_captures_in_a_trace():
    v = wend.Variable(3.0)
    concrete = wend.function(lambda x: x * v * v).get_concrete_function(F64)

    @wend.function
    def slope(x):
        return concrete.backward(concrete.forward(x)[1], 1.0, captures=True)[1]

    assert slope(5.0) == 30.0
    assert wend.grad(slope)(5.0) == 6.0


# None
def test_results_and_arguments_of_none():
    """T101: None among the results is restored, and has no cotangent."""
    fun = wend.function(lambda x, unused, nothing: (None, x * x))
    assert fun(5.0, 1.0, None) == (None, 25.0)
    concrete = fun.get_concrete_function(5.0, 1.0, None)
    assert concrete.structured_outputs[0] is None
    assert str(concrete.structured_outputs[1]) == "f64[] (weak)"
    value, run = concrete.forward(5.0, 1.0, None)
    assert value == (None, 25.0)
    assert concrete.backward(run, (None, 1.0)) == (10.0, None, None)
    value, pullback = wend.vjp(fun, 5.0, 1.0, None)
    assert pullback((None, 1.0)) == (10.0, 0.0, None)


def test_a_variable_that_is_read_before_it_is_written():
    """T104: the read gives the old value, thirty times."""
    v = wend.Variable(0.0)
    reading = wend.function(lambda: v * 1.0)
    for k in range(30):
        assert reading() == k
        v.assign_add(1.0)


def test_runs_do_not_mix():
    """K53: each run keeps its own; one may be pulled back twice."""
    concrete = looping.get_concrete_function(F64, F64)
    runs = [concrete.forward(x, 3.0)[1] for x in (2.0, 5.0, 200.0)]
    ct = {"x": 1.0, "k": None}
    found = [concrete.backward(run, ct)[0] for run in (*runs, *reversed(runs))]
    expected = [wend.grad(lambda x: looping(x, 3.0)["x"])(x) for x in (2.0, 5.0, 200.0)]
    np.testing.assert_allclose(found, [*expected, *reversed(expected)])
    with pytest.raises(TypeError, match="backward takes a run of its own forward, not None"):
        concrete.backward(None, ct)
    other = z1.get_concrete_function(F64, F64).forward(1.0, 2.0)[1]
    with pytest.raises(TypeError, match="takes a run of its own forward, not <a run of z1>"):
        concrete.backward(other, ct)


# One inside another
def test_concrete_functions_call_each_other():
    concrete = z1.get_concrete_function(F64, F64)
    outer = wend.function(lambda x: concrete(concrete(x, x), x))
    graph = outer.get_concrete_function(F64).graph
    assert outer(2.0) == 6.0
    first, second = (node for node in graph.nodes if node.op.name == "call")
    assert first.regions[0] is second.regions[0]
    assert wend.grad(outer)(2.0) == 3.0


def test_structure_is_kept():
    fun = wend.function(lambda p, flag: {"sum": p["a"] + p["b"][0], "rest": [None, p["b"][1]]})
    concrete = fun.get_concrete_function({"a": 1.0, "b": (2.0, np.ones(3))}, "flag")
    (p, flag), kwargs = concrete.structured_input_signature
    assert (flag, kwargs) == ("flag", {})
    assert str(p["b"][1]) == "f64[3]"
    assert concrete.structured_outputs["rest"][0] is None
    assert str(concrete.structured_outputs["rest"][1]) == "f64[3]"
    found = concrete({"a": 1.0, "b": (2.0, np.zeros(3))})
    assert found["sum"] == 3.0
    assert found["rest"][0] is None


def test_structures_are_shown_as_types():
    concrete = wend.function(lambda x, k: {"y": x * k}).get_concrete_function(np.ones(2), 1)
    assert str(concrete.structured_outputs) == "{'y': f64[2]}"
    assert str(concrete.structured_input_signature) == "((f64[2], i64[] (weak)), {})"
