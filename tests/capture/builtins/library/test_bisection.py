"""`bisect` of lists and numbers that are traced."""

from __future__ import annotations

import bisect
from typing import Any

import numpy as np
import pytest

import wend


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("function", [bisect.bisect, bisect.bisect_left, bisect.bisect_right])
@pytest.mark.parametrize("items", [[], [1.0], [0.0, 1.0, 1.0, 2.5], [-np.inf, 0.0, np.inf]])
def test_as_in_python(function: Any, items: list[float], backend: str) -> None:
    compiled = wend.function(lambda a, x: function(a, x), backend=backend)
    for x in (*items, -1.0, 0.5, 9.0, np.inf, np.nan):
        assert compiled(items, x) == function(items, x)
