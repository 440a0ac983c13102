"""`prune`: functions between any values of a concrete function's graph."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wend
import wend.numpy as wnp
from tests.helpers.graphs import check_graph
from wend.base.errors import TypeMismatchError
from wend.function.value_names import PruneError

F64 = wend.TensorSpec([], "float64")


def model(x, w):
    h = wend.name(wnp.tanh(x), "h")
    return {"y": h * w["a"] + w["b"], "norm": h * h}


concrete = wend.function(model).get_concrete_function(F64, {"a": F64, "b": F64})


# Values
def test_between_named_values():
    encode, decode = concrete.prune("x", "h"), concrete.prune(["h", "w['a']", "w['b']"], "h")
    assert encode(0.5) == np.tanh(0.5)
    assert decode(3.0, 1.0, 1.0) == 3.0
    tail = concrete.prune(("h", {"first": "w['a']", "second": "w['b']"}), {"out": ["result['y']"]})
    assert tail(2.0, {"first": 3.0, "second": 4.0}) == {"out": [10.0]}
    assert encode.graph.count("mul") == 0
    for part in (encode, decode, tail):
        check_graph(part.graph)


def test_values_and_numbers_of_the_printed_graph():
    graph = concrete.graph
    h = graph.nodes[0].results[0]
    assert re.search(r"%3: f64\[\] = tanh\(%0\)", str(graph))
    for name in (h, "%3", "h"):
        assert concrete.prune(name, "result['norm']")(3.0) == 9.0
        assert concrete.prune(graph.params[0], name)(0.5) == np.tanh(0.5)
    assert concrete.prune(h, graph.results[1])(3.0) == 9.0


def test_parameters_are_called_what_was_fed():
    part = concrete.prune(["h", "w['a']", "w['b']"], "result['y']")
    assert part(2.0, 3.0, 4.0) == part(h=2.0, feed1=3.0, feed2=4.0) == 10.0
    assert repr(part) == "<concrete model_pruned(f64[], f64[], f64[])>"
    with pytest.raises(TypeError, match=r"model_pruned was traced for h: f64\[\], given f32\[\]"):
        part(np.float32(2.0), 3.0, 4.0)


def test_the_result_of_a_feed_is_the_feed():
    assert concrete.prune("h", "h")(5.0) == 5.0
    assert concrete.prune([], ())() == ()
    assert concrete.prune(["x", "w['a']"], "h")(0.5, 1.0) == np.tanh(0.5)


def test_parts_of_parts():
    part = concrete.prune(["h", "w['a']", "w['b']"], ["result['y']", "result['norm']"])
    assert part.prune("h", "result[1]")(3.0) == 9.0
    assert str(part.structured_outputs[0]) == "f64[]"


def test_parts_differentiate_in_every_way():
    part = concrete.prune("x", "result['norm']")
    slope = 2 * np.tanh(0.5) * (1 - np.tanh(0.5) ** 2)
    np.testing.assert_allclose(wend.grad(part)(0.5), slope)
    np.testing.assert_allclose(wend.jvp(part, (0.5,), (1.0,))[1], slope)
    value, run = part.forward(0.5)
    np.testing.assert_allclose(part.backward(run, 1.0), [slope])
    with wend.GradientTape() as tape:
        x = tape.watch(0.5)
        y = part(x)
    np.testing.assert_allclose(tape.gradient(y, x), slope)
    inside = wend.function(lambda x: part(x) + value)
    np.testing.assert_allclose(wend.grad(inside)(0.5), slope)


def test_loops_and_unknown_sizes():
    @wend.function
    def fun(x, n):
        xs = wend.name(x[:n] * 2, "cut")
        total = 0.0
        for item in xs:
            total = wend.name(total + item, "partial")
        return wend.name(total, "total") * 2

    whole = fun.get_concrete_function(wend.TensorSpec([None], "float64"), 3)
    x = np.arange(5.0)
    assert whole(x, 3) == 12.0
    cut = whole.prune(["x", "n"], "cut")
    assert cut(x, 2).tolist() == [0.0, 2.0]
    rest = whole.prune("cut", ["total", "result"])
    assert rest(np.ones(4)) == [4.0, 8.0]
    assert wend.grad(lambda x: rest(x)[0])(np.ones(4)).tolist() == [1.0] * 4
    for part in (cut, rest):
        check_graph(part.graph)


def test_one_result_of_a_node_is_fed_another_fetched():
    @wend.function
    def fun(x):
        a, b = wend.while_loop(lambda c: c[0] < 10, lambda c: (c[0] * 2, c[1] + 1), (x, x))
        return a + b, b

    whole = fun.get_concrete_function(F64)
    first = whole.graph.nodes[0].results[0]
    part = whole.prune(["x", first], ["result[0]", "result[1]"])
    assert part(1.0, 100.0) == [105.0, 5.0]


@given(st.integers(0, 11), st.data())
def test_every_cut_computes_the_same(seed, data):
    """What comes before a cut, then what comes behind it, is the whole."""
    rng = np.random.default_rng(seed)

    def fun(x, y):
        values = [x, y]
        for k in range(8):
            i, j = rng.integers(0, len(values), 2)
            op = [wnp.add, wnp.multiply, lambda a, b: wnp.sin(a) - b][rng.integers(0, 3)]
            values.append(wend.name(op(values[i], values[j]), f"v{k}"))
        return values[-1]

    whole = wend.function(fun, capture=False).get_concrete_function(F64, F64)
    names = [f"v{k}" for k in range(8) if any(f"v{k}" == v.name for v in computed(whole))]
    chosen = data.draw(st.sets(st.sampled_from(names)))
    cut = [*chosen, "x", "y"]
    before = whole.prune(["x", "y"], cut)
    behind = whole.prune(cut, "result")
    np.testing.assert_allclose(behind(*before(0.3, 0.7)), whole(0.3, 0.7))


def computed(concrete):
    return [value for node in concrete.graph.nodes for value in node.results]


# Captures and effects
v = wend.Variable(2.0, name="v")


@wend.function
def stateful(x, w):
    wend.print("first", x)
    h = wend.name(x * v, "h")
    wend.print("second", h)
    v.assign_add(x)
    y = h * w
    wend.assert_(y < 100, "too big")
    return y


@pytest.fixture
def acting():
    v.assign(2.0)
    return stateful.get_concrete_function(F64, F64)


def test_captures_stay_captures(acting):
    part = acting.prune("x", "h")
    assert part.captured_inputs == (v,)
    assert part(3.0) == 6.0
    v.assign(10.0)
    assert part(3.0) == 30.0
    with wend.GradientTape() as tape:
        y = part(3.0)
    assert tape.gradient(y, v) == 3.0


def test_captures_may_be_fed(acting):
    part = acting.prune(["x", v], "h")
    assert part.captured_inputs == ()
    assert part(3.0, 7.0) == 21.0
    assert v == 2.0


def test_effects_that_nobody_fetches_are_dropped(acting, capsys):
    part = acting.prune(["x", "w"], "result")
    assert part(30.0, 10.0) == 600.0, "not even the assertion is left"
    assert v == 2.0
    assert capsys.readouterr().out == ""


def test_effects_that_are_fetched_happen_in_order(acting, capsys):
    first, second = (node for node in acting.graph.nodes if node.op.name == "print")
    part = acting.prune("x", {"print": second, "h": "h", "all": [first]})
    assert part(3.0) == {"print": None, "h": 6.0, "all": [None]}
    assert capsys.readouterr().out == "first 3.0\nsecond 6.0\n"
    alone = acting.prune("h", second)
    assert alone(5.0) is None
    assert capsys.readouterr().out == "second 5.0\n"
    by_number = acting.prune("x", f"%{number_of(acting.graph, first)}")
    assert by_number(4.0) is None
    assert capsys.readouterr().out == "first 4.0\n"


def number_of(graph, node):
    lines = [line for line in str(graph).split("\n") if f"= {node.op.name}(" in line]
    return re.search(r"%(\d+)", lines[0])[1]


def test_assertions_that_are_fetched_hold(acting):
    (check,) = (node for node in acting.graph.nodes if node.op.name == "raise_if")
    part = acting.prune(["h", "w"], ["result", check])
    assert part(2.0, 3.0) == [6.0, None]
    with pytest.raises(AssertionError, match="too big"):
        part(200.0, 3.0)


def test_assignments_that_are_fetched_happen(acting):
    part = acting.prune("x", ["h", v])
    assert part(3.0) == [6.0, None]
    assert v == 5.0
    inside = wend.function(lambda x: (part(x)[0], v * 1.0))
    assert inside(2.0) == (10.0, 7.0)
    assert v == 7.0


def test_what_is_on_the_way_runs_whole(capsys):
    @wend.function
    def fun(x):
        wend.print("before")
        for i in range(3):
            wend.print("trip", i)
            x = x * 2
        return x

    whole = fun.get_concrete_function(F64)
    assert whole.prune("x", "result")(1.0) == 8.0
    assert capsys.readouterr().out == "trip 0\ntrip 1\ntrip 2\n"


# Names
def test_naming_changes_nothing_else():
    def fun(x):
        y = wend.name(x, "first")
        return wend.name(wend.name(y * y, "second"), "third") + wend.name(2.0, "number")

    assert fun(3.0) == wend.function(fun)(3.0) == 11.0
    assert wend.grad(fun)(3.0) == 6.0
    with wend.config(backend="native"):
        assert wend.grad(wend.grad(wend.function(fun)))(3.0) == 2.0
    whole = wend.function(fun).get_concrete_function(3.0)
    assert str(whole.structured_outputs) == "f64[] (weak)"
    for name in ("x", "first", "second", "third"):
        assert whole.prune("x", name)(3.0) == (3.0 if name in ("x", "first") else 9.0)


def test_only_arrays_have_names():
    with pytest.raises(TypeMismatchError, match=r"wend\.name takes an array, not \[1\]"):
        wend.name([1], "x")
    with pytest.raises(TypeMismatchError, match="a string as the name, not 3"):
        wend.name(1.0, 3)


# Mistakes
@wend.function
def odd(x):
    out = []
    for _ in range(3):
        x = wend.name(x * 2, "inside")
        out.append(x)
    a, b = wend.name(x + 1, "twice"), wend.name(x + 2, "twice")
    return wnp.sum(wnp.stack(out)) + a * b


odd_one = odd.get_concrete_function(F64)
odd_list = next(v for v in computed(odd_one) if "list" in str(v.type))

MISTAKES = {
    "no such name": lambda: concrete.prune("x", "hidden"),
    "a name inside of a loop": lambda: odd_one.prune("x", "inside"),
    "one name of two values": lambda: odd_one.prune("x", "twice"),
    "a value of another graph": lambda: concrete.prune(odd_one.graph.params[0], "h"),
    "no value at all": lambda: concrete.prune("x", 3.0),
    "an argument that is not fed": lambda: concrete.prune("h", ["h", "result['y']"]),
    "a value that is fed twice": lambda: concrete.prune(["x", concrete.graph.params[0]], "h"),
    "a list": lambda: odd_one.prune("x", odd_list),
    "a node without effect": lambda: concrete.prune("x", concrete.graph.nodes[0]),
    "an effect that is fed": lambda: stateful.concrete_functions()[0].prune("%4", "h"),
    "a variable that is not assigned to": lambda: concrete.prune("x", v),
    "a variable that is not read": lambda: concrete.prune(v, "h"),
}


def test_mistakes_are_told_by_name(golden, acting):
    told = []
    for name, mistake in MISTAKES.items():
        with pytest.raises((PruneError, TypeMismatchError)) as caught:
            mistake()
        told.append(f"# {name}\n{type(caught.value).__name__}: {caught.value}\n")
    golden.check("errors/prune.txt", "\n".join(told))
