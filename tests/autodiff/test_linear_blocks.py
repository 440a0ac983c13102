"""Linear blocks: how backward graphs look before, between and after the passes; Z1 to Z15."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import wend
import wend.numpy as wnp
from tests.helpers.graphs import check_graph, float_carries, loops, names, traced
from tests.helpers.random_programs import programs, staged
from tests.helpers.shares import sized
from wend.autodiff.vjp import linear_blocks, vjp
from wend.backends.protocol import choose
from wend.base.zero import ZERO
from wend.ir import Graph
from wend.ir.dtypes import FLOAT64
from wend.ir.types import MaybeType, TensorType, tensor
from wend.ops.build import Build
from wend.passes.canonicalize_loops import canonicalize_loops
from wend.passes.dce import dce
from wend.passes.lower_linear_blocks import guard_linear_blocks, lower_linear_blocks
from wend.passes.specialize_zeros import specialize_zeros

F64 = tensor("f8")
A, B = np.array([0.3, -0.2]), np.array([2.0, 5.0])
ONES = np.ones(2)


def blocks(graph: Graph) -> list[str]:
    """The operations that the linear blocks at the top level are of, in order."""
    return [node.attrs["of"] for node in graph.nodes if node.op.name == "linear_block"]


def sound(graph: Graph) -> Graph:
    check_graph(graph)
    return graph


def compiled(graph: Graph) -> Any:
    return choose("numpy").compile(graph)


def product_and_sum() -> Graph:
    """c = a·b·a + b, and the temporary a·b."""
    b = Build("f")
    x, y = b.param(F64), b.param(F64)
    product = b.mul(x, y)
    return b.finish([b.add(b.mul(product, x), y), product])


def test_a_block_for_every_node():
    """Z1."""
    pair = linear_blocks(product_and_sum(), wrt=[0, 1], seeded=[0, 1])
    sound(pair.backward)
    assert blocks(pair.backward) == ["add", "mul", "mul"]
    assert pair.backward.count("autograd_add") == 3
    # c, a·b, and what is read: a·b, a, b
    assert len(pair.forward.results) == 2 + 3


def test_a_temporary_that_is_zero():
    """Z2."""
    pair = linear_blocks(product_and_sum(), [0, 1], [0, 1], unknown=[1])
    backward = sound(specialize_zeros(pair.backward, zero=[len(pair.backward.params) - 1]))
    assert sorted(names(backward)) == ["add"] * 2 + ["mul"] * 4


def test_what_nobody_seeds_is_not_there():
    pair = linear_blocks(product_and_sum(), [0, 1], [0])
    assert pair.backward.count("autograd_add") == 2
    assert blocks(pair.backward) == ["add", "mul", "mul"]
    backward = sound(specialize_zeros(pair.backward))
    assert sorted(names(backward)) == ["add"] * 2 + ["mul"] * 4
    direct = vjp(product_and_sum(), [0, 1], [0]).backward
    assert sorted(names(direct)) == sorted(names(backward))


def test_a_cotangent_that_may_arrive_is_guarded():
    """Z4, Z5: only what the unknown one alone feeds stays behind a guard."""
    pair = linear_blocks(product_and_sum(), [0, 1], [0, 1], unknown=[0])
    known = sound(specialize_zeros(pair.backward))
    assert blocks(known) == ["mul"]  # a·b·a; the add hands on, the temporary is there
    lowered = sound(guard_linear_blocks(known))
    assert [n for n in names(lowered) if n in ("linear_block", "any_nonzero", "if")] == [
        "any_nonzero",
        "if",
    ]


@pytest.mark.parametrize("unknown", [(), (0,), (1,), (0, 1)])
@pytest.mark.parametrize("seeds", [(1.5, 0.5), (1.5, ZERO), (ZERO, 0.5), (ZERO, ZERO)])
def test_numbers_of_guarded_and_spliced_blocks(unknown, seeds):
    x, y = 3.0, 0.7
    if any(seed is ZERO and k not in unknown for k, seed in enumerate(seeds)):
        seeds = tuple(0.0 if k not in unknown and s is ZERO else s for k, s in enumerate(seeds))
    first, second = (0.0 if seed is ZERO else seed for seed in seeds)
    expected = [first * 2 * x * y + second * y, first * (x * x + 1) + second * x]
    for form in (vjp, linear_blocks):
        pair = form(product_and_sum(), [0, 1], [0, 1], unknown)
        kept = compiled(pair.forward)([x, y])[2:]
        found = compiled(lower_linear_blocks(pair.backward))([*kept, *seeds])
        numbers = [0.0 if ct is ZERO else ct for ct in found]
        np.testing.assert_allclose(numbers, expected, rtol=1e-14)


@wend.function
def two_results(a, b):
    return wnp.tanh(a) * b, wnp.special.expit(a) + b * b


@pytest.fixture
def run():
    return two_results.get_concrete_function(A, B).forward(A, B)[1]


def backward(run, *cotangents):
    return two_results.get_concrete_function(A, B).backward(run, cotangents)


def test_only_the_first_result_is_seeded(run):
    """Z6."""
    da, db = backward(run, ONES, None)
    np.testing.assert_allclose(da, (1.830274, 4.805215), atol=5e-7)
    np.testing.assert_allclose(db, (0.291313, -0.197375), atol=5e-7)


def test_only_the_second_result_is_seeded(run):
    """Z8."""
    da, db = backward(run, None, ONES)
    np.testing.assert_allclose(da, (0.244458, 0.247517), atol=5e-7)
    np.testing.assert_allclose(db, (4, 10))


def test_no_result_is_seeded(run):
    """Z7."""
    assert backward(run, None, None) == (None, None)
    assert two_results.get_concrete_function(A, B).backward(run, None) == (None, None)


def test_nothing_of_the_other_result_runs():
    """Z6, Z8: for each choice of seeds there is a graph that holds only what those need."""
    forms = two_results.get_concrete_function(A, B).forms
    first, second = forms.backward([0]).graph, forms.backward([1]).graph
    # (1 − tanh²)·b, tanh; tanh and expit are computed again from a
    assert {"broadcast_to", "sub", "mul", "constant", "tanh"} >= {*names(first)}
    assert {"broadcast_to", "sub", "mul", "add", "constant", "expit"} >= {*names(second)}
    assert "add" not in names(first)  # b·b is of the second alone
    for graph in (first, second):
        assert not any(is_zeros(node) for node in graph.walk())
    assert forms.backward([]).connected == (False, False)


def is_zeros(node) -> bool:
    """Whether a node makes an array of zeros."""
    return node.op.name == "constant" and not np.any(node.attrs["value"])


def test_nothing_runs_where_nothing_arrives():
    """Where only the run can tell: outside the guards there is no arithmetic."""
    graph = two_results.get_concrete_function(A, B).graph
    backward = vjp(graph, [0, 1], [0, 1], unknown=[0, 1]).backward
    assert {node.op.name for node in backward.nodes} == {"any_nonzero", "if"}
    for node in backward.nodes:
        if node.op.name == "if":
            nothing, something = node.regions
            assert {inner.op.name for inner in nothing.nodes} <= {"zero"}
            assert something.nodes
    assert not any(is_zeros(node) for node in backward.walk())


def test_only_what_is_differentiated_is_kept():
    """Z10: d = b·b + b, e = (d + a)·a + b, only a needs a gradient."""

    def fun(a, b):
        d = b * b + b
        return d, (d + a) * a + b

    graph = traced(fun, A, B)
    pair = linear_blocks(graph, wrt=[0], seeded=[0, 1])
    assert blocks(pair.backward).count("mul") == 1
    assert len(pair.backward.results) == 1
    assert len(pair.forward.results) - len(graph.results) == 2  # a, d + a


def test_broadcasting_is_undone_where_it_happened():
    """Z9: equal sizes need no sum; a size that the run decides keeps one."""

    def fun(a, b):
        return a * b * b

    def sums(a, b):
        graph = traced(fun, a, b)
        backward = vjp(graph, [0, 1], [0]).backward
        return [name for name in names(backward) if name in ("reduce_sum", "sum_to")]

    spec = wend.TensorSpec
    assert sums(np.ones((2, 2)), np.ones((2, 2))) == []
    assert len(sums(np.ones((2, 2)), np.ones(1))) > 0
    n = spec([None], "float64")
    assert "sum_to" in sums(n, spec([None], "float64"))
    a, b = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([2.0])
    _, pull = wend.vjp(fun, a, b)
    da, db = pull(np.ones((2, 2)))
    np.testing.assert_allclose(da, np.full((2, 2), 4.0))
    np.testing.assert_allclose(db, [2 * 2 * 10.0])


def test_unknown_sizes_and_an_unused_result():
    """Z12."""

    any_shape = TensorType(FLOAT64, None)
    b = Build("f")
    x, y = b.param(any_shape), b.param(any_shape)
    graph = b.finish([b.mul(b.sin(x), x), b.mul(b.cos(y), y)])
    pair = vjp(graph, [0, 1], [0])
    assert pair.connected == (True, False)
    assert [str(value.type) for value in pair.forward.results[2:]] == ["f64[...]"] * 2  # sin x, x
    assert not {"shape_of", "dim_of"} & {*names(pair.forward), *names(pair.backward)}
    for shape in ((), (3,), (2, 0), (2, 3, 1)):
        x = np.random.default_rng(0).normal(size=shape)
        kept = compiled(pair.forward)([x, x])[2:]
        (found,) = compiled(pair.backward)([*kept, np.ones(shape)])
        np.testing.assert_allclose(found, np.sin(x) + x * np.cos(x), rtol=1e-14)


def test_a_cotangent_that_arrives_in_the_second_round():
    """Z13."""

    def fun(x, y, b):
        return wend.fori_loop(0, 3, lambda i, c: (c[0] * c[1], c[1] * b), (x, y))

    x, y, b = 2.0, 3.0, 0.5
    assert fun(x, y, b)[0] == 6.75
    _, pull = wend.vjp(fun, x, y, b)
    np.testing.assert_allclose(pull((1.0, 0.0)), (3.375, 6.75, 40.5), rtol=1e-15)
    concrete = wend.function(fun).get_concrete_function(x, y, b)
    _, run = concrete.forward(x, y, b)
    np.testing.assert_allclose(concrete.backward(run, (1.0, None)), (3.375, 6.75, 40.5))


def test_independent_carries():
    """Z14: by what is known while building, and by specialising the general graph."""

    def fun(x, y, a, b):
        return wend.fori_loop(0, 3, lambda i, c: (c[0] * a, c[1] * b), (x, y))

    args = (2.0, 3.0, 0.5, 0.7)
    pair = vjp(traced(fun, *args), [0, 1, 2, 3], [0])
    assert pair.connected == (True, False, True, False)
    (loop,) = loops(pair.backward)
    assert len(float_carries(loop)) == 2  # dx, da
    concrete = wend.function(fun).get_concrete_function(*args)
    _, run = concrete.forward(*args)
    dx, dy, da, db = concrete.backward(run, (1.0, None))
    np.testing.assert_allclose((dx, da), (0.125, 3 * 2 * 0.25))
    (loop,) = loops(dce(canonicalize_loops(concrete.forms.backward([0]).graph)))
    assert len(float_carries(loop)) == 2
    assert dy is None
    assert db is None
    assert concrete.backward(run, (None, None)) == (None,) * 4
    np.testing.assert_allclose(concrete.backward(run, (None, 1.0))[1::2], (0.343, 9 * 0.49))


def test_a_result_whose_cotangent_is_zero():
    """Z15: it is given as Zero, and the others come out as with an array of zeros."""

    def fun(x):
        left, right = wnp.split(x * x, 2)
        return wnp.sin(left), right

    x = np.array([0.3, 0.4, 0.5, 0.6])
    concrete = wend.function(fun).get_concrete_function(x)
    _, run = concrete.forward(x)
    (found,) = concrete.backward(run, (ONES, None))
    np.testing.assert_allclose(found[:2], 2 * x[:2] * np.cos(x[:2] ** 2), rtol=1e-14)
    np.testing.assert_array_equal(found[2:], 0)
    (expected,) = concrete.backward(run, (ONES, np.zeros(2)))
    np.testing.assert_array_equal(found, expected)


def test_what_only_one_branch_uses_is_no_nan_where_the_other_runs():
    """No array of zeros stands for a cotangent that does not arrive: so there is no 0 · inf."""

    def fun(x, p):
        logarithm = wnp.log(x)
        return wend.cond(p, lambda: logarithm * 2.0, lambda: 3.0 * x)

    slope = wend.grad(fun)
    assert slope(0.0, np.False_) == 3.0
    assert slope(2.0, np.True_) == 1.0
    bend = wend.grad(slope)
    assert bend(0.0, np.False_) == 0.0
    assert bend(2.0, np.True_) == -0.5

    def in_a_loop(x):
        def body(i, v):
            root = wnp.sqrt(v)
            return wend.cond(v > 0.5, lambda: root, lambda: 2.0 * v)

        return wend.fori_loop(0, 3, body, x)

    assert wend.grad(in_a_loop)(0.0) == 8.0


def test_guards_in_a_row_are_one():
    def fun(x, p):
        for _ in wend.unroll(range(5)):
            x = wnp.sin(x) * x
        return wend.cond(p, lambda: x, lambda: wnp.zeros_like(x))

    backward = vjp(traced(fun, 0.3, np.True_), [0], [0]).backward
    assert backward.count("if") == 1  # the branch, and in it all that led to it
    assert backward.count("any_nonzero") == 0


@settings(max_examples=sized(3, 8), suppress_health_check=list(HealthCheck))
@given(programs(depth=1), programs(depth=1))
def test_guards_change_no_number(first, second):
    def fun(x, y, v):
        return staged(first)(x, y, v), staged(second)(x, y, v)

    args = (np.float64(0.4), np.float64(-0.7), np.array([0.3, -0.2, 0.9]))
    graph = traced(fun, *args)
    concrete = wend.function(fun).get_concrete_function(*args)
    _, run = concrete.forward(*args)
    pair = linear_blocks(graph, [0, 1, 2], [0, 1], [0, 1])
    sound(pair.backward)
    sound(lower_linear_blocks(pair.backward))
    for one, two in itertools.product((1.0, None), repeat=2):
        found = concrete.backward(run, (one, two))
        _, pull = wend.vjp(fun, *args)
        expected = pull((one or 0.0, two or 0.0))
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(0 * theirs if mine is None else mine, theirs, atol=1e-12)


def test_a_graph_with_blocks_runs_and_differentiates():
    """Hand-made, parsed or kept from before: blocks are lowered where they are met."""
    pair = linear_blocks(product_and_sum(), [0, 1], [0, 1], [0, 1])
    graph = pair.backward
    assert isinstance(graph.params[-1].type, MaybeType)
    again = vjp(graph, [len(graph.params) - 1], [0]).backward
    assert again.count("linear_block") == 0


def test_a_read_in_a_branch_of_a_loop_stays_linear():
    """At second order the cotangent of a list is added to in place, never copied in a trip."""

    def fun(x, y):
        def body(i, c):
            x, y = c
            root = wnp.sqrt(x)
            return wend.cond(x > 1, lambda: root + y, lambda: 3 * y), y * 1.1

        return wend.fori_loop(0, 4, body, (x, y))[0]

    graph = traced(wend.grad(wend.grad(fun)), 2.0, 0.3, optimize=True)
    for loop in loops(graph):
        inside = {inner.op.name for region in loop.regions for inner in region.walk()}
        assert not inside & {"list_add", "list_zeros"}
    assert graph.count("list_add_at") == 1
