"""`Function.explain`: every trace, why it was made, and the loops that Python ran in it."""

from __future__ import annotations

import re

import numpy as np

import wend
import wend.numpy as wnp
from tests.helpers.traces import at_trace
from wend.function.closures.shared_traces import forget_shared_traces


def reasons(fun, *calls):
    """Why each trace after the first was made."""
    for args in calls:
        fun(*args)
    found = re.findall(r"unlike trace (\d+): (.*), at test_report.py:\d+", fun.explain())
    return [(int(number), text) for number, text in found]


def last(fun, *calls):
    return reasons(fun, *calls)[-1][1]


def fresh():
    forget_shared_traces()  # of the last one
    return wend.function(lambda x, how="a": wnp.sum(x["a"] if isinstance(x, dict) else x[0]))


def doubled():
    forget_shared_traces()
    return wend.function(lambda x: 0.0 if isinstance(x, str) else x * 2)


def test_the_whole_text():
    fun = wend.function(lambda x, unit: x * {"m": 1.0, "km": 1000.0}[unit], name="scaled")
    assert fun.explain() == "scaled: 0 traces"
    for x, unit in ((2.0, "km"), (3.0, "m"), (np.ones(2), "m"), (np.ones(3), "m")):
        fun(x, unit)
    text = re.sub(r"test_report.py:\d+", "here", fun.explain())
    assert text.split("\n") == [
        "scaled: 4 traces",
        "1. x float, unit 'km'",
        "   the first trace, at here",
        "2. x float, unit 'm'",
        "   unlike trace 1: unit is 'm', not 'km', at here",
        "3. x f64[2], unit 'm'",
        "   unlike trace 2: x is the array f64[2], not the Python float, at here",
        "4. x f64[n0], unit 'm'",
        "   unlike trace 3: the shape of x is [3], not [2], at here",
        "   its unknown sizes may be any but 0 and 1: no new trace for those",
    ]
    assert repr(fun.explain()) == str(fun.explain())
    assert isinstance(fun.explain(), str)


def test_each_kind_of_difference():
    f4, f8 = np.ones(3, "f4"), np.ones(3)
    assert last(doubled(), (f8,), (f4,)) == "the dtype of x is float32, not float64"
    assert last(doubled(), (f8,), (f8[:, None],)) == "the rank of x is 2, not 1"
    assert last(doubled(), (f8,), (f4[:, None],)) == "x is f32[3,1], not f64[3]"
    assert last(doubled(), (f8,), (f8[:2],)) == "the shape of x is [2], not [3]"
    assert last(doubled(), (1,), (1.0,)) == "x is the Python float, not the Python int"
    assert last(doubled(), (1.0,), (np.float64(1),)) == "x is the array f64[], not the Python float"
    assert last(doubled(), (1.0,), ("s",)) == "x is 's', not float"
    assert last(fresh(), ([1.0],), ((1.0,),)) == "x is a tuple, not a list"
    assert last(fresh(), ([1.0],), ([1.0, 2.0],)) == "x[1] is not expected"
    one, two = {"a": 1.0}, {"a": 1.0, "b": 2.0}
    assert last(fresh(), (two,), (one,)) == "x['b'] is missing"
    assert last(fresh(), ([1.0],), ([1.0], "b")) == "how is given"
    assert last(fresh(), ([1.0], "b"), ([1.0],)) == "how is not given"
    assert last(fresh(), ([1.0], "b"), ([1.0], "c")) == "how is 'c', not 'b'"
    assert last(fresh(), ([1.0], "b"), ([1.0], None)) == "how is None, not a single value"


def test_objects_that_show_alike():
    class Thing:
        def __repr__(self):
            return "thing"

    a, b = Thing(), Thing()
    assert last(fresh(), ([1.0], a), ([1.0], b)) == "how is another Thing"
    small = wend.function(lambda x, n: x, static_argnames="n")
    assert last(small, (1.0, 1), (1.0, np.str_("1"))) == "n is np.str_('1'), not 1"


def test_the_nearest_trace_is_compared():
    fun = wend.function(lambda x, n, m: x, static_argnames=["n", "m"])
    found = reasons(fun, (1.0, 1, 1), (1.0, 2, 2), (1.0, 1, 3), (1.0, 2, 3))
    assert found == [
        (1, "n is 2, not 1; m is 2, not 1"),
        (1, "m is 3, not 1"),
        (3, "n is 2, not 1"),
    ]


def test_unknown_sizes_are_no_difference():
    fun = wend.function(lambda x, n: x * n, static_argnames="n")
    found = reasons(fun, *[(np.ones(k), 2) for k in (3, 4)], (np.ones(5), 3))
    assert found[-1] == (2, "n is 3, not 2")
    two = wend.function(lambda x, y: wnp.sum(x) * wnp.sum(y))
    found = reasons(two, *[(np.ones(k), np.ones(k)) for k in (3, 4)], (np.ones(5), np.ones(6)))
    assert found[-1] == (2, "sizes that are one there differ")


def test_what_outer_traces_gave_is_gone():
    holder, made = [], []
    hold = at_trace(holder)

    def outer(x):
        if not made:
            made.append(wend.function(lambda z: z * holder[-1]))
        hold(x)
        return made[0](2.0)

    wend.function(outer)(3.0)
    wend.function(outer)(5.0)
    assert "1. z float\n" in made[0].explain()


# Loops that Python ran
NUMBERS = [1.0, 2.0, 3.0]


def by_position(x):
    for k in range(3):
        x = x * NUMBERS[k]
    return x


def counted(x):
    k = 0
    while k < 3:
        x = x + NUMBERS[k]
        k += 1
    return x


def nested(x):
    for _ in range(10):
        x = by_position(x)
    return x


def one_node(x):
    for k in range(3):
        x = x * k
    return x


def notes(fun, *args):
    traced = wend.function(fun)
    traced(*args)
    return [line.strip() for line in traced.explain().split("\n") if "Python ran" in line]


def line_of(fun, offset):
    return f"test_report.py:{fun.__code__.co_firstlineno + offset}"


def test_loops_that_were_unrolled():
    (note,) = notes(by_position, 1.0)
    assert note == (
        f"for at {line_of(by_position, 1)} is not one node, Python ran its 3 trips: the integer "
        f"of <traced i64[] (weak)> is needed at {line_of(by_position, 2)}"
    )
    (note,) = notes(counted, 1.0)
    assert note.startswith(f"while at {line_of(counted, 2)} is not one node, Python ran its 3")
    assert notes(nested, 1.0) == notes(by_position, 1.0)
    assert notes(one_node, 1.0) == []


def test_loops_in_gradients():
    slope = wend.grad(by_position)
    assert slope(1.0) == 6.0
    assert f"for at {line_of(by_position, 1)} is not one node" in slope.explain()


def test_methods_by_instance():
    class Model:
        @wend.function
        def scaled(self, x):
            return x * 2

        def __repr__(self):
            return "Model()"

    a = Model()
    a.scaled(1.0)
    assert a.scaled.explain().split("\n")[1] == "1. self Model(), x float"
    assert Model.scaled.explain().split("\n")[:2] == [
        "scaled: 0 traces",
        "of Model(), scaled: 1 trace",
    ]
