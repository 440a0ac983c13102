"""Which trace serves a call, how many there are, and how long they live."""

from __future__ import annotations

import functools
import gc
import sys
import threading
import warnings
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.function.test_function import counts, one
from tests.helpers.threads import in_threads
from tests.helpers.traces import at_trace
from wend import TensorSpec
from wend.base.errors import ShapeError
from wend.base.keys import shape_key
from wend.function import retraces
from wend.ir.types import TensorType


def twice():
    return wend.function(lambda x: x * 2)


# The exact numbers
def test_the_same_dtype_and_shape_is_one_trace():
    assert counts(twice(), np.ones(3), np.zeros(3), np.ones(6)[::2]) == [1, 1, 1]


def test_a_third_size_adds_no_trace():
    assert counts(twice(), *map(np.ones, (3, 4, 5, 3, 4, 100))) == [1, 2, 2, 2, 2, 2]


def test_python_integers_are_one_trace():
    assert counts(twice(), 1, 2, 3, 4, 5) == [1] * 5


def test_static_arguments_are_a_trace_for_each_value():
    fun = wend.function(lambda x, n: x * n, static_argnums=1)
    assert counts(fun, *(one(1.0, n) for n in (1, 2, 3, 2, 1))) == [1, 2, 3, 3, 3]


def test_lists_and_tuples_differ():
    fun = wend.function(lambda x: x[0] + x[1])
    assert counts(fun, *map(one, ([1.0, 2.0], (1.0, 2.0), [3.0, 4.0], (5.0, 6.0)))) == [1, 2, 2, 2]


def test_the_order_of_a_dict_is_part_of_the_signature():
    fun = wend.function(lambda d: d["a"] - d["b"])
    forward, backward = {"a": 1.0, "b": 2.0}, {"b": 2.0, "a": 1.0}
    assert counts(fun, forward, backward, forward, backward) == [1, 2, 2, 2]


def test_by_keyword_and_by_position_is_one_trace():
    fun = wend.function(lambda x, y: x - y)
    calls = [one(1.0, 2.0), ((1.0,), {"y": 2.0}), ((), {"y": 2.0, "x": 1.0})]
    assert counts(fun, *calls) == [1, 1, 1]


def test_scalars_of_numpy_and_arrays_without_axes_are_apart():
    """A 0-d array changes in place, a scalar does not (D47); a Python number is weak (D4)."""
    assert counts(twice(), np.float64(1.0), np.asarray(2.0), 3.0, 4.0) == [1, 2, 3, 3]


def test_dtypes_are_apart():
    assert counts(twice(), np.ones(3, "f4"), np.ones(3), np.ones(3, "f4")) == [1, 2, 2]


def test_t78_variables_are_told_by_what_they_hold():
    v, w, long = wend.Variable(1.0), wend.Variable(2.0), wend.Variable([1.0, 2.0])
    assert counts(twice(), v, w, long) == [1, 1, 2]
    fun = wend.function(lambda x, y: x - y)
    # A function may assign to them, so it matters whether two are one.
    assert counts(fun, one(v, v), one(v, w), one(w, v), one(w, w)) == [1, 2, 2, 2]
    assert fun(w, v) == 1.0


def test_t82_an_earlier_more_general_trace_serves():
    fun = twice()
    general = fun.get_concrete_function(TensorSpec([None], np.float32))
    for size in (1, 2, 0, 7):
        assert fun(np.ones(size, np.float32)).tolist() == [2.0] * size
        assert fun.get_concrete_function(np.ones(size, np.float32)) is general
    assert fun.trace_count == 1


def test_the_trace_with_the_fewest_unknown_sizes_serves():
    fun = wend.function(lambda x: x.sum())
    fun.get_concrete_function(TensorSpec([None, None]))
    rows = fun.get_concrete_function(TensorSpec([None, 3]))
    assert fun.get_concrete_function(np.ones((2, 3))) is rows
    exact = wend.function(lambda x: x.sum())
    first = exact.get_concrete_function(np.ones(3))
    exact.get_concrete_function(TensorSpec([None]))
    assert exact.get_concrete_function(np.ones(3)) is first


def test_t83_many_traces_give_one_warning():
    fun = wend.function(lambda x, n: x * n, static_argnames="n")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for n in range(12):
            fun(1.0, n)
    (warning,) = found
    assert warning.category is wend.RetraceWarning
    assert warning.filename == __file__
    text = str(warning.message)
    assert "<lambda> was traced 5 times in its last 5 calls" in text
    assert "unlike trace 4: n is 4, not 3" in text


def test_traces_that_are_called_often_give_no_warning():
    fun = wend.function(lambda x, n: x * n, static_argnames="n")
    for n in range(8):
        for _ in range(5):
            fun(1.0, n)


def test_a_new_function_at_each_call_is_told():
    fun = wend.function(lambda x, g: g(x))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for k in range(6):
            assert fun(1.0, lambda x, k=k: x * k) == k
    (warning,) = found
    assert (
        str(warning.message).count("unlike one whose arguments are gone: g is another function")
        == 4
    )
    assert (fun.trace_count, len(fun.concrete_functions())) == (6, 0)


# Calls of arrays and numbers by position are looked up by a shorter key
def test_short_keys():
    a = np.ones(2)
    known = [shape_key(args) for args in ((a,), (a.astype("f4"),), (a[:1],), (1,), (True,), (1.0,))]
    known += [shape_key(args) for args in ((np.float64(1),), (np.asarray(1.0),), (), (a, a))]
    assert len({*known}) == len(known)
    assert shape_key((a, 2)) == shape_key((a * 2, 3))
    for other in ("a", None, [a], 2**63, np.ma.ones(2), wend.Variable(1.0), np.array(["a"])[0]):
        assert shape_key((other,)) is None


def test_short_keys_of_arrays_of_other_libraries():
    def array(shape, dtype):
        return SimpleNamespace(shape=shape, dtype=np.dtype(dtype))

    arrays = [array((2,), "f8"), array((2,), "f4"), array((), "f8"), np.ones(2)]
    boundary = SimpleNamespace(type_of=lambda x: TensorType(x.dtype, x.shape))
    boundaries = {SimpleNamespace: boundary}
    keys = [shape_key((x,), boundaries) for x in arrays]
    assert None not in keys
    assert len({*keys}) == len(keys)
    assert keys[0] == shape_key((array((2,), "f8"),), boundaries)
    assert shape_key((arrays[0],)) is None


def test_repeated_calls_are_what_first_calls_are():
    made = wend.function(lambda x, y=2: x * y)
    a = np.arange(3.0)

    def fun(*args, **kwargs):
        assert [made(k, 2) for k in range(3)] == [0, 2, 4]
        return made(*args, **kwargs)

    for _ in range(3):
        assert [fun(3, 2), fun(3.0, 2), fun(True, 2), fun(3)] == [6, 6.0, 2, 6]
        assert fun(a, 2).tolist() == fun(y=2, x=a).tolist() == fun(a[::-1], 2)[::-1].tolist()
        assert fun(a.astype(">f8"), 2).tolist() == [0.0, 2.0, 4.0]
        assert fun(np.float32(3), 2).dtype == np.float32
        with pytest.raises(OverflowError):
            fun(2**63, 2)
        with pytest.raises(TypeError, match="takes from 1 to 2 positional arguments but 3"):
            fun(a, 2, 3)
    assert made.trace_count == 6


def test_repeated_calls_write_to_their_arguments():
    @wend.function
    def fun(x, y):
        x[0] = y
        return x.sum()

    for k in range(3):
        a = np.ones(2)
        assert (fun(a, float(k)), a.tolist()) == (k + 1.0, [k, 1.0])


def test_repeated_calls_in_eager_mode_and_in_traces():
    ran = []
    note = at_trace(ran)

    @wend.function
    def fun(x):
        note(x)
        return x * 2

    fun(1.0), fun(2.0)
    with wend.config(eager=True):
        assert (fun(3.0), len(ran)) == (6.0, 2)
    outer = wend.function(lambda x: fun(x) + 1)
    assert (outer(1.0), outer(2.0), len(ran)) == (3.0, 5.0, 2)
    assert outer.get_concrete_function(1.0).graph.count("call") == 1


def test_repeated_calls_that_fail_say_so():
    fun = wend.function(lambda x, y: x + y)
    for size in (2, 3, 4):
        fun(np.ones(size), np.ones(size))
    for _ in range(3):
        with pytest.raises(ShapeError, match=r"shapes \(4,\) \(5,\) at test_cache.py"):
            fun(np.ones(4), np.ones(5))


# Memory and threads
def test_two_threads_that_call_a_new_signature_trace_once():
    traces, start = [], threading.Barrier(8)
    note = at_trace(traces)

    @wend.function
    def fun(x):
        note(threading.get_ident())
        return x * 2

    def work(_):
        start.wait()
        fun(np.ones(3))

    in_threads(8, work)
    assert len(traces) == fun.trace_count == 1


def test_functions_that_call_each_other_are_traced_in_two_threads():
    """Each thread would wait for the other, if each function had a lock of its own."""
    inside = threading.Event()
    enter = wend.do_not_capture(lambda: inside.set())
    wait = wend.do_not_capture(lambda: inside.wait(0.2))

    @wend.function
    def first(x, deep):
        enter()
        return second(x, False) if deep else x + 1

    @wend.function
    def second(x, deep):
        wait()
        return first(x, False) if deep else x + 2

    first = wend.function(first.python_function, static_argnames="deep")
    second = wend.function(second.python_function, static_argnames="deep")
    found = []
    threads = [
        threading.Thread(target=lambda fun=fun: found.append(fun(1.0, True)), daemon=True)
        for fun in (first, second)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(found) == [2.0, 3.0]


def test_a_function_that_is_deleted_frees_its_graphs():
    fun = wend.function(lambda x: wend.fori_loop(0, 3, lambda i, c: c * x, x))
    slope = wend.grad(fun)
    fun(2.0), slope(2.0), fun(np.ones(2)), fun(np.ones(3))
    held = [weakref.ref(c.graph) for f in (fun, slope) for c in f.concrete_functions()]
    held += [weakref.ref(fun), weakref.ref(slope)]
    assert len(held) == 6
    del fun, slope
    gc.collect()
    assert [ref() for ref in held] == [None] * 6


def test_a_function_alone_is_freed_at_once():
    fun = twice()
    fun(1.0)
    graph = weakref.ref(fun.concrete_functions()[0].graph)
    gc.disable()
    try:
        del fun
        assert graph() is None
    finally:
        gc.enable()


def test_a_function_that_is_deleted_frees_its_variables():
    """At once, without the garbage collector, with what the closure and the trace hold."""

    def make():
        total = wend.Variable(0.0)

        @wend.function
        def add(x):
            for k in range(3):
                total.assign_add(x * k)
            return total.value

        return add, weakref.ref(total)

    gc.disable()
    try:
        add, variable = make()
        assert [add(1.0), add(np.float32(1.0))] == [3.0, 6.0]
        graphs = [weakref.ref(concrete.graph) for concrete in add.concrete_functions()]
        del add
        assert [variable(), *(graph() for graph in graphs)] == [None] * 3
    finally:
        gc.enable()


def a_product(k):
    return wend.function(lambda x: x * k)(1.0)


def a_loop(k):
    def fun(x):
        while x < 10.0:
            x = x * 1.5 + k * 0
        return x

    return wend.function(fun)(1.0)


def a_slope(k):
    return wend.grad(wend.function(lambda x: x * x * k))(1.0)


def a_tape(k):
    fun = wend.function(lambda x: x * x * k)
    with wend.GradientTape() as tape:
        x = tape.watch(np.float64(2.0))
        y = fun(x)
    return tape.gradient(y, x)


def a_method(k):
    class Model:
        @wend.function
        def scaled(self, x):
            return x * k

    return Model().scaled(1.0)


def a_variable(k):
    total = wend.Variable(0.0)
    return wend.function(lambda x: total.assign_add(x * k))(1.0)


def left_by(throw_away, count, *, warm_up=150):
    """How many more blocks of memory are in use after so many functions were thrown away."""
    for k in range(warm_up):
        throw_away(k)
    gc.collect()
    before = sys.getallocatedblocks()
    for k in range(count):
        throw_away(k)
    gc.collect()
    return sys.getallocatedblocks() - before


@pytest.mark.sampled(2)
@pytest.mark.parametrize("throw_away", [a_loop, a_slope, a_tape, a_method, a_variable])
def test_whatever_is_thrown_away_leaves_nothing(throw_away):
    assert left_by(throw_away, 60) < 5 * 60  # a graph has many times that


def test_functions_of_code_that_is_thrown_away(monkeypatch):
    """A record is kept of each, of the last ones only."""

    def run(k):
        names = {}
        exec(f"def fun{k}(x): return x * {k}", names)
        wend.function(names[f"fun{k}"], backend="numpy")(1.0)  # LLVM has no part in the records

    monkeypatch.setattr(retraces, "_MAX_TRACKED_CODES", 300)
    assert left_by(run, 200, warm_up=50) < 12 * 200
    assert left_by(run, 100) < 5 * 100


def test_functions_that_are_thrown_away_leave_nothing(monkeypatch):
    monkeypatch.setattr(retraces, "_MAX_TRACKED_CODES", 50)
    assert left_by(a_product, 1000) < 500  # caches may grow by some, but not by one for each


@pytest.mark.slow
def test_10_000_functions_that_are_thrown_away_leave_nothing():
    assert left_by(a_product, 10_000) < 500


# Methods, partials, callables
class Model:
    def __init__(self, k):
        self.k = k

    @wend.function
    def scaled(self, x):
        return self.k * x

    @wend.function(input_signature=[TensorSpec([None])])
    def total(self, x):
        return self.k * wnp.sum(x)


class Shifted(Model):
    @wend.function
    def scaled(self, x):
        return super().scaled(x) + 1.0


def test_each_instance_has_traces_of_its_own():
    a, b = Model(2.0), Model(3.0)
    assert [a.scaled(1.0), a.scaled(2.0), b.scaled(1.0), a.scaled(np.ones(2))[0]] == [2, 4, 3, 2]
    assert (a.scaled.trace_count, b.scaled.trace_count) == (2, 1)
    assert len(b.scaled.concrete_functions()) == 1
    assert b.scaled.get_concrete_function(5.0)(b, 5.0) == 15.0
    assert wend.grad(a.scaled)(1.0) == 2.0
    assert Model(5.0).scaled(1.0) == 5.0
    assert Model(5.0).scaled.python_function(2.0) == 10.0
    assert "1. self <" in a.scaled.explain()
    assert "scaled of <" in repr(a.scaled)


def test_methods_with_a_signature():
    a = Model(2.0)
    assert (a.total(np.ones(3)), a.total([1.0]), a.total.trace_count) == (6.0, 2.0, 1)
    assert a.total.get_concrete_function() is a.total.concrete_functions()[0]
    with pytest.raises(TypeError, match=r"total: args\[0\] is f64\[\]"):
        a.total(np.float64(1.0))
    with wend.config(eager=True):
        assert a.total([1.0, 2.0]) == 6.0


def test_overrides_of_subclasses():
    a = Shifted(2.0)
    assert (a.scaled(3.0), a.scaled(np.float64(3.0))) == (7.0, 7.0)
    assert Model.scaled.__get__(a, Model)(3.0) == 6.0


def test_an_instance_is_not_kept_alive():
    a = Model(2.0)
    a.scaled(1.0)
    instance, graph = weakref.ref(a), weakref.ref(a.scaled.concrete_functions()[0].graph)
    before = Model.scaled.trace_count
    del a
    gc.collect()
    assert (instance(), graph(), Model.scaled.trace_count) == (None, None, before - 1)


def test_instances_that_are_equal_or_have_no_hash():
    class Equal(Model):
        def __eq__(self, other):
            return True

    a, b = Equal(2.0), Equal(3.0)
    with pytest.raises(TypeError):
        hash(a)
    assert [a.scaled(1.0), b.scaled(1.0), a.scaled(1.0)] == [2.0, 3.0, 2.0]


def test_an_instance_that_cannot_be_held_weakly():
    class Slotted:
        __slots__ = ("k",)

        def __init__(self, k):
            self.k = k

        @wend.function
        def scaled(self, x):
            return self.k * x

    assert [Slotted(2.0).scaled(1.0), Slotted(3.0).scaled(1.0)] == [2.0, 3.0]


def test_partials_and_callables():
    partial = wend.function(functools.partial(lambda x, y: x - y, y=1.0))
    assert counts(partial, 3.0, 4.0) == [1, 1]
    assert (partial(3.0), partial.name, partial(3.0, y=2.0)) == (2.0, "<lambda>", 1.0)

    class Callable:
        def __call__(self, x):
            return x * 3

    assert (wend.function(Callable())(2.0), wend.function(Callable()).name) == (6.0, "Callable")


# Recursion
def test_a_function_without_end_is_refused_with_advice():
    @wend.function
    def factorial(x):
        if x > 1:
            return x * factorial(x - 1)
        return 1.0

    with pytest.raises(RecursionError, match="calls itself endlessly") as error:
        factorial(5.0)
    assert "write it as a loop" in str(error.value)
    assert factorial.trace_count == 0


def test_recursion_on_a_static_argument():
    @wend.function(static_argnames="n")
    def power(x, n):
        return 1.0 if n == 0 else x * power(x, n - 1)

    assert (power(2.0, 3), power(2.0, 2), power.trace_count) == (8.0, 4.0, 4)


def test_functions_that_call_each_other_without_end():
    first = wend.function(lambda x: second(x))
    second = wend.function(lambda x: first(x) if x > 0 else x)
    with pytest.raises(RecursionError, match="calls itself endlessly"):
        first(1.0)


def test_recursion_on_sizes():
    """Its base case needs the size, so each size has a trace, the second time too."""

    @wend.function
    def total(x):
        n = x.shape[0]
        if n == 1:
            return x[0]
        return total(x[: n // 2]) + total(x[n // 2 :])

    assert total(np.arange(4.0)) == 6.0
    assert total(np.arange(16.0)) == 120.0
    assert total(np.arange(6.0)) == 15.0


def test_what_fails_for_its_sizes_says_so_as_it_did():
    other = np.ones(3)
    fun = wend.function(lambda x: x + other)
    fun(np.ones(3))
    for _ in range(2):
        with pytest.raises(ShapeError, match=r"shapes \(4,\) \(3,\) at test_cache.py:\d+"):
            fun(np.ones(4))
    assert fun(np.zeros(3)).tolist() == [1.0] * 3
