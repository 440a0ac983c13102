"""What docs/from-numpy.md says to differ from NumPy does so, and only so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from wend.base.errors import ShapeError

BACKENDS = pytest.mark.parametrize("backend", ["numpy", "native"])


def written(z: Any, x: Any) -> Any:
    z[()] = x
    return z


def filled(z: Any, x: Any) -> Any:
    out = np.zeros(())
    out[...] = x + z
    return out


@BACKENDS
@pytest.mark.parametrize("fun", [written, filled])
def test_results_of_no_axes_are_scalars(fun: Any, backend: str) -> None:
    ours, theirs = np.array(3.0), np.array(3.0)
    actual, expected = wend.function(fun, backend=backend)(ours, 2.0), fun(theirs, 2.0)
    assert type(expected) is np.ndarray
    assert type(actual) is np.float64
    assert actual == expected
    np.testing.assert_array_equal(ours, theirs)


@BACKENDS
def test_a_zero_part_of_a_complex_power_has_the_sign_of_numpys(backend: str) -> None:
    run = wend.function(lambda c: c**2, backend=backend)
    number, array = np.complex128(-3 + 0j), np.array([-3 + 0j])
    assert str(run(-3 + 0j)) == str(run(number)) == str(number**2) == "(9-0j)"
    assert str(run(array)) == str(array**2)
    assert str((-3 + 0j) ** 2) == "(9+0j)"


@BACKENDS
def test_errors_of_shapes_of_the_run_have_numpys_class(backend: str) -> None:
    def add(y: Any, v: Any) -> Any:
        y[y > 0] += v
        return y

    for fun in (add, lambda y, v: y[y > 0] + v):
        y, v = np.array([3.0, -1.0, 2.0]), np.arange(4.0)
        with pytest.raises(ValueError, match="could not be broadcast together") as expected:
            fun(y.copy(), v)
        with pytest.raises(type(expected.value), match="could not be broadcast together"):
            wend.function(fun, backend=backend)(y.copy(), v)


@BACKENDS
def test_the_covariance_of_one_row_is_a_matrix_where_the_run_knows_the_number(backend: str) -> None:
    spec = wend.TensorSpec([None, None])
    run = wend.function(np.cov, input_signature=[spec], backend=backend)
    x = np.array([[1.0, 2.0, 4.0]])
    assert np.cov(x).shape == ()
    np.testing.assert_allclose(run(x), [[np.cov(x)]])
    np.testing.assert_allclose(wend.function(np.cov, backend=backend)(x), np.cov(x))


MISFITS: dict[str, Callable[..., Any]] = {
    "@": lambda x, v: x[x > 0] @ v,
    "solve": lambda x, v: np.linalg.solve(np.eye(4), x[x > 0]),
    "stack": lambda x, v: np.stack([x[x > 0], v]),
    "concatenate": lambda x, v: np.concatenate([x[x > 0][:, None], v[None]]),
    "array": lambda x, v: np.array([x[x > 0], v]),
    "out=": lambda x, v: np.add(v, 1.0, out=x[x > 0]),
    "out= of a sum": lambda x, v: np.sum(x[x > 0][:, None] * v, axis=1, out=v),
    "out= of cumsum": lambda x, v: np.cumsum(x[x > 0], out=np.zeros(4)),
    "where=": lambda x, v: np.sum(v, where=x[x > 0] > 1),
    "where": lambda x, v: np.where(x[x > 0] > 1, v, 0.0),
    "einsum": lambda x, v: np.einsum("i,i", x[x > 0], v),
    "tensordot": lambda x, v: np.tensordot(x[x > 0], v, 1),
    "vdot": lambda x, v: np.vdot(x[x > 0], v),
    "repeat": lambda x, v: np.repeat(x[x > 0], np.arange(4)),
    "choose": lambda x, v: np.choose(np.nonzero(x > 0)[0], [v, v, v]),
    "select": lambda x, v: np.select([x[x > 0] > 1], [v]),
    "interp": lambda x, v: np.interp(1.0, x[x > 0], v),
    "average": lambda x, v: np.average(x[x > 0], weights=v),
    "reshape": lambda x, v: x[x > 0].reshape(2, 2),
    "a mask of another size": lambda x, v: x[x > 0][v > 1],
    "positions of rows": (
        lambda x, v: np.take_along_axis(v[:, None] * x, np.nonzero(x > 0)[0][:, None], 1)
    ),
    "a column": lambda x, v: (x * v[:, None])[:, 1 + np.sum(x > 0)],
    "take": lambda x, v: np.take(v, np.nonzero(x > -9)[0] + 2),
}


@pytest.mark.sampled(3)
@BACKENDS
@pytest.mark.parametrize("form", MISFITS)
def test_sizes_that_do_not_fit_in_the_run_are_errors_of_numpys_class(
    form: str, backend: str
) -> None:
    fun = MISFITS[form]
    x, v = np.array([3.0, -1.0, 2.0]), np.arange(4.0)
    caught = []
    for run in (fun, wend.function(fun, backend=backend)):
        with pytest.raises((ValueError, IndexError, TypeError)) as error:
            run(x.copy(), v.copy())
        caught.append(error.type if run is fun else error.value)
    assert isinstance(caught[1], caught[0]), caught


def test_einsum_stretches_no_size_of_the_run() -> None:
    def stretched(x: Any, y: Any) -> Any:
        return np.einsum("i,i->i", x[x > 0][:1], y)

    x = np.array([3.0, -1.0, 2.0])
    np.testing.assert_array_equal(stretched(x, x), 3.0 * x)
    with pytest.raises(ShapeError, match="not aligned"):
        wend.function(stretched)(x, x)
