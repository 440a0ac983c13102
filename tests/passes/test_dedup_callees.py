"""Calls share the bodies of what they call: in traces, in derivatives, and after passes."""

from __future__ import annotations

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.autodiff.jvp import jvp
from wend.autodiff.linearize import linearize
from wend.autodiff.vjp import joint, vjp
from wend.ir import equal, verify
from wend.passes.dedup_callees import dedup_callees


def bodies(graph):
    """How many different graphs there are inside a graph."""
    known = set()

    def visit(graph):
        for node in graph.nodes:
            for region in node.regions:
                if region not in known:
                    known.add(region)
                    visit(region)

    visit(graph)
    return len(known)


@wend.function
def looping(x):
    y = x
    for _ in range(3):
        y = wnp.sin(y) * x
    return y


@wend.function
def branching(x):
    return wnp.sin(x) if wnp.sum(x) > 0 else x * x


@wend.function
def growing(x):
    out = []
    for i in range(3):
        out.append(x * i)
    return wnp.sum(wnp.stack(out), axis=0)


@wend.function
def calling(x):
    return looping(looping(x)) + looping(x)


def repeated(inner, count, dtype=float):
    @wend.function
    def outer(x):
        for _ in wend.unroll(range(count)):
            x = inner(x)
        return x

    return outer


INNER = [looping, branching, growing, calling]
by_name = pytest.mark.parametrize("inner", INNER, ids=lambda f: f.name)
one = np.float64(0.7)


@by_name
@pytest.mark.parametrize("spec", [[], [3], [None]], ids=["number", "vector", "any size"])
def test_a_call_more_is_a_node_more(inner, spec):
    def graph(count):
        spec_ = wend.TensorSpec(spec, "float64")
        return repeated(inner, count).get_concrete_function(spec_).graph

    first, second = graph(3), graph(20)
    assert len(second.nodes) - len(first.nodes) == 17
    assert bodies(second) == bodies(first)
    verify(second)


def derivatives(graph):
    everything = {
        "forward": vjp(graph, [0], [0]).forward,
        "backward": vjp(graph, [0], [0]).backward,
        "joint": joint(graph, [0], 0)[0],
        "jvp": jvp(graph, [0]).graph,
        "linear": linearize(graph, [0], [0]).linear,
    }
    everything["second order"] = joint(everything["joint"], [0], 0)[0]
    return everything


@pytest.mark.sampled(2)
@by_name
def test_derivatives_share_bodies_too(inner):
    graphs = [
        derivatives(repeated(inner, count).get_concrete_function(one).graph) for count in (4, 7)
    ]
    for name, fewer in graphs[0].items():
        assert bodies(graphs[1][name]) == bodies(fewer), name
        verify(fewer)


@by_name
def test_the_three_forms_share_bodies(inner):
    found = []
    for count in (4, 7):
        forms = repeated(inner, count).get_concrete_function(one).forms
        found.append((bodies(forms.forward), bodies(forms.backward([0]).graph)))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("inner", "backend"),
    [*((inner, "numpy") for inner in INNER), (looping, "native")],
    ids=lambda x: getattr(x, "name", x),
)
def test_results_and_derivatives_are_those_of_python(inner, backend):
    def plain(x):
        for _ in wend.unroll(range(3)):
            x = inner.python_function(x)
        return x

    shared = repeated(inner, 3)
    with wend.config(backend=backend):
        np.testing.assert_allclose(shared(one), plain(one), rtol=1e-12)
        for derive in (wend.grad, lambda f: wend.grad(wend.grad(f))):
            np.testing.assert_allclose(derive(shared)(one), derive(plain)(one), rtol=1e-10)


def test_equal_functions_from_different_lines_stay_apart():
    @wend.function
    def first(x):
        return wnp.sin(x)

    @wend.function
    def second(x):
        return wnp.sin(x)

    graph = (
        wend.function(lambda x: first(x) + second(x) + first(x)).get_concrete_function(one).graph
    )
    callees = [node.regions[0] for node in graph.nodes if node.op.name == "call"]
    assert callees[0] is callees[2]
    assert callees[0] is not callees[1]
    assert [c.nodes[0].source.line for c in callees[:2]] == [
        f.python_function.__code__.co_firstlineno + 2 for f in (first, second)
    ]


def test_constants_that_differ_stay_apart():
    def scaled(k):
        weights = np.full(20, k)
        return wend.function(lambda x: wnp.sum(x * weights), capture_by_value=True)

    two, three = scaled(2.0), scaled(3.0)
    fun = wend.function(lambda x: two(x) + three(x))
    assert fun(1.0) == 100.0
    assert bodies(fun.get_concrete_function(1.0).graph) == 2


def test_checkpoints_share_and_stay():
    body = wend.checkpoint(lambda x: wnp.sin(x) * x)

    def fun(x):
        for _ in wend.unroll(range(4)):
            x = body(x)
        return x

    graph = joint(wend.function(fun).get_concrete_function(one).graph, [0], 0)[0]
    assert graph.count("call") == 8
    assert bodies(graph) == 2
    x = d = one
    for _ in range(4):
        x, d = np.sin(x) * x, (np.cos(x) * x + np.sin(x)) * (d if x is not one else 1.0)
    np.testing.assert_allclose(wend.grad(fun)(one), d, rtol=1e-12)


def test_what_has_no_calls_is_left_as_it_is():
    graph = looping.get_concrete_function(one).graph
    assert dedup_callees(graph) is graph
    shared = repeated(looping, 3).get_concrete_function(one).graph
    assert dedup_callees(shared) is shared


def test_sharing_changes_no_meaning():
    traced = repeated(calling, 3).get_concrete_function(one).traced.graph
    assert equal(dedup_callees(traced), traced)


def test_bodies_of_bodies_are_shared():
    fun = wend.function(lambda x: x + 1.0)
    for _ in range(6):
        fun = wend.function(lambda x, inner=fun: inner(inner(x)))
    assert fun(1.0) == 65.0
    assert bodies(fun.get_concrete_function(1.0).graph) == 6


def test_a_derivation_transposes_a_callee_once(monkeypatch):
    """Not only are bodies shared in the end: they are made once."""
    monkeypatch.setattr("wend.autodiff.vjp.dedup_callees", lambda graph: graph)
    counts = [
        bodies(vjp(repeated(looping, n).get_concrete_function(one).graph, [0], [0]).forward)
        for n in (4, 7)
    ]
    assert counts[0] == counts[1]
