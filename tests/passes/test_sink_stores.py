"""Assignments to variables that go to the end of a run, and those whose order shows."""

from __future__ import annotations

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.ops.state import store
from wend.passes.sink_stores import sink_stores


class State:
    """Variables that the functions below assign to."""

    def __init__(self) -> None:
        self.a = wend.Variable(1.0, name="a")
        self.b = wend.Variable(np.arange(3.0), name="b")
        self.n = wend.Variable(0, name="n")


def one(s, x):
    s.a.assign(s.a + x)
    return x * s.a


def twice(s, x):
    s.a.assign(s.a * 2.0)
    y = s.a + x
    s.a.assign(y)
    return y


def several(s, x):
    g = s.b * x
    s.b.assign(s.b - 0.1 * g)
    s.a.assign(g.sum())
    s.n.assign(s.n + 1)
    return g


def swapped(s, x):
    a, total = s.a.value, s.b.value.sum()
    s.a.assign(total)
    s.b.assign(s.b.value * 0.0 + a)
    return x


def in_a_branch(s, x):
    if x > 2.0:
        s.n.assign(s.n + 1)
        s.a.assign(x)
    return s.a + 0.0


def in_both_branches(s, x):
    if x > 2.0:
        s.a.assign(x)
    else:
        s.a.assign(-x)
        s.n.assign(s.n - 1)
    return s.a * 2.0


def after_a_loop(s, x):
    y = x
    while y < 100.0:
        y = y + 9.0
    s.a.assign(y)
    return y - x


def after_a_check(s, x):
    wend.assert_(x > 0.0, "negative")
    s.a.assign(x)
    return x


def the_value_itself(s, x):
    s.b.assign(s.b.value * x)
    return s.b.value


def nothing(s, x):
    s.a.assign(x)


def a_dict(s, x):
    s.a.assign(x)
    return {"x": x, "more": (s.a + 1.0, x)}


def perhaps_none(s, x):
    s.n.assign(s.n + 1)
    if x > 2.0:
        return x * s.a
    s.a.assign(x)
    return None


def a_text(s, x):
    s.n.assign(s.n + 1)
    return {"size": "large" if x > 2.0 else "small", "x": x}


def before_a_loop(s, x):
    s.a.assign(x)
    y = x
    while y < 100.0:
        y = y + 9.0
    return y


def in_a_loop(s, x):
    y = x
    while y < 100.0:
        y = y + 9.0
        s.a.assign(y)
    return y


def before_a_check(s, x):
    s.a.assign(x)
    wend.assert_(x < 4.0, "large")
    return x


def before_a_loop_with_a_check(s, x):
    s.a.assign(x)
    y = 0.0
    for k in range(3):
        y = y + s.b[int(x) + k - 1]
    s.n.assign(s.n + 1)
    return y


def before_a_print(s, x):
    s.a.assign(x)
    print(x)
    return x


SUNK = [
    one,
    twice,
    several,
    swapped,
    in_a_branch,
    in_both_branches,
    after_a_loop,
    after_a_check,
    the_value_itself,
    nothing,
    a_dict,
    perhaps_none,
    a_text,
]
IN_ORDER = [
    before_a_loop,
    in_a_loop,
    before_a_check,
    before_a_loop_with_a_check,
    before_a_print,
]


@pytest.mark.parametrize("fun", SUNK, ids=lambda f: f.__name__)
def test_graphs_without_stores_give_the_new_values(fun):
    state = State()
    graph = wend.function(lambda x: fun(state, x)).get_concrete_function(3.0).graph
    sunk = sink_stores(graph)
    assert sunk is not None
    assert store not in sunk.graph.ops
    assert set(sunk.variables.values()) == {
        node.attrs["variable"] for node in graph.walk() if node.op is store
    }


@pytest.mark.parametrize("fun", IN_ORDER, ids=lambda f: f.__name__)
def test_stores_stay_where_a_run_may_end_after_one(fun):
    state = State()
    graph = wend.function(lambda x: fun(state, x)).get_concrete_function(3.0).graph
    assert store in graph.ops
    assert sink_stores(graph) is None


def test_a_graph_without_stores_is_left_alone():
    graph = wend.function(lambda x: wnp.sin(x)).get_concrete_function(3.0).graph
    assert sink_stores(graph) is None


def plain_value(x):
    return x if isinstance(x, str) else np.asarray(x).tolist()


def values(state: State) -> list:
    return [x.value.tolist() for x in (state.a, state.b, state.n)]


def as_state(variables) -> State:
    state = State.__new__(State)
    state.a, state.b, state.n = variables
    return state


@pytest.mark.parametrize("fun", SUNK + IN_ORDER, ids=lambda f: f.__name__)
@pytest.mark.parametrize("is_passed", [False, True], ids=["captured", "passed"])
def test_calls_leave_what_plain_python_leaves(fun, is_passed):
    """Many calls, for the first ones do not enter compiled code directly."""
    plain, compiled = State(), State()
    if is_passed:
        of_passed = wend.function(lambda a, b, n, x: fun(as_state((a, b, n)), x), backend="native")
        run = lambda x: of_passed(compiled.a, compiled.b, compiled.n, x)  # noqa: E731
    else:
        run = wend.function(lambda x: fun(compiled, x), backend="native")
    for x in [3.0, 1.0, 2.5, 3.5, -1.0, 0.5] * 4:
        outcomes = []
        for call in (lambda x: fun(plain, x), run):
            try:
                outcomes.append(str(wend.tree.map(plain_value, call(x))))
            except (AssertionError, IndexError) as error:
                outcomes.append(type(error))
        assert outcomes[0] == outcomes[1]
        assert values(plain) == values(compiled)


def test_arguments_written_in_place_do_not_hide_a_loop_that_may_fail():
    state = State()

    def fill(y, x):
        state.n.assign(state.n + 1)
        for k in range(3):
            y[k] = state.b[int(x) + k - 1]
        state.n.assign(state.n + 1)

    run = wend.function(fill, backend="native")
    for k in range(1, 13):
        y = np.zeros(3)
        run(y, 1.0)
        assert y.tolist() == [0.0, 1.0, 2.0]
        with pytest.raises(IndexError):
            run(y, 2.0)
        assert state.n.value == 3 * k
        assert y.tolist() == [1.0, 2.0, 2.0]


def test_a_second_gradient_goes_through_what_is_stored():
    state = State()

    def loss(x):
        state.a.assign(x * x * x)
        return state.a * x

    run = wend.function(loss, backend="native")
    assert [wend.grad(wend.grad(run))(x) for x in (2.0, 2.0, 3.0)] == [48.0, 48.0, 108.0]
    assert state.a.value == 27.0
