"""Products of cotangents: regrouped they give the same, and fewer of them wait for each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import wend
import wend.numpy as wnp
from tests.helpers.graphs import gradient, loops
from wend.autodiff.reassociate import reassociate
from wend.backends.numpy.backend import BACKEND as NUMPY
from wend.ir.graph import Graph, Value
from wend.ir.types import tensor
from wend.ir.verify import verify
from wend.ops.build import Build
from wend.passes.dce import dce

F64, BOOL = tensor("f8"), tensor("?")


def depth(graph: Graph, start: Value) -> int:
    """How many operations follow one another from a param on."""
    longest = {start: 0}
    for node in graph.nodes:
        before = [longest[v] for v in node.operands if v in longest]
        if before:
            longest[node.results[0]] = max(before) + 1
    return max((longest[v] for v in graph.results if v in longest), default=0)


@st.composite
def regions(draw: Any) -> Graph:
    """Sums and products of two cotangents and two numbers, linear in the cotangents."""
    b = Build("region")
    cts, numbers = [b.param(F64), b.param(F64)], [b.param(F64), b.param(F64)]
    flag = b.param(BOOL)
    for _ in range(draw(st.integers(1, 14))):
        x, y = draw(st.sampled_from(cts)), draw(st.sampled_from(cts))
        f, g = draw(st.sampled_from(numbers)), draw(st.sampled_from(numbers))
        match draw(st.sampled_from(["scale"] * 4 + ["add", "sub", "neg", "mul", "sin", "if"])):
            case "scale":
                cts.append(b.mul(*draw(st.permutations([x, f]))))
            case "add":
                cts.append(b.add(x, y))
            case "sub":
                cts.append(b.sub(x, y))
            case "neg":
                cts.append(b.neg(x))
            case "mul":
                numbers.append(b.mul(f, g))
            case "sin":
                numbers.append(b.sin(f))
            case "if":
                branches = []
                for _ in range(2):
                    inner = Build("branch")
                    ct, factor = inner.param(F64), inner.param(F64)
                    once = inner.mul(inner.mul(ct, factor), factor)
                    branches.append(inner.finish([draw(st.sampled_from([ct, once]))]))
                cts.append(b.if_(flag, [x, f], branches).results[0])
    return b.finish([cts[-1], draw(st.sampled_from(cts)), numbers[-1]])


@given(regions(), st.booleans())
def test_the_same_numbers(region: Graph, flag: bool) -> None:
    grouped = verify(reassociate(region, region.params[:2]))
    given = [np.float64(1.7), np.float64(-0.6), np.float64(0.9), np.float64(1.3), np.bool_(flag)]
    expected, found = (NUMPY.compile(graph)(given) for graph in (region, grouped))
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
    assert depth(grouped, region.params[0]) <= depth(region, region.params[0])


def test_a_chain_is_one_product() -> None:
    b = Build("region")
    ct, *factors = [b.param(F64) for _ in range(5)]
    product = ct
    for factor in factors:
        product = b.mul(product, factor)
    grouped = reassociate(b.finish([product]), [ct])
    assert depth(grouped, ct) == 1
    assert len(grouped.nodes) == 4


def test_what_many_take_stays() -> None:
    """Each taker would have a product more."""
    b = Build("region")
    ct, f, g = (b.param(F64) for _ in range(3))
    scaled = b.mul(ct, f)
    graph = b.finish([b.mul(scaled, g), b.mul(scaled, b.sin(g)), b.mul(scaled, b.cos(g))])
    assert len(dce(reassociate(graph, [ct])).nodes) == len(graph.nodes)


def test_trips_of_a_backward_loop_wait_for_one_operation() -> None:
    def program(x: Any, a: Any) -> Any:
        return wend.while_loop(lambda x: x < 2.0, lambda x: x + a * wnp.sin(x) * 1e-3 + 1e-3, x)

    _, backward = loops(gradient(program, 1.0, 0.3, argnums=(0, 1)))
    after = backward.regions[1]
    assert depth(replace(after, results=after.results[1:2]), after.params[1]) == 1
