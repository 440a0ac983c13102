"""`wend.numpy.linalg` beside NumPy: decompositions, inverses, norms."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wend
import wend.numpy as wnp
from tests.helpers.arrays import Sample, check_gradient
from tests.helpers.drawn import INEXACT, check, drawn, few
from wend.base.errors import NotDifferentiableError
from wend.testing import check_grads

ANY = [*INEXACT, "i4"]
SHAPES = st.sampled_from([(3, 3), (4, 2), (2, 4), (2, 3, 3), (1, 1), (2, 2, 3)])
SQUARES = st.sampled_from([(3, 3), (2, 2, 2), (1, 1), (0, 2, 2)])
RNG = np.random.default_rng(0)


def regular(x: np.ndarray) -> np.ndarray:
    """A matrix that is far from singular."""
    noise = np.random.default_rng(x.size).standard_normal(x.shape)
    return x + (noise + 5 * np.eye(*x.shape[-2:])).astype(x.dtype)


def hermitian(m: Any, x: Any) -> Any:
    return x + m.conj(m.swapaxes(x, -1, -2))


@few
@given(x=drawn(ANY, SQUARES))
def test_square(x: np.ndarray) -> None:
    x = regular(x)
    check(lambda m, x: m.linalg.inv(x), x, ulps=4000)
    check(lambda m, x: m.linalg.det(x), x, ulps=4000)
    check(lambda m, x: m.linalg.slogdet(x), x, ulps=4000)
    check(lambda m, x: m.linalg.eigvalsh(hermitian(m, x)), x, ulps=4000)
    check(lambda m, x: m.linalg.cond(x), x, ulps=40000)
    for n in (-1, 0, 1, 6):
        check(lambda m, x, n=n: m.linalg.matrix_power(x, n), x, ulps=40000)


@few
@given(x=drawn(ANY, SHAPES))
def test_rectangular(x: np.ndarray) -> None:
    x = regular(x)
    check(lambda m, x: m.linalg.svdvals(x), x, ulps=4000)
    check(lambda m, x: m.linalg.svd(x, compute_uv=False), x, ulps=4000)
    check(lambda m, x: m.linalg.pinv(x), x, ulps=40000)
    check(lambda m, x: m.linalg.matrix_rank(x), x)
    check(lambda m, x: tuple(m.linalg.qr(x)), x, ulps=4000)
    check(lambda m, x: m.linalg.qr(x, "r"), x, ulps=4000)
    check(lambda m, x: tuple(m.linalg.svd(x, full_matrices=False)), x, ulps=4000)
    check(lambda m, x: tuple(m.linalg.svd(x)), x, ulps=4000)


@few
@given(x=drawn(["f8", "c16"], st.sampled_from([(4, 2), (3, 3), (2, 4)])), columns=st.integers(0, 2))
def test_lstsq(x: np.ndarray, columns: int) -> None:
    x = regular(x)
    b = RNG.standard_normal((len(x), columns) if columns else len(x)).astype(x.dtype)
    check(lambda m, x, b: m.linalg.lstsq(x, b, rcond=None), x, b, ulps=40000)


ORDERS = st.sampled_from([None, 0, 1, 2, 3, -1, -2, 0.5, np.inf, -np.inf, "fro", "nuc"])


@few
@given(
    x=drawn(ANY, dims=(1, 3), least=1),
    ord=ORDERS,
    axis=st.sampled_from([None, 0, -1, (0, 1), (1, 0)]),
)
def test_norm(x: np.ndarray, ord: Any, axis: Any) -> None:
    check(lambda m, x: m.linalg.norm(x, ord, axis), x, ulps=4000)
    check(lambda m, x: m.linalg.norm(x, ord, axis, keepdims=True), x, ulps=4000)


@few
@given(
    x=drawn(["f8", "f4", "c16"], dims=(2, 3), least=1), ord=st.sampled_from([1, 2, 3, np.inf, 0])
)
def test_norms_of_the_standard(x: np.ndarray, ord: Any) -> None:
    check(lambda m, x: m.linalg.vector_norm(x, ord=ord, axis=(0, 1), keepdims=True), x, ulps=4000)
    check(lambda m, x: m.linalg.vector_norm(x, ord=ord), x, ulps=4000)
    if ord in (1, 2, np.inf):
        check(lambda m, x: m.linalg.matrix_norm(x, ord=ord, keepdims=True), x, ulps=4000)


def test_multi_dot() -> None:
    sizes = [(3, 2), (2, 5), (5, 1), (1, 4)]
    xs = [RNG.standard_normal(size) for size in sizes]
    for first in (0, 1):
        for last in (3, 4):
            check(lambda m, *xs: m.linalg.multi_dot(xs), *xs[first:last], ulps=4000)
    check(lambda m, *xs: m.linalg.multi_dot(xs), xs[0][0], *xs[1:], ulps=4000)
    check(lambda m, *xs: m.linalg.multi_dot(xs), *xs[:-1], xs[-1][:, 0][:1], ulps=4000)


@pytest.mark.parametrize("name", ["inv", "det", "slogdet", "eigvals"])
def test_faults(name: str) -> None:
    for x in (np.ones((2, 3)), np.ones(3)):
        with pytest.raises(ValueError, match=r"quare|dimension"):
            wend.function(lambda x: getattr(wnp.linalg, name)(x))(x)
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        wend.function(wnp.linalg.inv)(np.ones((2, 2)))


# Derivatives
def differentiate(call: Any, *arrays: np.ndarray, **fields: Any) -> None:
    check_gradient(Sample("abs", arrays, call=lambda _, *xs: call(*xs), **fields))


COMPLEX = RNG.standard_normal((3, 3)) + 1j * RNG.standard_normal((3, 3))
TALL = RNG.standard_normal((4, 3)) + 1j * RNG.standard_normal((4, 3))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: tuple(np.linalg.eigh(hermitian(np, x)))[:1],
        lambda x: np.abs(np.linalg.eigh(hermitian(np, x))[1]) ** 2,
        lambda x: np.abs(np.linalg.eig(x)[1]) ** 2,
        lambda x: np.linalg.eigvals(x) if isinstance(x, np.ndarray) else wnp.linalg.eigvals(x),
        lambda x: np.linalg.inv(x),
        lambda x: np.linalg.norm(x, "nuc"),
        lambda x: np.linalg.cholesky(hermitian(np, x) + 9 * np.eye(3)),
    ],
)
def test_complex_matrices(call: Any) -> None:
    differentiate(call, COMPLEX)


@pytest.mark.parametrize("x", [TALL, TALL[:2]])
def test_complex_singular_vectors(x: np.ndarray) -> None:
    def call(x: Any) -> Any:
        u, s, vh = np.linalg.svd(x, full_matrices=False)
        return np.abs(u) ** 2, s, np.abs(vh) ** 2, u @ vh

    differentiate(call, x)


def test_equal_eigenvalues() -> None:
    """What does not depend on the choice of vectors has its right gradient."""
    x = np.eye(3)
    grad = wend.grad(lambda x: wnp.sum(wnp.linalg.eigvalsh(x)))(x)
    np.testing.assert_allclose(grad, np.eye(3), atol=1e-12)

    def power(x: Any) -> Any:
        w, v = wnp.linalg.eigh(x)
        return wnp.sum(((v * w**3) @ wnp.matrix_transpose(v)) * np.arange(9.0).reshape(3, 3))

    grad = wend.grad(power)(x)
    assert np.isfinite(grad).all()
    assert np.isfinite(wend.grad(lambda x: wnp.sum(wnp.linalg.svdvals(x)))(x)).all()


def test_norm_is_flat_at_zero() -> None:
    def slope(ord: Any) -> Any:
        return wend.grad(lambda x: wnp.linalg.norm(x, ord))(np.zeros(3))

    for ord in (None, 2, 3, 1, np.inf):
        np.testing.assert_array_equal(slope(ord), 0)


def minor(a: np.ndarray, rows: tuple[int, ...], columns: tuple[int, ...]) -> float:
    """The derivative of det in some elements: the others' determinant, with its sign."""
    if len({*rows}) < len(rows) or len({*columns}) < len(columns):
        return 0.0
    orders = [(*axis, *sorted({*range(len(a))} - {*axis})) for axis in (rows, columns)]
    signs = [np.linalg.det(np.eye(len(a))[list(order)]) for order in orders]
    others = [list(order[len(rows) :]) for order in orders]
    return float(signs[0] * signs[1] * np.linalg.det(a[np.ix_(*others)]))


@pytest.mark.parametrize(
    "innermost", [pytest.param(wend.jacfwd, marks=pytest.mark.slow), wend.jacrev]
)
def test_det_of_singular_matrices(innermost: Any) -> None:
    """Every derivative up to the third, at any rank, in all modes."""
    singular = [
        (RNG.integers(-3, 4, (3, rank)) @ RNG.integers(-3, 4, (rank, 3))).astype(float)
        for rank in range(4)
    ]
    derivatives = [innermost(wnp.linalg.det)]
    for order in (1, 2, 3):
        for derivative, a in itertools.product(derivatives, singular):
            expected = [
                minor(a, places[::2], places[1::2])
                for places in itertools.product(range(3), repeat=2 * order)
            ]
            np.testing.assert_allclose(derivative(a).ravel(), expected, atol=1e-12)
        modes = (wend.jacfwd, wend.jacrev)
        derivatives = [mode(derivative) for mode in modes for derivative in derivatives]


@pytest.mark.parametrize("dtype", [float, complex])
def test_derivatives_are_in_the_triangle_that_is_read(dtype: type) -> None:
    x = COMPLEX.astype(dtype) if dtype is complex else COMPLEX.real
    calls = [
        (lambda m, x: m.linalg.eigvalsh(x), np.tril),
        (lambda m, x: m.linalg.eigh(x, UPLO="U")[0], np.triu),
        (lambda m, x: m.abs(m.linalg.eigh(x)[1]) ** 2, np.tril),
        (lambda m, x: m.linalg.pinv(x, hermitian=True), np.tril),
    ]
    for call, triangle in calls:
        differentiate(lambda x, call=call: call(np, x), x)
        grad = wend.grad(lambda x, call=call: wnp.sum(wnp.real(call(wnp, x))))(x)
        np.testing.assert_array_equal(grad, triangle(grad))
        assert np.isreal(np.diagonal(grad)).all()
        np.testing.assert_allclose(
            wend.function(lambda x, call=call: call(wnp, x))(x), call(np, x), atol=1e-12
        )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("upper", [False, True])
def test_derivatives_of_cholesky_are_in_the_triangle_that_is_read(upper: bool, dtype: type) -> None:
    x = COMPLEX if dtype is complex else COMPLEX.real
    x = x @ x.conj().T + np.eye(len(x))
    slope = wend.grad(lambda x: wnp.sum(wnp.abs(wnp.linalg.cholesky(x, upper=upper)) ** 3))(x)
    np.testing.assert_array_equal(slope, (np.triu if upper else np.tril)(slope))
    differentiate(lambda x: np.abs(np.linalg.cholesky(x, upper=upper)) ** 3, x)


def test_the_rank_of_a_hermitian_matrix_is_that_of_its_lower_triangle() -> None:
    a = np.array([[1.0, 7.0], [1.0, 1.0]])
    for hermitian in (True, False):
        rank = wend.function(lambda a, h=hermitian: wnp.linalg.matrix_rank(a, hermitian=h))(a)
        assert rank == np.linalg.matrix_rank(a, hermitian=hermitian)
        values = wend.function(
            lambda a, h=hermitian: wnp.linalg.svd(a, compute_uv=False, hermitian=h)
        )(a)
        np.testing.assert_allclose(
            values, np.linalg.svd(a, compute_uv=False, hermitian=hermitian), atol=1e-12
        )


def test_completed_bases_have_no_derivative() -> None:
    tall = np.ones((3, 2)) + np.eye(3, 2)
    with pytest.raises(NotDifferentiableError, match="full_matrices=False"):
        wend.grad(lambda x: wnp.sum(wnp.linalg.svd(x)[0]))(tall)
    with pytest.raises(NotDifferentiableError, match="reduced"):
        wend.grad(lambda x: wnp.sum(wnp.linalg.qr(x, "complete")[0]))(tall)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 5, 3), (2, 3, 5)])
def test_other_factors_of_completed_bases_have_derivatives(shape: tuple[int, ...]) -> None:
    a = np.random.default_rng(3).normal(size=shape)
    vectors = 2 if shape[-2] > shape[-1] else 0

    def of_vectors(a: Any) -> Any:
        factors = wnp.linalg.svd(a)
        return wnp.sum(factors[vectors] ** 3 * np.arange(3.0)) + wnp.sum(factors[1] ** 3)

    def of_triangle(a: Any) -> Any:
        return wnp.sum(wnp.linalg.qr(a, "complete")[1] ** 3)

    check_grads(of_vectors, (a,), order=1, modes=["rev"])
    check_grads(of_triangle, (a,), order=1, modes=["rev"])


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_eigenvalues_of_each_element_are_complex(backend: str) -> None:
    real, turned = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[0.0, 1.0], [-1.0, 0.0]])

    def outer(b: Any) -> Any:
        return wend.vmap(np.linalg.eigvals)(b)

    with wend.config(backend=backend):
        for b in (np.stack([real, turned]), np.stack([real, real])):
            expected = np.stack([np.linalg.eigvals(m).astype(complex) for m in b])
            for fun in (np.linalg.eigvals, lambda m: np.linalg.eig(m)[0]):
                mapped = wend.vmap(fun)
                for f in (mapped, wend.function(lambda b, mapped=mapped: mapped(b))):
                    np.testing.assert_allclose(f(b), expected, atol=1e-15)
            slopes = wend.vmap(wend.grad(lambda m: np.linalg.eigvals(m).real.sum()))(b)
            np.testing.assert_allclose(slopes, np.stack([np.eye(2)] * 2), atol=1e-15)


def test_the_function_that_is_refused_is_named() -> None:
    spec = wend.TensorSpec((2, 2))
    for fun in (np.linalg.eig, np.linalg.eigvals):
        with pytest.raises(TypeError, match=rf"np\.linalg\.{fun.__name__} at") as caught:
            wend.function(lambda m, fun=fun: fun(m)).get_concrete_function(spec)
        assert f"use wend.numpy.linalg.{fun.__name__}, which" in str(caught.value)


# Eigenvalues of matrices that are not symmetric: complex, whatever they are
SPIN = np.array([[1.0, -2.0], [3.0, 0.5]])  # its eigenvalues are complex
EIGEN_MATRICES = {
    "real_values": np.array([[2.0, 1.0], [0.5, -1.0]]),
    "complex_values": SPIN,
    "both": np.array([[1.0, -2.0, 0.1], [3.0, 0.5, 0.2], [0.3, 0.4, 4.0]]),
    "symmetric": np.array([[2.0, 1.0], [1.0, 3.0]]),
    "triangular": np.array([[2.0, 1.0], [0.0, 3.0]]),
    "complex": SPIN * (1 + 0.5j) + 0.3j * np.eye(2),
    "hermitian": np.array([[2.0, 1j], [-1j, 3.5]]),
    "one": np.array([[3.0]]),
    "nothing": np.zeros((0, 0)),
    "no_matrices": np.zeros((0, 2, 2)),
    "stacked_nothing": np.zeros((2, 0, 0)),
    "stack": np.stack([SPIN, np.array([[2.0, 1.0], [0.5, -1.0]])]),
    "stack_of_stacks": np.stack([SPIN, SPIN.T, SPIN - np.eye(2), 2 * SPIN]).reshape(2, 2, 2, 2),
}


def eigen_forms(x: np.ndarray) -> dict[str, Any]:
    """Ways to run `f(module, x)`."""
    spec = wend.TensorSpec((None,) * x.ndim, x.dtype)
    forms: dict[str, Any] = {"wend.numpy": lambda f: f(wnp, x)}
    for backend in ("numpy", "native"):
        for words, module, signature in (
            ("wend.numpy", wnp, None),
            ("wend.numpy, unknown sizes", wnp, [spec]),
            ("np", np, None),
        ):

            def run(f: Any, m: Any = module, b: str = backend, s: Any = signature) -> Any:
                return wend.function(lambda x: f(m, x), backend=b, input_signature=s)(x)

            forms[f"{words}, {backend}"] = run
    return forms


@pytest.mark.sampled(30)
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "c8", "i4", "?"])
@pytest.mark.parametrize("name", EIGEN_MATRICES)
def test_eig_is_complex(name: str, dtype: str) -> None:
    """Always in `wend.numpy`; NumPy's own is, captured as well, where a value is."""
    x = EIGEN_MATRICES[name]
    x = (x if dtype[0] == "c" else x.real).astype(dtype)
    expected, vectors = np.linalg.eig(x)
    always = np.result_type(expected, np.complex64)
    ulps = 1e-5 if always == np.complex64 else 1e-12
    for form, run in eigen_forms(x).items():
        values = run(lambda m, x: m.linalg.eigvals(x))
        result = run(lambda m, x: tuple(m.linalg.eig(x)))
        by_name = run(lambda m, x: m.linalg.eig(x).eigenvalues)
        kind = expected.dtype if form.startswith("np") else always
        assert [y.dtype for y in (values, *result, by_name)] == [kind] * 4, form
        for found in (values, result[0], by_name):
            np.testing.assert_allclose(found, expected, rtol=ulps, atol=ulps, err_msg=form)
        np.testing.assert_allclose(result[1], vectors, rtol=ulps, atol=ulps, err_msg=form)


@pytest.mark.sampled
@pytest.mark.parametrize("name", [x for x in EIGEN_MATRICES if "nothing" not in x])
def test_derivatives_of_eig(name: str) -> None:
    """Those of powers of the matrix, which are written without eigenvalues."""
    x = EIGEN_MATRICES[name]
    weights = np.cos(np.arange(x.size, dtype=float)).reshape(x.shape)

    def of_values(m: Any, x: Any) -> Any:
        return m.sum(m.real(m.linalg.eigvals(x) ** 3))

    def trace(m: Any, x: Any) -> Any:
        return m.sum(m.real(m.trace(x @ x @ x, axis1=-2, axis2=-1)))

    def of_vectors(m: Any, x: Any) -> Any:
        values, vectors = m.linalg.eig(x)
        square = (vectors * values[..., None, :] ** 2) @ m.linalg.inv(vectors)
        return m.sum(m.real(square) * weights)

    def square(m: Any, x: Any) -> Any:
        return m.sum(m.real(x @ x) * weights)

    for mine, plain in ((of_values, trace), (of_vectors, square)):
        expected = wend.grad(lambda x, plain=plain: plain(wnp, x))(x)
        curved = wend.grad(
            lambda x, plain=plain: wnp.sum(
                wnp.real(wend.grad(lambda x: plain(wnp, x))(x) * weights)
            )
        )(x)
        for backend in ("numpy", "native"):
            fun = wend.function(lambda x, mine=mine: mine(wnp, x), backend=backend)
            np.testing.assert_allclose(wend.grad(fun)(x), expected, rtol=1e-9, atol=1e-9)
            forward = wend.jvp(fun, (x,), (weights.astype(x.dtype),))[1]
            np.testing.assert_allclose(
                forward, np.sum(np.real(expected * weights)), rtol=1e-9, atol=1e-9
            )
            second = wend.grad(lambda x, fun=fun: wnp.sum(wnp.real(wend.grad(fun)(x) * weights)))
            np.testing.assert_allclose(second(x), curved, rtol=1e-8, atol=1e-8)
