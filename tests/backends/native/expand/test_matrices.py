"""Decompositions and what is made of them, without Python: as NumPy has them, at every order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend


def native(function: Callable[..., Any]) -> Any:
    return wend.function(function, backend="native")


def matrices(dtype: str, stack: tuple[int, ...], rows: int, columns: int) -> Any:
    rng = np.random.default_rng(rows + 10 * columns)
    a = rng.standard_normal((2, *stack, rows, columns))
    return (a[0] + 1j * a[1] if dtype[0] == "c" else a[0]).astype(dtype)


SQUARE: dict[str, Callable[..., Any]] = {
    "det": np.linalg.det,
    "slogdet": np.linalg.slogdet,
    "eigvalsh": np.linalg.eigvalsh,
    "upper": lambda a: np.linalg.eigvalsh(a, UPLO="U"),
    "projectors": lambda a: (lambda v: v @ v.mT.conj())(np.linalg.eigh(a)[1][..., :1]),
    "inv": np.linalg.inv,
    "solve": lambda a: np.linalg.solve(a, a @ a),
    "cholesky": lambda a: np.linalg.cholesky(a @ a.mT.conj() + np.eye(a.shape[-1])),
}
ANY: dict[str, Callable[..., Any]] = {
    "svdvals": lambda a: np.linalg.svd(a, compute_uv=False),
    "svd": lambda a: (lambda r: (r[0] * r[1][..., None, :]) @ r[2])(np.linalg.svd(a, False)),
    "full": lambda a: abs(np.linalg.svd(a)[0]),
    "qr": lambda a: tuple(np.linalg.qr(a)),
    "complete": lambda a: np.linalg.qr(a, "complete")[1],
    "pinv": np.linalg.pinv,
    "rank": np.linalg.matrix_rank,
}


def parts(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.sampled(30)
@pytest.mark.parametrize("stack", [(), (3,), (2, 0)], ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("name", [*SQUARE, *ANY])
def test_as_numpy(name: str, dtype: str, stack: tuple[int, ...]) -> None:
    shapes = [(1, 1), (4, 4), (9, 9)] if name in SQUARE else [(4, 4), (2, 5), (5, 2)]
    function = (SQUARE | ANY)[name]
    for rows, columns in shapes:
        a = matrices(dtype, stack, rows, columns)
        run = native(function)
        found, expected = run(a), function(a)
        for x, right in zip(*map(parts, (found, expected)), strict=True):
            assert np.asarray(x).dtype == np.asarray(right).dtype
            tol = 2000 * np.finfo(dtype).eps
            np.testing.assert_allclose(x, right, rtol=tol, atol=tol)
        assert "runs in Python" not in str(run.explain())


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_derivatives_of_determinants(size: int) -> None:
    a = matrices("f8", (), size, size)
    first = wend.grad(native(np.linalg.det))
    cofactors = np.linalg.det(a) * np.linalg.inv(a).T
    np.testing.assert_allclose(first(a), cofactors, rtol=1e-10)
    singular = a.copy()
    singular[-1] = singular[0] if size > 1 else 0.0
    step = 1e-6 * np.eye(size * size).reshape((size,) * 4)
    differences = (np.linalg.det(singular + step) - np.linalg.det(singular - step)) / 2e-6
    np.testing.assert_allclose(first(singular), differences, rtol=1e-6, atol=1e-8)
    second = wend.grad(lambda a: np.sum(first(a) ** 3))
    along = np.cos(np.arange(size * size)).reshape(size, size)
    ends = [np.sum(first(a + s * 1e-5 * along) ** 3) for s in (1, -1)]
    np.testing.assert_allclose(
        np.sum(second(a) * along), (ends[0] - ends[1]) / 2e-5, rtol=1e-6, atol=1e-8
    )
    for run in (first, second):
        assert "runs in Python" not in str(run.explain())


@pytest.mark.parametrize("name", ["eigh", "svd", "eigvals", "pinv"])
def test_what_does_not_converge_raises_as_numpy_does(name: str) -> None:
    function = getattr(np.linalg, name)
    a = np.full((3, 3), np.nan)
    outcomes = []
    for run in (function, native(function)):
        try:
            outcomes.append(str(np.isnan(np.asarray(run(a)[0])).all()))
        except np.linalg.LinAlgError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_whether_there_are_factors(shift: float) -> None:
    """A failed factorization leads to its handler, in a loop too."""

    def attempts(a, n):
        count = 0
        for _ in range(n):
            try:
                np.linalg.cholesky(a)
                count += 1
            except np.linalg.LinAlgError:
                count -= 1
        return count

    a = np.array([[1.0, 2.0], [2.0, 1.0]]) + shift * np.eye(2)
    run = native(attempts)
    assert run(a, 3) == attempts(a, 3)
    assert "runs in Python" not in str(run.explain())
