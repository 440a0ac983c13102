"""Python values that a trace read: they are checked at every call."""

from __future__ import annotations

import functools
import gc
import sys
import threading
import types
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import wend

RATE = 0.5
OPTIONS = types.SimpleNamespace(rate=2.0, deep=types.SimpleNamespace(rate=3.0))
DEEPER = types.SimpleNamespace(rate=7.0)
SCALES = [1.0, 2.0]
ZERO = 0.0
TABLE = {"a": 1.0, "b": 2.0}


def helper(x):
    return x * RATE


def other_helper(x):
    return x + 1.0


@pytest.fixture(params=["native", "numpy"])
def backend(request):
    with wend.config(backend=request.param):
        yield request.param


@pytest.fixture(params=[0, 20])
def warm_calls(request):
    """The number of calls before the world changes: the first trace, or compiled code."""
    return request.param


def test_a_global_of_a_helper(backend, warm_calls, monkeypatch):
    decayed = wend.function(lambda x: helper(x))
    for _ in range(warm_calls + 1):
        assert decayed(2.0) == 1.0
    monkeypatch.setitem(globals(), "RATE", 0.25)
    assert [decayed(2.0) for _ in range(warm_calls + 1)] == [0.5] * (warm_calls + 1)
    assert decayed.trace_count == 2
    text = decayed.explain()
    assert "what an earlier trace read has changed: RATE is 0.25, not 0.5, at" in text
    assert "reads RATE = 0.25" in text
    assert text.endswith("and 1 that read what has changed")
    assert len(decayed.concrete_functions()) == 1


CHANGES: dict[str, tuple[Any, Any]] = {
    "global": (
        lambda x: x * RATE,
        lambda patch: patch.setitem(globals(), "RATE", 0.125),
    ),
    "attribute": (
        lambda x: x * OPTIONS.rate,
        lambda patch: patch.setattr(OPTIONS, "rate", 5.0),
    ),
    "chain": (
        lambda x: x * OPTIONS.deep.rate,
        lambda patch: patch.setattr(OPTIONS.deep, "rate", 5.0),
    ),
    "link": (
        lambda x: x * OPTIONS.deep.rate,
        lambda patch: patch.setattr(OPTIONS, "deep", DEEPER),
    ),
    "kind": (
        lambda x: x if isinstance(OPTIONS.rate, int) else -x,
        lambda patch: patch.setattr(OPTIONS, "rate", 2),
    ),
    "zero": (
        lambda x: np.copysign(x, ZERO),
        lambda patch: patch.setitem(globals(), "ZERO", -0.0),
    ),
    "list": (
        lambda x: x * sum(SCALES),
        lambda patch: patch.setitem(globals(), "SCALES", [1.0, 3.0]),
    ),
    "dict": (
        lambda x: x * TABLE["a"],
        lambda patch: patch.setitem(TABLE, "a", 3.0),
    ),
    "function": (
        lambda x: helper(x),
        lambda patch: patch.setitem(globals(), "helper", other_helper),
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CHANGES)
def test_each_kind_of_read(name, backend, warm_calls, monkeypatch):
    plain, change = CHANGES[name]
    compiled, slope = wend.function(plain), wend.grad(plain)
    for is_changed in (False, True, False, True):
        if is_changed:
            change(monkeypatch)
        else:
            monkeypatch.undo()
        for _ in range(warm_calls + 1):
            expected = plain(1.5)
            assert compiled(1.5) == expected
            assert np.sign(slope(1.5)) == (np.sign(expected) or 0.0)
    assert compiled.trace_count == 2


def test_an_item_of_a_list(backend, warm_calls):
    scales = [1.0, 2.0]
    fun = wend.function(lambda x: x * scales[1])
    for value in (2.0, 3.0, 2.0, 3):
        scales[1] = value
        assert [fun(2.0) for _ in range(warm_calls + 1)] == [2.0 * value] * (warm_calls + 1)
    scales.append(0.0)
    assert fun(2.0) == 6.0


def test_values_that_alternate_trace_once_each(backend):
    rate = 1.0
    fun = wend.function(lambda x: x * rate)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(200):
            rate = 1.0 + k % 2
            assert fun(2.0) == 2.0 * rate
    assert fun.trace_count == 2


def test_the_traces_that_are_kept_are_bounded(backend):
    rate = "0"

    @wend.function
    def fun(x):
        return x * int(rate)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wend.RetraceWarning)
        for rate in map(str, range(100)):
            assert fun(2.0) == 2.0 * int(rate)
        references = [weakref.ref(trace) for trace in fun._cache._all_traces()]
        assert len(references) == 9
        assert fun.trace_count == 100
        for rate in map(str, range(92, 100)):
            assert fun(2.0) == 2.0 * int(rate)
        assert fun.trace_count == 100
        rate = "50"
        assert (fun(2.0), fun.trace_count) == (100.0, 101)
    assert fun.explain().endswith("and 100 that read what has changed")


def test_a_trace_that_fails_leaves_the_others(backend):
    names = ["a"]
    fun = wend.function(lambda x, table: x * table[names[0]])
    table = {"a": 2.0}
    for _ in range(3):
        assert fun(1.0, table) == 2.0
        names[0] = "b"
        with pytest.raises(KeyError):
            fun(1.0, table)
        names[0] = "a"
    assert (fun(1.0, table), fun.trace_count) == (2.0, 1)


def test_frequent_changes_warn_as_other_traces_do():
    rate = "0"
    fun = wend.function(lambda x: x * int(rate))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for rate in map(str, range(10)):  # noqa: B007
            fun(2.0)
    assert ["rate is '1', not '0'" in str(warning.message) for warning in caught] == [True]


def test_an_equal_object_is_no_change(backend, warm_calls, monkeypatch):
    fun = wend.function(lambda x: x * RATE * OPTIONS.rate)
    for _ in range(warm_calls + 1):
        fun(2.0)
    monkeypatch.setitem(globals(), "RATE", float("0.5"))
    monkeypatch.setattr(OPTIONS, "rate", np.float64(2.0).item())
    for _ in range(warm_calls + 1):
        assert fun(2.0) == 2.0
    assert fun.trace_count == 1


def test_nan_is_no_change(backend):
    rate = float("nan")
    fun = wend.function(lambda x: x * rate)
    for _ in range(10):
        rate = float("nan")
        assert np.isnan(fun(2.0))
    assert fun.trace_count == 1


@pytest.mark.parametrize("shape", [(3,), (4,)])
def test_other_shapes_after_a_change(backend, shape):
    rate = 1.0
    fun = wend.function(lambda x: x * rate)
    for rate in (1.0, 2.0, 1.0, 2.0, 1.0):
        for size in (3, 4, 5):
            assert fun(np.ones(size)).tolist() == [rate] * size
    assert fun.trace_count <= 5
    assert fun(np.ones(shape)).shape == shape


def test_frozen(backend, warm_calls, monkeypatch):
    fun = wend.function(lambda x: x * RATE)
    for _ in range(warm_calls + 1):
        assert fun(2.0) == 1.0
    with wend.config(guards=False):
        assert [fun(2.0) for _ in range(warm_calls + 1)] == [1.0] * (warm_calls + 1)
        monkeypatch.setitem(globals(), "RATE", 0.25)
        assert [fun(2.0) for _ in range(warm_calls + 1)] == [1.0] * (warm_calls + 1)
        assert "has read what has changed: RATE is 0.25, not 0.5" in fun.explain()
    assert [fun(2.0) for _ in range(warm_calls + 1)] == [0.5] * (warm_calls + 1)
    with wend.config(guards=False):
        monkeypatch.undo()
        assert [fun(2.0) for _ in range(warm_calls + 1)] == [0.5] * (warm_calls + 1)
    assert fun.trace_count == 2


def test_there_is_no_other_setting():
    with pytest.raises(TypeError, match=r"'watch_globals' is not a setting of wend; .*guards"):
        wend.config(watch_globals=True)


def test_attributes_of_self(backend, warm_calls):
    class Model:
        def __init__(self):
            self.training = True

        @wend.function
        def __call__(self, x):
            return x * 2 if self.training else x

    model, other = Model(), Model()
    for training in (True, False, True, False):
        model.training = training
        for _ in range(warm_calls + 1):
            assert model(1.0) == (2.0 if training else 1.0)
            assert other(1.0) == 2.0
    assert Model.__call__.trace_count == 3
    reference = weakref.ref(model)
    del model
    gc.collect()
    assert reference() is None
    assert other(1.0) == 2.0


def test_objects_that_are_gone(warm_calls):
    class Options:
        rate = 2.0

    options = Options()
    fun = wend.function(lambda o, x: x * o.rate)
    assert [fun(options, 1.0) for _ in range(warm_calls + 1)] == [2.0] * (warm_calls + 1)
    options.rate = 3.0
    assert [fun(options, 1.0) for _ in range(warm_calls + 1)] == [3.0] * (warm_calls + 1)
    reference = weakref.ref(options)
    del options
    gc.collect()
    assert reference() is None
    other = Options()
    assert fun(other, 1.0) == 2.0


def test_variables_and_arrays_that_are_changed_in_place_are_no_change(backend):
    v, w, ref = wend.Variable(1.0), np.ones(2), types.SimpleNamespace(v=wend.Variable(2.0))
    fun = wend.function(lambda x: x * w + v + ref.v)
    fun(1.0)
    v.assign(5.0)
    ref.v.assign(6.0)
    w[0] = 3.0
    assert fun(1.0).tolist() == [14.0, 12.0]
    assert fun.trace_count == 1
    w = np.zeros(2)
    assert fun(1.0).tolist() == [11.0, 11.0]
    assert "w is another (an array of shape (2,))" in fun.explain()


def test_what_an_inner_function_read(backend, warm_calls):
    rate = 1.0
    inner = wend.function(lambda x: x * rate, name="inner")
    outer = wend.function(lambda x: inner(x) + 1, name="outer")
    again = wend.function(lambda x: inner(x) + 2, name="again")
    for _ in range(warm_calls + 1):
        assert outer(1.0) == 2.0
    for rate in (3.0, 1.0, 3.0):
        for _ in range(warm_calls + 1):
            assert [outer(1.0), again(1.0), inner(1.0)] == [1 + rate, 2 + rate, rate]
    assert [fun.trace_count for fun in (outer, again, inner)] == [2, 2, 2]


def test_gradients_and_tapes(backend):
    rate = 2.0
    slope = wend.grad(lambda x: rate * x)
    fun = wend.function(lambda x: rate * x)
    for rate in (2.0, 3.0, 2.0):
        assert slope(1.0) == rate
        with wend.GradientTape() as tape:
            x = tape.watch(np.float64(3.0))
            y = fun(x)
        assert tape.gradient(y, x) == rate


def test_staged_bodies(backend, warm_calls):
    rate = 2.0

    @wend.function
    def fun(x, n):
        for _ in range(n):
            if x > 0:
                x = x * rate
        return x

    for rate in (2.0, 3.0, 2.0):
        for n in (0, 1, 3):
            for _ in range(warm_calls + 1):
                assert fun(1.0, n) == rate**n
    assert fun.trace_count == 2


def test_no_code_runs_to_check():
    class Options:
        @property
        def rate(self):
            return 2.0

        def __getattr__(self, name):
            raise AttributeError(name)

    options, ran = Options(), []
    fun = wend.function(lambda x: x * options.rate)
    fun(1.0)

    def note(frame: types.FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename == __file__:
            ran.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        for _ in range(10):
            fun(1.0)
        fun.explain()
    finally:
        sys.setprofile(None)
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

    assert [fun(k) for k in (1.0, 2.0, 3.0)] == [2.0, 4.0, 6.0]
    assert seen == [1.0, -1.0, 2.0, -2.0, 3.0, -3.0]
    assert fun.trace_count == 1
    factor = 3.0
    assert fun(1.0) == 3.0


def test_compiled_code_checks_by_itself(monkeypatch):
    with wend.config(backend="native"):
        fun = wend.function(lambda x: x * RATE)
        for _ in range(5):
            fun(2.0)
        runs: list[Any] = []
        monkeypatch.setattr(fun._cache, "find_by_shape", runs.append)
        monkeypatch.setattr(type(fun._cache), "find", lambda *_: runs.append(1))
        for _ in range(100):
            assert fun(2.0) == 1.0
    assert runs == []


def test_calls_that_python_serves_check_in_compiled_code():
    rate, state = 2.0, wend.Variable(0.0)

    @wend.function(backend="native")
    def fun(x):
        state.assign(x * rate)
        return x

    for rate in (2.0, 3.0, 2.0):
        for _ in range(20):
            rate = float(repr(rate))
            fun(1.0)
            assert state.value == rate
    assert fun.trace_count == 2
    assert all(trace.checker is not None for trace in fun._cache._all_traces())


def test_references_are_balanced():
    with wend.config(backend="native"):
        values = [float(k) + 0.5 for k in range(3)]
        rate = values[0]
        fun = wend.function(lambda x: x * rate * OPTIONS.rate)
        x = 2.0
        objects: list[Any] = [*values, OPTIONS, OPTIONS.rate, x, None, fun, globals()]
        for k in range(100):
            rate = values[k % 3]
            fun(x)
        before = [sys.getrefcount(y) for y in objects]
        for k in range(10_000):
            rate = values[k // 100 % 3]
            fun(x)
        rate = values[99 % 3]
        fun(x)
        after = [sys.getrefcount(y) for y in objects]
    assert max(abs(a - b) for a, b in zip(before, after, strict=True)) < 20
    assert fun.trace_count == 2  # the second one takes the rate as an operand


def test_threads_that_change_what_they_read():
    options = types.SimpleNamespace(rate=1.0)
    fun = wend.function(lambda x: x * options.rate)
    expected = {2.0, 4.0}
    assert fun(2.0) == 2.0
    options.rate = 2.0
    assert fun(2.0) == 4.0
    failures: list[Any] = []
    stops = threading.Event()

    def call() -> None:
        while not stops.is_set():
            outcome = fun(2.0)
            if outcome not in expected:
                failures.append(outcome)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for k in range(300):
        options.rate = 1.0 + k % 2
        assert fun(2.0) == 2.0 * options.rate
    stops.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert fun.trace_count < 20  # a value may change between a check and a trace


def test_methods_and_partials(backend):
    class Scale:
        factor = 2.0

        def apply(self, x):
            return x * self.factor

    scale = Scale()
    fun = wend.function(functools.partial(lambda s, x: s.apply(x), scale))
    assert fun(1.0) == 2.0
    scale.factor = 3.0
    assert fun(1.0) == 3.0
    Scale.factor = 4.0
    del scale.factor
    assert fun(1.0) == 4.0
