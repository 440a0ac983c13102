"""Which positions of a loop follow a pattern, and the test that bounds its trips."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from wend.backends.native.analysis.affine_positions import (
    Access,
    Affine,
    Combination,
    CountedAccesses,
    Number,
    RemainderRange,
    Size,
    combine,
    counted_accesses,
    wrap,
)
from wend.backends.native.emit.table import EMITTERS
from wend.ir.graph import Graph, Node, Value
from wend.ops.control import WhileParts, while_
from wend.passes.pipeline import OPTIMIZE, run_passes


def innermost_loop(graph: Graph) -> Node:
    return [node for node in graph.walk() if node.op is while_][-1]


def found(fun: Callable[..., Any], *args: Any) -> CountedAccesses | None:
    graph = wend.function(fun).get_concrete_function(*args).graph
    loop = innermost_loop(run_passes(graph, OPTIMIZE))
    return counted_accesses(WhileParts.of(loop), EMITTERS)


def text(number: Number) -> str:
    """Return a number as text; those that enter the loop are n."""
    if isinstance(number, Combination):
        return f"({text(number.x)} {number.op} {text(number.y)})"
    return "n" if isinstance(number, Value) else str(number)


def shown(access: Access) -> str:
    size = "size" if isinstance(access.size, Size) else str(access.size)
    trips = "" if access.follows_test else ", also by the test"
    if isinstance(access.positions, RemainderRange):
        return f"below {text(access.positions.bound)} < {size}{trips}"
    assert isinstance(access.positions, Affine)
    return f"{text(access.positions.first)} by {text(access.positions.slope)} < {size}{trips}"


def going_down(x: Any, w: Any) -> Any:
    out = x * 1.0
    for r in range(x.shape[0] - 1, w - 1, -1):
        out[r] = max(out[r], out[r - w])
    return out


def with_factors(x: Any, w: Any) -> Any:
    total = 0.0
    for i in range(4):
        total += x[(2 * i + 1) * w] * x[i * i] * x[i % w]
    return total


def under_a_test(x: Any, w: Any) -> Any:
    k = 8
    while k > 0 and x[k - 1] > x[w]:
        k -= 1
    return k


def of_the_data(x: Any, w: Any) -> Any:
    while x[w] < 0.5:
        w += 1
    return w


def going_away(x: Any, w: Any) -> Any:
    while w > 0:
        w += 1
        x[w] = 0.0
    return w


def of_rows(x: Any, w: Any) -> Any:
    rows = np.outer(x, x)
    total = x
    for i in range(w):
        total = total + np.sin(rows[i])
    return total


X = np.ones(12)


@pytest.mark.parametrize(
    ("fun", "expected"),
    [
        (
            going_down,
            ["11 by -1 < 12", "(11 sub n) by -1 < 12", "11 by -1 < 12"],
        ),
        (with_factors, ["n by (2 mul n) < 12", "below n < 12"]),
        (under_a_test, ["7 by -1 < 12", "n by 0 < 12"]),
    ],
)
def test_positions(fun: Callable[..., Any], expected: list[str]) -> None:
    counted = found(fun, X, 3)
    assert counted is not None
    assert sorted(map(shown, counted.accesses)) == sorted(expected)


@pytest.mark.parametrize("fun", [of_the_data, going_away, of_rows])
def test_loops_without_a_bound_or_on_rows_have_none(fun: Callable[..., Any]) -> None:
    assert found(fun, X.copy(), 3) is None


def test_numbers_are_combined_in_64_bits() -> None:
    n = Value(wend.ir.TensorType(np.dtype(np.int64), ()))
    assert combine("add", 2**63 - 1, 1) == -(2**63) == wrap(2**63)
    assert combine("mul", 2**62, 4) == 0
    assert combine("sub", n, 0) is combine("mul", 1, n) is combine("add", 0, n) is n
    assert combine("mul", n, 0) == 0
    assert combine("sub", 0, n) == Combination("sub", 0, n)
