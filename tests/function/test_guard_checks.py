"""Python values that a trace read, and that have changed since."""

from __future__ import annotations

import functools
import gc
import types
import warnings
import weakref

import numpy as np
import pytest

import wend
from wend.capture.guards.guards import GuardSet
from wend.function.guard_checks import GuardSchedule

RATE = 0.5


def helper(x):
    return x * RATE


@wend.function
def decayed(x):
    return helper(x)


def told(call):
    """What a call gives, and what it warns of."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = call()
    assert all(w.category is wend.StaleTraceWarning and w.filename == __file__ for w in found)
    return result, [str(w.message) for w in found]


CURE = (
    "\n  To fix it: pass it as an argument, hold it in a wend.Variable, or let the function be "
    "traced anew: wend.config(watch_globals=True)."
)


def test_a_global_of_a_helper_that_changed_is_told_once(monkeypatch):
    assert decayed(2.0) == 1.0
    monkeypatch.setitem(globals(), "RATE", 0.25)
    message = "decayed still uses the values of its trace: RATE is 0.25, not 0.5."
    assert told(lambda: decayed(2.0)) == (1.0, [message + CURE])
    assert told(lambda: decayed(2.0)) == (1.0, [])
    assert "   still uses the old value: RATE is 0.25, not 0.5" in decayed.explain().split("\n")
    assert decayed.trace_count == 1


def test_watching_traces_again():
    rate = 0.5
    fun = wend.function(lambda x: x * rate)
    assert fun(2.0) == 1.0
    with wend.config(watch_globals=True):
        assert (fun(2.0), fun.trace_count) == (1.0, 1)
        rate = 0.25
        assert [fun(2.0), fun(2.0)] == [0.5, 0.5]
        assert fun.get_concrete_function(2.0) is fun.concrete_functions()[0]
    assert (fun.trace_count, len(fun.concrete_functions())) == (2, 1)
    text = fun.explain()
    assert "what an earlier trace read has changed: rate is 0.25, not 0.5, at" in text
    assert "reads rate = 0.25" in text
    assert text.endswith("and 1 that read what has changed")


def once(x):
    return x


def twice(x):
    return 2 * x


def test_a_helper_that_is_bound_anew():
    inner = once
    fun = wend.function(lambda x: inner(x))
    assert fun(1.0) == 1.0
    inner = twice
    _, messages = told(lambda: fun(1.0))
    assert "inner is function twice, not function once" in messages[0]
    with wend.config(watch_globals=True):
        assert fun(1.0) == 2.0


def test_contents_of_a_dict():
    options = {"rate": 0.5, "how": ["a", 1]}
    fun = wend.function(lambda x: x * options["rate"])
    fun(1.0)
    options["how"][1] = 2
    _, messages = told(lambda: fun(1.0))
    assert "options is {'rate': 0.5, 'how': ['a', 2]}, not" in messages[0]


def test_attributes_of_self():
    class Model:
        def __init__(self):
            self.training = True

        @wend.function
        def __call__(self, x):
            return x * 2 if self.training else x

    model = Model()
    assert model(1.0) == 2.0
    model.training = False
    found, messages = told(functools.partial(model, 1.0))
    assert found == 2.0
    assert "self.training is False, not True" in messages[0]
    with wend.config(watch_globals=True):
        assert model(1.0) == 1.0
    reference = weakref.ref(model)
    del model
    gc.collect()
    assert reference() is None


def test_variables_and_arrays_that_are_changed_in_place_are_not_stale():
    v, w, ref = wend.Variable(1.0), np.ones(2), types.SimpleNamespace(v=wend.Variable(2.0))
    fun = wend.function(lambda x: x * w + v + ref.v)
    fun(1.0)
    v.assign(5.0)
    ref.v.assign(6.0)
    w[0] = 3.0
    assert fun(1.0).tolist() == [14.0, 12.0]
    w = np.zeros(2)
    _, messages = told(lambda: fun(1.0))
    assert "w is another (an array of shape (2,))" in messages[0]


def test_python_effects_of_a_trace_are_not_stale():
    count, seen = 0, []

    @wend.function
    def fun(x):
        nonlocal count
        count += 1
        seen.append(count)
        return x

    for x in (1.0, 1, np.ones(2), 2.0, 3):
        fun(x)
    assert (count, seen) == (3, [1, 2, 3])


def test_what_an_inner_function_read():
    rate = 1.0
    inner = wend.function(lambda x: x * rate, name="inner")
    outer = wend.function(lambda x: inner(x) + 1, name="outer")
    again = wend.function(lambda x: inner(x) + 2, name="again")
    outer(1.0)
    rate = 3.0
    _, messages = told(lambda: outer(1.0))
    assert [message.partition(" still")[0] for message in messages] == ["outer"]
    _, messages = told(lambda: again(1.0))  # it is made of the old trace of inner
    assert [message.partition(" still")[0] for message in messages] == ["inner", "again"]
    with wend.config(watch_globals=True):
        assert [outer(1.0), again(1.0), inner(1.0)] == [4.0, 5.0, 3.0]


def test_gradients():
    rate = 2.0
    slope = wend.grad(lambda x: rate * x)
    assert slope(1.0) == 2.0
    rate = 3.0
    assert "grad_<lambda> still uses" in told(lambda: slope(1.0))[1][0]
    with wend.config(watch_globals=True):
        assert slope(1.0) == 3.0


def test_a_new_trace_looks_at_all():
    rate = 2.0
    fun = wend.function(lambda x: rate * x)
    for _ in range(100):
        fun(1.0)
    rate = 3.0
    found, messages = told(lambda: fun(np.ones(2)))
    assert found.tolist() == [3.0, 3.0]
    assert len(messages) == 1


def looked_at(calls):
    watch = GuardSchedule(GuardSet())
    return [k for k in range(1, calls + 1) if watch.is_due()]


def test_when_one_looks():
    found = looked_at(3000)
    assert found[:16] == [*range(1, 17)]
    gaps = np.diff(found)
    assert gaps.max() == 64
    assert all(gap <= max(1, call / 8) for gap, call in zip(gaps, found, strict=False))


def test_a_change_is_noticed_within_64_calls():
    rate = 2.0
    fun = wend.function(lambda x: rate * x)
    for _ in range(2000):
        fun(1.0)
    rate = 3.0
    with pytest.warns(wend.StaleTraceWarning, match=r"rate is 3\.0, not 2\.0"):
        [fun(1.0) for _ in range(64)]


def test_nothing_is_run_to_look():
    ran = []

    class Options:
        @property
        def rate(self):
            ran.append(1)
            return 2.0

        def __getattr__(self, name):
            ran.append(name)
            raise AttributeError(name)

    options = Options()
    fun = wend.function(lambda x: x * options.rate)
    fun(1.0)
    ran.clear()
    fun(1.0)
    fun.explain()
    assert ran == []


def test_what_host_functions_read_is_read_as_they_run():
    seen, factor = [], 2.0

    @wend.function
    def fun(x):
        def note(z):
            seen.append(float(z))

        wend.py_function(note, None, x)
        wend.py_function(lambda z: seen.append(-z), None, x)
        return x * factor

    assert told(lambda: [fun(k) for k in (1.0, 2.0, 3.0)]) == ([2.0, 4.0, 6.0], [])
    assert seen == [1.0, -1.0, 2.0, -2.0, 3.0, -3.0]
    with wend.config(watch_globals=True):
        assert told(lambda: fun(4.0)) == (8.0, [])
    assert fun.trace_count == 1
    factor = 3.0
    ((_, (message,)),) = [told(lambda: fun(1.0))]
    assert "factor is 3.0, not 2.0" in message
