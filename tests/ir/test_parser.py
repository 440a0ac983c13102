"""Graphs as text: what is printed is read back, whatever stands in it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.helpers.graphs import check_graph
from wend.base.errors import ParseError
from wend.ir import ListType, MaybeType, ResourceType, Symbol, TensorType, TokenType, parse, to_text
from wend.ir.dtypes import LONG_NAMES
from wend.ops.build import Build

F64 = TensorType(np.dtype(np.float64), ())


def dims() -> st.SearchStrategy[Any]:
    return st.one_of(st.integers(0, 9), st.sampled_from([Symbol("n"), Symbol("batch")]))


def types() -> st.SearchStrategy[Any]:
    tensors = st.builds(
        TensorType,
        st.sampled_from(sorted(LONG_NAMES.values(), key=str)),
        st.none() | st.lists(dims(), max_size=3).map(tuple),
    )
    nested = st.recursive(
        tensors | st.just(TokenType()),
        lambda inner: st.builds(ListType, inner) | st.builds(MaybeType, inner),
        max_leaves=3,
    )
    return nested | st.builds(ResourceType, tensors)


@given(st.lists(types(), max_size=4))
def test_types_read_back(found: list[Any]) -> None:
    b = Build("types")
    params = [b.param(type) for type in found]
    check_graph(b.finish(params[::-1]))


@given(
    hnp.arrays(
        st.sampled_from(sorted(LONG_NAMES.values(), key=str)),
        hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=4),
    )
)
def test_small_constants_read_back_bit_for_bit(array: np.ndarray) -> None:
    b = Build("constant")
    graph = b.finish([b.constant(array)])
    (node,) = check_graph(graph).nodes
    found = node.attrs["value"]
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(found, array)
    if array.dtype.kind == "f":
        real = ~np.isnan(array)
        np.testing.assert_array_equal(np.signbit(found)[real], np.signbit(array)[real])


@pytest.mark.parametrize("number", [0.1, -0.0, 1e300, 5e-324, math.inf, -math.inf])
def test_numbers_read_back(number: float) -> None:
    b = Build("pad")
    x = b.param(TensorType(np.dtype(np.float64), (2,)))
    from wend.ops.shaping import pad

    graph = b.finish([b.emit(pad, x, widths=((1, 0),), value=number)])
    assert check_graph(graph).nodes[0].attrs["value"].hex() == number.hex()


def test_large_constants_are_entries_of_the_side_table() -> None:
    b = Build("large")
    array = np.arange(17.0)
    graph = b.finish([b.constant(array)])
    table: list[Any] = []
    text = to_text(graph, table=table)
    assert "value=@0" in text
    np.testing.assert_array_equal(parse(text, table=table).nodes[0].attrs["value"], array)
    with pytest.raises(ParseError, match="side table has 0"):
        parse(text)


def test_odd_names_and_lines_read_back() -> None:
    b = Build("a 'strange' name")
    x = b.param(F64)
    graph = b.finish([b.sin(x)])
    text = to_text(graph, sources=True)
    assert to_text(parse(text), sources=True) == text
    source = parse(text).nodes[0].source
    assert source is not None
    assert source.file == __file__


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("grap f() {}", "expected 'graph'"),
        ("graph f(%0: f63[]) {\n  return %0\n}", "no dtype called 'f63'"),
        ("graph f(%0: f64[]) {\n  return %1\n}", "%1 is used before it is defined"),
        ("graph f(%0: f64[]) {\n  %0: f64[] = sin(%0)\n  return %0\n}", "%0 is defined twice"),
        ("graph f(%0: f64[]) {\n  %1: f64[] = sine(%0)\n  return %1\n}", "called 'sine'"),
        ("graph f(%0: f64[]) {\n  return %0\n", "expected a value"),
        ("graph f(%0: f64[]) {\n  return %0\n}\n}", "expected the end"),
        ("graph f(%0: f64[]) {\n  return %0 $\n}", "line 2: cannot read"),
    ],
)
def test_what_is_no_graph_is_refused_with_the_reason(text: str, said: str) -> None:
    with pytest.raises(ParseError, match=r".*") as caught:
        parse(text)
    assert said in str(caught.value)
