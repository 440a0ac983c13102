"""`py_function`: Python at execution time, in order, once, and with derivatives."""

from __future__ import annotations

import contextlib
import copy
import gc
import math
import pickle
import re
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.helpers.golden import Golden
from tests.helpers.graphs import check_graph

import wend
import wend.numpy as wnp
from wend.base.errors import (
    ConcreteValueError,
    NotDifferentiableError,
    TypeMismatchError,
    WendError,
)
from wend.testing import check_grads

pytestmark = pytest.mark.usefixtures("integers_stay_traced")

SCALAR = wend.TensorSpec((), float)


class Counted:
    """A function that counts its runs."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun, self.runs = fun, 0
        self.__name__ = fun.__name__

    def __call__(self, *args: Any) -> Any:
        self.runs += 1
        return self.fun(*args)


def cube(z: Any) -> Any:
    return z**3


# Running
def test_it_runs_once_per_call_also_if_unused() -> None:
    host = Counted(cube)

    @wend.function
    def fun(x: Any) -> Any:
        wend.py_function(host, SCALAR, x)
        return x

    assert [fun(2.0), fun(3.0)] == [2.0, 3.0]
    assert (host.runs, fun.trace_count) == (2, 1)
    check_graph(fun.get_concrete_function(1.0).graph)


def test_its_gradient() -> None:
    host = Counted(cube)
    fun = wend.function(lambda z: wend.py_function(host, SCALAR, z))
    assert wend.value_and_grad(fun)(2.0) == (8.0, 12.0)
    assert host.runs == 1  # not again in the backward pass


@pytest.mark.parametrize("trips", [0, 1, 3])
def test_effects_in_program_order(trips: int, capsys: pytest.CaptureFixture[str]) -> None:
    def fun(x: Any, n: Any) -> Any:
        wend.print("start")
        for i in range(n):
            wend.py_function(lambda i: print("host", int(i)), None, i)
            if i > 0:
                wend.py_function(lambda: print("after the first"), None)
            wend.print("trip", i)
        wend.py_function(print, None, "end")
        return x

    found = []
    for run in (fun, wend.function(fun), lambda x, n: wend.grad(fun)(x, n)):
        run(1.0, trips)
        found.append(capsys.readouterr().out.splitlines())
    assert found[1] == found[0] == found[2]
    assert len(found[0]) == 2 + 2 * trips + max(trips - 1, 0)


def test_arguments_and_results_keep_their_structure() -> None:
    def host(tree: Any, name: str, pair: tuple) -> Any:
        assert [type(x) for x in (tree["w"], *pair)] == [np.ndarray, np.float64, np.float64]
        return {"sum": tree["w"].sum() + pair[0], "name": (len(name), tree["w"] * 2)}

    specs = {"sum": SCALAR, "name": (wend.TensorSpec((), int), np.zeros(3))}

    def fun(w: Any, x: Any) -> Any:
        return wend.py_function(host, specs, {"w": w, "v": None}, "four", (x, 1.5))

    w = np.arange(3.0)
    for run in (fun, wend.function(fun)):
        found = run(w, 2.0)
        assert (found["sum"], found["name"][0]) == (5.0, 4)
        assert np.array_equal(found["name"][1], [0.0, 2.0, 4.0])


def test_a_host_function_owns_its_arrays() -> None:
    kept = np.zeros(3)

    def host(x: Any) -> Any:
        x += 1.0  # its own
        kept[:] = x
        return kept

    def fun(x: Any) -> Any:
        first = wend.py_function(host, kept, x)
        second = wend.py_function(host, kept, x + 10.0)
        return first, second, x

    for run in (fun, wend.function(fun)):
        first, second, x = run(np.zeros(3))
        assert (first.tolist(), second.tolist(), x.tolist()) == ([1.0] * 3, [11.0] * 3, [0.0] * 3)


def test_sizes_that_only_the_run_knows() -> None:
    def positives(x: Any) -> Any:
        return x[x > 0]

    @wend.function
    def fun(x: Any) -> Any:
        a = wend.py_function(positives, wend.TensorSpec([None]), x)
        b = wend.py_function(positives, wend.TensorSpec([None]), -x)
        return wnp.sum(a * a) + wnp.sum(b), wnp.concatenate([a, b]), a.shape[0]

    x = np.array([1.0, -2.0, 3.0])
    total, joined, count = fun(x)
    assert (total, count) == (12.0, 2)
    assert joined.tolist() == [1.0, 3.0, 2.0]
    gradient = wend.grad(lambda x: fun(x)[0])(x)
    assert gradient.tolist() == [2.0, -1.0, 6.0]
    check_graph(fun.get_concrete_function(x).graph)


def test_numbers_of_python_are_cast() -> None:
    spec = wend.TensorSpec((), np.float32)
    fun = wend.function(lambda x: wend.py_function(lambda x: 3, spec, x))
    assert (fun(1.0), fun(1.0).dtype) == (3.0, np.float32)


def test_host_state_in_a_loop() -> None:
    class Counter:
        def __init__(self) -> None:
            self.n = 0

        def step(self, by: Any) -> Any:
            self.n += int(by)
            return self.n, self.n >= 10

    counter = Counter()

    @wend.function
    def fun(by: Any) -> Any:
        done, last = False, 0
        while not done:
            last, done = wend.py_function(counter.step, (0, False), by)
        return last

    assert fun(3) == 12
    assert fun(3) == 15
    assert fun.trace_count == 1


def test_a_function_of_wend_inside() -> None:
    inner = wend.function(lambda z: wnp.sin(z) * z)
    check_grads(lambda x: wend.py_function(lambda z: inner(z) * z, SCALAR, x), (0.4,), order=3)


# Derivatives
def program(x: Any, n: Any) -> Any:
    """Host calls in branches in a loop, with loops and branches of their own."""

    def grown(c: Any, x: Any) -> Any:
        k = 0
        while abs(c) < 5.0 and k < 4:
            c = c * x + 0.1
            k += 1
        return c

    c = x
    for _ in range(n):
        if c < 2.0:
            c = wend.py_function(grown, SCALAR, c, x)
        elif c > 7.0:
            c = c * 0.5
        else:
            c = wend.py_function(lambda y: np.sin(y) * y, SCALAR, c)
    return c


@pytest.mark.sampled
@pytest.mark.parametrize("x", [1.1, 1.5, 0.7, 6.0])
@pytest.mark.parametrize("n", [0, 1, 4])
def test_derivatives_are_those_of_the_run(x: float, n: int) -> None:
    with wend.config(eager=True):
        value = program(x, n)
        expected = wend.grad(program)(x, n), wend.grad(wend.grad(program))(x, n)
    assert wend.function(program)(x, n) == value
    found = wend.grad(program)(x, n), wend.grad(wend.grad(program))(x, n)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    moved = wend.jvp(lambda x: program(x, n), (x,), (1.0,))[1]
    np.testing.assert_allclose(moved, expected[0], rtol=1e-12)
    mixed = wend.jvp(lambda x: wend.grad(program)(x, n), (x,), (1.0,))[1]
    np.testing.assert_allclose(mixed, expected[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_all_orders_through_a_loop(trips: int) -> None:
    def fun(x: Any) -> Any:
        def body(_: Any, c: Any) -> Any:
            return wend.py_function(lambda c, x: wnp.sin(c) * x, SCALAR, c, x)

        return wend.fori_loop(0, trips, body, x)

    def plain(x: Any) -> Any:
        c = x
        for _ in range(trips):
            c = wnp.sin(c) * x
        return c

    for order in range(1, 4):
        fun, plain = wend.grad(fun), wend.grad(plain)
        np.testing.assert_allclose(fun(1.3), plain(1.3), rtol=1e-9, err_msg=f"order {order}")


JACOBIANS: list[Callable[..., Any]] = [
    wend.jacfwd,
    wend.jacrev,
    wend.hessian,
    lambda f: wend.jacrev(wend.jacrev(f)),
    lambda f: wend.jacfwd(wend.jacfwd(f)),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("derivative", JACOBIANS)
def test_a_jacobian_runs_it_once(derivative: Callable[..., Any]) -> None:
    def plain(x: Any) -> Any:
        return wnp.sin(x) * x[0] * wnp.sum(x * x)

    host, x = Counted(plain), np.array([0.3, 0.5, 0.7])
    found = derivative(lambda x: wend.py_function(host, wend.TensorSpec([None]), x))(x)
    np.testing.assert_allclose(found, derivative(plain)(x), atol=1e-12)
    assert host.runs == 1


def test_pulling_back_twice_runs_it_once() -> None:
    host = Counted(cube)
    value, pullback = wend.vjp(lambda x: wend.py_function(host, SCALAR, x), 2.0)
    assert (value, pullback(1.0), pullback(2.0)) == (8.0, (12.0,), (24.0,))
    value, linear = wend.linearize(lambda x: wend.py_function(host, SCALAR, x), 2.0)
    assert (value, linear(1.0), linear(2.0)) == (8.0, 12.0, 24.0)
    assert host.runs == 2


def test_under_tapes() -> None:
    fun = wend.function(lambda z: wend.py_function(cube, SCALAR, z))
    with wend.GradientTape() as tape:
        x = tape.watch(2.0)
        y = fun(x)
    assert tape.gradient(y, x) == 12.0

    def twice(fun: Any) -> Any:
        with wend.GradientTape() as outer:
            x = outer.watch(2.0)
            with wend.GradientTape() as inner:
                z = inner.watch(x)
                y = fun(z)
            slope = inner.gradient(y, z)
        return y, slope, outer.gradient(slope, x)

    assert twice(lambda z: wend.py_function(cube, SCALAR, z)) == (8.0, 12.0, 12.0)
    with wend.config(eager=True):
        assert twice(fun) == (8.0, 12.0, 12.0)
    with pytest.raises(NotDifferentiableError, match="would run `<lambda>` again"):
        twice(fun)

    @wend.function
    def in_a_trace(x: Any) -> Any:
        with wend.GradientTape() as tape:
            x = tape.watch(x)
            y = fun(x)
        return tape.gradient(y, x)

    assert in_a_trace(2.0) == 12.0
    assert wend.grad(in_a_trace)(2.0) == 12.0


def test_what_it_does_not_use_has_derivative_zero() -> None:
    host = lambda x, y, n: wnp.sum(x) * n  # noqa: E731
    gradient = wend.grad(
        lambda x, y: wend.py_function(host, SCALAR, x, y, 3) * wnp.sum(y), argnums=(0, 1)
    )
    by_x, by_y = gradient(np.ones(2), np.ones(3))
    assert by_x.tolist() == [9.0, 9.0]
    assert by_y.tolist() == [6.0] * 3
    alone = wend.grad(lambda y: wend.py_function(lambda y: 1.0, SCALAR, y))
    assert alone(np.ones(2)).tolist() == [0.0, 0.0]


def test_complex_numbers() -> None:
    def host(a: Any) -> Any:
        return (a * a).real

    found = wend.grad(lambda z: wend.py_function(host, 0.0, z))(1 + 2j)
    assert found == wend.grad(host)(1 + 2j)


def test_what_takes_numbers_out_has_no_derivative() -> None:
    host = lambda x: math.sin(x)  # noqa: E731
    with pytest.raises(ConcreteValueError, match="gradient would be lost") as caught:
        wend.grad(lambda x: wend.py_function(host, SCALAR, x))(2.0)
    assert without_lines(caught.value) == ["raised in `<lambda>` at test_py_function.py", "in"]
    held = wend.grad(lambda x: x * wend.py_function(host, SCALAR, wend.stop_gradient(x)))
    assert held(2.0) == math.sin(2.0)
    seen = []
    logged = wend.grad(lambda x: (wend.py_function(lambda x: seen.append(float(x)), None, x), x)[1])
    assert (logged(2.0), seen) == (1.0, [2.0])


def without_lines(error: BaseException) -> list[str]:
    first, last = error.__notes__
    return [first.rpartition(":")[0], last.split()[0]]


def test_a_run_is_freed_with_who_could_ask() -> None:
    refs: list[weakref.ref[Any]] = []

    def host(x: Any) -> Any:
        big = np.ones(1000) * x  # held by what was recorded
        refs.append(weakref.ref(big.value))
        return wnp.sum(big)

    wend.grad(lambda x: wend.py_function(host, SCALAR, x))(2.0)
    _, pullback = wend.vjp(lambda x: wend.py_function(host, SCALAR, x), 2.0)
    gc.collect()
    assert [ref() is None for ref in refs] == [True, False]
    del pullback
    gc.collect()
    assert refs[1]() is None


def test_a_trace_keeps_no_object_for_its_method() -> None:
    class Model:
        def __init__(self) -> None:
            self.seen: list[float] = []

        def note(self, x: Any) -> Any:
            self.seen.append(float(x))

        @wend.function
        def step(self, x: Any) -> Any:
            wend.py_function(self.note, None, x)
            return x * 2.0

    model = Model()
    assert (model.step(1.0), model.step(2.0), model.seen) == (2.0, 4.0, [1.0, 2.0])
    ref = weakref.ref(model)
    del model
    gc.collect()
    assert ref() is None
    assert Model.step.trace_count == 0
    with pytest.raises(ReferenceError, match="the object of the method `note`"):
        wend.function(lambda x: wend.py_function(Model().note, None, x))(1.0)


# Errors
class Oops(Exception):
    pass


def test_exceptions_keep_their_type_and_point_at_both_lines() -> None:
    def host(x: Any) -> Any:
        if x > 2:
            raise Oops("no more")
        return x

    @wend.function
    def fun(x: Any) -> Any:
        return wend.py_function(host, SCALAR, x)

    assert fun(1.0) == 1.0
    line = host.__code__.co_firstlineno
    with pytest.raises(Oops, match="no more") as caught:
        fun(3.0)
    raised, called = caught.value.__notes__
    assert raised == f"raised in `host` at test_py_function.py:{line + 2}"
    assert called == f"in py_function at test_py_function.py:{line + 7}"
    assert fun(2.0) == 2.0


@contextlib.contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(seconds, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def test_it_can_be_interrupted() -> None:
    @wend.function
    def forever(x: Any) -> Any:
        while x > 0.0:
            x = wend.py_function(lambda x: x + 1.0, SCALAR, x)
        return x

    with pytest.raises(KeyboardInterrupt), interrupted_after(0.3):
        forever(1.0)


def test_a_variable_assigned_behind_the_functions_back() -> None:
    v, other = wend.Variable(1.0, name="v"), wend.Variable(1.0)

    def host(x: Any) -> Any:
        v.assign_add(x)
        return x

    uses = lambda x: wend.py_function(host, SCALAR, x) + v  # noqa: E731
    runs = (wend.function(uses), wend.grad(uses), lambda x: wend.vjp(uses, x))
    for run in runs:
        with pytest.raises(TypeMismatchError, match="assigned to <Variable 'v'"):
            run(1.0)
    with wend.GradientTape() as tape, pytest.raises(TypeMismatchError, match="assigned to"):
        wend.function(uses)(tape.watch(1.0))
    does_not = wend.function(lambda x: wend.py_function(host, SCALAR, x) + other)
    before = v.value
    assert does_not(2.0) == 3.0
    assert v.value == before + 2.0


MISTAKES: dict[str, Callable[[], Any]] = {}


def mistake(fun: Callable[[], Any]) -> Callable[[], Any]:
    MISTAKES[fun.__name__] = fun
    return fun


@mistake
def py_function_shape() -> None:
    wend.function(lambda x: wend.py_function(lambda x: x, wend.TensorSpec((3,)), x))(1.0)


@mistake
def py_function_dtype() -> None:
    spec = {"a": wend.TensorSpec((), np.float32)}
    wend.function(lambda x: wend.py_function(lambda x: {"a": x}, spec, x))(1.0)


@mistake
def py_function_structure() -> None:
    wend.function(lambda x: wend.py_function(lambda x: (x, x), [0.0, 0.0], x))(1.0)


@mistake
def py_function_text() -> None:
    wend.py_function(lambda x: "one", SCALAR, 1.0)


@mistake
def py_function_no_spec() -> None:
    wend.py_function(lambda x: x, {"x": "float"}, 1.0)


@mistake
def py_function_not_callable() -> None:
    wend.py_function(3.0, SCALAR, 1.0)


@mistake
def py_function_of_a_list() -> None:
    def fun(n: Any) -> Any:
        out = []
        for i in range(n):
            out.append(i * 2.0)
        return wend.py_function(len, 0, out)

    wend.function(fun)(np.int64(3))


@mistake
def py_function_assigns() -> None:
    v = wend.Variable(1.0, name="v")

    def counted(x: Any) -> Any:
        v.assign_add(1.0)
        return x

    wend.function(lambda x: wend.py_function(counted, SCALAR, x) * v)(2.0)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_in_compiled_loops(backend: str) -> None:
    """Calls of Python, stores and prints in one loop, in order; the gradient through it."""
    told: list[float] = []
    v = wend.Variable(0.0)

    def noted(x: Any) -> Any:
        told.append(float(wend.stop_gradient(x)))
        return x * x

    def fun(x: Any, n: Any) -> Any:
        i = 0
        while i < n:
            x = wend.py_function(noted, SCALAR, x) * 0.5
            v.assign_add(1.0)
            wend.assert_(v.value < 3.0, "no more than two")
            i += 1
        return x

    compiled = wend.function(fun, backend=backend)
    assert compiled(2.0, 2) == 2.0
    assert (told, v.value) == ([2.0, 2.0], 2.0)
    v.assign(0.0)
    assert wend.grad(compiled)(2.0, 2) == 4.0
    assert wend.grad(compiled)(2.0, 0) == 1.0
    v.assign(1.0)
    with pytest.raises(AssertionError, match="no more than two"):
        compiled(2.0, 3)
    assert v.value == 3.0
    assert told[-2:] == [2.0, 2.0]


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str, golden: Golden) -> None:
    with pytest.raises(WendError) as caught:
        MISTAKES[name]()
    text = re.sub(r"test_py_function.py:\d+", "test_py_function.py:LINE", str(caught.value))
    golden.check(f"errors/{name}.txt", f"{type(caught.value).__name__}: {text}")


# What cannot be saved
@pytest.mark.parametrize("order", [1, 2])
def test_what_is_written_in_the_function_may_return_a_number_of_python(order: int) -> None:
    spec = wend.TensorSpec([], float)

    @wend.function
    def cubed(x: Any) -> Any:
        total = 0.0
        for _ in range(3):
            total += wend.py_function(lambda a: float(a * a * a), spec, x)
            total += wend.py_function(lambda a: round(float(a), 3), spec, x) * x
        return total

    derived: Any = cubed
    for _ in range(order):
        derived = wend.grad(derived)
    # A rounded number has no slope, as in wend.numpy.
    expected = {1: 9 * 1.5**2 + 3 * 1.5, 2: 18 * 1.5}
    assert derived(1.5) == pytest.approx(expected[order])


def test_a_graph_says_which_host_calls_it_holds() -> None:
    @wend.function
    def fun(x: Any, n: Any) -> Any:
        for _ in range(n):
            x = wend.py_function(cube, SCALAR, x)
        return x

    line = fun.python_function.__code__.co_firstlineno
    concrete = fun.get_concrete_function(1.0, 2)
    assert concrete.host_calls == (f"cube at test_py_function.py:{line + 3}",)
    outer = wend.function(lambda x: wend.grad(fun)(x, 2)).get_concrete_function(1.0)
    assert outer.host_calls == concrete.host_calls
    assert wend.function(lambda x: x).get_concrete_function(1.0).host_calls == ()


def test_what_calls_python_is_not_saved() -> None:
    def called(x: Any) -> Any:
        return wend.py_function(cube, SCALAR, x)

    concrete = wend.function(called).get_concrete_function(1.0)
    with pytest.raises(TypeError, match=r"called cannot be saved.*cube at test_py_func") as at:
        pickle.dumps(concrete)
    assert "To fix it: save the function itself" in str(at.value)
    assert copy.deepcopy([concrete])[0] is concrete
