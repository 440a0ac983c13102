"""`vmap`: its interface and refusals. What it computes is in `tests/programs/test_vmap.py`."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest
from tests.helpers.golden import Golden
from tests.helpers.graphs import check_graph, traced

import wend
import wend.numpy as wnp
from wend.base.errors import ShapeError, StructureError, TypeMismatchError, VariableError
from wend.ir.graph import Graph

ROWS = np.arange(6.0).reshape(3, 2)


def same(found, expected):
    assert np.shape(found) == np.shape(expected)
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(found, expected)


def halvings(x):
    n = 0
    while x > 1.0:
        x, n = x / 2, n + 1
    return n


# Axes
def test_each_element_makes_its_own_trips():
    same(wend.vmap(halvings)(np.array([1.0, 8.0, np.nan, 1e9])), np.array([0, 3, 0, 30]))


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_an_axis_of_an_argument(axis):
    expected = np.moveaxis(ROWS, axis, 0) @ np.ones(ROWS.shape[1 - axis % 2])
    same(wend.vmap(lambda x: x @ wnp.ones(x.shape), in_axes=axis)(ROWS), expected)


@pytest.mark.parametrize("axis", [0, 1, -1, -2, np.int64(1)])
def test_an_axis_of_a_result(axis):
    same(wend.vmap(lambda x: 2 * x, out_axes=axis)(ROWS), np.moveaxis(2 * ROWS, 0, axis))


def test_axes_in_containers():
    def fun(p, q):
        return {"sum": p["a"] + p["b"][0] * q, "pair": (p["b"][1], q)}

    p = {"a": ROWS, "b": (np.arange(3.0), 5.0)}
    found = wend.vmap(
        fun, in_axes=({"a": 0, "b": (0, None)}, None), out_axes={"sum": 1, "pair": None}
    )(p, 2.0)
    same(found["sum"], (ROWS + 2 * np.arange(3.0)[:, None]).T)
    assert found["pair"] == (5.0, 2.0)


def test_lists_of_axes_and_of_arguments():
    same(
        wend.vmap(lambda x, y: x * y[0], in_axes=[0, [None]])(np.arange(3.0), [2.0]),
        2 * np.arange(3.0),
    )


def test_keywords_are_mapped_over_axis_0():
    fun = wend.vmap(lambda x, y, z=1.0: x * y + z, in_axes=(None,))
    same(fun(2.0, y=np.arange(3.0)), 2 * np.arange(3.0) + 1)


def test_axis_size_where_nothing_is_mapped():
    same(
        wend.vmap(lambda x: x, in_axes=None, axis_size=2)(np.arange(3.0)),
        np.arange(3.0) * np.ones((2, 1)),
    )
    same(wend.vmap(lambda: 1, axis_size=4)(), np.ones(4, int))


def test_no_elements():
    scalar, row = wend.vmap(lambda x: (x @ x, np.exp(x)))(np.ones((0, 3)))
    same(scalar, np.ones(0))
    same(row, np.ones((0, 3)))


def test_structure_of_arguments_and_results():
    assert wend.vmap(lambda x: None)(ROWS) is None
    same(wend.vmap(lambda x, y: x)(ROWS, None), ROWS)
    whole, text = wend.vmap(lambda x, unit: (x, len(unit)), in_axes=(0, None))(ROWS, "km")
    same(whole, ROWS)
    same(text, np.full(3, 2))


def test_integers_of_a_mapped_axis_are_traced():
    same(
        wend.vmap(lambda n: wend.fori_loop(0, n, lambda i, s: s + i, 0))(np.array([0, 3, 5])),
        [0, 3, 10],
    )


def test_results_of_one_size_that_only_the_run_knows():
    positive = wend.vmap(lambda x: x[x > 0])
    same(positive(np.array([[1.0, -1, 2], [3, 4, -5]])), [[1.0, 2], [3, 4]])
    with pytest.raises(ShapeError, match=r"result 0 of element 2 and that of element 0 differ"):
        positive(np.array([[1.0, -1], [-3, 4], [3, 4]]))


# Of plain, compiled and differentiated functions
def test_it_is_one_node():
    graph = traced(wend.vmap(halvings), np.ones(3))
    assert isinstance(graph, Graph)
    assert graph.count("parallel_map") == 1
    check_graph(graph)
    check_graph(
        traced(wend.grad(lambda x: wnp.sum(wend.vmap(lambda v: v * wnp.sin(v))(x))), np.ones(3))
    )


def test_compiled_functions():
    compiled = wend.function(lambda x, y: {"sum": x + y})
    same(wend.vmap(compiled, in_axes=(0, None))(ROWS, 1.0)["sum"], ROWS + 1)
    same(wend.function(wend.vmap(wend.function(wend.vmap(compiled))))(ROWS, ROWS)["sum"], 2 * ROWS)


def test_functions_with_static_arguments():
    power = wend.function(lambda x, n: x ** len("a" * n), static_argnames="n")
    same(wend.vmap(functools.partial(power, n=3))(np.arange(3.0)), np.arange(3.0) ** 3)


def test_jacobians():
    square = wend.vmap(wend.jacrev(lambda x: x * x))(ROWS)
    same(square, np.stack([np.diag(2 * row) for row in ROWS]))
    assert wend.jacfwd(wend.vmap(lambda x: x @ x))(ROWS).shape == (3, 3, 2)


def test_custom_rules():
    @wend.custom_vjp
    def fun(x):
        return x * x

    fun.defvjp(lambda x: (x * x, x), lambda x, ct: (7 * x * ct,))
    same(wend.vmap(wend.grad(fun))(np.arange(3.0)), 7 * np.arange(3.0))
    same(wend.grad(lambda x: wnp.sum(wend.vmap(fun)(x)))(np.arange(3.0)), 7 * np.arange(3.0))


def test_recomputed_calls():
    fun = wend.checkpoint(lambda x: wnp.sin(x) * x)
    x = np.arange(3.0)
    found = wend.grad(lambda x: wnp.sum(wend.vmap(fun)(x)))(x)
    np.testing.assert_allclose(found, np.cos(x) * x + np.sin(x))


def test_tapes():
    with wend.GradientTape() as tape:
        x = tape.watch(np.arange(3.0))
        y = np.sum(wend.vmap(lambda v: v * v)(x))
    same(tape.gradient(y, x), 2 * np.arange(3.0))


def test_eager_mode():
    with wend.config(eager=True):
        same(wend.vmap(halvings)(np.array([1.0, 8.0])), [0, 3])
        found = wend.grad(lambda x: np.sum(wend.vmap(lambda v: v * v)(x)))(np.arange(3.0))
    same(found, 2 * np.arange(3.0))


def test_one_trace_for_many_sizes():
    fun = wend.vmap(lambda x, y: x * y)
    for n in (2, 3, 4, 5, 6):
        same(fun(np.ones(n), np.ones((n, 2))), np.ones((n, 2)))
    assert fun.trace_count == 2
    with pytest.raises(ShapeError, match="the mapped axes have different sizes"):
        fun(np.ones(7), np.ones((6, 2)))


def test_sizes_of_arguments_of_two_symbols():
    x, y = wend.TensorSpec([None], "float64"), wend.TensorSpec([None], "float64")
    fun = wend.function(lambda x, y: wend.vmap(lambda a, b: a * b)(x, y), input_signature=[x, y])
    same(fun(np.arange(3.0), np.ones(3)), np.arange(3.0))
    with pytest.raises(ShapeError, match="the mapped axes have different sizes, 3 and 4"):
        fun(np.arange(3.0), np.ones(4))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("count", [0, 1, 6, 7])
@pytest.mark.parametrize("chunk_size", [1, 3, 7, 9])
def test_chunks(count, chunk_size):
    x = 1.0 + np.arange(2.0 * count).reshape(count, 2)
    fun = wend.vmap(lambda x, s: (x @ x * s, np.sin(x)), (0, None), chunk_size=chunk_size)
    product, sines = fun(x, 2.0)
    np.testing.assert_allclose(product, 2 * np.sum(x * x, axis=1))
    np.testing.assert_allclose(sines, np.sin(x), rtol=1e-14)
    gradient = wend.grad(lambda x, s: wnp.sum(fun(x, s)[0]), (0, 1))(x, 2.0)
    np.testing.assert_allclose(gradient[0], 4 * x)
    np.testing.assert_allclose(gradient[1], np.sum(x * x))


def test_chunks_of_a_number_that_only_the_run_knows():
    spec = wend.TensorSpec([None], "float64")
    fun = wend.function(wend.vmap(halvings, chunk_size=2), input_signature=[spec])
    same(fun(np.array([1.0, 8.0, 9.0])), [0, 3, 4])


def test_explain_says_how_elements_run():
    fun = wend.vmap(halvings)
    fun(np.ones(40))
    assert "in 16 lanes, refilled as elements end" in fun.explain()
    gradient = wend.vmap(wend.grad(lambda x: wend.while_loop(lambda c: c < 8, lambda c: c * c, x)))
    gradient(np.full(40, 1.5))
    assert "in 16 lanes" in gradient.explain()

    def of_arrays(x):
        return wend.while_loop(lambda c: c[0] < 8, lambda c: c * c, wnp.stack([x] * 5))[0]

    of_arrays = wend.vmap(wend.grad(of_arrays))
    of_arrays(np.full(40, 1.5))
    assert re.search(r"one by one: each has its own loop.* has f64\[5\]", of_arrays.explain())


def test_explain_says_why_elements_run_one_by_one():
    def reason(fun, *args, **limits):
        fun = wend.vmap(fun, **limits)
        fun(*args)
        (line,) = {x for x in fun.explain().splitlines() if "one by one" in x}
        return line

    def in_a_branch(a):
        s = a
        while s < 8.0:
            if s > 2.0:
                x = s
                while x * x > 1.01 * s:
                    x = 0.5 * (x + s / x)
                s = s + 0.1 * x
            s = s + a
        return s

    def square(a):
        s = a
        while s < 8.0:
            s = s * s
        return s

    assert reason(halvings, np.ones(9)).endswith(", and there are fewer than 16")
    assert reason(halvings, np.ones(40), lanes=1).endswith(", and vmap has lanes=1")
    line = reason(wend.grad(in_a_branch), np.full(40, 1.5))
    assert line.endswith(", and a loop in a branch keeps records")
    line = reason(wend.grad(wend.grad(square)), np.full(40, 1.5))
    assert line.endswith(", and a loop that reads records keeps others")


# Effects
def test_elements_print_in_order(capfd):
    def fun(x):
        print("x is", x)
        return 2 * x

    same(wend.vmap(fun)(np.arange(3.0)), 2 * np.arange(3.0))
    assert capfd.readouterr().out == "x is 0.0\nx is 1.0\nx is 2.0\n"


def test_elements_call_python_in_order():
    seen = []

    def note(x):
        seen.append(float(x))
        return 3 * x

    fun = wend.vmap(lambda x: wend.py_function(note, wend.TensorSpec([], "float64"), x))
    same(fun(np.arange(3.0)), 3 * np.arange(3.0))
    assert seen == [0.0, 1.0, 2.0]


def test_the_error_of_the_first_element_that_fails():
    def fun(x):
        if x > 1:
            raise ValueError(f"{x} is too large")
        return x

    for mapped in (wend.vmap(fun), wend.vmap(wend.grad(fun)), wend.function(wend.vmap(fun))):
        with pytest.raises(ValueError, match=r"2\.0 is too large") as caught:
            mapped(np.arange(4.0))
        assert caught.value.__notes__[-1] == "in element 2 of vmap"
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        wend.vmap(lambda i, t: t[i], (0, None))(np.array([0, 7, 9]), np.arange(5.0))


def test_nan_of_one_element_stays_there():
    x = np.array([1.0, np.nan, 4.0])
    found = wend.vmap(wend.grad(lambda v: wend.while_loop(lambda c: c < 3, lambda c: c * 2, v)))(x)
    same(found, [4.0, 1.0, 1.0])


def test_random_numbers():
    keys = wend.random.split(wend.random.key(0), 3)
    same(wend.vmap(wend.random.normal)(keys), [wend.random.normal(key) for key in keys])
    draws = wend.vmap(lambda x, key: x * wend.random.normal(key), (0, None))(np.ones(3), keys[0])
    same(draws, np.full(3, wend.random.normal(keys[0])))


def test_variables_are_read():
    rate = wend.Variable(2.0)
    same(wend.vmap(lambda x: rate * x)(np.arange(3.0)), 2 * np.arange(3.0))
    same(wend.vmap(lambda w, x: w * x, (None, 0))(rate, np.arange(3.0)), 2 * np.arange(3.0))


# Refusals
def _changes(x):
    x[0] = 1.0
    return x


TOTAL = wend.Variable(1.0, name="total")
RNG = wend.random.Generator(0)


REFUSED = {
    "axis_name": (NotImplementedError, lambda: wend.vmap(abs, axis_name="i")),
    "spmd_axis_name": (NotImplementedError, lambda: wend.vmap(abs, spmd_axis_name="i")),
    "no function": (TypeError, lambda: wend.vmap(3)),
    "axis_size": (ValueError, lambda: wend.vmap(abs, axis_size=-1)),
    "chunk_size": (ValueError, lambda: wend.vmap(abs, chunk_size=0)),
    "text as an axis": (TypeMismatchError, lambda: wend.vmap(abs, in_axes="x")),
    "float as an axis": (TypeMismatchError, lambda: wend.vmap(abs, in_axes=(0.5,))),
    "bool as an axis": (TypeMismatchError, lambda: wend.vmap(abs, out_axes=[True])),
    "axes by name": (TypeMismatchError, lambda: wend.vmap(abs, in_axes={"x": 0})),
    "too few axes": (
        StructureError,
        lambda: wend.vmap(lambda x, y: x + y, in_axes=(0,))(ROWS, ROWS),
    ),
    "other containers": (
        StructureError,
        lambda: wend.vmap(lambda x: x, in_axes=({"a": 0, "c": 0},))({"a": ROWS, "b": ROWS}),
    ),
    "other containers of results": (
        StructureError,
        lambda: wend.vmap(lambda x: (x, x), out_axes=[0, 0])(ROWS),
    ),
    "an axis that is not there": (
        TypeMismatchError,
        lambda: wend.vmap(lambda x: x["w"], in_axes=2)({"w": ROWS}),
    ),
    "an axis of a result that is not there": (
        TypeMismatchError,
        lambda: wend.vmap(lambda x: {"w": x}, out_axes=-4)(ROWS),
    ),
    "a number without axes": (TypeMismatchError, lambda: wend.vmap(lambda x: x)(1.0)),
    "a text without axes": (TypeMismatchError, lambda: wend.vmap(lambda x, u: x)(ROWS, "m")),
    "different sizes": (
        ShapeError,
        lambda: wend.vmap(lambda x, y: x, in_axes=(0, 1))({"w": ROWS}, ROWS),
    ),
    "another axis_size": (ShapeError, lambda: wend.vmap(lambda x: x, axis_size=2)(ROWS)),
    "nothing is mapped": (StructureError, lambda: wend.vmap(lambda x: x, in_axes=None)(ROWS)),
    "a result that differs": (
        StructureError,
        lambda: wend.vmap(lambda x: {"y": x}, out_axes=None)(ROWS),
    ),
    "a variable is mapped": (TypeMismatchError, lambda: wend.vmap(lambda x: x)(TOTAL)),
    "a variable is assigned": (VariableError, lambda: wend.vmap(TOTAL.assign_add)(ROWS[0])),
    "a generator draws": (VariableError, lambda: wend.vmap(lambda x: x * RNG.normal())(ROWS)),
    "an argument is changed": (TypeMismatchError, lambda: wend.vmap(_changes)(ROWS)),
}


def test_refusals(golden: Golden):
    """Each message, with what follows from it."""
    texts = []
    for case, (error, call) in REFUSED.items():
        with pytest.raises(error) as caught:
            call()
        text = re.sub(r"made at \S+,", "made at FILE,", str(caught.value))
        texts.append(f"# {case}\n{type(caught.value).__name__}: {text}\n")
    golden.check("errors/vmap.txt", "\n".join(texts))
