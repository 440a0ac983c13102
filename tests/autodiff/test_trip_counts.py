"""Trip counts that follow from the bounds of a loop are computed, and not recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import wend
from tests.helpers.graphs import traced
from wend.autodiff.vjp import vjp
from wend.ops import lists

LIMITS = np.iinfo(np.int64)
INTEGERS = st.one_of(st.integers(-6, 6), st.sampled_from([LIMITS.min, LIMITS.max]))


def in_a_loop(bound_first: bool, step: int, number: int, inclusive: bool) -> Any:
    """Return a program whose inner loop runs from, or to, one of its arguments."""

    def program(x: Any, bounds: Any) -> Any:
        for i in range(bounds.shape[0]):
            start, stop = (bounds[i], number) if bound_first else (number, bounds[i])
            k = start
            if step > 0:
                while k <= stop if inclusive else k < stop:
                    x = np.sin(x) + 0.25 * x
                    k += step
            else:
                while k >= stop if inclusive else k > stop:
                    x = np.sin(x) + 0.25 * x
                    k += step
        return x

    return program


@given(
    bound_first=st.booleans(),
    step=st.sampled_from([1, 2, 3, -1, -2]),
    number=st.integers(-3, 3),
    inclusive=st.booleans(),
    bounds=st.lists(INTEGERS, min_size=1, max_size=4),
)
@example(False, 1, 1, False, [LIMITS.min])
@example(True, 2, -3, True, [LIMITS.max, 2])
@settings(deadline=None)
def test_gradients(
    bound_first: bool, step: int, number: int, inclusive: bool, bounds: list[int]
) -> None:
    # Bounds that are far away in the direction of the loop would never be reached
    far = LIMITS.max if (step > 0) != bound_first else LIMITS.min
    bounds = [x for x in bounds if x != far] or [0]
    program = in_a_loop(bound_first, step, number, inclusive)
    x, ends = 0.7, np.array(bounds)
    moved = program(x + 1e-30j, ends).imag * 1e30
    for backend in ("numpy", "native"):
        with wend.config(backend=backend):
            slope = wend.function(wend.grad(program))
            assert slope(x, ends) == pytest.approx(moved, rel=1e-12)
            twice = wend.function(wend.grad(wend.grad(program)))
            step_size = 1e-6
            change = slope(x + step_size, ends) - slope(x - step_size, ends)
            assert twice(x, ends) == pytest.approx(change / (2 * step_size), rel=1e-4, abs=1e-6)


def triangle(x: Any, n: Any) -> Any:
    for i in range(n):
        for _ in range(i):
            x = np.sin(x)
    return x


def table(x: Any, n: Any) -> Any:
    for _ in range(n):
        for _ in range(3):
            for _ in range(n):
                x = np.sin(x)
    return x


def until_small(x: Any, n: Any) -> Any:
    for _ in range(n):
        while x > 0.5:
            x = np.sin(x)
        x = x + 1.0
    return x


@pytest.mark.parametrize(("program", "counts"), [(triangle, 0), (table, 0), (until_small, 1)])
def test_records(program: Any, counts: int) -> None:
    graph = traced(program, 0.7, 4)
    forward = vjp(graph, [0], [0]).forward
    pushed = [node.operands[1].type for node in forward.walk() if node.op is lists.list_push]
    assert sum(str(type) == "i64[]" for type in pushed) == counts
