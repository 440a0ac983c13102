"""Rows of `wend.ops.sharding`; tests/backends/jax/test_meshes.py says where arrays then lie."""

from __future__ import annotations

import numpy as np

from tests.helpers.cases import Case

CASES = [
    Case(
        "shard",
        lambda x, **_: x,
        smooth=[(np.array([[1.0, 2.0], [3.0, 4.0]]),), (np.float64(2.0),)],
        attrs={"sharding": None, "what": "x"},
    )
]
