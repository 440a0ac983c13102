"""Inlining binds the dimensions of params, and names the others anew."""

from __future__ import annotations

import pytest

import wend
import wend.numpy as wnp
from wend.ir import verify
from wend.ir.rewrite import copy_graph, inline
from wend.ir.types import Symbol, tensor
from wend.ops.build import Build


def test_inlining_binds_sizes_and_keeps_the_graph_sound() -> None:
    fun = wend.function(lambda x: wnp.sum(wnp.sin(x[x > 0.0])))
    callee = fun.get_concrete_function(wend.TensorSpec([None], "float64")).graph
    b = Build("caller")
    x = b.param(tensor("f8", Symbol("rows")))
    first = inline(callee, [x], b.nodes)
    second = inline(callee, [x], b.nodes)
    graph = verify(b.finish([*first, *second]))
    unknown = {n.results[0].type.dims for n in graph.nodes if n.op.name == "nonzero"}
    assert len(unknown) == 2, "how many are chosen is another number each time"


def test_arguments_of_another_type_are_refused() -> None:
    callee = wend.function(wnp.sin).get_concrete_function(1.0).graph
    b = Build("caller")
    with pytest.raises(ValueError, match=r"takes f64\[\], not f32\[\]"):
        inline(callee, [b.param(tensor("f4"))], b.nodes)


def test_a_copy_shares_nothing_and_says_the_same() -> None:
    graph = (
        wend.function(lambda x: wend.while_loop(lambda v: v < 8.0, lambda v: v * v, x))
        .get_concrete_function(2.0)
        .graph
    )
    copy = copy_graph(graph)
    assert str(copy) == str(graph)
    assert not {*graph.params, *(r for n in graph.nodes for r in n.results)} & {
        *copy.params,
        *(r for n in copy.nodes for r in n.results),
    }
