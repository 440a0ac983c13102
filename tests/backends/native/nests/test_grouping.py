"""Loop nests: they give what the operations gave one by one, and what can be is in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given
from tests.helpers.random_arrays import array_graphs

from wend.backends.native.backend import BACKEND as NATIVE
from wend.backends.native.nests.grouping import with_nests
from wend.backends.numpy.backend import BACKEND as NUMPY
from wend.ir import Graph, verify


def check(graph: Graph, args: Sequence[Any]) -> None:
    verify(with_nests(graph))
    with np.errstate(all="ignore"):
        expected = NUMPY.compile(graph)(args)
    found = NATIVE.compile(graph)(args)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        eps = float(np.finfo(b.dtype).eps) if b.dtype.kind == "f" else 0.0
        size = max(float(np.max(np.abs(b), initial=0.0)), 1.0)
        np.testing.assert_allclose(a, b, rtol=1e4 * eps, atol=1e4 * eps * size, err_msg=str(graph))


@given(array_graphs())
def test_random_graphs(drawn: tuple[Graph, list[Any]]) -> None:
    check(*drawn)
