"""Whole programs as dataflow: lowered and raised again, and run in any order of their nodes."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import wend
from tests.fuzz.example import Example
from tests.fuzz.making import examples
from tests.helpers.dataflow import backends, check_round_trip
from tests.helpers.effect_programs import EffectProgram, effect_programs
from tests.helpers.graphs import traced
from tests.helpers.programs import PROGRAMS, Program
from wend.autodiff.vjp import joint
from wend.backends.numpy.backend import BACKEND as NUMPY
from wend.backends.strict import same_bits
from wend.ir import Graph
from wend.passes.pipeline import OPTIMIZE, run_passes


@pytest.fixture(params=["dataflow"])
def backend(request: pytest.FixtureRequest) -> str:
    """It runs on NumPy's arrays, and on no others."""
    return request.param


@pytest.fixture(params=PROGRAMS, ids=str)
def program(request: pytest.FixtureRequest) -> Program:
    return request.param


ORDERS = [0, *(pytest.param(k, marks=pytest.mark.sampled) for k in (1, 2))]


def forms(program: Program) -> list[Any]:
    """The program, its gradient, and the gradient of a sum of that."""
    wrt = tuple(range(len(program.args)))
    gradient = wend.grad(program.fun, wrt)
    return [program.fun, gradient, wend.grad(lambda *xs: sum(np.sum(g) for g in gradient(*xs)))]


def check_runs(graph: Graph, arguments: Any) -> None:
    """Every way to run a graph gives the bits of the reference."""
    optimized = run_passes(graph, OPTIMIZE)
    pairs = zip(arguments, graph.param_types, strict=True)
    arguments = [np.asarray(x, type.dtype)[()] for x, type in pairs]
    expected = NUMPY.compile(optimized)(arguments)
    for dataflow in backends():
        results = dataflow.compile(optimized)(arguments)
        assert all(map(same_bits, results, expected))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("order", ORDERS)
def test_every_order_gives_the_same_bits(program: Program, order: int, backend: str) -> None:
    concrete = wend.function(forms(program)[order]).get_concrete_function(*program.args)
    arrays = [*concrete.inputs.bind(program.args, {}).arrays]
    captured = [np.asarray(x) for x in concrete.captured_inputs]
    check_runs(concrete.graph, [*arrays, *captured])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("order", ORDERS)
def test_lowering_loses_nothing(program: Program, order: int, backend: str) -> None:
    check_round_trip(traced(forms(program)[order], *program.args))


@pytest.mark.parametrize("run", range(3))
@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(example=examples())
def test_random_graphs(run: int, backend: str, example: Example) -> None:
    graph = example.graph
    if example.differentiable:
        graph, _ = joint(graph, example.differentiable, len(graph.results) - 1)
    check_round_trip(graph)
    optimized = run_passes(graph, OPTIMIZE)
    expected = outcome(NUMPY, optimized, example.args)
    for dataflow in backends()[run::3]:
        results = outcome(dataflow, optimized, example.args)
        if isinstance(expected, Exception):
            assert (type(results), str(results)) == (type(expected), str(expected))
        else:
            assert all(map(same_bits, results, expected))


def outcome(backend: Any, graph: Graph, arguments: Any) -> Any:
    try:
        return backend.compile(graph)([x[()] for x in arguments])
    except Exception as error:
        return error


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(program=effect_programs)
def test_effects_stay_in_order(backend: str, program: EffectProgram) -> None:
    fun, _ = program.made(wend.function)
    check_round_trip(fun.get_concrete_function(np.float64(1.0), np.int64(3)).graph)
    expected = trace_of(program, NUMPY)
    for dataflow in backends():
        assert trace_of(program, dataflow) == expected


def trace_of(program: EffectProgram, backend: Any) -> list[Any]:
    """What calls return or raise and print, and what variables hold afterwards."""
    fun, variables = program.made(wend.function)
    concrete = fun.get_concrete_function(np.float64(1.0), np.int64(3))
    execute = backend.compile(run_passes(concrete.graph, OPTIMIZE))
    seen: list[Any] = []
    for x, n in [(0.5, 3), (-2.0, 4), (3.0, 0)]:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                arrays = [np.float64(x), np.int64(n)]
                results = concrete.traced.run(execute, arrays, backend.boundary)
                seen += [[float(y) for y in results]]
            except AssertionError as error:
                seen += [[str(error)]]
        seen += [printed.getvalue(), [np.array(v.concrete).tolist() for v in variables]]
    return seen
