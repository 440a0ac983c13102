"""What is taken of SciPy, and when."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.backends.native.rt.linalg import blas_functions, small_gemm
from wend.backends.native.rt.linalg.blas_functions import TYPES, _takes


def run(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", small_gemm.KINDS, ids=lambda kind: kind.suffix)
def test_the_functions_are_there(kind: small_gemm.Kind) -> None:
    assert blas_functions.are_available(kind, TYPES)
    found = blas_functions.addresses(kind, ["gemm", "potrf"])
    assert set(found) == {"lapack.gemm", "lapack.potrf"}
    assert all(found.values())


def test_a_function_with_wide_integers_is_another() -> None:
    numbers = {"c": "char *", "i": "int *", "n": "__pyx_t_5scipy_6linalg_11cython_blas_d *"}
    text = f"void ({', '.join(numbers[t] for t in TYPES['gemm'])})"
    assert _takes(text, TYPES["gemm"], "d")
    assert _takes(text.replace(numbers["n"], "double *"), TYPES["gemm"], "d")
    assert not _takes(text.replace("int *", "long *"), TYPES["gemm"], "d")
    assert not _takes(text, TYPES["gemm"], "s")
    assert not _takes(text, TYPES["gemv"], "d")


def test_without_them_python_runs_large_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas_functions, "_address", lambda name: 0)
    rng = np.random.default_rng(0)
    for size, expected in ((8, 0), (90, 1)):
        x, y = rng.standard_normal((2, size, size))
        dot = wend.function(lambda x, y: x @ y, backend="native")
        np.testing.assert_allclose(dot(x, y), x @ y)
        assert str(dot.explain()).count("dot_general") == expected


def test_scipy_is_left_alone_until_there_is_a_large_product() -> None:
    run(
        "import sys, numpy as np, wend; "
        "f = wend.function(lambda x, y: x @ y, backend='native'); "
        "loaded = lambda: [m for m in sys.modules if m.startswith('scipy')]; "
        "f(np.ones((20, 20)), np.ones((20, 20))); f(np.ones(90), np.ones((90, 90))); "
        "assert not loaded(); "
        "f(np.ones((90, 90)), np.ones((90, 90))); "
        "assert loaded(); assert 'scipy.linalg' not in loaded()"
    )


def test_scipy_works_as_ever_afterwards() -> None:
    run(
        "import numpy as np, wend; x = np.eye(90); "
        "wend.function(lambda x: x @ x, backend='native')(x); "
        "import scipy.linalg.cython_blas as one, scipy.linalg; "
        "assert scipy.linalg.cython_blas is one and 'dgemm' in one.__pyx_capi__; "
        "assert (scipy.linalg.inv(x) == x).all(); "
        "from scipy import optimize"
    )


def test_it_is_taken_from_scipy_where_scipy_has_loaded_it() -> None:
    run(
        "import scipy.linalg.cython_blas, numpy as np, wend; x = np.eye(90); "
        "assert (wend.function(lambda x: x @ x, backend='native')(x) == x).all()"
    )


def test_products_of_two_threads() -> None:
    """Without the interpreter's lock, at once."""
    from concurrent.futures import ThreadPoolExecutor

    dot = wend.function(lambda x, y: wnp.tanh(x @ y), backend="native")
    rng = np.random.default_rng(1)
    xs = rng.standard_normal((8, 100, 100))
    dot(xs[0], xs[0])
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(dot, xs, xs[::-1]))
    np.testing.assert_allclose(found, np.tanh(xs @ xs[::-1]), rtol=1e-11, atol=1e-11)
