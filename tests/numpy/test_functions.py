"""Every public function: at once, recorded, through NumPy's own, and its gradients."""

from __future__ import annotations

import inspect
import itertools
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers import arrays
from tests.helpers.array_cases import SAMPLES
from tests.helpers.arrays import Sample, reach
from wend.numpy.public import STAGED

TRACED = [sample for sample in SAMPLES if sample.traced]
NAMED = {"argnames": "sample", "ids": str}

# The main namespace of the Python array API standard, 2025.12
STANDARD = """
e inf nan newaxis pi
arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like
tril triu zeros zeros_like
astype can_cast finfo iinfo isdtype result_type
bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128
abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert
bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1
floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal log log1p
log2 log10 logaddexp logical_and logical_not logical_or logical_xor maximum minimum multiply
negative nextafter not_equal positive pow real reciprocal remainder round sign signbit sin sinh
square sqrt subtract tan tanh trunc
take take_along_axis __array_namespace_info__
matmul matrix_transpose tensordot vecdot
broadcast_arrays broadcast_shapes broadcast_to concat expand_dims flip moveaxis permute_dims repeat
reshape roll squeeze stack tile unstack
argmax argmin count_nonzero nonzero searchsorted where
isin unique_all unique_counts unique_inverse unique_values
argsort sort cumulative_prod cumulative_sum max mean min prod std sum var all any diff
linalg.cholesky linalg.cross linalg.det linalg.diagonal linalg.eig linalg.eigh linalg.eigvals
linalg.eigvalsh linalg.inv linalg.matmul linalg.matrix_norm linalg.matrix_power linalg.matrix_rank
linalg.matrix_transpose linalg.outer linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.svd
linalg.svdvals linalg.tensordot linalg.trace linalg.vecdot linalg.vector_norm
""".split()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(argvalues=SAMPLES, **NAMED)
def test_at_once(sample: Sample) -> None:
    arrays.check_eager(sample)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(argvalues=TRACED, **NAMED)
def test_recorded(sample: Sample) -> None:
    arrays.check_traced(sample)


@pytest.mark.sampled(16)
@pytest.mark.parametrize(argvalues=[s for s in TRACED if s.goes_through], **NAMED)
def test_recorded_through_numpy(sample: Sample) -> None:
    arrays.check_through(sample)


@pytest.mark.sampled(30)
@pytest.mark.parametrize(argvalues=[s for s in TRACED if arrays.is_differentiable(s)], **NAMED)
def test_gradients(sample: Sample) -> None:
    arrays.check_gradient(sample)


@pytest.mark.parametrize("name", STANDARD)
def test_the_standard_is_there(name: str) -> None:
    reach(wnp, name)


def _functions(module: Any, prefix: str = "") -> list[str]:
    return [
        prefix + name
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and value.__module__.startswith("wend")
        and (not name.startswith("_") or name.startswith("__array_n"))
    ]


def test_every_public_function_has_a_sample() -> None:
    public = _functions(wnp)
    for room in ("linalg", "special"):
        module = getattr(wnp, room)
        own = getattr(module, "__all__", None)
        names = (
            own
            if own is not None
            else [
                name
                for name, value in vars(module).items()
                if inspect.isfunction(value) and value.__module__ == module.__name__
            ]
        )
        public += [f"{room}.{n}" for n in names if inspect.isfunction(getattr(module, n))]
    public = [
        name for name in public if not name.rpartition(".")[2].startswith("_") or "__" in name
    ]
    sampled = {sample.name for sample in SAMPLES}
    helpers = {"from_dlpack", "errstate"}
    lacking = {name for name in ("__array_namespace_info__",) if not hasattr(np, name)}
    assert sorted(set(public) - sampled - helpers - lacking - _IMPORTED) == []


# Functions that the modules of functions use themselves
_IMPORTED = {
    f"special.{name}"
    for name in ("any_staged", "apply", "broadcast", "axes_of", "inexact", "staged")
}


def test_numpy_itself_knows_what_is_public() -> None:
    """A public function that NumPy has too is what NumPy's becomes on traced arrays."""
    for sample in TRACED:
        if sample.goes_through and hasattr(np, sample.name) and sample.arrays:
            assert getattr(np, sample.name) in STAGED, sample.name


def test_scipy_is_not_imported_with_wend() -> None:
    code = "import sys, wend; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


SHAPES = [(), (0,), (1,), (3,), (4,), (2, 3), (1, 3), (0, 3), (3, 1)]


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("compare", [np.array_equal, np.array_equiv])
def test_arrays_whose_shapes_only_the_run_knows_may_differ(compare: Any, backend: str) -> None:
    traced: dict[tuple[int, int], Any] = {}
    for shape, other in itertools.product(SHAPES, SHAPES):
        ranks = len(shape), len(other)
        if ranks not in traced:
            spec = [wend.TensorSpec((None,) * rank, float) for rank in ranks]
            traced[ranks] = wend.function(compare, input_signature=spec, backend=backend)
        x, y = np.ones(shape), np.ones(other)
        assert traced[ranks](x, y) == compare(x, y), (shape, other)
        if y.size:
            y.flat[-1] = 2.0
            assert traced[ranks](x, y) == compare(x, y), (shape, other)
