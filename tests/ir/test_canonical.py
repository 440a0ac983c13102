"""Equal graphs are equal whatever their names and lines are; anything else tells them apart."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings

import wend
import wend.numpy as wnp
from tests.helpers.graphs import traced
from tests.helpers.random_graphs import graphs
from tests.helpers.shares import sized
from wend.ir import Graph, digest, equal
from wend.ir.rewrite import copy_graph
from wend.ops.build import Build


def graph(fun, *args) -> Graph:
    return wend.function(fun).get_concrete_function(*args).graph


def test_names_and_lines_do_not_count() -> None:
    def first(x):
        return wend.while_loop(lambda v: v < 8.0, lambda v: v * v, x)

    def second(y):
        square = lambda w: w * w  # noqa: E731
        return wend.while_loop(lambda w: w < 8.0, square, y)

    a, b = graph(first, 2.0), graph(second, 3.0)
    assert equal(a, b)
    assert digest(a) == digest(b)


def test_attrs_types_order_and_large_constants_count() -> None:
    x = np.ones(3)
    base = graph(lambda x: wnp.sum(x) * 2.0, x)
    others = [
        graph(lambda x: wnp.sum(x) * 3.0, x),
        graph(lambda x: 2.0 * wnp.sum(x), x),
        graph(lambda x: wnp.max(x) * 2.0, x),
        graph(lambda x: wnp.sum(x) * 2.0, np.ones(4)),
        graph(lambda x: wnp.sum(x) * 2.0, x.astype(np.float32)),
    ]
    assert len({digest(g) for g in (base, *others)}) == 6
    assert not any(equal(base, other) for other in others)


def test_what_counts():
    sample = [
        traced(lambda x: wnp.sin(x) * 2.0, 1.0),
        traced(lambda x: wnp.sin(x) * 3.0, 1.0),
        traced(lambda x: wnp.cos(x) * 2.0, 1.0),
        traced(lambda x: wnp.sin(x) * 2.0, np.float32(1.0)),
        traced(lambda x: wnp.sin(x) * 2.0, np.ones(2)),
        traced(lambda x: 2.0 * wnp.sin(x), 1.0),
    ]
    for i, a in enumerate(sample):
        for j, b in enumerate(sample):
            assert equal(a, b) == (i == j)
            assert (digest(a) == digest(b)) == (i == j)


def constant(value) -> Graph:
    b = Build("f")
    return b.finish([b.constant(value)])


def test_constants_count_bit_by_bit():
    assert not equal(constant(0.0), constant(-0.0))
    assert equal(constant(np.nan), constant(np.nan))
    assert not equal(constant(1), constant(1.0))
    wide = np.arange(100.0)
    assert equal(constant(wide), constant(wide.copy()))
    assert digest(constant(wide)) == digest(constant(wide.copy()))
    other = wide.copy()
    other[50] += 1e-12
    assert not equal(constant(wide), constant(other))
    assert digest(constant(wide)) != digest(constant(other))
    assert not equal(constant(wide), constant(wide.reshape(10, 10)))


@settings(max_examples=sized(8, 20), suppress_health_check=list(HealthCheck))
@given(graphs())
def test_copies_are_equal(graph):
    copy = copy_graph(graph)
    assert equal(graph, copy)
    assert digest(graph) == digest(copy)
