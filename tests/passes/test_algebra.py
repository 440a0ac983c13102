"""Algebra changes no bit: random expressions of awkward numbers, with the pass and without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.helpers.graphs import names
from tests.helpers.shares import sized
from wend.backends.protocol import choose
from wend.ir import Graph, Value, verify
from wend.ir.types import Symbol, TensorType
from wend.ops import shaping
from wend.ops.build import Build
from wend.passes.algebra import RULES, algebra
from wend.passes.dce import dce
from wend.passes.fold import fold

AWKWARD = [0.0, -0.0, 1.0, -1.0, 2.5, -3.0, np.inf, -np.inf, np.nan, 5e-324]
REALS = [np.array(AWKWARD), np.array(AWKWARD[::-1]), np.roll(AWKWARD, 3)]
COMPLEX = [
    np.stack(pair, -1).view(np.complex128)[:, 0] for pair in zip(REALS, REALS[::-1], strict=True)
]
INTEGERS = [np.array([0, 1, -1, 7, -(2**63), 2**63 - 1]), np.arange(6) - 3, np.arange(6) * -2]
UNSIGNED = [np.abs(array).astype(np.uint8) for array in INTEGERS]
BOOLS = [np.array([False, True, False, True]), np.array([True, True, False, False])] * 2


def run(graph: Graph, arguments: list[np.ndarray]) -> list[np.ndarray]:
    return [np.asarray(x) for x in choose("numpy").compile(graph)(arguments)]


def check(graph: Graph, arguments: list[np.ndarray]) -> Graph:
    """The pass leaves every bit as it was; a NaN is a NaN."""
    after = dce(verify(algebra(graph)))
    for found, expected in zip(run(after, arguments), run(graph, arguments), strict=True):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(found, expected)
        if found.dtype.kind in "fc":
            parts = [(x.real, x.imag) for x in (found, expected)]
            for mine, theirs in zip(*parts, strict=True):
                signs = [np.signbit(x)[~np.isnan(theirs)] for x in (mine, theirs)]
                np.testing.assert_array_equal(*signs)
    return after


@st.composite
def expressions(draw: Any, arrays: list[np.ndarray]) -> Graph:
    b = Build("f")
    kind = arrays[0].dtype.kind
    type = TensorType(arrays[0].dtype, arrays[0].shape)
    values = [b.param(type) for _ in arrays[:3]]
    preds = [b.eq(values[0], values[1])]
    numbers = [0, 1] if kind in "bu" else [0.0, -0.0, 1, -1] if kind in "fc" else [0, 1, -1]
    unary = {"b": ["not"], "u": ["neg", "not"], "i": ["neg", "not"]}.get(kind, ["neg"])
    binary = {"b": ["and", "or", "maximum", "minimum"], "f": ["div"], "c": ["div"]}.get(kind, [])
    if kind != "b":
        binary = [*binary, "add", "sub", "mul"] + (["maximum", "and"] if kind in "ui" else [])
    if kind == "c":
        unary = [*unary, "conj"]
    moves = ["number", "select", "cast", "reshape", "transpose", "broadcast", "concat"]
    for _ in range(draw(st.integers(1, 12))):
        one = st.sampled_from(values)
        what = draw(st.sampled_from([*unary, *binary, *moves, "not pred", "stop_gradient"]))
        if what == "number":
            values.append(b.full_like(values[0], draw(st.sampled_from(numbers))))
        elif what == "select":
            values.append(b.select(draw(st.sampled_from(preds)), draw(one), draw(one)))
        elif what == "not pred":
            preds.append(_emit(b, "not", draw(st.sampled_from(preds))))
        elif what == "cast":
            wide = b.cast(draw(one), np.complex128 if kind in "fc" else np.float64)
            values.append(b.cast(wide, type.dtype) if kind != "c" else wide)
        elif what == "reshape":
            size = type.dims[0]
            values.append(b.reshape(b.reshape(draw(one), (size, 1)), (size,)))
        elif what == "transpose":
            column = b.reshape(draw(one), (type.dims[0], 1))
            turned = b.transpose(b.transpose(column, perm=(1, 0)), perm=draw(_perms))
            values.append(b.reshape(turned, type.dims))
        elif what == "broadcast":
            values.append(b.broadcast_to(b.broadcast_to(draw(one), type.dims), type.dims))
        elif what == "concat":
            values.append(b.concat(draw(one), axis=0))
        elif what in binary:
            other = draw(st.sampled_from([None, *numbers]))  # most rules are about numbers
            y = draw(one) if other is None else b.full_like(values[0], other)
            pair = draw(st.permutations([draw(one), y]))
            values.append(_emit(b, what, *pair))
        else:
            values.append(_emit(b, what, draw(one)))
    return verify(b.finish(values))


_perms = st.permutations(range(2)).map(tuple)
_OPS = {op.name: op for op in RULES}


def _emit(b: Build, name: str, *operands: Value) -> Value:
    return b.emit(_OPS[name], *operands)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "arrays", [REALS, COMPLEX, INTEGERS, UNSIGNED, BOOLS[:3]], ids=lambda x: x[0].dtype.name
)
@settings(max_examples=sized(15, 150), suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_no_bit_changes(arrays: list[np.ndarray], data: st.DataObject) -> None:
    graph = data.draw(expressions(arrays))
    check(graph, arrays[: len(graph.params)])
    check(fold(graph), arrays[: len(graph.params)])


@settings(max_examples=sized(12, 100), deadline=None)
@given(st.permutations(range(3)), st.permutations(range(3)), st.permutations(range(3)), st.data())
def test_transposes_go_into_products(first: Any, second: Any, third: Any, data: Any) -> None:
    b = Build("f")
    rng = np.random.default_rng(0)
    x, y = (
        rng.integers(-4, 5, (3, 3, 4)).astype(float),
        rng.integers(-4, 5, (4, 3, 3)).astype(float),
    )
    params = [b.param(TensorType(array.dtype, array.shape)) for array in (x, y)]
    moved = [b.transpose(v, perm=tuple(p)) for v, p in zip(params, (first, second), strict=True)]
    places = [list(p) for p in (first, second)]
    batch = ((places[0].index(0),), (places[1].index(1),)) if data.draw(st.booleans()) else ((), ())
    contract = ((places[0].index(2),), (places[1].index(0),))
    product = b.dot_general(*moved, contract=contract, batch=batch)
    rank = len(product.tensor.dims)
    perm = tuple(data.draw(st.permutations(range(rank))))
    check(b.finish([b.transpose(product, perm=perm)]), [x, y])


def test_the_gradient_of_a_matrix_product_moves_nothing() -> None:
    """d/dw sum(x @ w) is written as a product along other axes, and no transpose is left."""
    b = Build("f")
    x, w, ct = (b.param(TensorType(np.dtype(float), shape)) for shape in [(2, 3), (3, 4), (2, 4)])
    product = b.dot_general(ct, x, contract=((0,), (0,)), batch=((), ()))
    gradient = b.transpose(product, perm=(1, 0))
    left = b.dot_general(ct, b.transpose(w, perm=(1, 0)), contract=((1,), (0,)), batch=((), ()))
    after = dce(algebra(b.finish([gradient, left])))
    assert names(after) == ["dot_general", "dot_general"]


@pytest.mark.parametrize("array", [*INTEGERS, *UNSIGNED, np.arange(-4, 5, dtype=np.int16)], ids=str)
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 5, 6, 7, 13, 63, 64, 65])
def test_whole_powers_of_integers_are_products(array: np.ndarray, exponent: int) -> None:
    b = Build("f")
    x = b.param(TensorType(array.dtype, array.shape))
    powers = b.broadcast_to(b.constant(array.dtype.type(exponent)), shape=array.shape)
    after = check(b.finish([b.pow(x, powers)]), [array])
    assert ("pow" in names(after)) == (exponent in (0, 65))


def test_a_turned_product_keeps_its_rows_together():
    """Of `kij,nkj->nki` the last axis is one along which the other factor's rows lie."""
    b = Build("f")
    low, x = (b.param(TensorType(np.dtype(float), shape)) for shape in ((5, 3, 4), (7, 5, 4)))
    product = b.dot_general(low, x, contract=((2,), (2,)), batch=((0,), (1,)))
    graph = b.finish([b.transpose(product, perm=(2, 0, 1))])
    rng = np.random.default_rng(1)
    after = check(
        graph, [rng.integers(-9, 9, (5, 3, 4)) * 1.0, rng.integers(-9, 9, (7, 5, 4)) * 1.0]
    )
    assert names(after) == ["dot_general", "transpose"]
    assert after.nodes[0].operands == (after.params[1], after.params[0])
    assert after.nodes[1].attrs["perm"] == (1, 0, 2)


def test_a_product_that_others_take_is_made_once():
    b = Build("f")
    x, y = (b.param(TensorType(np.dtype(float), (3, 3))) for _ in range(2))
    product = b.dot_general(x, y, contract=((1,), (0,)), batch=((), ()))
    graph = b.finish([b.add(product, b.transpose(product, perm=(1, 0)))])
    assert names(dce(algebra(graph))).count("dot_general") == 1


def test_sizes_are_asked_of_what_a_value_is_computed_from() -> None:
    b = Build("f")
    size = Symbol("n")
    x = b.param(TensorType(np.dtype(float), (size,)))
    y = b.add(b.full_like(x, 2.0), b.mul(x, x))
    after = check(b.finish([b.shape_of(b.neg(y)), b.emit(shaping.dim_of, y, axis=0)]), [np.ones(3)])
    assert [result.node.operands for result in after.results] == [(x,), (x,)]


def test_what_replaces_all_of_an_array_stands_for_it() -> None:
    b = Build("f")
    x, y = (b.param(TensorType(np.dtype(float), (3, 2))) for _ in range(2))
    whole = (None, None, None)
    after = check(
        b.finish([b.set_slice(x, y, slices=(whole, whole))]), [np.zeros((3, 2)), np.ones((3, 2))]
    )
    assert after.results == (after.params[1],)
