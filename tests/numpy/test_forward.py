"""Every public function in forward mode: its tangent is what its gradient says."""

from __future__ import annotations

import numpy as np
import pytest

import wend
from tests.helpers.array_cases import SAMPLES
from tests.helpers.arrays import Sample, gradient_of, is_differentiable, quiet

MOVING = [s for s in SAMPLES if s.traced and s.smooth and is_differentiable(s)]


@pytest.mark.sampled(40)
@pytest.mark.parametrize("sample", MOVING, ids=str)
def test_tangent(sample: Sample) -> None:
    scalar, wrt, gradient = gradient_of(sample)
    rng = np.random.default_rng(3)
    tangents: list = [None] * len(sample.arrays)
    for k in wrt:
        x = np.asarray(sample.arrays[k])
        noise = rng.standard_normal(x.shape) + (0j if x.dtype.kind != "c" else 1j)
        tangents[k] = np.asarray(noise if x.dtype.kind == "c" else noise.real, x.dtype)[()]
    arrays = [np.asarray(x)[()] if np.ndim(x) == 0 else x for x in sample.arrays]
    _, tangent = quiet(lambda: wend.jvp(scalar, arrays, tangents))
    grads = quiet(lambda: gradient(*arrays))
    terms = [np.real(g * tangents[k]) for g, k in zip(grads, wrt, strict=True)]
    size = 1 + sum(float(np.sum(np.abs(term))) for term in terms)
    expected = sum(float(np.sum(term)) for term in terms)
    # Some of them compute in 32 bits on the way.
    assert abs(tangent - expected) <= 1e-7 * size, f"{tangent}, by the gradient {expected}"
