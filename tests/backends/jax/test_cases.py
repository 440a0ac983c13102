"""Every row of the op table's tests on the JAX backend: as numpy has it, up to rounding."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.helpers.cases import (
    Case,
    graph_of,
    like,
    pull_back_graph,
    random_like,
    type_of,
    value_of,
    with_symbols,
)
from tests.ops.cases import CASES, DERIVED, NAMED

from wend.backends.jax.backend import BACKEND as JAX
from wend.backends.numpy.backend import BACKEND as NUMPY
from wend.base.errors import UnsupportedError, WendError
from wend.function.host.host_function import HostRun
from wend.ir.graph import Graph
from wend.runtime.array_boundary import is_array
from wend.runtime.sequence import Sequence as Items

# Units in the last place of the largest number of an array: what docs/jax.md promises
ULPS = 64

IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"

# Operations whose results have sizes that data decides, in rows without a size; it may only shrink
REFUSED = {"iota", "list_new", "list_stack", "nonzero", "spill", "unspill"}


def received(x: Any) -> Any:
    return JAX.boundary.receive(x) if is_array(x) else x


def outcome(backend: Any, graph: Graph, args: Sequence[Any]) -> Any:
    """The results, or what kind of error there is and what it says."""
    try:
        return backend.compile(graph)(args)
    except UnsupportedError:
        raise
    except Exception as error:
        return type(error), str(error), getattr(error, "__notes__", None)


def assert_close(found: Any, expected: Any, role: str, least: float = 0.0) -> None:
    """Equal but for rounding; integers, bools and dtypes are equal."""
    if isinstance(expected, (Items, list, tuple)):
        found, expected = (x.items() if isinstance(x, Items) else x for x in (found, expected))
        assert len(found) == len(expected), role
        for a, b in zip(found, expected, strict=True):
            assert_close(a, b, role, least)
        return
    if isinstance(expected, HostRun):
        assert isinstance(found, HostRun), role  # another run of the same
        return
    if not isinstance(expected, (np.ndarray, np.generic)):
        assert found is expected or found == expected, role
        return
    found = np.asarray(found)
    assert found.dtype == expected.dtype, role
    assert found.shape == expected.shape, f"{role}: {found.shape}, not {expected.shape}"
    if found.dtype.kind not in "fc":
        np.testing.assert_array_equal(found, expected, err_msg=role)
        return
    if found.dtype.kind == "c":  # C and XLA differ in which part of a number is not finite
        finite = np.isfinite(expected)
        found, expected = found[finite], expected[finite]
    tol = ULPS * float(np.finfo(found.dtype).eps)
    size = max(least, largest([expected]))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=tol * size, err_msg=role)


def largest(values: Sequence[Any]) -> float:
    """The largest finite number in arrays."""
    arrays = [np.asarray(x) for x in values if isinstance(x, (np.ndarray, np.generic))]
    floats = [np.abs(x[np.isfinite(x)]) for x in arrays if x.dtype.kind in "fc"]
    return max((float(np.max(x, initial=0.0)) for x in floats), default=0.0)


def check_row(case: Case, graph: Graph, args: Sequence[Any]) -> None:
    try:
        check(graph, args)
    except UnsupportedError:
        is_sized_by_operands = "Symbol(" in str(case.attrs)
        assert case.op in REFUSED or is_sized_by_operands


def check(graph: Graph, args: Sequence[Any], *, cancels: bool = False) -> None:
    expected = outcome(NUMPY, graph, args)
    found = outcome(JAX, graph, [received(x) for x in args])
    if isinstance(expected, tuple) and expected and isinstance(expected[0], type):
        assert found == expected
        return
    assert_close(found, expected, f"{graph}\non {args}", largest(args) if cancels else 0.0)


def cotangents(graph: Graph, args: Sequence[Any]) -> list[Any]:
    rng = np.random.default_rng(1)
    results = NUMPY.compile(graph)(args)
    return [ct for ct in (like(result, random_like(rng)) for result in results) if ct is not None]


@pytest.mark.sampled(32)
@pytest.mark.parametrize(argvalues=CASES, **NAMED)
def test_values(case: Case) -> None:
    every = (*case.samples, *case.smooth)  # each is compiled, which takes a while
    for operands in every if IS_LONG else every[:3]:
        check_row(case, graph_of(case, operands), [value_of(x) for x in operands])


@pytest.mark.slow
@pytest.mark.parametrize(argvalues=CASES, **NAMED)
def test_values_of_unknown_sizes(case: Case) -> None:
    if not case.symbolic:
        return
    for operands in (*case.samples, *case.smooth)[:2]:
        types = [with_symbols(type_of(x)) for x in operands]
        try:
            graph = graph_of(case, operands, types)
        except WendError:
            continue  # its shape rule wants to know sizes
        check_row(case, graph, [value_of(x) for x in operands])


@pytest.mark.slow
@pytest.mark.parametrize(argvalues=DERIVED, **NAMED)
def test_derivatives(case: Case) -> None:
    for operands in case.smooth[:1]:
        graph, args = graph_of(case, operands), [value_of(x) for x in operands]
        for _ in range(min(case.orders, 2)):
            back, wrt = pull_back_graph(graph, case.wrt)
            if not wrt:
                break
            args = [*args, *cotangents(graph, args)]
            graph = back
            check(graph, args, cancels=True)
