"""Products in native code: along any axes, of known and unknown sizes, as numpy has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.backends.native.test_cases import check, cotangents
from tests.helpers.cases import lowered, pull_back_graph, value_of
from tests.helpers.shares import sized

import wend
import wend.numpy as wnp
from wend.backends.native.backend import BACKEND as NATIVE
from wend.base.errors import WendError
from wend.ir.graph import Graph
from wend.ir.types import Symbol, TensorType
from wend.ops.build import Build


@st.composite
def products(draw: Any) -> tuple[list[np.ndarray], dict[str, Any], bool]:
    """Two arrays, how they are multiplied, and whether their sizes are known."""
    sizes = st.sampled_from([0, 1, 2, 3, 5, 8, 17])
    shared, deep = draw(st.lists(sizes, max_size=2)), draw(st.lists(sizes, max_size=2))
    axes: list[dict[str, tuple[int, ...]]] = []
    arrays = []
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = draw(st.sampled_from(["f8", "f4", "i4"]))
    for _ in range(2):
        free = draw(st.lists(sizes, max_size=2))
        names = [("batch", k) for k in range(len(shared))]
        names += [("contract", k) for k in range(len(deep))]
        names += [("free", k) for k in range(len(free))]
        order = draw(st.permutations(names))
        size = {"batch": shared, "contract": deep, "free": free}
        shape = [size[group][k] for group, k in order]
        arrays.append(np.asarray(rng.integers(-9, 9, shape)).astype(dtype))
        axes.append(
            {
                group: tuple(order.index((group, k)) for k in range(len(size[group])))
                for group in ("batch", "contract")
            }
        )
    attrs = {group: (axes[0][group], axes[1][group]) for group in ("contract", "batch")}
    return arrays, attrs, draw(st.booleans())


def graph_of(arrays: list[np.ndarray], attrs: dict[str, Any], known: bool) -> Graph:
    b = Build("product")
    symbols: dict[tuple[str, int], Symbol] = {}
    params = []
    for k, array in enumerate(arrays):
        dims: list[Any] = list(array.shape)
        if not known:
            for axis in range(array.ndim):
                key: tuple[str, int] = (f"free{k}", axis)
                for group in ("contract", "batch"):
                    if axis in attrs[group][k]:
                        key = (group, attrs[group][k].index(axis))
                dims[axis] = symbols.setdefault(key, Symbol(f"{key[0]}{key[1]}"))
        params.append(b.param(TensorType(array.dtype, tuple(dims))))
    return b.finish([b.dot_general(*params, **attrs)])


@given(products())
@settings(max_examples=sized(50, 150), deadline=None)
def test_any_axes(product: tuple[list[np.ndarray], dict[str, Any], bool]) -> None:
    """Of small whole numbers, so that sums have no rounding."""
    arrays, attrs, known = product
    graph = graph_of(arrays, attrs, known)
    check(graph, [value_of(x) for x in arrays])
    assert not NATIVE.compile(graph).host_nodes


@given(products())
@settings(max_examples=sized(8, 60), deadline=None)
def test_derivatives_to_second_order(product: Any) -> None:
    arrays, attrs, known = product
    graph, args = graph_of(arrays, attrs, known), [value_of(x) for x in arrays]
    for _ in range(2):
        back, wrt = pull_back_graph(graph)
        if not wrt:
            return
        cts = cotangents(graph, args)
        args = [*args, *(lowered(cts) if arrays[0].dtype == np.float32 else cts)]
        graph = back
        check(graph, args, cancels=True)


def native(fun: Any) -> Any:
    return wend.function(fun, backend="native")


def test_large_stacks_with_axes_that_are_not_side_by_side() -> None:
    """BLAS takes matrices with one dense axis; others are copied."""
    rng = np.random.default_rng(2)
    for dtype, tol in ((np.float64, 1e-12), (np.float32, 1e-4)):
        x, y = (rng.standard_normal((30, 6, 40)).astype(dtype) for _ in range(2))
        for spec in ("iaj,kaj->aik", "iaj,iak->ajk", "iaj,jak->aik", "aij,bij->ab", "iaj,ibj->ab"):
            if spec == "iaj,jak->aik":
                args = (x, rng.standard_normal((40, 6, 50)).astype(dtype))
            elif spec in ("aij,bij->ab", "iaj,kaj->aik"):
                args = (x, y[:20] if spec[0] == "i" else y)
            else:
                args = (x, y)
            found = native(lambda x, y, s=spec: wnp.einsum(s, x, y))(*args)
            exact = np.einsum(spec, *(a.astype(np.longdouble) for a in args))
            np.testing.assert_allclose(found, exact, rtol=tol, atol=tol * 100, err_msg=spec)


def test_a_last_axis_that_is_the_stack_s() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((30, 40, 5)), rng.standard_normal((40, 50, 5))
    product = native(lambda x, y: wnp.einsum("ija,jka->aik", x, y))
    np.testing.assert_allclose(product(x, y), np.einsum("ija,jka->aik", x, y), atol=1e-12)
    assert "runs in Python" not in str(product.explain())


def test_one_program_serves_every_number_of_rows() -> None:
    @native
    def layer(x: Any, w: Any) -> Any:
        return wnp.tanh(x @ w)

    rng = np.random.default_rng(4)
    w = rng.standard_normal((70, 60))
    for rows in (3, 5, 0, 1, 7, 4096):
        x = rng.standard_normal((rows, 70))
        np.testing.assert_allclose(layer(x, w), np.tanh(x @ w), rtol=1e-11, atol=1e-12)
    assert layer.trace_count <= 4  # 0 and 1 are sizes of their own


def test_unknown_sizes_that_differ_raise_as_numpy_does() -> None:
    b = Build("product")
    n, m = Symbol("n"), Symbol("m")
    x = b.param(TensorType(np.dtype("f8"), (n, m)))
    y = b.param(TensorType(np.dtype("f8"), (m, n)))
    graph = b.finish([b.dot_general(x, y, contract=((1,), (0,)), batch=((), ()))])
    args = [np.ones((2, 3)), np.ones((4, 2))]
    check(graph, args)
    with pytest.raises(WendError, match=r"shapes \(2, 3\) and \(4, 2\) not aligned: 3 .* != 4"):
        NATIVE.compile(graph)(args)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("batch", [(), (1,), (3,), (32,)], ids=str)
@pytest.mark.parametrize("trips", [0, 1, 20])
def test_a_recurrent_net(batch: tuple[int, ...], trips: int) -> None:
    """Value, gradient and second order against numpy; no host call in the loop."""

    def loss(w: Any, h: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            return wnp.tanh(w @ h + x), ()

        h, _ = wend.scan(step, h, xs)
        return wnp.sum(h * h)

    rng = np.random.default_rng(5)
    size = 40
    args = (
        rng.standard_normal((size, size)) / 6,
        rng.standard_normal((size, *batch)),
        rng.standard_normal((trips, size, *batch)),
    )
    direction = rng.standard_normal((size, size))

    def second(w: Any, h: Any, xs: Any) -> Any:
        return wend.grad(lambda w: wnp.sum(wend.grad(loss)(w, h, xs) * direction))(w)

    for fun in (loss, wend.value_and_grad(loss), second):
        found = wend.function(fun, backend="native")
        expected = wend.function(fun, backend="numpy")(*args)
        for a, b in zip(_leaves(found(*args)), _leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
        assert "runs in Python" not in str(found.explain())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("trips", [0, 1, 5])
@pytest.mark.parametrize("size", [5, 50])
def test_products_that_are_summed_up(trips: int, size: int) -> None:
    """In place, and not where somebody else has the array."""
    rng = np.random.default_rng(7)
    start, xs = rng.standard_normal((size, size)), rng.standard_normal((trips, size, size))

    def summed(start: Any, xs: Any) -> Any:
        return wend.scan(lambda total, x: (total + x @ x, ()), start, xs)[0]

    def with_each(start: Any, xs: Any) -> Any:
        return wend.scan(lambda total, x: (total + x @ x, total), start, xs)

    def of_itself(start: Any, xs: Any) -> Any:
        return wend.scan(lambda total, x: (total + total @ x, ()), start, xs)[0]

    def of_two(start: Any, xs: Any) -> Any:
        return wend.scan(lambda total, x: (x @ x + total + x.T @ x, ()), start, xs)[0]

    def changed_meanwhile(start: Any, xs: Any) -> Any:
        def step(total: Any, x: Any) -> Any:
            product = x @ x
            x[0] = 1.0
            return total + product + x, ()

        return wend.scan(step, start, xs)[0]

    for fun in (summed, with_each, of_itself, of_two, changed_meanwhile):
        kept = start.copy()
        for order in (fun, wend.grad(lambda s, x, f=fun: wnp.sum(_leaves(f(s, x))[0] ** 2))):
            found = wend.function(order, backend="native")(start, xs)
            expected = wend.function(order, backend="numpy")(start, xs)
            for a, b in zip(_leaves(found), _leaves(expected), strict=True):
                scale = np.abs(b).max(initial=1.0)
                np.testing.assert_allclose(a / scale, b / scale, rtol=1e-11, atol=1e-11)
        np.testing.assert_array_equal(start, kept)


def _leaves(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def test_complex_numbers_are_left_to_numpy() -> None:
    rng = np.random.default_rng(6)
    x = rng.standard_normal((20, 20)) + 1j * rng.standard_normal((20, 20))
    np.testing.assert_allclose(native(lambda x: x @ x)(x), x @ x)
