"""Rows of `wend.ops.hosting`; what it does for users is tested in tests/function."""

from __future__ import annotations

from typing import Any

import numpy as np

import wend.numpy as wnp
from tests.helpers.cases import Case, Given
from wend.function.host.host_function import HostFunction, HostRun
from wend.ir.types import HOST, TOKEN

WORLD = Given(None, TOKEN)


def turned(x: Any, y: Any, n: Any) -> Any:
    """What is called: two floats, an integer."""
    return wnp.sin(x) * y + n, wnp.sum(x * y * y), n + 1


X, Y, N = np.array([0.3, -0.8]), np.array(1.7), np.int64(2)
HOST_FUNCTION = HostFunction(turned, (X, Y, N), (X, 0.0, 1), None)
ATTRS = {"function": HOST_FUNCTION, "results": HOST_FUNCTION.declared()}


def handle() -> HostRun:
    return HOST_FUNCTION.call_recorded([X, Y, N])[1]


def pulled(handle: HostRun, x: Any, y: Any, *cts: Any, **_: Any) -> Any:
    u, v = cts
    return np.cos(x) * y * u + y * y * v, np.sum(np.sin(x) * u) + 2 * y * np.sum(x) * v


PULL = {"sources": 2, "seeded": (0, 1), "wrt": (0, 1)}
GIVEN = (Given(handle(), HOST), X, Y, np.array([1.1, 0.4]), np.float64(-0.6))

CASES = [
    Case(
        "py_function",
        lambda world, *xs, **_: (None, *turned(*xs)),
        [(WORLD, X, Y, N)],
        [(WORLD, X, Y, N)],
        attrs=ATTRS,
        orders=3,
        symbolic=False,
    ),
    Case(
        "py_function_forward",
        lambda world, *xs, **_: (None, *turned(*xs), ...),
        smooth=[(WORLD, X, Y, N)],
        attrs=ATTRS,
        symbolic=False,
    ),
    Case("py_pull", pulled, [GIVEN], attrs=PULL, exact=False),
    Case(
        "py_pull_forward",
        lambda *xs, **_: (*pulled(*xs), ...),
        [GIVEN],
        attrs=PULL,
        exact=False,
    ),
]
