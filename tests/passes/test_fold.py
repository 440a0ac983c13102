"""Constants that cannot be computed with are left to the run."""

from __future__ import annotations

import numpy as np
import pytest

from wend.backends.numpy.backend import BACKEND
from wend.ir.types import Symbol, TensorType
from wend.ops import elementwise
from wend.ops.build import Build
from wend.passes.pipeline import OPTIMIZE, run_passes


def test_an_error_of_constants_is_raised_where_the_run_gets_there() -> None:
    b, taken, other = Build("f"), Build("taken"), Build("other")
    flag = b.param(TensorType(np.dtype("?"), ()))
    wrong = taken.gather(taken.constant(np.zeros(0)), taken.integer(0))
    node = b.if_(flag, [], [other.finish([other.constant(2.0)]), taken.finish([wrong])])
    run = BACKEND.compile(run_passes(b.finish(node.results), OPTIMIZE))
    arms = {flag: _outcome(run, flag) for flag in (False, True)}
    assert sorted(map(str, arms.values())) == ["2.0", "IndexError"]


def _outcome(run: object, flag: bool) -> object:
    try:
        return run([np.bool_(flag)])[0]  # type: ignore[operator]
    except IndexError:
        return "IndexError"


def test_other_constants_are_computed() -> None:
    b = Build("f")
    b_sum = b.add(b.constant(1.0), b.constant(2.0))
    (node,) = run_passes(b.finish([b_sum]), OPTIMIZE).nodes
    assert node.attrs["value"] == pytest.approx(3.0)


@pytest.mark.parametrize("size", [30, None])
def test_numbers_are_computed_before_they_are_broadcast(size: int | None) -> None:
    b = Build("f")
    x = b.param(TensorType(np.dtype("f8"), (size if size else Symbol("n"),)))
    exponent = b.full_like(x, -1.5)
    is_zero = b.eq(exponent, b.zeros_like(x))
    slope = b.mul(exponent, b.pow(x, b.select(is_zero, x, b.sub(exponent, b.ones_like(x)))))
    graph = run_passes(b.finish([slope]), OPTIMIZE)
    constants = [float(x.attrs["value"]) for x in graph.nodes if x.op.name == "constant"]
    assert sorted(constants) == [-2.5, -1.5]
    assert graph.ops.isdisjoint({elementwise.eq, elementwise.select, elementwise.sub})
    numbers = np.linspace(0.5, 2.0, 30)
    (found,) = BACKEND.compile(graph)([numbers])
    np.testing.assert_allclose(found, -1.5 * numbers**-2.5)


def test_constant_arrays_are_broadcast_to_constants() -> None:
    b = Build("f")
    row = b.constant(np.array([0.5, 1.0, 0.5]))
    spread = b.broadcast_to(row, shape=(2, 3))
    (node,) = run_passes(b.finish([spread]), OPTIMIZE).nodes
    np.testing.assert_array_equal(node.attrs["value"], [[0.5, 1.0, 0.5]] * 2)
