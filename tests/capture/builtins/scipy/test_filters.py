"""Filters of `scipy.ndimage` on traced arrays."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage

import wend
from wend.base.errors import UnsupportedError
from wend.testing import check_grads

MODES = ["reflect", "mirror", "nearest", "wrap", "constant", "grid-wrap"]
IMAGE = np.random.default_rng(0).normal(size=(5, 6))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("filter", [scipy.ndimage.correlate, scipy.ndimage.convolve])
@pytest.mark.parametrize("shape", [(3, 3), (2, 3), (1, 4)])
def test_values(filter, mode, shape):
    weights = np.random.default_rng(1).normal(size=shape)

    def program(image, weights):
        return filter(image, weights, mode=mode, cval=0.5)

    expected = program(IMAGE, weights)
    np.testing.assert_allclose(wend.function(program)(IMAGE, weights), expected, atol=1e-14)


def test_derivatives():
    def program(image, weights):
        return scipy.ndimage.convolve(image, weights, mode="wrap")

    check_grads(program, (IMAGE, IMAGE[:3, :2]), order=2)


def test_options_that_are_not_taken_are_refused():
    with pytest.raises(UnsupportedError, match="convolve"):
        wend.function(lambda x: scipy.ndimage.convolve(x, [1.0, 2.0], origin=-1))(IMAGE[0])


def test_lists_of_traced_numbers():
    def program(image, kernel):
        return scipy.ndimage.convolve(np.roll(image, 1), kernel, mode="wrap")

    image, kernel = IMAGE[0].tolist(), [0.1, 0.8, 0.1]
    np.testing.assert_allclose(wend.function(program)(image, kernel), program(image, kernel))
