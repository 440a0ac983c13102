"""NumPy's inner loops in native code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.backends.native.test_cases import outcome

import wend
from wend.backends.native.backend import BACKEND as NATIVE
from wend.backends.native.rt import numpy_loops
from wend.backends.native.rt.numpy_loops import Loop
from wend.backends.numpy.backend import BACKEND as NUMPY
from wend.ir.op import Op
from wend.ir.types import TensorType
from wend.ops import elementwise
from wend.ops.build import Build

LOOPS = [
    Loop("", "exp", "D->D"),
    Loop("", "less", "FF->?"),
    Loop("", "hypot", "ee->e"),
    Loop("linalg", "det", "d->d"),
    Loop("linalg", "eigh_lo", "d->dd"),
    Loop("linalg", "svd_s", "D->DdD"),
    Loop("linalg", "qr_r_raw", "d->d"),
    Loop("linalg", "qr_reduced", "dd->d"),
    Loop("linalg", "solve", "DD->D"),
]


@pytest.mark.parametrize("loop", LOOPS, ids=str)
def test_numpy_has_the_loop(loop: Loop) -> None:
    assert numpy_loops.is_available(loop)
    assert numpy_loops.is_loop(loop.function)
    assert numpy_loops.address(loop.function)
    if loop.data != "null":
        assert numpy_loops.address(loop.data.removeprefix("@"))


@pytest.mark.parametrize(
    "loop", [Loop("", "no such ufunc", "d->d"), Loop("", "exp", "q->q"), Loop("", "pi", "d->d")]
)
def test_what_is_no_loop_is_not_available(loop: Loop) -> None:
    assert not numpy_loops.is_available(loop)


def of_kernel(op: Op, dtype: str, shape: tuple[int, ...]) -> Any:
    b = Build(op.name)
    type = TensorType(np.dtype(dtype), shape)
    operands = [b.param(type) for _ in range(op.kernel.nin)]  # type: ignore[union-attr]
    return b.finish([b.emit(op, *operands)])


UFUNCS = [
    op
    for op in vars(elementwise).values()
    if isinstance(op, Op) and isinstance(op.kernel, np.ufunc)
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["c8", "c16", "f2", "i4", "u8"])
@pytest.mark.parametrize("op", UFUNCS, ids=lambda op: op.name)
def test_every_elementwise_operation_runs_without_python(op: Op, dtype: str) -> None:
    """And to the bit as in NumPy, unless rounding is open."""
    rng = np.random.default_rng(1)
    for shape in ((), (3,), (2, 5)):
        try:
            graph = of_kernel(op, dtype, shape)
        except wend.WendError:
            return  # not for this dtype
        x = rng.uniform(-3, 3, (op.kernel.nin, *shape)) + 1  # type: ignore[union-attr]
        if dtype in ("c8", "c16"):
            x = x + 1j * x[..., ::-1] if shape else x + 1j
        args = [np.asarray(part).astype(dtype)[()] for part in np.abs(x) + x * (dtype[0] == "c")]
        run = NATIVE.compile(graph)
        assert not [node.op.name for node in run.host_nodes if not node.op.errors_of(node)]
        with np.errstate(all="ignore"):
            (expected,) = NUMPY.compile(graph)(args)
        (found,) = run(args)
        assert found.dtype == expected.dtype
        is_exact = op.rounding.name == "EXACT" or found.dtype.kind not in "fc"
        tol = 0.0 if is_exact else 64 * float(np.finfo(found.dtype).eps)
        np.testing.assert_allclose(found, expected, rtol=tol, atol=tol)


@pytest.mark.parametrize("exponent", [[2, 3], [2, -1]])
def test_integers_have_no_negative_powers(exponent: list[int]) -> None:
    graph = of_kernel(elementwise.pow, "i8", (2,))
    args = [np.array([3, 5]), np.array(exponent)]
    found, expected = outcome(NATIVE, graph, args), outcome(NUMPY, graph, args)
    assert [str(part) for part in found] == [str(part) for part in expected]


def test_without_a_loop_the_kernel_runs(monkeypatch: Any) -> None:
    monkeypatch.setattr(numpy_loops, "is_available", lambda loop: False)
    x = np.array([1j, 2.0])
    run = wend.function(lambda x: np.exp(x) * 3, backend="native")
    np.testing.assert_array_equal(run(x), np.exp(x) * 3)
    assert "runs in Python: exp" in str(run.explain())
