"""Graphs as text, and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import wend
import wend.numpy as wnp
from tests.helpers.graphs import check_graph, traced
from tests.helpers.random_graphs import graphs
from tests.helpers.random_programs import programs, staged
from tests.helpers.shares import sized
from wend.base.errors import ParseError
from wend.ir import digest, equal, parse, to_text, verify
from wend.ops.build import Build
from wend.passes.pipeline import OPTIMIZE, run_passes


@settings(max_examples=sized(10, 30), suppress_health_check=list(HealthCheck))
@given(graphs())
def test_round_trip(graph):
    again = check_graph(graph)
    assert equal(graph, again)
    assert digest(graph) == digest(again)


@settings(max_examples=sized(3, 8), suppress_health_check=list(HealthCheck))
@given(programs(depth=2))
def test_round_trip_of_programs(program):
    args = (0.4, -0.7, np.ones(3))
    check_graph(traced(staged(program), *args))
    joint = traced(wend.value_and_grad(staged(program), (0, 1, 2)), *args)
    check_graph(joint)
    check_graph(run_passes(joint, OPTIMIZE))


def test_text(golden):
    def fun(x, n):
        def body(i, c):
            return wend.cond(c[0] > 0.0, lambda: c * x, lambda: c - 1.0)

        return wend.fori_loop(0, n, body, x)

    graph = traced(wend.function(fun, name="fun"), np.ones(3), 2)
    golden.check("ir/loop.wir", str(graph))


def test_sources():
    graph = traced(lambda x: wnp.sin(x) * 2.0, 1.0)
    text = to_text(graph, sources=True)
    assert "test_printer.py:" in text
    again = parse(text)
    assert to_text(again, sources=True) == text
    assert str(again) == str(graph)


def test_side_table():
    wide, narrow = np.arange(17.0), np.arange(16.0)
    b = Build("f")
    graph = b.finish([b.constant(wide), b.constant(narrow), b.constant(wide)])
    table = []
    text = to_text(graph, table=table)
    assert ("@0" in text, "@1" in text, len(table)) == (True, True, 2)
    again = parse(text, table=table)
    assert equal(again, graph)
    with pytest.raises(ParseError, match="side table has 1"):
        parse(text, table=table[:1])


def test_a_graph_called_twice():
    inner = wend.function(lambda x: wend.fori_loop(0, 2, lambda i, v: v * x, x))
    graph = traced(lambda x: inner(x) + inner(2.0 * x), 1.0)
    check_graph(graph)
    check_graph(run_passes(graph, OPTIMIZE))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graf f() { return }", "expected 'graph'"),
        ("graph f( { return }", "expected a value"),
        ("graph f(%0: f65[]) { return %0 }", "no dtype called 'f65'"),
        ("graph f(%0: f64[]) { %1: f64[] = sinn(%0) return %1 }", "no operation called 'sinn'"),
        ("graph f(%0: f64[]) { return %1 }", "%1 is used before it is defined"),
        ("graph f(%0: f64[]) { %0: f64[] = sin(%0) return %0 }", "%0 is defined twice"),
        ("graph f(%0: f64[]) {\n  %1: f64[] = sin(%0) {a=\n  return %1\n}", "line 3"),
        ("graph f() { return } graph g() { return }", "expected the end"),
        ("graph f() { return", "expected a value"),
        ("graph f() { return } $", r"line 1: cannot read '\$'"),
    ],
)
def test_faults_in_text(text, message):
    with pytest.raises(ParseError, match=message):
        parse(text)


def test_parsed_graphs_are_verified_apart():
    graph = parse("graph f(%0: f64[2]) { %1: f64[3] = sin(%0) return %1 }")
    with pytest.raises(wend.WendError, match="shape rule gives"):
        verify(graph)
