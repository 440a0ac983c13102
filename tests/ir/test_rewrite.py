"""Inlining binds the dimensions of params, and names the others anew."""

from __future__ import annotations

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.graphs import check_graph, traced
from wend.ir import Symbol, TensorType, equal, verify
from wend.ir.graph import Value
from wend.ir.rewrite import copy_graph, inline, rename_dims
from wend.ir.types import Dim, symbols, tensor
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


F8 = np.dtype("f8")


def doubled() -> object:
    """f64[n] -> its concatenation with itself, of an unknown size."""
    b = Build("doubled")
    x = b.param(TensorType(F8, (Symbol("n"),)))
    return b.finish([b.concat(x, x, axis=0)])


def test_symbols_of_params_bind():
    b = Build("f")
    x = b.param(TensorType(F8, (3, Symbol("m"))))
    callee = Build("callee")
    y = callee.param(TensorType(F8, (Symbol("a"), Symbol("b"))))
    graph = callee.finish([callee.sin(y)])
    (found,) = inline(graph, [x], b.nodes)
    assert found.type == x.type
    verify(b.finish([found]))


def test_symbols_are_renamed_each_time():
    b = Build("f")
    x = b.param(TensorType(F8, (Symbol("m"),)))
    graph = doubled()
    (first,), (second,) = inline(graph, [x], b.nodes), inline(graph, [x], b.nodes)
    (a,), (c,) = symbols(first.type), symbols(second.type)
    assert len({a, c, Symbol("m"), Symbol("n")}) == 4
    check_graph(b.finish([b.sin(first), b.sin(second)]))


def test_wrong_argument():
    b = Build("f")
    with pytest.raises(ValueError, match=r"doubled takes f64\[n\], not f32\[3\]"):
        inline(doubled(), [b.param(TensorType(np.dtype("f4"), (3,)))], b.nodes)


def test_one_size_for_one_symbol():
    callee = Build("callee")
    x, y = (callee.param(TensorType(F8, (Symbol("n"),))) for _ in range(2))
    graph = callee.finish([callee.add(x, y)])
    b = Build("f")
    args = [b.param(TensorType(F8, (size,))) for size in (2, 3)]
    with pytest.raises(ValueError, match="callee takes"):
        inline(graph, args, b.nodes)


def test_copy_has_values_of_its_own():
    graph = traced(
        lambda x: wend.fori_loop(
            0, 3, lambda i, v: wend.cond(v > 0.0, lambda: v * x, lambda: v), x
        ),
        1.0,
    )
    copy = copy_graph(graph)
    assert equal(graph, copy)
    assert not {*graph.params, *graph.results} & {*copy.params, *copy.results}


def test_inlining_leaves_the_graph_as_it_was():
    graph = doubled()
    before = str(graph)
    b = Build("f")
    inline(graph, [b.param(TensorType(F8, (2,)))], b.nodes)
    assert str(graph) == before


def test_a_symbol_is_renamed_to_a_number_of_what_is_better_known() -> None:
    n, m, k = Symbol("n"), Symbol("m"), Symbol("k")

    def value(*dims: Dim) -> Value:
        return Value(TensorType(np.dtype("f8"), dims))

    dims: dict[Symbol, Dim] = {}
    old = [value(n, 3), value(m, k), Value(TensorType(np.dtype("f8"), None))]
    rename_dims(dims, old, [value(4, 3), value(m, 5), value(2)])
    assert dims == {n: 4, k: 5}
