"""`memory="offload"`: the derivatives of the loop, with its records in the memory of the host."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest
from tests.autodiff.test_checkpoints import growing, in_place, power, reading_a_list
from tests.helpers.jax_runs import close
from tests.helpers.programs import PROGRAMS

import wend
from wend.autodiff import rule_spill
from wend.backends.jax.executable import XlaProgram
from wend.base.errors import UnsupportedError

TRIPS_A_SEGMENT = 4
SIZE = 3
HOST, DEVICE = jax.memory.Space.Host, jax.memory.Space.Device
X = np.linspace(0.2, 1.0, SIZE)


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(rule_spill, "_SEGMENT_BYTES", 8 * SIZE * TRIPS_A_SEGMENT)
    with wend.config(backend="jax"):
        yield


def walk(x: Any, trips: Any, memory: str = "offload") -> Any:
    for _ in wend.loop(range(trips), memory=memory):
        x = x + 0.1 * np.sin(x)
    return np.sum(x * x)


def nested(x: Any, trips: Any, memory: str = "offload") -> Any:
    for _ in wend.loop(range(trips), memory=memory):
        y = x
        while np.sum(y) < 3.0:
            y = y + 0.3 * np.sin(y) + 0.1
        x = 0.5 * (x + 0.2 * y)
    return np.sum(x * x)


def searching(x: Any, trips: Any, memory: str = "offload") -> Any:
    total = 0.0
    for k in wend.loop(range(trips), memory=memory):
        x = x + 0.1 * np.sin(x[::-1])
        total = total + (x[0] * x[1] if x[1] > 0.6 else x[1]) / (k + 1.0)
        if x[0] > 2.0:
            break
    return total + x[2]


def second(fun: Callable[..., Any]) -> Callable[..., Any]:
    return wend.grad(lambda x, *rest: np.sum(np.sin(wend.grad(fun)(x, *rest))))


@pytest.mark.parametrize("fun", [walk, nested, searching])
def test_the_same_gradients(fun: Callable[..., Any]) -> None:
    """At numbers of trips around segments, and around the capacity of the list of segments."""
    moved = wend.value_and_grad(lambda x, n: fun(x, n))
    kept = wend.value_and_grad(lambda x, n: fun(x, n, "keep"))
    for trips in (0, 1, 3, 4, 5, 8, 9, 64, 65):
        close(moved(X, np.int64(trips)), kept(X, np.int64(trips)))


@pytest.mark.parametrize("fun", [walk, pytest.param(nested, marks=pytest.mark.slow)])
def test_second_order(fun: Callable[..., Any]) -> None:
    for trips in map(np.int64, (0, 20)):
        close(second(fun)(X, trips), second(lambda x, n: fun(x, n, "keep"))(X, trips))


@pytest.mark.slow
@pytest.mark.parametrize("fun", [in_place, growing, reading_a_list])
def test_arrays_in_place_and_lists(fun: Callable[..., Any]) -> None:
    expected = wend.grad(fun)(0.7), second(fun)(0.7)
    with wend.config(memory="offload"):
        close((wend.grad(fun)(0.7), second(fun)(0.7)), expected)


def test_an_exit_in_the_middle() -> None:
    for trips in (0, 1, 13):
        expected = wend.grad(power)(0.6, trips)
        with wend.config(memory="offload"):
            close(wend.grad(power)(0.6, trips), expected)


@pytest.mark.sampled(32)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_programs(program: Any) -> None:
    """Each program has the gradient of "keep", unless a loop of it is not outside of all others."""
    wrt = tuple(range(len(program.args)))
    expected = wend.value_and_grad(program.fun, wrt)(*program.args)
    try:
        with wend.config(memory="offload"):
            results = wend.value_and_grad(program.fun, wrt)(*program.args)
    except UnsupportedError as error:
        if "only loops outside of all others" not in str(error):
            raise
        return
    close(results, expected)


def test_residuals_of_one_run_are_read_by_another() -> None:
    concrete = wend.function(walk).get_concrete_function(X, np.int64(3))
    for trips in map(np.int64, (0, 6, 80)):
        _, run = concrete.forward(X, trips)
        (gradient, *_) = concrete.backward(run, 1.0)
        close(gradient, wend.grad(lambda x, n: walk(x, n, "keep"))(X, trips))


# What programs hold, and move
def jaxpr_of(monkeypatch: pytest.MonkeyPatch, fun: Any, *args: Any) -> Any:
    """The last program that a call runs."""
    programs: list[Any] = []
    run = XlaProgram.__call__

    def traced(self: XlaProgram, leaves: Any) -> Any:
        programs.append(jax.make_jaxpr(self._function)(leaves))
        return run(self, leaves)

    with monkeypatch.context() as patch:
        patch.setattr(XlaProgram, "__call__", traced)
        fun(*args)
    return programs[-1].jaxpr


def inner_jaxprs(equation: Any) -> Iterator[Any]:
    for value in equation.params.values():
        for part in value if isinstance(value, (tuple, list)) else [value]:
            part = getattr(part, "jaxpr", part)
            if hasattr(part, "eqns"):
                yield part


def equations(jaxpr: Any, loops: int = 0) -> Iterator[tuple[Any, int]]:
    """Each equation, with the number of loops around it."""
    for equation in jaxpr.eqns:
        yield equation, loops
        for inner in inner_jaxprs(equation):
            yield from equations(inner, loops + (equation.primitive.name == "while"))


def test_the_device_holds_two_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    jaxpr = jaxpr_of(monkeypatch, wend.grad(walk), X, np.int64(50))
    segment, on_host = (TRIPS_A_SEGMENT, SIZE), 0
    for equation, _ in equations(jaxpr):
        for variable in equation.outvars:
            is_row = SIZE in variable.aval.shape
            if variable.aval.memory_space == HOST:
                on_host += 1
            elif is_row:  # one segment, and no rows of them
                assert variable.aval.size <= np.prod(segment), equation
    assert on_host
    loops = [eqn for eqn, depth in equations(jaxpr) if eqn.primitive.name == "while" and not depth]
    forward, backward = loops
    for loop in forward, backward:  # each carries one, and makes or reads another
        body = loop.params["body_jaxpr"].jaxpr
        carried = [v.aval.shape for v in body.outvars if v.aval.memory_space == DEVICE]
        assert carried.count(segment) == 1


def moves(jaxpr: Any) -> Counter[tuple[str, int]]:
    """How many arrays are moved to where, by the number of loops around."""
    return Counter(
        (space.name, loops)
        for equation, loops in equations(jaxpr)
        if equation.primitive.name == "device_put"
        for space in equation.params["devices"]
        if isinstance(space, jax.memory.Space)
    )


def test_a_segment_moves_once_each_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once in a trip over segments; the last to leave and the first to come are outside."""
    jaxpr = jaxpr_of(monkeypatch, wend.grad(walk), X, np.int64(50))
    assert moves(jaxpr) == {("Host", 1): 1, ("Host", 0): 1, ("Device", 1): 1, ("Device", 0): 1}


def test_what_moves_is_not_what_the_trip_computes_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """So XLA may copy it meanwhile: one comes from the carry, and the other goes to it."""
    jaxpr = jaxpr_of(monkeypatch, wend.grad(walk), X, np.int64(50))
    forward, backward = (
        eqn.params["body_jaxpr"].jaxpr
        for eqn, depth in equations(jaxpr)
        if eqn.primitive.name == "while" and not depth
    )
    (leaving,) = (eqn for eqn in forward.eqns if eqn.primitive.name == "device_put")
    assert leaving.invars[0] in forward.invars
    (coming,) = (eqn for eqn in backward.eqns if eqn.primitive.name == "device_put")
    assert coming.outvars[0] in backward.outvars
    assert not any(coming.outvars[0] in eqn.invars for eqn in backward.eqns)


def test_programs_for_gpus_annotate_what_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered: list[str] = []
    run = XlaProgram.__call__

    def lower(self: XlaProgram, leaves: Any) -> Any:
        traced = self._function.trace(leaves)  # type: ignore[attr-defined]
        lowered.append(traced.lower(lowering_platforms=("cuda",)).as_text())
        return run(self, leaves)

    monkeypatch.setattr(XlaProgram, "__call__", lower)
    wend.grad(walk)(X, np.int64(50))
    assert lowered[-1].count('_xla_buffer_placement = "pinned_host"') == 2
    assert lowered[-1].count('_xla_buffer_placement = "device"') == 2


# What is refused
def in_a_loop(x: Any) -> Any:
    for _ in range(np.int64(3)):
        x = x + walk(np.stack([x, x, x]), np.int64(5)) * 0.01
    return x


def in_a_branch(x: Any) -> Any:
    return walk(np.stack([x, x, x]), np.int64(5)) if x > 0.0 else x


def in_a_map(x: Any) -> Any:
    return np.sum(wend.vmap(lambda row: walk(row, np.int64(5)))(x * np.ones((2, 2))))


@pytest.mark.parametrize(
    ("fun", "where"),
    [(in_a_loop, "another loop"), (in_a_branch, "a branch"), (in_a_map, "a map")],
)
def test_only_outermost_loops(fun: Callable[..., Any], where: str) -> None:
    assert np.isfinite(wend.function(fun)(0.5))
    message = rf'the loop at test_offload.py:\d+ has memory="offload", and is in {where}'
    with pytest.raises(UnsupportedError, match=message):
        wend.grad(fun)(0.5)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_other_backends_name_the_one_that_has_it(backend: str) -> None:
    with wend.config(backend=backend):
        assert np.isfinite(walk(X, 5))
        with pytest.raises(UnsupportedError, match=r'memory="offload"(.|\n)*backend="jax"'):
            wend.grad(walk)(X, np.int64(5))


def test_explain_says_where_a_tape_is() -> None:
    slope = wend.grad(walk)
    slope(X, np.int64(5))
    assert "moves the tape of the loop at test_offload.py" in slope.explain()


SHARDED = """
import jax, numpy as np, wend
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
from wend.autodiff import rule_spill

jax.config.update("jax_enable_x64", True)
rule_spill._SEGMENT_BYTES = 64 * 8 * 4
wend.config(backend="jax")

def walk(x, trips, memory):
    for _ in wend.loop(range(trips), memory=memory):
        x = x + 0.1 * np.sin(x)
    return np.sum(x * x)

x, slope = np.linspace(0.1, 1.0, 64), wend.grad(walk)
expected = slope(x, np.int64(50), "keep")
explicit = jax.make_mesh((8,), ("batch",), axis_types=(AxisType.Explicit,))
for mesh in Mesh(np.array(jax.devices()), ("batch",)), explicit:
    spread = jax.device_put(x, NamedSharding(mesh, P("batch")))
    gradient = slope(spread, np.int64(50), "offload")
    np.testing.assert_allclose(gradient, expected, rtol=1e-12)
    assert gradient.sharding.spec == P("batch"), gradient.sharding
"""


def test_rows_on_eight_devices() -> None:
    flags = "--xla_force_host_platform_device_count=8"
    subprocess.run(
        [sys.executable, "-c", SHARDED], check=True, env={**os.environ, "XLA_FLAGS": flags}
    )
