# ruff: noqa: B023  # each function is called before the variables of its loop change
"""Functions of one code share traces: what is traced again, what is kept, and for how long."""

import functools
import gc
import re
import threading
import types
import weakref

import numpy as np
import pytest
from tests.helpers.traces import count_traces

import wend
from wend.function.closures import shared_traces

x = np.asarray([1.0, 2.0, 3.0])
RATE = 1.0


def quadratic(y):
    return np.sum(y * y)


def of_array(k):
    a = np.full(3, float(k))
    return lambda y: np.sum(y * y * a)


def of_float(k):
    a = float(k)
    return lambda y: np.sum(y * y * a)


def of_scalar(k):
    a = np.float64(k)
    return lambda y: np.sum(y * y * a)


def of_default(k):
    return lambda y, a=float(k): np.sum(y * y * a)


def of_keyword(k):
    array = np.full(3, float(k))
    return lambda y, *, a=array: np.sum(y * y * a)


def of_nested(k):
    inner = of_float(k)
    return lambda y: inner(y)


def of_partial(k):
    inner = functools.partial(lambda a, y: np.sum(y * y * a), float(k))
    return lambda y: inner(y)


def of_decorated(k):
    return wend.function(of_array(k))


def of_dict(k):
    parts = {"a": np.full(3, float(k)), "b": 0}
    return lambda y: np.sum(y * y * parts["a"])


MAKERS = [
    *(of_array, of_float, of_scalar, of_default, of_keyword, of_nested, of_partial),
    *(of_decorated, of_dict),
]


@pytest.fixture(autouse=True, scope="module")
def _backend():
    with wend.config(backend="numpy"):
        yield


@wend.function
def twice(f, y):
    return 2 * f(y)


CALLERS = {
    "function": (lambda f: wend.function(f)(x), lambda k: k * x @ x),
    "grad": (lambda f: wend.grad(f)(x), lambda k: 2 * k * x),
    "value_and_grad": (lambda f: wend.value_and_grad(f)(x)[1], lambda k: 2 * k * x),
    "vjp": (lambda f: wend.vjp(f, x)[1](1.0)[0], lambda k: 2 * k * x),
    "jvp": (lambda f: wend.jvp(f, (x,), (x,))[1], lambda k: 2 * k * x @ x),
    "linearize": (lambda f: wend.linearize(f, x)[1](x), lambda k: 2 * k * x @ x),
    "hessian": (lambda f: wend.hessian(f)(x), lambda k: 2 * k * np.eye(3)),
    "jacrev": (lambda f: wend.jacrev(f)(x), lambda k: 2 * k * x),
    "vmap": (lambda f: wend.vmap(f)(np.stack([x, x])), lambda k: [k * x @ x] * 2),
    "argument": (lambda f: twice(f, x), lambda k: 2 * k * x @ x),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("make", MAKERS)
def test_functions_that_are_made_anew_are_traced_twice_at_most(make, caller):
    call, expected = CALLERS[caller]
    call(make(0)), call(make(1))
    with count_traces() as count:
        for k in range(2, 8):
            np.testing.assert_allclose(call(make(k)), expected(k))
    assert count() == 0


def test_derivatives_of_one_function_share_traces():
    wend.grad(quadratic)(x), wend.grad(quadratic)(x)
    with count_traces() as count:
        for k in range(5):
            np.testing.assert_allclose(wend.grad(quadratic)(k * x), 2 * k * x)
    assert count() == 0


def test_each_function_tells_of_its_trace():
    first, second = wend.function(of_array(1)), wend.function(of_array(2))
    first(x), second(x), second(x)
    assert (first.trace_count, second.trace_count) == (1, 1)
    assert re.sub(r"at \S+", "here", second.explain()).splitlines() == [
        "<lambda>: 1 trace",
        "1. y f64[3]",
        "   the trace of another function with the same code, here",
    ]
    assert second.concrete_functions()[0].graph is first.concrete_functions()[0].graph


def test_a_function_counts_what_it_has_traced_for_functions_that_are_passed():
    apply = wend.function(lambda f, y: f(y))
    for k in range(8):
        apply(of_array(k), x)
    assert apply.trace_count <= 2
    assert wend.function(lambda f, y: f(y)).trace_count == 0


# Values that Python reads
def test_floats_that_python_reads_are_values():
    def of(a):
        def f(y):
            return y * np.zeros(int(a)).size if a > 1 else -y * a

        return f

    for a in (0.5, 2.0, 3.0, 0.25, 2.5, 0.75, -0.0, 2.0):
        assert wend.function(of(a))(3.0) == of(a)(3.0)


def test_texts_and_integers_are_values():
    def of(n, text):
        return lambda y: y**n if text == "power" else y * n

    for n in (2, 3, 2):
        for text in ("power", "product", "power"):
            assert wend.function(of(n, text))(3.0) == of(n, text)(3.0)


def test_an_error_tells_of_its_own_function():
    def of(limit, text):
        def f(y):
            if y > limit:
                raise ValueError(f"{text}: {y} is more than {limit}")
            return y * limit

        return f

    for limit, text in ((1.0, "a"), (2.0, "a"), (0.5, "b"), (1.5, "b"), (2.5, "a")):
        assert wend.function(of(limit, text))(0.5) == 0.5 * limit
        with pytest.raises(ValueError, match=f"^{text}: 3.0 is more than {limit}\n"):
            wend.function(of(limit, text))(3.0)


# Parts that change between calls
def test_cells_that_change():
    def of(a):
        def f(y):
            return y * a

        def put(value):
            nonlocal a
            a = value

        return f, put

    kept = []
    for k in range(6):
        f, put = of(float(k))
        fun = wend.function(f)
        assert fun(2.0) == 2.0 * k
        put(k + 0.5)
        assert fun(2.0) == 2.0 * (k + 0.5)
        put(np.full(2, k + 0.25))
        assert fun(2.0).tolist() == [2.0 * (k + 0.25)] * 2
        kept.append((fun, put))
    for k, (fun, put) in enumerate(kept):
        put(-float(k))
        assert fun(2.0) == -2.0 * k


def test_arrays_lists_and_defaults_that_change():
    for k in range(4):
        array, items = np.full(2, float(k)), [float(k), 1]

        def f(y, by=float(k), array=array, items=items):
            return (y * by + array) * items[0]

        fun = wend.function(f)
        for _ in range(2):
            np.testing.assert_allclose(fun(2.0), f(2.0))
        array += 1
        np.testing.assert_allclose(fun(2.0), f(2.0))
        items[0] = -1.5
        np.testing.assert_allclose(fun(2.0), f(2.0))
        f.__defaults__ = (0.5, array, items)
        np.testing.assert_allclose(fun(2.0), f(2.0))


def test_globals_that_change(monkeypatch):
    for k in range(5):
        monkeypatch.setitem(globals(), "RATE", k + 0.5)
        for shift in (1.0, 2.0):
            f = lambda y, shift=shift: y * RATE + shift  # noqa: E731
            assert wend.function(f)(2.0) == f(2.0)
            assert wend.grad(f)(2.0) == RATE


# Functions that are alike, and others
def test_two_functions_of_one_line():
    for k in range(4):
        a = float(k)
        f, g = (lambda y: y * a), (lambda y: y + a)
        assert (wend.function(f)(3.0), wend.function(g)(3.0)) == (3.0 * a, 3.0 + a)


def test_functions_of_one_code_with_other_globals():
    def f(y):
        return y * scale  # noqa: F821

    for k in range(5):
        other = types.FunctionType(f.__code__, {"scale": float(k)}, "f")
        assert wend.function(other)(2.0) == 2.0 * k


def test_functions_of_one_code_with_other_cells():
    a, b = 1.0, np.full(2, 3.0)

    def f(y):
        return y * a - b

    for k in range(5):
        cells = types.CellType(float(k)), types.CellType(np.full(2, -float(k)))
        other = types.FunctionType(f.__code__, globals(), "f", None, cells)
        np.testing.assert_allclose(wend.function(other)(2.0), np.full(2, 3.0 * k))


def test_one_array_in_two_places():
    def of(a, b):
        return lambda y: y * a + b

    for k in range(3):
        a, b = np.full(2, k + 1.0), np.full(2, k + 1.0)
        np.testing.assert_allclose(wend.function(of(a, b))(2.0), 3.0 * a)
        np.testing.assert_allclose(wend.function(of(a, a))(2.0), 3.0 * a)


def test_an_array_that_is_a_global_too(monkeypatch):
    def of(a):
        return lambda y: y * a + RATE

    monkeypatch.setitem(globals(), "RATE", np.full(2, 5.0))
    for _ in range(3):
        np.testing.assert_allclose(wend.function(of(np.full(2, 1.0)))(2.0), [7.0, 7.0])
        np.testing.assert_allclose(wend.function(of(RATE))(2.0), [15.0, 15.0])


def test_types_of_what_cells_hold():
    def of(a):
        return lambda y: y * a

    parts = [
        *(2, 2.0, True, np.float32(2.0), np.float64(2.0), 2j, np.int8(2)),
        *(np.full(1, 2.0), np.full(1, 2.0, np.float32), np.full((1, 1), 2.0), np.full(1, 2)),
    ]
    y = np.ones(1, np.float32)
    for part in parts * 2:
        found, expected = wend.function(of(part))(y), of(part)(y)
        assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist()), part


def test_methods_and_objects():
    class Scale:
        def __init__(self, by):
            self.by = by

        def __call__(self, y):
            return y * self.by

        def method(self, y):
            return y - self.by

    for k in range(4):
        scale = Scale(float(k))
        assert wend.function(lambda y: scale(y) + scale.method(y))(3.0) == 3.0 * k + 3.0 - k
        assert wend.grad(scale.method)(3.0) == 1.0
        scale.by = -1.0
        assert wend.function(lambda y: scale(y))(3.0) == -3.0


def test_variables_are_those_of_the_function():
    def counted():
        total = wend.Variable(0.0)

        def add(y):
            total.assign_add(y)
            return total.value

        return wend.function(add), total

    pairs = [counted() for _ in range(4)]
    for k, (add, total) in enumerate(pairs):
        assert [add(1.0 + k), add(1.0)] == [1.0 + k, 2.0 + k]
        assert total.value == 2.0 + k


def test_functions_that_wend_makes_variables_in():
    class Layer:
        v = None

    for _ in range(3):
        layer = Layer()

        @wend.function
        def f(y, layer=layer):
            if layer.v is None:
                layer.v = wend.Variable(2.0)
            return y * layer.v

        assert [f(2.0), f(3.0)] == [4.0, 6.0]


def test_python_that_runs_with_the_graph_is_that_of_the_function(capsys):
    for k in range(3):
        found = []

        def note(y, found=found):
            found.append(float(y))

        @wend.function
        def f(y, note=note, k=float(k)):
            wend.py_function(note, None, y * k)
            print("k =", y * k)
            return y

        f(2.0)
        assert found == [2.0 * k]
    assert capsys.readouterr().out == "k = 0.0\nk = 2.0\nk = 4.0\n"


def test_threads_that_make_functions():
    failures = []

    def work(sign):
        for k in range(30):
            a = sign * float(k)
            if wend.grad(lambda y: np.sum(y * y * a))(x).tolist() != (2 * a * x).tolist():
                failures.append(a)

    threads = [threading.Thread(target=work, args=(sign,)) for sign in (1, -1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# What is kept
def test_a_function_alone_leaves_nothing():
    fun = wend.function(of_float(1))
    fun(x)
    graph = weakref.ref(fun.concrete_functions()[0].graph)
    del fun
    gc.collect()
    assert graph() is None


def test_arrays_of_functions_that_are_gone_are_freed():
    arrays = []
    for k in range(4):
        a = np.full(3, float(k))
        arrays.append(weakref.ref(a))
        wend.grad(lambda y, a=a: np.sum(y * y * a))(x)
        twice(lambda y, a=a: np.sum(y * y * a), x)
    del a
    gc.collect()
    assert [array() for array in arrays] == [None] * 4


def test_the_traces_of_code_that_is_gone_are_freed():
    for _ in range(3):
        namespace = {"np": np}
        exec("f = lambda a: lambda y: np.sum(y * a)", namespace)
        for k in range(3):
            assert wend.function(namespace["f"](float(k)), capture=False)(x) == 6.0 * k
    code = weakref.ref(namespace["f"].__code__)
    del namespace
    gc.collect()
    assert code() is None
    assert not shared_traces._entries


def test_the_table_is_bounded():
    for k in range(140):
        text = f"n{k}"
        wend.function(lambda y, text=text: y + len(text))(1.0)
    assert len(shared_traces._entries) <= 128


def test_new_functions_take_no_memory():
    def work(count):
        for k in range(count):
            a = float(k)
            assert wend.function(lambda y: y * a)(2.0) == 2.0 * a
            assert twice(lambda y: y * a, 2.0) == 4.0 * a

    work(20)
    gc.collect()
    before = len(gc.get_objects())
    work(1_000)
    gc.collect()
    assert len(gc.get_objects()) - before < 200  # fewer than there were functions
