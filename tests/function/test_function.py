"""`wend.function`: when it traces, what it takes and gives."""

from __future__ import annotations

import collections
import threading

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.graphs import check_graph
from tests.helpers.threads import in_threads
from tests.helpers.traces import at_trace
from wend import TensorSpec
from wend.base.config import settings


def counts(fun, *calls):
    """How many traces there are after each call."""
    found = []
    for call in calls:
        args, kwargs = call if isinstance(call, tuple) and len(call) == 2 else ((call,), {})
        fun(*args, **kwargs)
        found.append(fun.trace_count)
    return found


def one(*args):
    return args, {}


def same():
    return wend.function(lambda x: x if x is None or isinstance(x, str) else x * 2)


# Trace counts (CASES 2f)
def test_t71_values_do_not_retrace():
    f32, i32 = np.float32, np.int32
    assert counts(same(), f32(1), f32(2), f32(3)) == [1, 1, 1]
    assert counts(same(), f32(1), i32(1), f32(1), i32(1)) == [1, 2, 2, 2]


def test_t73_python_values():
    assert counts(same(), 1.0, 2.0, 1.0) == [1, 1, 1]
    fun = wend.function(lambda x, s: x)
    assert counts(fun, one(1.0, "a"), one(1.0, "b"), one(1.0, "a")) == [1, 2, 2]
    fun = wend.function(lambda x, s: x if s is None else x * s)
    calls = [one(1.0, None), one(1.0, np.ones(2)), one(1.0, None)]
    assert counts(fun, *calls) == [1, 2, 2]
    assert counts(same(), float("nan"), float("nan")) == [1, 1]


def test_t74_python_types_are_apart():
    fun = same()
    assert counts(fun, 1, 1.0, True, 2, 3.5, False) == [1, 2, 3, 3, 3, 3]
    assert fun(2) == 4
    assert fun(1.5) == 3.0


def test_t75_shapes_and_dtypes():
    fun = same()
    a = np.ones((2, 3))
    assert counts(fun, a, a + 1, a.T, a.astype("f4"), a[::-1]) == [1, 1, 2, 3, 3]
    assert counts(same(), np.float32(1), np.float32(2), np.float64(1), np.asarray(1.0)) == [
        1,
        1,
        2,
        3,
    ]


def test_t79_ways_to_call():
    fun = wend.function(lambda x, y=2.0: x - y)
    # An omitted default is the one given before, so that is no trace of its own.
    assert counts(
        fun, one(3.0, 2.0), ((3.0,), {"y": 2.0}), ((), {"y": 2.0, "x": 3.0}), one(3.0), one(4.0)
    ) == [1, 1, 1, 1, 1]
    assert fun(3.0) == fun(3.0, y=2.0) == 1.0
    python = []
    note = at_trace(python)

    def body(x):
        note(x)
        return x * 2

    first, second = wend.function(body), wend.function(body)
    first(1.0)
    second(1.0)
    assert len(python) == 2


def test_t79_an_inner_function_is_traced_once():
    python = []
    note = at_trace(python)

    @wend.function
    def inner(x):
        note(x)
        return x * 2

    outer = wend.function(lambda x: inner(x) + inner(x + 1))
    assert outer(1.0) == 6.0
    assert inner(1.0) == 2.0
    assert outer(2.0) == 10.0
    assert len(python) == inner.trace_count == 1
    graph = outer.get_concrete_function(1.0).graph
    assert graph.count("call") == 2


def test_t80_input_signature():
    fun = wend.function(lambda x: x * 2, input_signature=[TensorSpec([None], np.float32)])
    for x in ([1.0], [2.0], [1.0, 2.0, 3.0], np.ones(4, np.float32)):
        found = fun(x)
        np.testing.assert_array_equal(found, np.asarray(x) * 2)
        assert found.dtype == np.float32
    assert fun.trace_count == 1
    for bad in (np.ones(4), np.ones((2, 2), np.float32), np.ones(2, int), [[1.0]], 1.0):
        with pytest.raises(TypeError, match=r"args\[0\]"):
            fun(bad)
    assert fun.trace_count == 1
    fun = wend.function(lambda n: n * 2, input_signature=[TensorSpec([], np.int32)])
    assert [fun(n) for n in (1, 2, 3)] == [2, 4, 6]
    assert fun(1).dtype == np.int32
    assert fun.trace_count == 1


def test_input_signature_with_defaults():
    fun = wend.function(lambda x, n=3: x * n, input_signature=[TensorSpec([])])
    assert fun(2.0) == fun(x=2.0) == 6.0
    with pytest.raises(TypeError, match="for 1 arguments"):
        fun(2.0, 5)
    with pytest.raises(TypeError, match="for 1 arguments"):
        fun(2.0, n=5)
    with pytest.raises(TypeError):
        fun()


def test_input_signature_of_a_pytree():
    spec = {"w": TensorSpec([None, 2]), "b": TensorSpec([2])}
    fun = wend.function(
        lambda p, x: x @ p["w"] + p["b"], input_signature=[spec, TensorSpec([None])]
    )
    for n in (3, 1):
        p = {"w": np.ones((n, 2)), "b": np.arange(2.0)}
        np.testing.assert_array_equal(fun(p, np.ones(n)), [n, n + 1])
    assert fun.trace_count == 1


# Static arguments
def test_static_arguments():
    fun = wend.function(lambda x, n: x**n if n > 1 else x, static_argnums=1)
    assert [fun(2.0, 1), fun(2.0, 3), fun(3.0, n=3)] == [2.0, 8.0, 27.0]
    assert fun.trace_count == 2
    by_name = wend.function(lambda x, n: x * n, static_argnames="n")
    assert [by_name(2.0, 1), by_name(2.0, n=1), by_name(2.0, True)] == [2.0, 2.0, 2.0]
    assert by_name.trace_count == 2  # 1 and True are two values
    assert wend.grad(fun)(2.0, 3) == wend.value_and_grad(fun)(2.0, 3)[1] == 12.0
    assert wend.vjp(fun, 2.0, 3)[1](1.0) == (12.0, None)


def test_static_arguments_that_do_not_exist():
    with pytest.raises(ValueError, match="static_argnames"):
        wend.function(lambda x: x, static_argnames="y")
    with pytest.raises(ValueError, match="static_argnums"):
        wend.function(lambda x: x, static_argnums=3)


# Pytrees
Pair = collections.namedtuple("Pair", "left right")


def test_pytrees_in_and_out():
    @wend.function
    def fun(p, *rest, scale=1.0, **more):
        return {
            "pair": Pair(p.left * scale, [p.right, None]),
            "rest": sum(rest),
            "more": {k: v + 1 for k, v in more.items()},
        }

    found = fun(Pair(1.0, np.arange(2)), 2.0, 3.0, scale=4.0, z=5.0, a=6)
    assert isinstance(found["pair"], Pair)
    assert found["pair"].left == 4.0
    np.testing.assert_array_equal(found["pair"].right[0], [0, 1])
    assert found["pair"].right[1] is None
    assert (found["rest"], found["more"]) == (5.0, {"z": 6.0, "a": 7})


def test_a_dict_is_read_in_the_order_of_its_keys():
    @wend.function
    def fun(d):
        first, second = d.values()
        return 10 * first + second

    for _ in range(4):
        assert fun({"a": 3.0, "b": 1.0}) == 31.0
        assert fun({"b": 1.0, "a": 3.0}) == 13.0
    assert fun.trace_count == 2


def test_scalars_are_numpy_scalars():
    found = wend.function(lambda x: (x, x * np.float32(2), x > 0, 3))(1.5)
    assert [type(part) for part in found] == [np.float64, np.float32, np.bool_, np.int64]


# Memory
def test_results_never_share_memory():
    a, captured = np.arange(3.0), np.ones(3)
    fun = wend.function(
        lambda x: (x, x[::-1], x.reshape(3, 1), wnp.broadcast_to(x, (2, 3)), captured, x * 2, x * 2)
    )
    found = fun(a)
    for k, part in enumerate(found):
        assert part.flags.writeable
        assert not np.shares_memory(part, a)
        assert not np.shares_memory(part, captured)
        for other in found[k + 1 :]:
            assert not np.shares_memory(part, other)
        part[...] = 99.0
    np.testing.assert_array_equal(a, [0, 1, 2])
    np.testing.assert_array_equal(captured, [1, 1, 1])
    np.testing.assert_array_equal(fun(a)[5], [0, 2, 4])


def test_a_constant_result_is_the_callers():
    fun = wend.function(lambda x: wnp.zeros(3) + 1.0)
    fun(1.0)[0] = 7.0
    np.testing.assert_array_equal(fun(1.0), np.ones(3))


def test_captured_arrays_are_by_reference():
    vector, scalar = np.array([1.0, 2.0]), np.array(3.0)
    fun = wend.function(lambda x: x * vector + scalar)
    slope = wend.grad(lambda x: wnp.sum(x * x * vector) * scalar)
    np.testing.assert_array_equal(fun(np.ones(2)), [4, 5])
    np.testing.assert_array_equal(slope(np.ones(2)), [6, 12])
    vector[0], scalar[...] = 10.0, 0.5
    np.testing.assert_array_equal(fun(np.ones(2)), [10.5, 2.5])
    np.testing.assert_array_equal(slope(np.ones(2)), [10, 2])


def test_what_is_computed_from_an_outside_array_is_computed_at_each_call():
    vector = np.array([1.0, 2.0])
    fun = wend.function(lambda x: x * (vector + 1.0) + vector.sum())
    np.testing.assert_array_equal(fun(1.0), [5, 6])
    vector[0] = 100.0
    np.testing.assert_array_equal(fun(1.0), [203, 105])


# Closures and nesting
def test_closures_over_traced_values():
    @wend.function
    def outer(x):
        y = x * 2.0
        inner = wend.function(lambda z: z * y + x)
        return inner(3.0) + wend.fori_loop(0, 2, lambda i, c: inner(c), 1.0)

    def plain(x):
        y = 2 * x
        return 3 * y + x + ((1 * y + x) * y + x)

    assert outer(1.5) == plain(1.5)
    np.testing.assert_allclose(
        wend.grad(outer)(1.5), np.imag(plain(1.5 + 1e-30j)) / 1e-30, rtol=1e-12
    )


def test_a_function_made_once_and_used_in_two_traces():
    """What it captures of the first trace is not there in the second: it is traced anew."""
    made, holder = [], []
    hold = at_trace(holder)

    def outer(x):
        if not made:
            made.append(wend.function(lambda z: z * holder[-1]))
        hold(x)
        return made[0](2.0)

    assert wend.function(outer)(3.0) == 6.0
    assert wend.function(outer)(5.0) == 10.0
    assert outer(7.0) == 14.0


def test_methods():
    class Model:
        def __init__(self, k):
            self.k = k

        @wend.function
        def scaled(self, x):
            return self.k * x

    a, b = Model(2.0), Model(3.0)
    assert [a.scaled(1.0), b.scaled(1.0), a.scaled(5.0)] == [2.0, 3.0, 10.0]
    assert Model.scaled.trace_count == 2


def test_decorator_forms():
    @wend.function(name="twice")
    def fun(x):
        """Doubles."""
        return x * 2

    assert fun(2.0) == 4.0
    assert (fun.name, fun.__doc__) == ("twice", "Doubles.")
    assert "twice" in repr(fun)
    assert wend.jit is wend.function
    assert fun.python_function(3) == 6
    with pytest.raises(TypeError, match="takes a function"):
        wend.function(3)


def test_builtins_and_partials():
    from functools import partial

    assert wend.function(partial(lambda x, y: x - y, y=1.0))(3.0) == 2.0
    assert wend.function(wnp.sin)(0.0) == 0.0


def test_python_errors_pass_through():
    with pytest.raises(ZeroDivisionError):
        wend.function(lambda x: 1 / 0)(1.0)
    with pytest.raises(TypeError, match="missing"):
        wend.function(lambda x, y: x)(1.0)


def test_what_is_not_captured_happens_once_per_trace():
    """T98."""
    seen = []
    note = at_trace(seen)

    @wend.function
    def fun(x):
        note(x)
        return x

    fun(1.0)
    fun(2.0)
    fun(1)
    fun.python_function(1.0)
    assert len(seen) == 3


# Concrete functions
def test_concrete_function():
    c = np.ones(3)
    fun = wend.function(lambda x, n: {"y": x @ x + n, "z": c})
    concrete = fun.get_concrete_function(np.ones(3), 2)
    assert fun.get_concrete_function(TensorSpec([3]), 5) is concrete
    assert fun.concrete_functions() == [concrete]
    assert concrete.captured_inputs[0] is c
    assert "dot_general" in str(concrete.graph)
    check_graph(concrete.graph)
    (x, n), kwargs = concrete.structured_input_signature
    assert (str(x), str(n), kwargs) == ("f64[3]", "i64[] (weak)", {})
    assert str(concrete.structured_outputs["y"]) == "f64[]"
    assert "f64[3]" in repr(concrete)


def test_graph_text():
    square = wend.function(lambda x: x * x, name="square")
    assert str(square.get_concrete_function(TensorSpec([])).graph) == (
        "graph square(%0: f64[]) {\n  %1: f64[] = mul(%0, %0)\n  return %1\n}"
    )


def test_specs():
    spec = TensorSpec([None, 3], "float32", name="x")
    assert spec == TensorSpec((None, 3), np.float32)
    assert hash(spec) == hash(TensorSpec((None, 3), np.float32))
    assert repr(spec) == "TensorSpec((None, 3), float32, name='x')"
    assert TensorSpec().dtype == np.float64


# Unknown dimensions
def test_broadcasting_decided_at_run_time():
    fun = wend.function(
        lambda x, y: x * y + y, input_signature=[TensorSpec([None, 3]), TensorSpec([None])]
    )
    total = wend.function(
        lambda x, y: wnp.sum(wnp.sin(fun(x, y))), input_signature=fun.input_signature
    )
    slope = wend.grad(total, (0, 1))
    static = wend.grad(lambda x, y: wnp.sum(wnp.sin(x * y + y)), (0, 1))
    rng = np.random.default_rng(0)
    for x, y in [((2, 3), (3,)), ((1, 3), (1,)), ((4, 3), (1,)), ((0, 3), (3,))]:
        x, y = rng.normal(size=x), rng.normal(size=y)
        np.testing.assert_allclose(fun(x, y), x * y + y)
        for mine, theirs in zip(slope(x, y), static(x, y), strict=True):
            assert mine.shape == theirs.shape
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    assert fun.trace_count == slope.trace_count == 1
    with pytest.raises(ValueError, match="broadcast"):
        fun(np.ones((2, 3)), np.ones(2))


def test_equal_sizes_of_one_call_need_no_broadcast():
    fun = wend.function(lambda x: x + x * x, input_signature=[TensorSpec([None])])
    fun(np.ones(2))
    (concrete,) = fun.concrete_functions()
    assert "broadcast" not in str(concrete.graph)


def test_unknown_sizes_in_loops():
    fun = wend.function(
        lambda x: wnp.sum(
            wend.fori_loop(0, 3, lambda i, v: wnp.tanh(v) * x + wnp.sum(v) / v.shape[0], x)
        ),
        input_signature=[TensorSpec([None])],
    )
    slope, static = wend.grad(fun), wend.grad(fun.python_function)
    second = wend.grad(lambda x: wnp.sum(slope(x) * x))
    for n in (1, 4):
        x = np.linspace(-1, 1, n) + 0.3
        np.testing.assert_allclose(fun(x), fun.python_function(x), rtol=1e-12)
        np.testing.assert_allclose(slope(x), static(x), rtol=1e-12)
        np.testing.assert_allclose(
            second(x), wend.grad(lambda x: wnp.sum(static(x) * x))(x), rtol=1e-10
        )
    assert slope.trace_count == 1


def test_equal_results_of_unknown_size():
    """Two equal nodes become one, their sizes too: what used the second still fits."""
    fun = wend.function(
        lambda x: (
            wnp.sum(wnp.sin(wnp.concatenate([x, x]))) + wnp.sum(wnp.cos(wnp.concatenate([x, x])))
        ),
        input_signature=[TensorSpec([None])],
    )
    np.testing.assert_allclose(fun(np.zeros(2)), 4.0)
    np.testing.assert_allclose(wend.grad(fun)(np.zeros(2)), [2.0, 2.0])


def test_calls_with_results_of_unknown_size():
    inner = wend.function(lambda x: wnp.concatenate([x, x]))
    fun = wend.function(
        lambda x: wnp.sum(wnp.sin(inner(x))) + wnp.sum(wnp.cos(inner(inner(x)))),
        input_signature=[TensorSpec([None])],
    )
    np.testing.assert_allclose(fun(np.zeros(3)), 12.0)
    np.testing.assert_allclose(wend.grad(fun)(np.zeros(3)), [2.0] * 3)


# Threads and settings
def test_threads():
    traces = []
    note = at_trace(traces)

    @wend.function
    def fun(x):
        note(threading.get_ident())
        return wend.fori_loop(0, 30, lambda i, c: wnp.sin(c) + x, x)

    found = {}

    def work(k):
        for j in range(6):
            x = np.full(j % 3 + 1, float(k))
            found[k, j] = fun(x), wend.grad(lambda x: wnp.sum(fun(x)))(x)

    in_threads(6, work)
    assert len(traces) == fun.trace_count == 3
    for (k, j), (value, _) in found.items():
        # The trace for one number, or that for arrays: by the thread that came first
        np.testing.assert_allclose(value, fun(np.full(j % 3 + 1, float(k))), rtol=1e-14)


def test_settings_of_a_thread():
    seen = []
    with wend.config(backend="numpy", verify=True):
        thread = threading.Thread(target=lambda: seen.append(settings().verify))
        thread.start()
        thread.join()
    assert seen == [False]  # the default, not what this block set
    with pytest.raises(TypeError, match="not a setting"):
        wend.config(speed=3)


def test_backend_by_name():
    with pytest.raises(ValueError, match="no backend 'fast'"):
        wend.function(lambda x: x, backend="fast")(1.0)
    assert wend.function(lambda x: x * 2, backend="native")(1.5) == 3.0
    assert wend.grad(wend.function(lambda x: x * x, backend="native"))(1.5) == 3.0


def test_an_omitted_default_is_pythons():
    def fun(x, n=3, how="twice"):
        return sum(x for _ in range(n)) * {"twice": 2}[how]

    assert wend.function(fun)(1.0) == 6.0
    assert wend.grad(fun)(1.0) == 6.0
    assert wend.vjp(fun, 1.0)[0] == 6.0
    assert wend.grad(wnp.sum)(np.ones(2)).tolist() == [1.0, 1.0]


def test_vjp_of_a_plain_function_sees_what_has_changed_outside():
    factor = 2.0

    def fun(x):
        return x * factor

    assert wend.vjp(fun, 1.0)[0] == 2.0
    factor = 3.0
    assert wend.vjp(fun, 1.0)[0] == 3.0


def test_other_byte_orders_are_converted_and_other_dtypes_refused():
    fun = wend.function(lambda x: x + 1)
    assert fun(np.ones(2, ">f8")).tolist() == [2.0, 2.0]
    with pytest.raises(TypeError, match="arrays of dtype <U1 are not traced"):
        fun(np.array(["a"]))


def test_an_argument_in_another_byte_order_is_not_changed_in_place_unseen():
    def grow(x, y):
        x[0] = 7.0
        y[0] = 5.0
        return x + y

    for backend in ("native", "numpy"):
        x, y = np.ones(2), np.ones(2, ">f8")
        fun = wend.function(grow, backend=backend)
        for _ in range(3):
            with pytest.raises(ValueError, match=r"read-only.*byte order"):
                fun(x, y)
        assert x.tolist() == y.tolist() == [1.0, 1.0]
        assert fun(x, y.astype("f8")).tolist() == [12.0, 2.0]
        assert x.tolist() == [7.0, 1.0]


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_subclasses_of_arrays_are_refused(backend):
    """Their operators may be their own (D47)."""
    fun = wend.function(lambda x: x * x, backend=backend)
    x = np.arange(4.0).reshape(2, 2)
    for _ in range(3):
        np.testing.assert_array_equal(fun(x), x * x)
        with pytest.raises(TypeError, match=r"an array of class numpy\.matrix is not traced"):
            fun(np.matrix(x))


def test_masked_arrays_are_refused():
    fun = wend.function(lambda x: wnp.sum(x))
    x = np.ma.masked_array(np.arange(3.0), [False, True, False])
    assert fun(np.arange(3.0)) == 3.0
    for _ in range(2):
        with pytest.raises(TypeError, match="masked arrays are not traced"):
            fun(x)
    with pytest.raises(TypeError, match="masked arrays are not traced"):
        wend.grad(fun)(x)


def test_the_one_trace_of_an_input_signature_needs_no_arguments():
    fun = wend.function(lambda x: x * 2, input_signature=[wend.TensorSpec([None])])
    assert fun.get_concrete_function() is fun.get_concrete_function()
    fun(np.ones(3))
    assert fun.trace_count == 1
