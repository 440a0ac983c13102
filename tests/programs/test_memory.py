"""Every program under each policy of `memory=`: the derivatives that `"keep"` gives."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.plain_programs import PLAIN
from tests.helpers.programs import PROGRAMS, Program
from wend.autodiff import checkpoints, rule_spill
from wend.autodiff.vjp import vjp
from wend.base.memory import Memory
from wend.ir import equal, parse

SLOTS = (1, 2, 3, 5)
POLICIES: list[Memory] = [
    *("recompute", "thin"),
    *map(wend.Every, SLOTS),
    *map(wend.Checkpoints, SLOTS),
]
_WITHOUT_LOOPS = {
    *("T55 cube", "T55 same", "T55 product", "T55 constant"),
    *("T57 log or zero", "K39 guarded", "K39 not guarded"),
}
WITH_LOOPS = [program for program in PROGRAMS if program.name not in _WITHOUT_LOOPS]
IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"


def policies_for(program: Program, form: str, backend: str) -> list[Memory]:
    """One policy, another for other programs, forms and backends; in long runs all."""
    policies = [*POLICIES, "spill"] if backend == "native" else POLICIES
    if IS_LONG:
        return policies
    return [policies[crc32(f"{program.name} {form} {backend}".encode()) % len(policies)]]


def derivatives(fun: Callable[..., Any], program: Program) -> list[Any]:
    """Value, gradient, gradient of the gradient's sum, tangent of that sum."""
    wrt = tuple(range(len(program.args)))
    value, gradient = wend.value_and_grad(fun, wrt)(*program.args)

    def summed(*args: Any) -> Any:
        return sum(wnp.sum(part) for part in wend.grad(fun, wrt)(*args))

    tangents = tuple(np.ones_like(arg) for arg in program.args)
    tangent = wend.jvp(summed, program.args, tangents)[1]
    return [value, *gradient, *wend.grad(summed, wrt)(*program.args), tangent]


@pytest.mark.sampled(40)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("form", ["functional", "plain"])
@pytest.mark.parametrize("program", WITH_LOOPS, ids=str)
def test_policies_give_the_derivatives_of_keep(
    program: Program, form: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_spill, "_SEGMENT_BYTES", 60)
    fun = program.fun if form == "functional" else PLAIN[program.name]
    with wend.config(backend=backend):
        expected = derivatives(fun, program)
        for policy in policies_for(program, form, backend):
            # Two and three slots are of segments of a few trips, others of a trip each.
            is_segmented = policy in (wend.Checkpoints(2), wend.Checkpoints(3))
            monkeypatch.setattr(checkpoints, "_MAX_TAPE", 80 if is_segmented else 0)
            with wend.config(memory=policy):
                actual = derivatives(fun, program)
            for a, b in zip(actual, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg=str(policy))


def settling(x: Any) -> Any:
    while x < 20.0:
        x = x + np.exp(np.sin(x))
    return x * x


def by_other_transforms(x: Any) -> list[Any]:
    """Derivatives by everything besides `grad` and `jvp`."""
    xs = x + np.array([0.1, 3.0, 25.0])
    _, linear = wend.linearize(settling, x)
    variable = wend.Variable(x)
    with wend.GradientTape() as tape:
        y = wend.function(settling)(variable)
    return [
        wend.vmap(wend.grad(settling))(xs),
        wend.grad(lambda v: np.sum(wend.vmap(settling)(v)))(xs),
        wend.vmap(wend.grad(wend.grad(settling)))(xs),
        wend.hessian(lambda v: settling(v[0]) * v[1])(np.array([x, 2.0])),
        wend.jacfwd(wend.grad(settling))(x),
        wend.jacrev(settling)(x),
        linear(1.0),
        tape.gradient(y, variable),
    ]


@pytest.mark.sampled
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize(
    "policy", ["recompute", "thin", wend.Every(3), wend.Checkpoints(3)], ids=str
)
def test_every_transform_takes_every_policy(
    policy: Memory, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On the reference a slot is of one trip, in machine code of three.
    monkeypatch.setattr(checkpoints, "_MAX_TAPE", 0 if backend == "numpy" else 24)
    with wend.config(backend=backend):
        expected = by_other_transforms(0.3)
        with wend.config(memory=policy):
            actual = by_other_transforms(0.3)
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11)


@pytest.mark.parametrize("policy", ["thin", wend.Every(3), wend.Checkpoints(3)], ids=str)
def test_graphs_of_a_policy_print_and_parse_back(policy: Memory) -> None:
    with wend.config(memory=policy):
        loop = wend.function(settling).get_concrete_function(0.3).graph
    pair = vjp(loop, [0], [0])
    for graph in (loop, pair.forward, pair.backward, vjp(pair.backward, [0], [0]).backward):
        assert equal(parse(str(graph)), graph)


def diffusing(u: Any, trips: Any) -> Any:
    for _ in range(trips):
        u = u + 0.1 * (np.roll(u, 1) - 2.0 * u + np.roll(u, -1)) + 0.01 * np.sin(u)
    return np.sum(u * u)


def squared_gradient(u: Any, trips: Any) -> Any:
    return np.sum(wend.grad(diffusing)(u, trips) ** 2)


def peak_bytes(fun: Callable[..., Any], backend: str, *args: Any) -> int:
    """The most bytes that a call of a compiled function holds at a time."""
    fun(*args)
    if backend == "native":
        runs = fun.get_concrete_function(*args).compiled.executables()  # type: ignore[attr-defined]
        return sum(run.peak_memory() for run in runs)
    tracemalloc.start()
    try:
        fun(*args)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("backend", "policy", "share", "times"),
    [
        ("numpy", "thin", 0.1, 3),
        pytest.param("numpy", wend.Every(32), 0.1, 3, marks=pytest.mark.slow),
        pytest.param("numpy", wend.Checkpoints(16), 0.06, 3, marks=pytest.mark.slow),
        pytest.param("numpy", wend.Checkpoints(32), 0.08, 3, marks=pytest.mark.slow),
        ("native", "recompute", 1.01, 3),
        ("native", "thin", 0.07, 3),
        ("native", wend.Every(32), 0.07, 3),
        # The second order differentiates the strip-mined form, whose segments are n/2 trips.
        ("native", wend.Checkpoints(16), 0.021, 6),
        ("native", wend.Checkpoints(32), 0.037, 4),
    ],
    ids=str,
)
def test_higher_orders_keep_little_more(
    backend: str, policy: Memory, share: float, times: float
) -> None:
    """A thousand trips; the second order takes at most so many times the memory of the first."""
    args = np.linspace(0.0, 1.0, 1000), 1000
    with wend.config(backend=backend, tape_keep=1 << 40):
        by_keep = peak_bytes(wend.grad(diffusing), backend, *args)
        with wend.config(memory=policy):
            first = peak_bytes(wend.grad(diffusing), backend, *args)
            second = peak_bytes(wend.grad(squared_gradient), backend, *args)
    assert first <= share * by_keep
    assert second <= times * first
