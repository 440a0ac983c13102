"""`Variable`: an array that programs read and assign to."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.base.errors import TypeMismatchError


def test_it_is_an_array_in_operations():
    v = wend.Variable([1.0, 2.0, 3.0], name="v")
    assert (v.shape, v.dtype, v.ndim, v.size, len(v), v.name, v.trainable) == (
        (3,),
        np.float64,
        1,
        3,
        3,
        "v",
        True,
    )
    a = np.array([1.0, 1.0, 2.0])
    for found, expected in [
        (v + a, [2, 3, 5]),
        (a - v, [0, -1, -1]),
        (2.0 * v, [2, 4, 6]),
        (v * v, [1, 4, 9]),
        (-v, [-1, -2, -3]),
        (v[1:], [2, 3]),
        (wnp.sin(v), np.sin([1.0, 2.0, 3.0])),
        (np.sin(v), np.sin([1.0, 2.0, 3.0])),
        (wnp.stack([v, a])[0], [1, 2, 3]),
        (wnp.maximum(v, 2.0), [2, 2, 3]),
        (np.concatenate([v, v]), [1, 2, 3, 1, 2, 3]),
        (v.sum(), 6),
        (v @ a, 9),
        (np.asarray(v), [1, 2, 3]),
        (v > 1.5, [False, True, True]),
        (wend.stop_gradient(v), [1, 2, 3]),
        (wend.fori_loop(0, 2, lambda i, x: x + v, a), [3, 5, 8]),
    ]:
        assert isinstance(found, (np.ndarray, np.generic))
        np.testing.assert_array_equal(found, expected)
    assert [float(x) for x in v] == [1.0, 2.0, 3.0]
    one = wend.Variable(2)
    assert (int(one), float(one), bool(one), [10, 20, 30][one]) == (2, 2.0, True, 30)
    assert repr(v) == "<Variable 'v': f64[3], [1. 2. 3.]>"
    assert f"{one:03d}" == "002"


def test_assign():
    v = wend.Variable(2.0)
    before = v.value
    assert v.assign(5.0) is v
    assert (before, v.value) == (2.0, 5.0)
    v.assign_add(1.0).assign_sub(np.float64(2.0))
    assert v.value == 4.0
    v.assign(3)  # numbers of Python are cast
    assert (v.value, v.dtype) == (3.0, np.float64)
    w = wend.Variable(np.zeros(2))
    given = np.ones(2)
    w.assign(given)
    given[0] = 7.0
    w.assign([w[0], 2.0])
    np.testing.assert_array_equal(w, [1, 2])
    with pytest.raises(ValueError, match="read-only"):
        w.value[0] = 5.0


# Functions
def test_functions_read_it_at_each_call():
    """T89: captured by reference."""
    v = wend.Variable(2.0)
    fun = wend.function(lambda x: x * v)
    assert fun(1.0) == 2.0
    v.assign(5.0)
    assert fun(1.0) == 5.0
    assert fun.trace_count == 1
    concrete = fun.get_concrete_function(1.0)
    assert concrete.captured_inputs == (v,)
    assert concrete.variables == (v,)


def test_functions_of_functions_read_it():
    v = wend.Variable(2.0)
    inner = wend.function(lambda x: x * v)

    @wend.function
    def outer(x):
        y = inner(x)
        v.assign(v * 10.0)
        return y + inner(x)

    assert (outer(1.0), v.value) == (22.0, 20.0)
    assert (outer(1.0), v.value) == (220.0, 200.0)
    assert (outer.trace_count, inner.trace_count) == (1, 1)


def test_assignments_in_functions():
    """T91, T92."""
    a, b = wend.Variable(0.0), wend.Variable(0.0)

    @wend.function
    def fun():
        a.assign(2.0)
        b.assign(a + 1.0)
        return a + b

    assert (fun(), a.value, b.value) == (5.0, 2.0, 3.0)
    v = wend.Variable(1.0)

    @wend.function
    def step(x):
        v.assign_add(x)
        v.assign(v * 2.0)

    assert step(1.0) is None
    assert v.value == 4.0
    step(1.0)
    assert (v.value, step.trace_count) == (10.0, 1)


def test_an_inner_function_that_only_assigns():
    v = wend.Variable(0.0)

    @wend.function
    def inner():
        v.assign_add(1.0)

    @wend.function
    def outer():
        inner()
        inner()

    outer()
    assert v.value == 2.0


@pytest.mark.parametrize("eager", [False, True])
def test_in_loops_and_branches(eager):
    v, w = wend.Variable(0.0), wend.Variable(np.zeros(3))

    @wend.function
    def fun(x, n):
        i = 0
        while i < n:
            if x > 1.0:
                v.assign_add(x)
            else:
                v.assign(v * 2.0 + 1.0)
            x = x - 1.0
            i += 1
        return v.value

    with wend.config(eager=eager):
        assert fun(3.0, np.int64(4)) == ((3.0 + 2.0) * 2 + 1) * 2 + 1
        assert v.value == 23.0

        @wend.function
        def fill(x):
            def body(i, total):
                w.assign(w.value.at[i].set(total))
                return total + wnp.sum(w.value)

            return wend.fori_loop(0, 3, body, x)

        assert fill(1.0) == 1 + 1 + 3 + 8
        np.testing.assert_array_equal(w, [1, 2, 5])


def test_a_loop_that_is_recorded_after_its_first_trips_assigns_once():
    v = wend.Variable(2.0)

    @wend.function
    def fun(x):
        i = 0
        s = 0.0
        while i < 3:  # plain at first; s makes it one node
            v.assign_add(1.0)
            s = s + x
            i += 1
        return s

    assert (fun(1.0), v.value) == (3.0, 5.0)
    assert fun.get_concrete_function(1.0).graph.count("while") == 1


def test_functional_forms_outside_traces():
    v = wend.Variable(1.0)
    wend.fori_loop(0, 3, lambda i, c: (v.assign(v * 2.0), c)[1], 0)
    assert v.value == 8.0
    wend.cond(np.float64(1) > 0, lambda: (v.assign(5.0), 0)[1], lambda: 0)
    assert v.value == 5.0


# Failure: what was assigned before it stays
@pytest.mark.parametrize("kind", ["plain", "while_loop", "branch", "inner", "eager", "tape"])
def test_an_exception_in_iteration_7_leaves_the_assignments_before_it(kind):
    v, w = wend.Variable(0), wend.Variable(0.0)

    def step(i):
        wend.assert_(i < 7, "iteration {}", i)
        v.assign_add(1)
        w.assign(w + 0.5)

    inner = wend.function(lambda i: step(i))

    def fun(n):
        if kind == "while_loop":
            return wend.while_loop(lambda i: i < n, lambda i: (step(i), i + 1)[1], 0 * n)
        i = 0 * n
        while i < n:
            if kind == "inner":
                inner(i)
            elif kind == "branch":
                if i >= 0:
                    step(i)
            else:
                step(i)
            i = i + 1
        return i

    traced = wend.function(fun)
    with wend.config(eager=kind == "eager"), pytest.raises(AssertionError, match="iteration 7"):
        if kind == "tape":
            with wend.GradientTape():
                traced(np.int64(20))
        else:
            traced(np.int64(20))
    assert (v.value, w.value) == (7, 3.5)
    assert traced(np.int64(5)) == 5
    assert (v.value, w.value) == (12, 6.0)


def test_an_interrupt_leaves_the_assignments_before_it():
    v = wend.Variable(0)

    @wend.function
    def endless(i):
        while i >= 0:
            v.assign(i)
            i = i + 1

    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        endless(np.int64(0))
    assert v.value > 0


def test_kernels_that_fail():
    v = wend.Variable(np.eye(2))

    @wend.function
    def fun(x):
        v.assign(x)
        v.assign(np.linalg.inv(x))
        return v.value

    singular = np.ones((2, 2))
    with pytest.raises(np.linalg.LinAlgError):
        fun(singular)
    singular[0] = 5.0  # what the caller changes afterwards is his own
    np.testing.assert_array_equal(v, np.ones((2, 2)))


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_failure_on_each_backend(backend):
    v = wend.Variable(0)

    @wend.function(backend=backend)
    def fun(n, m):
        items, total = [], 0.0
        for i in range(n):
            items.append(i * 1.0)
        for i in range(m):
            total = total + items[i]
            v.assign_add(1)
        return total

    assert (fun(np.int64(5), np.int64(3)), v.value) == (3.0, 3)
    with pytest.raises(IndexError, match="out of range"):
        fun(np.int64(5), np.int64(9))
    assert v.value == 8


# Without copies, but where it would show
def test_what_is_stored_is_not_copied():
    v = wend.Variable(np.zeros(1000))
    double = wend.function(lambda: v.assign(v * 2.0 + 1.0))
    double()
    assert v.value.base is None
    swapped = [wend.Variable(np.zeros(10)), wend.Variable(np.ones(10))]

    @wend.function(backend="numpy")  # native runs give arrays of their own
    def swap():
        a, b = swapped
        held = a.value
        a.assign(b.value)
        b.assign(held)

    before = [one.value for one in swapped]
    swap()
    assert swapped[0].value is before[1]
    assert swapped[1].value is before[0]


def test_nobody_shares_memory_with_a_variable():
    v, x = wend.Variable(np.zeros(3)), np.arange(3.0)
    table = np.arange(6.0).reshape(2, 3)

    @wend.function
    def fun(x, kind):
        if kind == 0:
            v.assign(x)
        elif kind == 1:
            v.assign(x[::-1])
        elif kind == 2:
            v.assign(table[1])
        else:
            v.assign(x + 1.0)
        return v.value, v[1:]

    for kind in (0, 1, 2, 3):
        for value in (kind, np.int64(kind)):
            whole, part = fun(x, value)
            held = v.value.copy()
            for mine in (whole, part, x, table):
                mine += 100.0
            np.testing.assert_array_equal(v, held)
            x, table[:] = np.arange(3.0), np.arange(6.0).reshape(2, 3)


# What names it
def test_a_name_that_a_test_decides_on_is_what_the_variable_holds():
    v, w = wend.Variable(1.0), wend.Variable(2.0)

    @wend.function
    def fun(x):
        held = v
        if x > 0.0:
            held = w
            held.assign(3.0)
        return held * 1.0

    assert (fun(1.0), fun(-1.0)) == (3.0, 1.0)

    @wend.function
    def same(x):
        if x > 0.0:
            held = v
        else:
            held = v
        held.assign_add(1.0)
        return v.value

    assert (same(1.0), v.value) == (2.0, 2.0)
    one = wend.function(lambda x: wend.cond(x > 0.0, lambda: v.assign(x), lambda: w.assign_add(x)))
    assert (one(7.0), v.value, one(-1.0), w.value) == (7.0, 7.0, 2.0, 2.0)


@pytest.mark.parametrize("eager", [False, True])
def test_loops_that_give_variables(eager):
    v = wend.Variable(1.0)

    @wend.function
    def fun(n):
        first = wend.fori_loop(0, n, lambda i, c: v.assign_add(1.0), v)
        second = wend.while_loop(lambda c: c < 100.0, lambda c: v.assign_add(c), 1.0)
        third = wend.scan(lambda c, x: (v.assign_add(x), v), 0.0, np.arange(3.0))
        return first + 0.0, second, third

    with wend.config(eager=eager):
        first, second, (carry, rows) = fun(np.int64(3))
    held, total = 4.0, 1.0
    while total < 100.0:
        held = total = held + total
    assert (first, second) == (4.0, held)
    np.testing.assert_array_equal(rows, [held, held + 1.0, held + 3.0])
    assert carry == v.value == held + 3.0


# Effects in the order of the program, and none is pruned
def test_what_is_unused_still_happens():
    """T92: twice called, with results that nobody reads, it runs twice."""
    v = wend.Variable(0.0)
    inner = wend.function(lambda: v.assign_add(1.0).value)

    @wend.function
    def outer(x):
        inner()
        inner()
        for _ in range(3):
            inner()
        return x

    assert (outer(1.0), v.value) == (1.0, 5.0)
    assert (outer(1.0), v.value) == (1.0, 10.0)


def test_untaken_branches_and_loops_without_trips():
    v = wend.Variable(0.0)

    @wend.function
    def fun(x, n):
        if x > 0.0:
            v.assign(5.0)
        i = 0
        while i < n:
            v.assign(7.0)
            i += 1
        return v.value

    assert (fun(-1.0, np.int64(0)), v.value) == (0.0, 0.0)
    assert (fun(1.0, np.int64(0)), v.value) == (5.0, 5.0)
    assert (fun(-1.0, np.int64(1)), v.value) == (7.0, 7.0)


@pytest.mark.parametrize("kind", ["straight", "while", "cond", "inner", "eager"])
def test_a_read_between_two_writes(kind):
    v = wend.Variable(1.0)

    def part():
        v.assign_add(1.0)
        r = v.value
        v.assign(10.0)
        return r

    inner = wend.function(part)

    @wend.function
    def fun(x, n):
        r = x
        if kind == "while":
            i = 0
            while i < n:
                r = part()
                i += 1
        elif kind == "cond":
            if x > 0.0:
                r = part()
        else:
            r = inner() if kind == "inner" else part()
        return r

    with wend.config(eager=kind == "eager"):
        assert (fun(1.0, np.int64(1)), v.value) == (2.0, 10.0)
        assert (fun(1.0, np.int64(2)), v.value) == (11.0, 10.0)


def test_loops_that_do_not_meet_are_not_ordered():
    """T96."""
    v, w = wend.Variable(1.0), wend.Variable(2.0)

    def fun(x, n):
        a = wend.fori_loop(0, n, lambda i, c: c * v, x)
        b = wend.fori_loop(0, n, lambda i, c: c + v, x)
        wend.fori_loop(0, n, lambda i, c: (v.assign_add(1.0), c)[1], 0)
        wend.fori_loop(0, n, lambda i, c: (w.assign_add(1.0), c)[1], 0)
        return a, b

    graph = wend.function(fun).get_concrete_function(1.0, np.int64(3)).graph
    loops = [node for node in graph.nodes if node.op.name == "while"]
    assert len(loops) == 4
    for loop in loops:
        behind = {operand.node for operand in loop.operands}
        assert behind.isdisjoint(loops)


def test_stores_run_once_in_whatever_is_derived():
    """Forward and reverse mode, Jacobians, second orders: the program's assignments, once."""
    v = wend.Variable(1.0)

    @wend.function
    def fun(x):
        def body(i, c):
            v.assign_add(1.0)
            return c * x + v * 0.0

        return wend.fori_loop(0, 3, body, x)

    for form in (
        lambda: wend.grad(fun)(2.0),
        lambda: wend.grad(wend.grad(fun))(2.0),
        lambda: wend.jvp(fun, (2.0,), (1.0,)),
        lambda: wend.vjp(fun, 2.0)[1](1.0),
        lambda: wend.linearize(fun, 2.0)[1](1.0),
        lambda: wend.jacfwd(lambda x: fun(x[0]) * x)(np.array([2.0, 1.0])),
        lambda: wend.jacrev(lambda x: fun(x[0]) * x)(np.array([2.0, 1.0])),
        lambda: wend.hessian(fun)(2.0),
        lambda: fun.get_concrete_function(2.0).forward(2.0),
    ):
        v.assign(1.0)
        form()
        assert v.value == 4.0

    v.assign(1.0)
    with wend.GradientTape() as outer:
        x = outer.watch(2.0)
        with wend.GradientTape() as inner:
            inner.watch(x)
            y = fun(x)
        slope = inner.gradient(y, x)
    v.assign(9.0)
    assert outer.gradient(slope, x) == 4 * 3 * 2.0**2
    assert v.value == 9.0


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_backends(backend):
    v = wend.Variable(2.0)
    fun = wend.function(lambda x: v.assign(v * x) + 1.0, backend=backend)
    assert (fun(3.0), v.value) == (7.0, 6.0)


def test_returned_it_is_its_value():
    v = wend.Variable(2.0)
    fun = wend.function(lambda: v)
    found = fun()
    assert (type(found), found) == (np.float64, 2.0)


def test_methods_with_variables_of_their_own():
    class Counter:
        def __init__(self):
            self.v = wend.Variable(0)

        @wend.function
        def count(self, n):
            self.v.assign_add(n)
            return self.v.value

    one, two = Counter(), Counter()
    assert (one.count(3), one.count(4), two.count(1)) == (3, 7, 1)


# Gradients
def test_tapes_watch_what_is_read():
    v, fixed = wend.Variable(3.0), wend.Variable(2.0, trainable=False)
    with wend.GradientTape(persistent=True) as tape:
        y = v * v * fixed
    assert tape.gradient(y, [v, fixed]) == [12.0, None]
    assert tape.watched_variables() == (v,)
    with wend.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(fixed)
        y = v * v * fixed
    assert tape.gradient(y, [v, fixed]) == [None, 9.0]
    with wend.GradientTape() as tape:
        pass
    assert tape.gradient(1.0, v, unconnected_gradients="zero") == 0.0


def test_through_functions():
    v, w = wend.Variable(3.0), wend.Variable([1.0, 2.0])

    @wend.function
    def fun(x):
        return wnp.sum(w * x) * wend.while_loop(lambda a: a < 100.0, lambda a: a * v, v)

    with wend.GradientTape() as tape:
        y = fun(2.0)
    dv, dw, none = tape.gradient(y, [v, w, wend.Variable(1.0)])
    assert (dv, none) == (6.0 * 5 * 81.0, None)
    np.testing.assert_array_equal(dw, [486, 486])


def test_second_derivatives():
    v = wend.Variable(2.0)
    cube = wend.function(lambda: v * v * v)
    for fun in (cube, cube.python_function):
        with wend.GradientTape() as outer:
            with wend.GradientTape() as inner:
                y = fun()
            slope = inner.gradient(y, v)
        assert (float(slope), outer.gradient(slope, v)) == (12.0, 12.0)


def test_it_stands_for_what_was_read_first():
    v = wend.Variable(2.0)

    def twice():
        y = v * 2.0
        v.assign(v * 5.0)
        return y + v * 3.0

    for fun in (twice, wend.function(twice)):
        v.assign(2.0)
        with wend.GradientTape() as tape:
            y = fun()
        assert (float(y), v.value, tape.gradient(y, v)) == (34.0, 10.0, 17.0)


def test_gradients_through_assignments():
    v = wend.Variable(0.0)
    for fun in (lambda x: v.assign(3.0 * x) * v, wend.function(lambda x: v.assign(3.0 * x) * v)):
        with wend.GradientTape() as tape:
            x = tape.watch(2.0)
            y = fun(x)
        assert (float(y), v.value, tape.gradient(y, x)) == (36.0, 6.0, 36.0)
        assert type(v.value) is np.float64


def test_assigned_in_a_loop_under_a_tape():
    v = wend.Variable(1.0)
    with wend.GradientTape() as tape:
        y = wend.fori_loop(0, 3, lambda i, c: (v.assign(v * v), c * v)[1], 1.0) * v
    assert (float(y), v.value) == (1.0, 1.0)
    assert tape.gradient(y, v) == 2.0 + 4.0 + 8.0 + 8.0


def test_gradient_descent():
    v = wend.Variable([4.0, -3.0])
    loss = wend.function(lambda: wnp.sum(v * v))
    for _ in range(50):
        with wend.GradientTape() as tape:
            y = loss()
        v.assign_sub(0.25 * tape.gradient(y, v))
    assert np.abs(v.value).max() < 1e-12
    assert loss.trace_count == 1


def test_a_training_step_in_a_function():
    """T104: momentum, from 1 to −1."""
    v, momentum = wend.Variable(1.0), wend.Variable(0.0, trainable=False)

    @wend.function
    def step():
        with wend.GradientTape() as tape:
            loss = v * v
        momentum.assign(0.9 * momentum + tape.gradient(loss, v))
        v.assign_sub(momentum)
        return loss

    assert (step(), v.value, momentum.value) == (1.0, -1.0, 2.0)
    assert (step(), v.value) == (1.0, -1.0 - (1.8 - 2.0))
    assert step.trace_count == 1


def test_what_is_read_is_what_it_held():
    """T104: a write after the call changes nothing that the call has given."""
    v = wend.Variable(np.zeros(50))
    fun = wend.function(lambda: v.value)
    for k in range(30):
        found = fun()
        v.assign(v + 1.0)
        np.testing.assert_array_equal(found, np.full(50, float(k)))


def test_grad_with_variables():
    v = wend.Variable(3.0)
    for eager in (False, True):
        with wend.config(eager=eager):
            assert wend.grad(lambda x: x * x * v)(2.0) == 12.0
            assert wend.vjp(lambda x: x * x * v, 2.0)[1](1.0) == (12.0,)


def test_a_gradient_assigns_what_its_function_does():
    for eager in (False, True):
        v = wend.Variable(3.0)
        with wend.config(eager=eager):
            assert wend.grad(lambda x: v.assign(x * 2.0) * x)(2.0) == 8.0  # noqa: B023
        assert v.value == 4.0
        with wend.config(eager=eager):
            value, pullback = wend.vjp(lambda x: v.assign(x * 3.0) * x, 2.0)  # noqa: B023
            assert (value, pullback(1.0)) == (12.0, (12.0,))
        assert v.value == 6.0


# What it refuses
def test_dtype_and_shape_stay():
    v = wend.Variable(np.zeros(2, np.float32), name="weights")
    for bad in (np.zeros(3, np.float32), np.zeros(2), 1.0, 1j, np.zeros((), np.float32)):
        with pytest.raises(TypeMismatchError, match="'weights' holds"):
            v.assign(bad)
        with pytest.raises(TypeMismatchError, match="'weights' holds"):
            wend.function(lambda: v.assign(bad) and None)()  # noqa: B023
    for bad in (np.zeros(3, np.float32), np.zeros(2), 1j, np.zeros((2, 2), np.float32)):
        for what, change in (("added to", v.assign_add), ("subtracted from", v.assign_sub)):
            for run in (change, wend.function(lambda x, change=change: change(x) and None)):
                with pytest.raises(TypeMismatchError, match=f"holds f32.*{what} it"):
                    run(bad)
    v.assign_add([1, 2]).assign_sub(np.float32(1.0)).assign_add(1)
    np.testing.assert_array_equal(v, [1, 2])
    v.assign_sub(v)
    with pytest.raises(TypeMismatchError):
        wend.Variable("text")
    with pytest.raises(TypeError, match="assign to it"):
        v[0] = 1.0


def test_made_without_a_trace():
    with wend.config(eager=True):
        assert wend.function(lambda x: wend.Variable(x) * 2.0)(1.0) == 2.0
    with wend.GradientTape():
        assert wend.Variable(1.0).value == 1.0


MATRIX = np.array([[2.0, 1.0], [1.0, 3.0]])
FUNCTIONS = {
    "einsum": lambda x: wnp.einsum("ij,jk", x, x),
    "inv": lambda x: wnp.linalg.inv(x),
    "solve": lambda x: wnp.linalg.solve(x, np.ones(2)),
    "norm": lambda x: np.linalg.norm(x),
    "eigh": lambda x: wnp.linalg.eigh(x)[0],
    "take": lambda x: wnp.take(x, [0]),
    "concatenate": lambda x: wnp.concatenate([x, x]),
    "full": lambda x: wnp.full((2,), x[0, 0]),
    "where": lambda x: wnp.where(x > 1, x, 0.0),
    "asarray": lambda x: wnp.asarray(x),
    "astype": lambda x: x.astype("float32"),
    "copy": lambda x: x.copy(),
    "std": lambda x: x.std(),
    "gammaln": lambda x: wnp.special.gammaln(x),
    "logsumexp": lambda x: wnp.special.logsumexp(x),
    "sum of rows": lambda x: sum(x),
    "power": lambda x: x**2,
    "linspace": lambda x: wnp.linspace(x[0, 0], 1.0, 3),
    "pad": lambda x: wnp.pad(x, 1),
    "nonzero": lambda x: wnp.nonzero(x)[0],
    "divmod": lambda x: wnp.divmod(x, 2)[0],
    "polyval": lambda x: wnp.polyval(x[0], 2.0),
    "clip": lambda x: x.clip(0, 1),
    "T": lambda x: x.T,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_arrays_take_what_stands_for_one(name):
    """Variables, and recorded arrays that nothing records any more."""
    fun, v = FUNCTIONS[name], wend.Variable(MATRIX)
    expected = fun(MATRIX)
    with wend.GradientTape() as tape:
        recorded = tape.watch(MATRIX) * 1.0
        under_a_tape = fun(v)
    for found in (fun(v), fun(recorded), wend.function(lambda: fun(v))()):
        assert isinstance(found, (np.ndarray, np.generic))
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(under_a_tape), expected, rtol=1e-6)
