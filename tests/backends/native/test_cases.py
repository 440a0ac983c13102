"""Every row of the op table's tests on the native backend: as numpy has it, at every order."""

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
    lowered,
    lowered_type,
    moving,
    pull_back_graph,
    push_graph,
    random_like,
    type_of,
    value_of,
    with_symbols,
)
from tests.ops.cases import CASES, DERIVED, NAMED

from wend.backends.native.backend import BACKEND as NATIVE
from wend.backends.numpy.backend import BACKEND as NUMPY
from wend.base.errors import WendError
from wend.function.host.host_function import HostRun
from wend.ir.graph import Graph
from wend.runtime.sequence import Sequence as Items
from wend.runtime.spool import SpoolSegment

IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"


def outcome(backend: Any, graph: Graph, args: Sequence[Any]) -> Any:
    """The results, or what kind of error there is and what it says."""
    try:
        return backend.compile(graph)(args)
    except Exception as error:
        return type(error), str(error), getattr(error, "__notes__", None)


def assert_close(found: Any, expected: Any, role: str, least: float = 0.0) -> None:
    """Equal but for rounding; integers, bools and dtypes are equal.

    `least`: the size of terms that the numbers may be differences of.
    """
    if isinstance(expected, (Items, list, tuple)):
        found, expected = (x.items() if isinstance(x, Items) else x for x in (found, expected))
        assert len(found) == len(expected), role
        for a, b in zip(found, expected, strict=True):
            assert_close(a, b, role, least)
        return
    if isinstance(expected, (HostRun, SpoolSegment)):
        assert isinstance(found, type(expected)), role  # of another run of the same
        return
    if not isinstance(expected, (np.ndarray, np.generic)):
        assert found is expected or found == expected, role
        return
    assert isinstance(found, np.ndarray) == bool(found.ndim), f"{role}: {type(found)}"
    assert found.dtype == expected.dtype, role
    assert found.shape == expected.shape, f"{role}: {found.shape}, not {expected.shape}"
    if found.dtype.kind not in "fc":
        np.testing.assert_array_equal(found, expected, err_msg=role)
        return
    tol = (64 if least else 16) * float(np.finfo(found.dtype).eps)
    size = max(least, largest([expected]))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, expected, rtol=tol, atol=tol * size, err_msg=role)


def largest(values: Sequence[Any]) -> float:
    """The largest finite number in arrays."""
    arrays = [np.asarray(x) for x in values if isinstance(x, (np.ndarray, np.generic))]
    floats = [np.abs(x[np.isfinite(x)]) for x in arrays if x.dtype.kind in "fc"]
    return max((float(np.max(x, initial=0.0)) for x in floats), default=0.0)


def check(graph: Graph, args: Sequence[Any], *, cancels: bool = False) -> None:
    expected = outcome(NUMPY, graph, args)
    found = outcome(NATIVE, graph, args)
    if isinstance(expected, tuple) and expected and isinstance(expected[0], type):
        assert found == expected
        return
    assert_close(found, expected, f"{graph}\non {args}", largest(args) if cancels else 0.0)


def cotangents(graph: Graph, args: Sequence[Any]) -> list[Any]:
    rng = np.random.default_rng(1)
    results = NUMPY.compile(graph)(args)
    return [ct for ct in (like(result, random_like(rng)) for result in results) if ct is not None]


@pytest.mark.sampled(8)
@pytest.mark.parametrize(argvalues=CASES, **NAMED)
def test_values(case: Case) -> None:
    every = (*case.samples, *case.smooth)
    for operands in every if IS_LONG else every[::2]:
        check(graph_of(case, operands), [value_of(x) for x in operands])


@pytest.mark.sampled(30)
@pytest.mark.parametrize(argvalues=CASES, **NAMED)
def test_values_of_unknown_sizes(case: Case) -> None:
    if not case.symbolic:
        return
    for operands in (*case.samples, *case.smooth):
        types = [with_symbols(type_of(x)) for x in operands]
        try:
            graph = graph_of(case, operands, types)
        except WendError:
            continue  # its shape rule wants to know sizes
        check(graph, [value_of(x) for x in operands])


@pytest.mark.sampled(30)
@pytest.mark.parametrize(argvalues=DERIVED, **NAMED)
def test_derivatives(case: Case) -> None:
    for operands in case.smooth[:2]:
        graph, args = graph_of(case, operands), [value_of(x) for x in operands]
        for _ in range(min(case.orders, 2)):
            back, wrt = pull_back_graph(graph, case.wrt)
            if not wrt:
                break
            args = [*args, *cotangents(graph, args)]
            graph = back
            check(graph, args, cancels=True)


@pytest.mark.sampled
@pytest.mark.parametrize(argvalues=DERIVED, **NAMED)
def test_tangents(case: Case) -> None:
    for operands in case.smooth[:1]:
        graph, args = graph_of(case, operands), [value_of(x) for x in operands]
        rng = np.random.default_rng(1)
        ahead, _ = push_graph(graph, case.wrt)
        given = [like(args[i], random_like(rng)) for i in moving(graph, case.wrt)]
        check(ahead, [*args, *given], cancels=True)


@pytest.mark.sampled
@pytest.mark.parametrize(
    argvalues=[case for case in DERIVED if not {"dtype", "type", "function"} & set(case.attrs)],
    **NAMED,
)
def test_derivatives_in_32_bits(case: Case) -> None:
    for operands in case.smooth[:1]:
        args = [value_of(x) for x in operands]
        low, low_types = lowered(args), [lowered_type(type_of(x)) for x in operands]
        graph = graph_of(case, operands, low_types)
        check(graph, low, cancels=True)
        back, wrt = pull_back_graph(graph, case.wrt)
        if wrt:
            check(back, [*low, *lowered(cotangents(graph, low))], cancels=True)


@pytest.mark.sampled(30)
@pytest.mark.parametrize(argvalues=[case for case in DERIVED if case.symbolic], **NAMED)
def test_derivatives_of_unknown_sizes(case: Case) -> None:
    for operands in case.smooth[:1]:
        args = [value_of(x) for x in operands]
        graph = graph_of(case, operands, [with_symbols(type_of(x)) for x in operands])
        back, wrt = pull_back_graph(graph, case.wrt)
        if wrt:
            check(back, [*args, *cotangents(graph, args)], cancels=True)
