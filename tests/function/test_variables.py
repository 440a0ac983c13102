"""Variables as arguments: by identity, so that functions assign to those that are passed."""

from __future__ import annotations

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.base.errors import NotDifferentiableError, TypeMismatchError, VariableError


@pytest.fixture(params=[False, True], ids=["traced", "eager"])
def eager(request):
    with wend.config(eager=request.param):
        yield request.param


def two():
    return wend.Variable(2.0, name="v"), wend.Variable(3.0, name="w")


def test_traces():
    """T78: one for variables of the same type, but which of them are one matters."""
    v, w = two()

    @wend.function
    def fun(a, b):
        a.assign_add(b)
        return a * b

    counts, values = [], []
    for pair in ((v, v), (v, w), (w, v), (w, w)):
        v.assign(2.0)
        w.assign(3.0)
        values.append((fun(*pair), v.value, w.value))
        counts.append(fun.trace_count)
    assert counts == [1, 2, 2, 2]
    assert values == [(16.0, 4.0, 3.0), (15.0, 5.0, 3.0), (10.0, 2.0, 5.0), (36.0, 2.0, 6.0)]
    rows = wend.Variable(np.ones(2)), wend.Variable(np.ones(3))
    fun(rows[0], rows[0])
    fun(rows[1], rows[1])
    assert fun.trace_count == 4
    assert "b is variable 2 of the call, not 1" in fun.explain()


def test_read_only(eager):
    v, w = two()
    fun = wend.function(lambda x, y: x * y)
    assert (fun(v, w), fun(w, w), fun(np.float64(5.0), v)) == (6.0, 9.0, 10.0)
    assert (v.value, w.value) == (2.0, 3.0)


def test_in_loops_branches_and_functions(eager):
    v, w = two()
    add = wend.function(lambda a, x: (a.assign_add(x), None)[1])

    @wend.function
    def fun(a, b, n):
        i = 0
        while i < n:
            add(a, 1.0)
            if a > 4.0:
                add(b, a)
            i += 1
        return a + b

    assert fun(v, w, np.int64(4)) == 6.0 + 14.0
    assert (v.value, w.value) == (6.0, 14.0)
    assert fun(w, v, np.int64(1)) == 15.0 + 21.0
    assert (v.value, w.value) == (21.0, 15.0)


def test_one_body_for_each_variable():
    v, w = two()
    add = wend.function(lambda a: a.assign_add(1.0).value)

    @wend.function
    def fun():
        for _ in wend.unroll(range(3)):
            add(v)
        add(w)

    fun()
    assert (v.value, w.value, add.trace_count) == (5.0, 4.0, 1)
    calls = [n for n in fun.get_concrete_function().graph.nodes if n.op.name == "call"]
    bodies = {str(call.regions[0]) + str(call.regions[0].nodes[-1].attrs) for call in calls}
    assert (len(calls), len(bodies)) == (4, 2)


def test_a_call_that_fails():
    v, w = two()

    @wend.function
    def fun(a, b):
        a.assign(5.0)
        wend.assert_(b < 1.0, "no")
        b.assign(6.0)

    with pytest.raises(AssertionError):
        fun(v, w)
    assert (v.value, w.value) == (5.0, 3.0)
    with wend.GradientTape(), pytest.raises(AssertionError):
        fun(w, v)
    assert (v.value, w.value) == (5.0, 5.0)


def loss(params, x):
    return wnp.sum((params["w"] * x + params["b"].value) ** 2)


def test_gradients_of_variables(eager):
    """In the structure of the argument: a dict of variables, a list, one alone."""
    params = {"w": wend.Variable(np.ones(3)), "b": wend.Variable(0.5)}
    x = np.arange(3.0)
    expected = wend.grad(lambda p: wnp.sum((p["w"] * x + p["b"]) ** 2))({"w": np.ones(3), "b": 0.5})
    value, found = wend.value_and_grad(loss)(params, x)
    assert value == 8.75
    _, by_vjp = wend.vjp(loss, params, x)
    for one in (found, wend.grad(loss)(params, x), by_vjp(1.0)[0]):
        assert sorted(one) == ["b", "w"]
        np.testing.assert_allclose(one["w"], expected["w"])
        np.testing.assert_allclose(one["b"], expected["b"])
    v, w = two()
    assert wend.grad(lambda pair: pair[0] * pair[1])([v, w]) == [3.0, 2.0]
    assert wend.grad(lambda a: a * a)(v) == 4.0
    assert wend.grad(wend.grad(lambda a: a * a * a))(v) == 12.0
    assert wend.jacfwd(lambda a: a * a)(v) == 4.0


def test_under_a_tape(eager):
    v, w = two()
    fun = wend.function(lambda a, b: a.assign(a * b) * b)
    with wend.GradientTape() as tape:
        y = fun(v, w)
    assert (float(y), v.value) == (18.0, 6.0)
    assert tape.gradient(y, [v, w]) == [9.0, 12.0]


def test_a_training_step():
    params = {"w": wend.Variable(np.ones(3)), "b": wend.Variable(0.5)}

    @wend.function
    def step(params, x):
        value, gradient = wend.value_and_grad(loss)(params, x)
        for name in params:
            params[name].assign_sub(0.1 * gradient[name])
        return value

    losses = [step(params, np.arange(3.0)) for _ in range(60)]
    assert losses[0] == 8.75
    assert losses[-1] < 1e-3
    others = {"w": wend.Variable(np.zeros(3)), "b": wend.Variable(1.0)}
    assert step(others, np.arange(3.0)) == 3.0
    assert step.trace_count == 1


def test_a_signature_takes_what_they_hold():
    v, _ = two()
    fun = wend.function(lambda x: x * 2.0, input_signature=[wend.TensorSpec([], "float64")])
    assert (fun(v), fun(1.0), fun.trace_count) == (4.0, 2.0, 1)


def test_rules_read_variables(eager):
    v, _ = two()

    @wend.custom_vjp
    def scaled(x):
        return x * v

    scaled.defvjp(lambda x: (x * v, None), lambda _, ct: (ct * v * 10.0,))
    pushed = wend.custom_jvp(lambda x: x * v)
    pushed.defjvp(lambda primals, tangents: (primals[0] * v, tangents[0] * v))
    for _ in range(2):
        assert wend.function(scaled)(3.0) == 3.0 * v.value
        assert wend.grad(lambda x: scaled(x) * v)(3.0) == 10.0 * v.value**2
        assert wend.jvp(pushed, (3.0,), (1.0,)) == (3.0 * v.value, v.value)
        v.assign(5.0)


# What is refused
def test_a_trace_for_variables_takes_variables():
    v, _ = two()
    concrete = wend.function(lambda a: a.assign_add(1.0).value).get_concrete_function(v)
    assert concrete(v) == 3.0
    with pytest.raises(TypeMismatchError, match="traced for a: Variable"):
        concrete(np.float64(1.0))


def test_passed_and_used_from_outside():
    v, w = two()
    table = np.zeros(3)
    fun = wend.function(lambda a: v.assign_add(a + table.sum()).value)
    assert fun(w) == 5.0
    message = r"'v', made at .*, is passed to <lambda>, which also uses it from outside"
    with pytest.raises(VariableError, match=message):
        fun(v)
    with pytest.raises(VariableError, match=message):
        wend.function(lambda: fun(v))()
    reads = wend.function(lambda a: a * v)
    assert reads(v) == 25.0


def test_differentiated_and_assigned():
    v, _ = two()
    with pytest.raises(NotDifferentiableError, match="changed in place"):
        wend.grad(lambda a: a.assign(a * a) * 1.0)(v)


def test_another_dtype_or_shape():
    v, _ = two()
    with pytest.raises(TypeMismatchError, match="'argument a' holds f64"):
        wend.function(lambda a: a.assign(np.ones(3)))(v)
