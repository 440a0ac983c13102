"""Products by BLAS of views with any strides, of sizes on both sides of the limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend

VIEWS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda x: x,
    "rows backwards": lambda x: x[::-1],
    "columns backwards": lambda x: x[:, ::-1],
    "both backwards": lambda x: x[::-1, ::-1],
    "every other row": lambda x: x[::2],
    "every other row backwards": lambda x: x[::-2],
    "every other column": lambda x: x[:, ::2],
    "one row, repeated": lambda x: np.broadcast_to(x[0], x.shape),
    "one column, repeated": lambda x: np.broadcast_to(x[:, :1], x.shape),
    "the last row": lambda x: x[-1:],
    "the last column": lambda x: x[:, -1:],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [6, 40, 120])
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_views(turned: tuple[bool, bool], size: int, dtype: Any) -> None:
    """Each view on either side of a product with a matrix, and with itself."""
    rng = np.random.default_rng(size)
    a, b = (rng.normal(size=(size, size)).astype(dtype) for _ in range(2))
    x_is_turned, y_is_turned = turned

    def products(a: Any, b: Any) -> list[Any]:
        results = []
        for view in VIEWS.values():
            for x, y in ((view(a), b), (b, view(a)), (view(a), view(a))):
                x, y = x.T if x_is_turned else x, y.T if y_is_turned else y
                if x.shape[1] == y.shape[0]:
                    results.append(x @ y)
        return results

    tolerance = 1e-12 if dtype is np.float64 else 1e-4
    for actual, desired in zip(
        wend.function(products, backend="native")(a, b), products(a, b), strict=True
    ):
        np.testing.assert_allclose(actual, desired, rtol=0, atol=tolerance * size)
