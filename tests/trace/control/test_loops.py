"""`while_loop`, `fori_loop`, `cond`, `switch`: what they mean."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from tests.helpers.graphs import check_graph, gradient, loops, names, traced

import wend
import wend.numpy as wnp


def both_ways(fun, *args):
    """The result outside a trace and inside one, which are equal."""
    import optree

    at_once, recorded = fun(*args), wend.function(fun)(*args)
    a, a_tree = optree.tree_flatten(at_once)
    b, b_tree = optree.tree_flatten(recorded)
    assert a_tree == b_tree
    for mine, theirs in zip(a, b, strict=True):
        assert np.asarray(mine).dtype == np.asarray(theirs).dtype
        np.testing.assert_array_equal(mine, theirs)
    return recorded


# Carries
def test_weak_integer_becomes_what_it_meets():
    def fun(x):
        return wend.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + x), (0, 0))

    for dtype in (np.float32, np.float64, np.int32, np.complex64):
        count, total = both_ways(fun, dtype(2))
        assert (count.dtype, total.dtype) == (np.int64, dtype)
        assert total == 6


def test_weak_float_keeps_a_strong_one_strong():
    _, found = both_ways(
        lambda x: wend.fori_loop(0, 2, lambda i, c: (c[1], c[0] * 0.5), (x, x)), np.float32(3)
    )
    assert found.dtype == np.float32


def test_weak_kinds_grow():
    assert both_ways(lambda: wend.while_loop(lambda s: s < 3, lambda s: s + 0.5, 0)) == 3.0
    assert both_ways(lambda: wend.while_loop(lambda s: s < 3, lambda s: s + 1, False)) == 3
    found = both_ways(lambda: wend.while_loop(lambda s: wnp.abs(s) < 3, lambda s: s + 1j, 0))
    assert found == 3j


def test_weak_settles_through_another_carry():
    """The dtype reaches the third carry only after two trips."""

    def fun(x):
        return wend.fori_loop(0, 4, lambda i, c: (c[0] * x, c[0] + c[1], c[1] + c[2]), (1, 0, 0))

    found = both_ways(fun, np.float32(2))
    assert [part.dtype for part in found] == [np.float32] * 3
    assert [float(part) for part in found] == [16.0, 15.0, 11.0]


def test_weakness_outlives_the_loop():
    found = wend.function(lambda x: wend.while_loop(lambda s: s < 3, lambda s: s + 1, 0) * x)(
        np.float32(2)
    )
    assert found.dtype == np.float32


def test_integer_and_bool_carries():
    def fun(n):
        return wend.while_loop(
            lambda s: s[0], lambda s: (s[1] < n, s[1] * 2, ~s[0]), (True, np.int32(1), False)
        )

    go, last, flag = both_ways(fun, np.int32(20))
    assert (bool(go), int(last), bool(flag)) == (False, 64, False)
    assert last.dtype == np.int32


def test_arrays_of_every_kind():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for array in (x, x.astype(int), x > 2, x.astype(complex), x[:, :0], x.T, x[::-1]):
        found = both_ways(lambda a: wend.fori_loop(0, 3, lambda i, c: c[::-1], a), array)
        np.testing.assert_array_equal(found, array[::-1])


def test_pytrees():
    init = {"x": (1.0, [np.ones(2), None]), "n": {"k": 0}}

    def body(c):
        return {"x": (c["x"][0] * 2.0, [c["x"][1][0] + 1.0, None]), "n": {"k": c["n"]["k"] + 1}}

    found = both_ways(lambda c: wend.while_loop(lambda c: c["n"]["k"] < 3, body, c), init)
    assert found["x"][0] == 8.0
    np.testing.assert_array_equal(found["x"][1][0], [4, 4])
    assert found["x"][1][1] is None


def test_empty_carry():
    assert both_ways(lambda: wend.while_loop(lambda c: False, lambda c: c, ())) == ()


def test_python_truth_as_predicate():
    assert both_ways(lambda: wend.while_loop(lambda c: np.bool_(False), lambda c: c, 1.0)) == 1.0


# Trips
@pytest.mark.parametrize("limit", [0, 1, 5, np.int32(2), -3])
def test_maximum_iterations(limit):
    def fun(limit):
        return wend.while_loop(
            lambda c: True, lambda c: c + 1.0, 0.0, maximum_iterations=limit, return_trips=True
        )

    count = max(int(limit), 0)
    assert both_ways(fun, limit) == (count, count)


def test_maximum_iterations_asks_the_predicate_too():
    carry, trips = wend.while_loop(
        lambda c: c < 3, lambda c: c + 1, 0, maximum_iterations=10, return_trips=True
    )
    assert (carry, trips) == (3, 3)


def test_fori_bounds():
    def fun(lower, upper):
        return wend.fori_loop(lower, upper, lambda i, c: c * 10 + i, 0)

    assert [both_ways(fun, *b) for b in [(0, 3), (2, 5), (3, 3), (5, 3), (-2, 1)]] == [
        12,
        234,
        0,
        0,
        -210,
    ]


def test_fori_body_uses_its_bounds():
    assert both_ways(lambda n: wend.fori_loop(n, n + 3, lambda i, c: c + i * n, 0), 2) == 18


def test_one_node():
    graph = traced(lambda x: wend.fori_loop(0, 1000, lambda i, c: c + x, x), 1.0)
    assert len(loops(graph)) == graph.count("while") == 1


# Captures
def test_captures_through_every_level():
    a = np.array([1.0, 2.0])

    def fun(x):
        y = x * 2.0

        def innermost(k, d):
            return wend.cond(d[0] > 0.0, lambda: d + y * a + k, lambda: d - x)

        def middle(c):
            return c[0] + 1, wend.fori_loop(0, 2, innermost, c[1]) + x

        return wend.while_loop(lambda c: (c[0] < 2) & (y[0] > 0.0), middle, (0, x))[1]

    def plain(x):
        y, c, d = x * 2.0, 0, x
        while c < 2 and y[0] > 0:
            for k in range(2):
                d = d + y * a + k if d[0] > 0 else d - x
            c, d = c + 1, d + x
        return d

    for x in (np.array([1.0, 3.0]), np.array([-1.0, 3.0])):
        np.testing.assert_allclose(both_ways(fun, x), plain(x))
    check_graph(traced(fun, np.ones(2)))


def test_an_array_is_captured_by_reference():
    a = np.array([1.0, 2.0])
    fun = wend.function(lambda x: wend.fori_loop(0, 2, lambda i, c: c * a, x))
    assert len(fun.get_concrete_function(np.ones(2)).captured_inputs) == 1
    np.testing.assert_array_equal(fun(np.ones(2)), [1, 4])
    a[0] = 3
    np.testing.assert_array_equal(fun(np.ones(2)), [9, 4])


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
def test_an_array_of_another_dtype_or_shape_is_captured_by_reference(dtype):
    """What promotion and broadcasting do to it happens when the function runs."""
    a = np.array([0, 1], dtype)
    fun = wend.function(lambda x: wnp.where(x > a, x + a, x * a) + wnp.maximum(x, a))

    def plain(x):
        return np.where(x > a, x + a, x * a) + np.maximum(x, a)

    x = np.array([[0.5, 3.0], [2.0, -1.0]])
    np.testing.assert_array_equal(fun(x), plain(x))
    a[...] = a[::-1].copy()
    np.testing.assert_array_equal(fun(x), plain(x))


# cond
def test_python_bool_runs_one_branch():
    taken = []

    def branch(name):
        def run(x):
            taken.append(name)
            return (x, name)  # no array: only possible where nothing is traced

        return run

    assert wend.cond(True, branch("yes"), branch("no"), 1.0) == (1.0, "yes")
    assert wend.cond(False, branch("yes"), branch("no"), 1.0) == (1.0, "no")
    assert taken == ["yes", "no"]
    graph = traced(lambda x: wend.cond(True, lambda: x + 1.0, lambda: x), 1.0)
    assert names(graph) == ["constant", "add"]


def test_numpy_bool_is_staged():
    graph = traced(lambda x: wend.cond(np.True_, lambda: x + 1.0, lambda: x), 1.0)
    assert "if" in names(graph)
    assert wend.function(lambda x: wend.cond(np.True_, lambda: x + 1.0, lambda: x))(1.0) == 2.0


def test_branches():
    def fun(x):
        return wend.cond(x > 0.0, lambda a, b: {"s": a + b}, lambda a, b: {"s": a - b}, x, 2.0)

    assert both_ways(fun, 1.0) == {"s": 3.0}
    assert both_ways(fun, -1.0) == {"s": -3.0}


def test_weak_results_of_branches():
    def fun(x):
        return wend.cond(x > 0, lambda: 1, lambda: x)

    found = both_ways(fun, np.float32(3))
    assert (found, found.dtype) == (1.0, np.float32)
    assert (
        both_ways(lambda x: wend.cond(x > 0, lambda: 1, lambda: 2.5), np.float64(1)).dtype
        == np.float64
    )
    assert both_ways(lambda x: wend.cond(x > 0, lambda: None, lambda: None), np.float64(1)) is None
    assert both_ways(lambda x: wend.cond(x > 0, lambda: (), lambda: ()), np.float64(1)) == ()


def test_an_untaken_branch_never_runs():
    def fun(x):
        return wend.cond(x > 0.0, wnp.log, lambda x: (wend.assert_(x > 0.0, "not taken"), x)[1], x)

    assert both_ways(fun, 1.0) == 0.0
    with pytest.raises(AssertionError, match="not taken"):
        wend.function(fun)(-1.0)


def test_branch_shapes_that_the_run_decides():
    fun = wend.function(
        lambda x: wend.cond(wnp.sum(x) > 0.0, lambda: x, lambda: wnp.concatenate([x, x]))
    )
    concrete = fun.get_concrete_function(wend.TensorSpec([None]))
    check_graph(concrete.graph)
    assert concrete.graph.results[0].type.rank == 1
    fun = wend.function(fun.python_function, input_signature=[wend.TensorSpec([None])])
    assert fun(np.ones(2)).shape == (2,)
    assert fun(-np.ones(2)).shape == (4,)
    slope = wend.grad(
        wend.function(
            lambda x: wnp.sum(fun.python_function(x) * 2.0),
            input_signature=[wend.TensorSpec([None])],
        )
    )
    np.testing.assert_array_equal(slope(np.ones(2)), [2, 2])
    np.testing.assert_array_equal(slope(-np.ones(2)), [4, 4])


# switch
def test_switch_clamps():
    branches = [lambda x: x, lambda x: 2.0 * x, lambda x: 3.0 * x]

    def fun(i, x):
        return wend.switch(i, branches, x)

    expected = {-5: 1.0, 0: 1.0, 1: 2.0, 2: 3.0, 9: 3.0}
    for index, value in expected.items():
        assert both_ways(fun, np.int64(index), 1.0) == value
        assert fun(index, 1.0) == value  # a Python int just runs its branch
        assert wend.grad(fun, 1)(np.int32(index), 1.0) == value
    assert wend.switch(np.uint8(200), branches[:2], 1.0) == 2.0
    assert wend.switch(np.int64(4), branches[:1], 1.0) == 1.0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split())
def test_switch_clamps_every_integer(dtype):
    """At the limits of each dtype, known, traced, in a loop and in a map, with derivatives."""
    branches = [lambda x, k=k: (k + 1.0) * x * x for k in range(3)]
    limits = np.iinfo(dtype)
    indices = sorted({max(i, limits.min) for i in (limits.min, -1, 0, 1, 2, 3, limits.max)})
    keys = np.array(indices, dtype)
    factors = np.array([min(max(i, 0), 2) + 1.0 for i in indices])

    def choose(i, x):
        return wend.switch(i, branches, x)

    def summed(indices, x):
        return wend.fori_loop(0, len(indices), lambda j, s: s + choose(indices[j], x), 0.0)

    assert [choose(i, 3.0) for i in indices] == [*(9.0 * factors)]  # Python's ints
    traced = wend.function(choose)
    assert [traced(i, 3.0) for i in keys] == [*(9.0 * factors)]
    assert wend.grad(summed, 1)(keys, 3.0) == 6.0 * sum(factors)
    with wend.config(backend="numpy", verify=False):
        assert [choose(i, 3.0) for i in keys] == [*(9.0 * factors)]
        assert wend.function(lambda x: [choose(i, x) for i in keys])(3.0) == [*(9.0 * factors)]
        np.testing.assert_array_equal(wend.vmap(choose, (0, None))(keys, 3.0), 9.0 * factors)
        assert wend.grad(wend.grad(summed, 1), 1)(keys, 3.0) == 2.0 * sum(factors)


@pytest.mark.parametrize("index", [True, np.True_, 1.0, np.float32(1), None, "1", np.arange(2), 1j])
def test_switch_takes_integers_only(index):
    branches = [lambda x: x, lambda x: 2.0 * x]
    for fun in (wend.switch, wend.function(lambda *args: wend.switch(index, branches, args[2]))):
        with pytest.raises(wend.WendError, match="the index must be an integer scalar"):
            fun(index, branches, 1.0)


def test_switch_of_constants_and_captures():
    def fun(i, x):
        return wend.switch(i, [lambda: 5.0, lambda: x * x, lambda: wnp.sin(x)])

    slope = wend.grad(fun, 1)
    np.testing.assert_allclose([slope(np.int64(k), 3.0) for k in range(3)], [0, 6, np.cos(3.0)])


# Nesting
def in_loop(body):
    return lambda x: wend.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, body(c[1])), (0, x))[
        1
    ]


def in_count(body):
    return lambda x: wend.fori_loop(0, 2, lambda i, c: body(c), x)


def in_branch(body):
    return lambda x: wend.cond(x > 0.0, body, lambda x: x * 0.5, x)


def in_choice(body):
    return lambda x: wend.switch(wnp.asarray(x > 0.2, np.int64), [lambda x: x + 0.1, body], x)


def in_rows(body):
    return lambda x: wend.scan(lambda c, e: (body(c) * e, None), x, np.array([0.5, 1.5]))[0]


def in_function(body):
    return wend.function(body)


def twice(body):
    return lambda x: body(body(x))


IN_PYTHON = {
    in_loop: twice,
    in_count: twice,
    in_branch: lambda body: lambda x: body(x) if x.real > 0 else x * 0.5,
    in_choice: lambda body: lambda x: body(x) if x.real > 0.2 else x + 0.1,
    in_rows: lambda body: lambda x: body(body(x) * 0.5) * 1.5,
    in_function: lambda body: body,
}


@pytest.mark.sampled
@pytest.mark.parametrize("outer", IN_PYTHON)
@pytest.mark.parametrize("middle", IN_PYTHON)
@pytest.mark.parametrize("inner", IN_PYTHON)
def test_any_in_any(outer, middle, inner):
    """Every form inside every other, value and gradient against plain Python."""
    fun = outer(middle(inner(lambda x: wnp.sin(x) + 0.1)))
    same = functools.reduce(
        lambda body, form: IN_PYTHON[form](body),
        (inner, middle, outer),
        lambda x: np.sin(x) + 0.1,
    )
    value, slope = wend.value_and_grad(fun)(0.7)
    np.testing.assert_allclose(value, same(np.float64(0.7)), rtol=1e-12)
    np.testing.assert_allclose(
        slope, np.imag(same(np.complex128(0.7 + 1e-30j))) / 1e-30, rtol=1e-10
    )


# Failures at run time
@pytest.mark.parametrize(
    ("kind", "body", "start"),
    [
        (IndexError, lambda i, c: c + np.arange(3.0)[wnp.asarray(i)], 0.0),
        (np.linalg.LinAlgError, lambda i, c: wnp.linalg.cholesky(c - 2.0 * np.eye(2)), np.eye(2)),
        (AssertionError, lambda i, c: (wend.assert_(i < 2, "i is {}", i), c)[1], 0.0),
    ],
    ids=["IndexError", "LinAlgError", "assert_"],
)
def test_a_failing_kernel_names_the_line(kind, body, start):
    def body_on_arrays(i, c):
        return body(i, c)

    if kind is IndexError:
        rows = np.arange(3.0)

        def body_on_arrays(i, c):
            return c + wnp.take(rows, i)

    line = (body_on_arrays if kind is IndexError else body).__code__.co_firstlineno
    with pytest.raises(kind) as caught:
        wend.fori_loop(0, 5, body_on_arrays, start)
    (note,) = caught.value.__notes__
    lines = range(line, line + 2)
    assert any(f"test_loops.py:{number}" in note for number in lines), note


@pytest.mark.parametrize("backend", ["numpy", "native", "dataflow"])
@pytest.mark.parametrize("parallel", [None, 1, 5, 10])
def test_explain_says_where_a_hint_has_an_effect(parallel, backend):
    @wend.function(backend=backend)
    def fun(x):
        return wend.while_loop(
            lambda v: v < 100.0, lambda v: v * 2.0, x, parallel_iterations=parallel
        )

    assert fun(1.0) == 128.0
    says = f"parallel_iterations={parallel} of while_loop" in str(fun.explain())
    assert says == (parallel in (5, 10))
    assert ("native code has at most two trips in flight" in str(fun.explain())) == says
    stored = None if parallel == 10 else parallel  # 10 is the default
    graph = fun.get_concrete_function(1.0).graph
    assert [node.attrs.get("parallel_iterations") for node in loops(graph)] == [stored]
    derived = [node for node in gradient(fun, 1.0).walk() if node.op.name == "while"]
    assert {node.attrs.get("parallel_iterations") for node in derived} == {stored}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("most", [0.0, 10.0])
def test_derivatives_where_a_relaxed_carry_meets_a_known_size(most: float, backend: str) -> None:
    def relaxed(x: Any, w: Any) -> Any:
        def body(carry: Any) -> Any:
            total, a = carry
            return total + wnp.sum(a * a), a * w

        shapes = ((), (None,))
        total, a = wend.while_loop(lambda c: c[0] < most, body, (x[0], x), shape_invariants=shapes)
        return total + wnp.sum(a**3)

    def plain(x: Any, w: Any) -> Any:
        total, a = x[0], x
        while total < most:
            total, a = total + wnp.sum(a * a), a * w
        return total + wnp.sum(a**3)

    x, w = np.array([1.0, 0.5, 1.5]), np.array([0.9, 1.1, 1.2])
    with wend.config(backend=backend):
        for argnums in (0, 1):
            slopes = [wend.grad(f, argnums=argnums) for f in (relaxed, plain)]
            np.testing.assert_allclose(*(slope(x, w) for slope in slopes), rtol=1e-12)
            curved = [wend.jacfwd(slope, argnums=0)(x, w) for slope in slopes]
            np.testing.assert_allclose(*curved, rtol=1e-12)
            curved = [wend.jacrev(slope, argnums=1)(x, w) for slope in slopes]
            np.testing.assert_allclose(*curved, rtol=1e-12)
