"""Sizes of the run: what arrays have in common is found without Python."""

import itertools

import numpy as np
import pytest

import wend


def added(a, m, i, j, k, n):
    return m[i:j, k:n] * a[k:n] + m[i:j, :1], a[i:j] + a[k:n] * 2.0


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_slices_are_broadcast_as_in_numpy(backend):
    compiled = wend.function(added, backend=backend)
    a, m = np.arange(10.0), np.arange(100.0).reshape(10, 10)
    for bounds in itertools.product((0, 1), (0, 1, 4), (0, 1, 3), (1, 4, 6)):
        try:
            expected = added(a, m, *bounds)
        except ValueError as error:
            with pytest.raises(
                ValueError, match=str(error).rstrip().replace("(", r"\(").replace(")", r"\)")
            ):
                compiled(a, m, *bounds)
            continue
        for found, wanted in zip(compiled(a, m, *bounds), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_no_size_is_asked_of_python():
    compiled = wend.function(added, backend="native")
    compiled(np.ones(4), np.ones((4, 4)), 0, 2, 1, 3)
    assert "runs in Python" not in str(compiled.explain())
