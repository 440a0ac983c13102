"""Every row of the op table's tests on the JAX backend: as numpy has it, up to rounding."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
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
from tests.ops.cases.spilling import LOOP, ROWS, SPILL

from wend.backends.jax.backend import BACKEND as JAX
from wend.backends.numpy.backend import BACKEND as NUMPY
from wend.base.errors import UnsupportedError, WendError
from wend.function.host.host_function import HostRun
from wend.ir.graph import Graph
from wend.ir.op import Effect
from wend.ir.rewrite import inline
from wend.ir.types import HOST, Type
from wend.ops.build import Build
from wend.ops.spilling import SEGMENTS, spill, unspill
from wend.runtime.array_boundary import is_array
from wend.runtime.sequence import Sequence as Items

# Units in the last place of the largest number of an array: what docs/jax.md promises
ULPS = 64

BY_OP = {case.op: [other for other in CASES if other.op == case.op] for case in CASES}

# Operations whose results have sizes that data decides, in rows without a size; it may only shrink
REFUSED = {
    "broadcast_to",
    "iota",
    "list_new",
    "list_stack",
    "narrow",
    "nonzero",
    "reshape",
    "sum_to",
}
# Of these, what runs where no number is known either, or never does
UNSIZED = {"list_new", "list_stack", "nonzero"}
REFUSAL = (
    r'backend="jax": the shape of .* depends on data, and programs of XLA have arrays of known'
    r'|backend="jax" does not take an empty list of f64\[s2\] that another backend has made'
)


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


def is_error(outcome: Any) -> bool:
    return isinstance(outcome, tuple) and bool(outcome) and isinstance(outcome[0], type)


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


def check(graph: Graph, args: Sequence[Any], *, cancels: bool = False) -> None:
    expected = outcome(NUMPY, graph, args)
    found = outcome(JAX, graph, [received(x) for x in args])
    if is_error(expected):
        assert found == expected
        return
    assert_close(found, expected, f"{graph}\non {args}", largest(args) if cancels else 0.0)


def check_row(
    case: Case,
    operands: Sequence[Any],
    types: Sequence[Type] | None = None,
    run: Callable[[Graph, Sequence[Any]], None] = check,
) -> None:
    """Check a row; one that is refused runs where integers, such as sizes, are constants."""
    if case.record in SEGMENTS:
        check_segments(case, operands)
        return
    try:
        run(graph_of(case, operands, types), [value_of(x) for x in operands])
    except UnsupportedError as error:
        refused = str(error)
    else:
        return
    assert case.op in REFUSED
    assert re.search(REFUSAL, refused)
    if case.op not in UNSIZED:
        run(*with_constants(case, operands, types))


def with_constants(
    case: Case, operands: Sequence[Any], types: Sequence[Type] | None
) -> tuple[Graph, list[Any]]:
    """The graph of a row whose integers are constants, and its arguments."""
    b, args, inputs = Build(case.op), [], []
    for x, type in zip(map(value_of, operands), types or map(type_of, operands), strict=True):
        if np.asarray(x).dtype.kind in "iu":
            inputs.append(b.constant(x))
        else:
            inputs.append(b.param(type))
            args.append(x)
    return b.finish(b.emit_node(case.record, inputs, **case.attrs).results), args


def check_segments(case: Case, operands: Sequence[Any]) -> None:
    """What one program spills another one reads."""
    x, attrs = value_of(operands[0]), {**LOOP, **ROWS}
    if case.record is unspill:
        x, attrs = x.read(case.attrs["index"]), {**case.attrs, "index": 0}
    spilling, reading = Build("spilled"), Build("unspilled")
    type = attrs["type"] if isinstance(x, Items) else type_of(x)
    segment = spilling.emit(spill, spilling.param(type), **SPILL, **LOOP)
    value = reading.emit(unspill, reading.param(HOST), **attrs)
    graphs = spilling.finish([segment]), reading.finish([value])
    for backend, y in ((NUMPY, x), (JAX, received(x))):
        first, second = map(backend.compile, graphs)
        assert_close(second(first([y])), [x], str(case))


def cotangents(graph: Graph, args: Sequence[Any]) -> list[Any]:
    rng = np.random.default_rng(1)
    results = NUMPY.compile(graph)(args)
    return [ct for ct in (like(result, random_like(rng)) for result in results) if ct is not None]


def is_alone(case: Case, graph: Graph, args: Sequence[Any]) -> bool:
    """Whether a row is refused, raises an error or has an effect: no other can be beside it."""
    is_unsized = case.op in UNSIZED or re.search("Symbol|None", str(case.attrs)) is not None
    if case.record in SEGMENTS or case.record.effect is not Effect.NONE:
        return True
    return (case.op in REFUSED and is_unsized) or is_error(outcome(NUMPY, graph, args))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("op", BY_OP)
def test_rows_of_an_operation(op: str) -> None:
    """All rows are compiled as one program, which takes a fraction of the time."""
    b, args, results, expected = Build(op), [], [], []
    for case in BY_OP[op]:
        for operands in (*case.samples, *case.smooth)[:2]:
            graph, values = graph_of(case, operands), [value_of(x) for x in operands]
            if is_alone(case, graph, values):
                check_row(case, operands)
                continue
            results += inline(graph, [b.param(param.type) for param in graph.params], b.nodes)
            args += map(received, values)
            expected += outcome(NUMPY, graph, values)
    assert_close(JAX.compile(b.finish(results))(args), expected, op)


@pytest.mark.slow
@pytest.mark.parametrize(argvalues=CASES, **NAMED)
def test_values(case: Case) -> None:
    for operands in (*case.samples, *case.smooth):
        check_row(case, operands)


@pytest.mark.slow
@pytest.mark.parametrize(argvalues=CASES, **NAMED)
def test_values_of_unknown_sizes(case: Case) -> None:
    if not case.symbolic:
        return
    for operands in (*case.samples, *case.smooth)[:2]:
        types = [with_symbols(type_of(x)) for x in operands]
        try:
            graph_of(case, operands, types)
        except WendError:
            continue  # its shape rule wants to know sizes
        check_row(case, operands, types)


def check_derivatives(case: Case, graph: Graph, args: Sequence[Any]) -> None:
    for _ in range(min(case.orders, 2)):
        back, wrt = pull_back_graph(graph, case.wrt)
        if not wrt:
            break
        args = [*args, *cotangents(graph, args)]
        graph = back
        check(graph, args, cancels=True)


@pytest.mark.slow
@pytest.mark.parametrize(argvalues=DERIVED, **NAMED)
def test_derivatives(case: Case) -> None:
    for operands in case.smooth[:1]:
        check_row(case, operands, run=lambda graph, args: check_derivatives(case, graph, args))
