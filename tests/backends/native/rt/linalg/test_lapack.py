"""Linear systems and Cholesky factors in native code: as NumPy has them, errors too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.backends.native.test_cases import outcome
from tests.helpers.shares import sized

import wend
import wend.numpy as wnp
from wend.backends.native.backend import BACKEND as NATIVE
from wend.backends.numpy.backend import BACKEND as NUMPY
from wend.ir.graph import Graph
from wend.ir.types import Symbol, TensorType
from wend.ops import linalg
from wend.ops.build import Build

OPS = {"solve": linalg.solve, "cholesky": linalg.cholesky}
SIZES = st.integers(0, 20)


def graph_of(op: str, arrays: list[np.ndarray], known: bool) -> Graph:
    b = Build(op)
    types = [
        TensorType(x.dtype, x.shape if known else tuple(Symbol(f"s{n}") for n in x.shape))
        for x in arrays
    ]
    return b.finish([b.emit(OPS[op], *map(b.param, types))])


def well_conditioned(rng: np.random.Generator, stack: list[int], size: int) -> np.ndarray:
    return rng.uniform(-1, 1, (*stack, size, size)) + 2 * size * np.eye(size)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("size", [1, 9, 30, 61])
def test_triangular_systems(size: int, dtype: str) -> None:
    rng = np.random.default_rng(size)
    full = well_conditioned(rng, [], size)
    almost = np.triu(full)
    almost[-1, 0] = 0.5
    with_nan = np.triu(full)
    with_nan[size // 2, -1] = np.nan
    y = rng.uniform(-1, 1, (size, 7))
    fun = wend.function(wnp.linalg.solve)
    for a in (np.triu(full), np.tril(full), np.diag(np.diag(full)), almost, almost.T, with_nan):
        for columns in (1, 7):
            args = a.astype(dtype), y[:, :columns].astype(dtype)
            rtol = 1e-12 if dtype == "f8" else 1e-4
            np.testing.assert_allclose(fun(*args), np.linalg.solve(*args), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("lower", [False, True])
def test_singular_triangular_systems(lower: bool) -> None:
    a = np.triu(well_conditioned(np.random.default_rng(0), [], 12))
    a[5, 5] = 0.0
    with pytest.raises(np.linalg.LinAlgError):
        wend.function(wnp.linalg.solve)(a.T.copy() if lower else a, np.ones((12, 2)))


def test_the_gradient_of_a_cholesky_factor() -> None:
    a = np.random.default_rng(1).normal(size=(40, 40))
    a = a @ a.T + 40.0 * np.eye(40)
    slope = wend.grad(lambda a: wnp.sum(wnp.log(wnp.diag(wnp.linalg.cholesky(a)))))
    expected = np.tril(np.linalg.inv(a)) - np.diag(np.diag(np.linalg.inv(a))) / 2.0
    np.testing.assert_allclose(slope(a), expected, rtol=1e-9, atol=1e-12)


@given(
    size=SIZES,
    columns=SIZES,
    stack=st.lists(st.integers(0, 3), max_size=2),
    dtype=st.sampled_from(["f8", "f4"]),
    known=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=sized(20, 60), deadline=None)
def test_as_numpy(
    size: int, columns: int, stack: list[int], dtype: str, known: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    a = well_conditioned(rng, stack, size)
    y = rng.uniform(-1, 1, (*stack, size, columns))
    symmetric = a @ np.swapaxes(a, -1, -2)
    for op, arrays in (("solve", [a, y]), ("cholesky", [symmetric])):
        args = [x.astype(dtype) for x in arrays]
        graph = graph_of(op, args, known)
        run = NATIVE.compile(graph)
        assert not run.host_nodes
        (found,), (expected,) = run(args), NUMPY.compile(graph)(args)
        assert found.dtype == expected.dtype
        tol = 100 * np.finfo(dtype).eps
        scale = np.abs(expected).max(initial=0.0)
        np.testing.assert_allclose(found, expected, rtol=tol, atol=tol * scale)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("place", [0, 2])
def test_a_matrix_without_result_raises_as_numpy_does(known: bool, place: int) -> None:
    a = np.stack([np.eye(4)] * 3)
    a[place] = 0.0
    for op, arrays in (("solve", [a, np.ones((3, 4, 2))]), ("cholesky", [a])):
        graph = graph_of(op, arrays, known)
        found, expected = outcome(NATIVE, graph, arrays), outcome(NUMPY, graph, arrays)
        assert found == expected
        assert found[0] is np.linalg.LinAlgError


def test_where_only_numpy_finds_a_result_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is singular may depend on rounding: NumPy has the last word."""
    run = NATIVE.compile(graph_of("solve", [np.eye(3), np.eye(3)], True))
    monkeypatch.setattr(np.linalg, "solve", lambda a, y: np.full((3, 3), 7.0))
    (found,) = run([np.zeros((3, 3)), np.eye(3)])
    np.testing.assert_array_equal(found, np.full((3, 3), 7.0))


def test_sizes_that_differ_raise_as_numpy_does() -> None:
    b = Build("solve")
    n, m = Symbol("n"), Symbol("m")
    a = b.param(TensorType(np.dtype("f8"), (n, n)))
    y = b.param(TensorType(np.dtype("f8"), (n, m)))
    graph = b.finish([b.solve(a, y)])
    for args in ([np.ones((2, 3)), np.ones((2, 2))], [np.eye(3), np.ones((2, 2))]):
        found, expected = outcome(NATIVE, graph, args), outcome(NUMPY, graph, args)
        assert found[:2] == expected[:2]


def test_newton_s_method_with_derivatives() -> None:
    """A system solved in a loop; its gradient and second derivative, without host calls."""

    def root(a: Any, y: Any) -> Any:
        x = y
        for _ in range(4):
            residual = a @ x + 0.1 * x**3 - y
            slope = a + wnp.diag(0.3 * x**2)
            x = x - wnp.linalg.solve(slope, residual)
        return wnp.sum(x**2)

    def second(a: Any, y: Any) -> Any:
        return wend.grad(lambda y: wnp.sum(wend.grad(root, argnums=1)(a, y) ** 2))(y)

    rng = np.random.default_rng(3)
    a, y = well_conditioned(rng, [], 20), rng.standard_normal(20)
    for fun in (root, wend.grad(root), second):
        found = wend.function(fun, backend="native")
        expected = wend.function(fun, backend="numpy")(a, y)
        np.testing.assert_allclose(found(a, y), expected, rtol=1e-9, atol=1e-12)
        assert "runs in Python" not in str(found.explain())


def test_a_failing_system_in_a_loop_leaves_the_function_usable() -> None:
    @wend.function(backend="native")
    def last(matrices: Any, y: Any) -> Any:
        for a in matrices:
            y = wnp.linalg.solve(a, y)
        return y

    matrices = np.stack([2 * np.eye(30)] * 5)
    bad = matrices.copy()
    bad[3] = 0.0
    y = np.ones(30)
    for _ in range(3):
        np.testing.assert_allclose(last(matrices, y), y / 32)
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            last(bad, y)


@given(
    size=SIZES,
    columns=SIZES,
    stack=st.lists(st.integers(0, 3), max_size=2),
    dtype=st.sampled_from(["f8", "f4"]),
    part=st.sampled_from(["all", "lower", "upper", "singular"]),
    known=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=sized(20, 60), deadline=None)
def test_factors_and_solves_with_them(
    size: int, columns: int, stack: list[int], dtype: str, part: str, known: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    a = well_conditioned(rng, stack, size)
    a = {"lower": np.tril, "upper": np.triu}.get(part, np.array)(a).astype(dtype)
    y = rng.uniform(-1, 1, (*stack, size, columns)).astype(dtype)
    if part == "singular" and a.size:
        a[..., size // 2] = 0.0
    b = Build("factored")
    types = [
        TensorType(x.dtype, x.shape if known else tuple(Symbol(f"s{n}") for n in x.shape))
        for x in (a, y)
    ]
    params = [b.param(x) for x in types]
    factors, exchanges = b.emit_node(linalg.lu_factor, [params[0]], of="solve").results
    solved = [
        b.emit(linalg.lu_solve, factors, exchanges, params[1], transposed=flag)
        for flag in (False, True)
    ]
    graph = b.finish([factors, exchanges, *solved])
    expected, found = (outcome(backend, graph, [a, y]) for backend in (NUMPY, NATIVE))
    if part == "singular" and a.size:
        assert expected[0] is np.linalg.LinAlgError
        assert found == expected
        return
    tol = 1e-12 if dtype == "f8" else 1e-4
    for x, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, other, rtol=tol, atol=tol)
