"""Calls with rules as graphs: their text, what the verifier finds, equality, passes, backends."""

from __future__ import annotations

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.graphs import check_graph, names, traced
from wend.backends.native.backend import BACKEND as NATIVE
from wend.backends.numpy.backend import BACKEND as NUMPY
from wend.base.errors import GraphError, UnsupportedError
from wend.ir import digest, equal, parse, to_text, verify
from wend.ir.graph import Graph
from wend.ir.rewrite import copy_node
from wend.ops.build import Build
from wend.passes.canonicalize_loops import canonicalize_loops
from wend.passes.cse import cse
from wend.passes.dce import dce, select_results
from wend.passes.fold import fold
from wend.passes.inline import inline_calls
from wend.trace.recording.arguments import leaf_type
from wend.trace.trace_function import trace_function


def sine(factor=3.0):
    fun = wend.custom_vjp(lambda x: wnp.sin(x))
    fun.defvjp(lambda x: (wnp.sin(x), wnp.cos(x)), lambda r, ct: (factor * ct * r,))
    return fun


def sine_by_jvp():
    fun = wend.custom_jvp(lambda x: wnp.sin(x))
    fun.defjvp(lambda p, t: (wnp.sin(p[0]), 3.0 * wnp.cos(p[0]) * t[0]))
    return fun


def recursive():
    fun = wend.custom_vjp(lambda x: wnp.exp(x))
    fun.defvjp(lambda x: (fun(x), x), lambda x, ct: (ct * fun(x),))
    return fun


def looping():
    fun = sine()
    return lambda x: wend.fori_loop(0, 3, lambda i, v: fun(v) + x, x)


PROGRAMS = {
    "vjp": sine(),
    "jvp": sine_by_jvp(),
    "recursive": recursive(),
    "in a loop": looping(),
    "gradient": wend.grad(sine()),
    "gradient by jvp": wend.grad(sine_by_jvp()),
    "second order": wend.grad(wend.grad(recursive())),
    "checkpoint": wend.checkpoint(lambda x: wnp.exp(wnp.sin(x))),
    "gradient of a checkpoint": wend.grad(wend.checkpoint(lambda x: wnp.exp(wnp.sin(x)))),
}
ALL = pytest.mark.parametrize("fun", PROGRAMS.values(), ids=PROGRAMS)


@ALL
def test_text_is_read_back(fun):
    graph = traced(fun, 1.0)
    again = check_graph(graph)
    assert str(again).split("(", 1)[1] == str(graph).split("(", 1)[1]


@ALL
def test_equality_and_digest(fun):
    graph = traced(fun, 1.0)
    table = []
    again = parse(to_text(graph, table=table), table=table)
    assert equal(graph, again)
    assert digest(graph) == digest(again)


def test_rules_are_part_of_equality():
    one, two, other = (traced(sine(k), 1.0) for k in (3.0, 3.0, 4.0))
    assert equal(one, two)
    assert digest(one) == digest(two)
    assert not equal(one, other)
    assert digest(one) != digest(other)


def test_the_text(golden):
    golden.check("ir/custom_vjp.wir", to_text(traced(sine(), 1.0)))
    golden.check("ir/custom_jvp.wir", to_text(traced(sine_by_jvp(), 1.0)))
    golden.check("ir/custom_vjp_forward.wir", to_text(traced(wend.grad(sine()), 1.0)))
    golden.check("ir/custom_vjp_recursive.wir", to_text(traced(recursive(), 1.0)))
    golden.check("ir/checkpoint.wir", to_text(traced(PROGRAMS["gradient of a checkpoint"], 1.0)))


@ALL
@pytest.mark.parametrize("transform", [dce, cse, fold, canonicalize_loops, inline_calls])
def test_every_pass_keeps_the_meaning(fun, transform):
    graph = traced(fun, 1.0)
    after = verify(transform(graph))
    check_graph(after)
    args = [np.float64(1.0)]
    np.testing.assert_allclose(NUMPY.compile(after)(args), NUMPY.compile(graph)(args))


@ALL
def test_the_rule_survives_what_comes_before_a_derivative(fun):
    graph = traced(fun, 1.0)
    for transform in (canonicalize_loops, dce, cse, fold):
        graph = transform(graph)
    rules = [name for name in names(graph) if name.startswith("custom")]
    assert rules == [name for name in names(traced(fun, 1.0)) if name.startswith("custom")]


def test_dce_keeps_an_operand_that_only_the_rule_knows():
    fun = wend.custom_vjp(lambda x, y: x * 2.0)
    fun.defvjp(lambda x, y: (x * 2.0, None), lambda _, ct: (ct, ct * 5.0))
    graph = dce(traced(lambda x, y: fun(x, wnp.sin(y)), 1.0, 2.0))
    assert "sin" in names(graph)
    unused = dce(traced(lambda x, y: (fun(x, wnp.sin(y)), x)[1], 1.0, 2.0))
    assert names(unused) == []


def test_dce_works_inside():
    fun = wend.custom_vjp(lambda x: (wnp.tan(x), x * 2.0)[1])
    fun.defvjp(lambda x: ((wnp.tan(x), x * 2.0)[1], x), lambda x, ct: ((wnp.tan(x), ct)[1],))
    recorded = trace_function(fun, [leaf_type(1.0)], lambda f, xs: f(*xs), "f").graph
    assert names(recorded).count("tan") == 3
    assert "tan" not in names(dce(traced(fun, 1.0)))


def test_with_results():
    b = Build("pair")
    x, y, z = (b.param(traced(lambda v: v, 1.0).params[0].type) for _ in range(3))
    graph = b.finish([b.sin(x), b.mul(b.cos(y), x), z])
    one, used = select_results(graph, [1])
    assert used == [0, 1]
    assert names(one) == ["cos", "mul"]
    none, used = select_results(graph, [])
    assert (len(none.params), used) == (0, [])


def test_cse_never_merges_calls_with_rules():
    fun = sine()
    graph = cse(traced(lambda x: fun(x) + fun(x), 1.0))
    assert names(graph).count("custom_vjp") == 2


def test_an_unoptimized_graph_runs():
    graph = traced(lambda x: sine()(x) * 2.0, 1.0)
    assert NUMPY.compile(graph)([np.float64(0.4)])[0] == 2 * np.sin(0.4)


def test_native_code_refuses_rules_by_name():
    """Passes leave none; without them the backend says what it cannot do."""
    with pytest.raises(UnsupportedError, match="custom_vjp"):
        NATIVE.compile(traced(sine(), 1.0))


def altered(graph, change):
    """The graph with its one node changed."""
    (node,) = graph.nodes
    copy = change(copy_node(node, node.operands))
    return Graph(graph.name, graph.params, (copy,), copy.results)


def with_attrs(**attrs):
    def change(node):
        return type(node)(
            node.op,
            node.operands,
            {**node.attrs, **attrs},
            node.regions,
            [r.type for r in node.results],
            node.source,
        )

    return change


def with_region(index, region):
    def change(node):
        regions = [*node.regions]
        regions[index] = region
        return type(node)(
            node.op, node.operands, node.attrs, regions, [r.type for r in node.results], node.source
        )

    return change


WIDE = traced(lambda x: x * 1.0, np.ones(3))
PAIR = traced(lambda x: (x * 1.0, x), 1.0)


@pytest.mark.parametrize(
    "change",
    [
        with_region(0, WIDE),
        with_region(1, WIDE),
        with_region(2, WIDE),
        with_region(0, PAIR),
        with_region(2, PAIR),
        with_attrs(wrt=((),)),
        with_attrs(seeded=((),)),
    ],
)
def test_the_verifier_finds_parts_that_do_not_fit(change):
    graph = traced(sine(), 1.0)
    verify(altered(graph, lambda node: node))
    with pytest.raises(GraphError, match=r"^custom_vjp at "):
        verify(altered(graph, change))


@pytest.mark.parametrize("change", [with_region(1, WIDE), with_attrs(wrt=()), with_attrs(moved=())])
def test_the_verifier_finds_a_jvp_that_does_not_fit(change):
    with pytest.raises(GraphError, match=r"^custom_jvp at "):
        verify(altered(traced(sine_by_jvp(), 1.0), change))
