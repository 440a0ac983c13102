"""Whether a graph and its gradient give the same in native code as by the interpreter.

In strict mode to the last bit; else as near as rounding is known to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.fuzz.example import Example
from wend.autodiff.vjp import joint
from wend.backends.native.backend import BACKEND as NATIVE
from wend.backends.numpy.backend import BACKEND as NUMPY
from wend.backends.strict import same_bits, strict
from wend.ir import Graph
from wend.passes.pipeline import OPTIMIZE, run_passes

# How far apart results may be for each unit of what they may be as large as
TOL, SINGLE_TOL = 1e-9, 3e-4
# Of gradients nobody knows that; they may be this far apart for each unit of the largest number.
GRADIENT_TOL, SINGLE_GRADIENT_TOL = 1e-7, 3e-3


def check(example: Example, *, modes: Sequence[str] = ("strict", "loose")) -> None:
    """Run it both ways, with its gradient; the interpreter runs the graphs before any pass.

    Args:
        example: what is run.
        modes: those of native code; in strict mode it gives the interpreter's bits, too.

    Raises:
        AssertionError: they differ.
    """
    wrt = example.differentiable
    graph = example.graph
    if wrt:
        graph, _ = joint(graph, wrt, len(graph.results) - 1)
    optimized = run_passes(graph, OPTIMIZE)
    expected = outcome(NUMPY, graph, example.args)
    if isinstance(expected, Exception):
        # What raises may be of no use to any result; passes leave it out.
        expected = outcome(NUMPY, optimized, example.args)
    if "strict" in modes:
        found = check_strictly(strict(optimized), example.args)
        if not raise_alike(found, expected):
            check_near(example, found, expected)
    if "loose" in modes:
        found = outcome(NATIVE, optimized, example.args)
        if not raise_alike(found, expected):
            check_near(example, found, expected)


def check_near(example: Example, found: Sequence[Any], expected: Sequence[Any]) -> None:
    """Results and gradients are as near as rounding is known to be.

    Raises:
        AssertionError: they are not.
    """
    count = len(example.bounds)
    assert len(found) == len(expected)
    tol = SINGLE_TOL if example.is_single else TOL
    for k, bound in enumerate(example.bounds):
        near(found[k], expected[k], None if bound is None else tol * max(bound, 1.0), f"result {k}")
    tol = SINGLE_GRADIENT_TOL if example.is_single else GRADIENT_TOL
    with np.errstate(all="ignore"):
        finite = [
            np.abs(g[np.isfinite(g)]).max(initial=1.0) for g in map(np.asarray, expected[count:])
        ]
    for k in range(count, len(expected)):
        near(found[k], expected[k], tol * max(finite), f"gradient {k - count}")


def check_strictly(graph: Graph, args: Sequence[Any]) -> Any:
    """Both give the same bits; return them, or the error.

    Raises:
        AssertionError: they do not.
    """
    found, expected = outcome(NATIVE, graph, args), outcome(NUMPY, graph, args)
    if not raise_alike(found, expected):
        for k, (x, y) in enumerate(zip(found, expected, strict=True)):
            assert same_bits(x, y), f"result {k}, strictly: {x!r} is not {y!r}"
    return found


def raise_alike(found: Any, expected: Any) -> bool:
    """Whether both raise, or neither; which of several errors comes first is left open."""
    raising = [isinstance(x, Exception) for x in (found, expected)]
    assert raising[0] == raising[1], f"{found!r} is not {expected!r}"
    return all(raising)


def outcome(backend: Any, graph: Graph, args: Sequence[Any]) -> Any:
    """The results, or the error."""
    run = backend.compile(graph)  # whatever is refused here is a mistake of ours
    try:
        with np.errstate(all="ignore"):
            return run(args)
    except Exception as error:
        return error


def near(found: Any, expected: Any, tol: float | None, role: str) -> None:
    """Arrays of one type; numbers are equal, or no further apart than `tol`."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype, f"{role}: {found.dtype}, not {expected.dtype}"
    assert found.shape == expected.shape, f"{role}: {found.shape}, not {expected.shape}"
    if tol is None:
        np.testing.assert_array_equal(found, expected, err_msg=role)
    else:
        np.testing.assert_allclose(found, expected, rtol=0, atol=tol, err_msg=role)
