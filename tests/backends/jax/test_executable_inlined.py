"""Functions with `backend="jax"` in programs of JAX: a part of them, under every transform."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wend
from wend.base.errors import TypeMismatchError, UnsupportedError, VariableError
from wend.interop.jax import as_jax


# Loops whose trips are bounded, however many they make
def counted(a: Any) -> Any:
    x, k = a, 0
    while np.abs(x * x - a) > 1e-9 * a and k < 60:
        x, k = 0.5 * (x + a / x), k + 1
    return x


def limited(a: Any) -> Any:
    return wend.while_loop(
        lambda x: np.abs(x * x - a) > 1e-9 * a,
        lambda x: 0.5 * (x + a / x),
        a,
        maximum_iterations=60,
    )


def left(a: Any) -> Any:
    x = a
    for k in range(50):
        if x > 100.0:
            break
        x = x * (1.1 + 0.01 * k) + np.sin(a)
    return x


def nested(a: Any) -> Any:
    total = 0.0
    for k in range(4):
        if total > 5.0:
            break
        total = total + counted(a + k)
    return total


def listed(a: Any) -> Any:
    out = []
    for k in range(5):
        a = np.sin(a) + 0.1 * k
        out.append(a)
    return np.sum(np.stack(out) ** 2)


def kept_in_branches(a: Any) -> Any:
    """A trip pushes at most once, so the list has a bound."""
    out = []
    for k in range(5):
        a = np.sin(a) + 0.1 * k
        if a > 0.9:
            out.append(a)
        elif a > 0.3:
            out.append(a * a)
    return np.sum(np.array(out) ** 2)


def branching(a: Any) -> Any:
    return counted(a) if a > 3.0 else left(a) * a


# … and one of which nothing is known
def free(a: Any) -> Any:
    x = a
    while np.abs(x * x - a) > 1e-9 * a:
        x = 0.5 * (x + a / x)
    return x


SLOW = [pytest.param(fun, marks=pytest.mark.slow) for fun in (nested, branching)]
POINTS = np.array([2.0, 4.0, 9.0])


def on_jax(fun: Callable[..., Any]) -> Any:
    return wend.function(fun, backend="jax")


def expected(fun: Callable[..., Any]) -> list[Any]:
    run = wend.function(fun, backend="numpy")
    return [run(x) for x in POINTS]


@pytest.mark.parametrize("fun", [counted, limited, left, listed, kept_in_branches, *SLOW])
def test_transforms_around_a_call(fun: Callable[..., Any]) -> None:
    f, xs = on_jax(fun), jnp.asarray(POINTS)
    close = np.testing.assert_allclose
    close(jax.jit(jax.vmap(f))(xs), expected(fun), rtol=1e-9)
    close([jax.jit(jax.grad(f))(x) for x in xs], expected(wend.grad(fun)), rtol=1e-9)
    close(jax.jit(jax.vmap(jax.grad(f)))(xs), expected(wend.grad(fun)), rtol=1e-9)
    pushed = jax.jit(lambda x: jax.jvp(f, (x,), (2.0,))[1])(xs[0])
    close(pushed, 2.0 * expected(wend.grad(fun))[0], rtol=1e-9)


@pytest.mark.parametrize("fun", [counted, listed, SLOW[0]])
def test_second_order(fun: Callable[..., Any]) -> None:
    f, xs = on_jax(fun), jnp.asarray(POINTS)
    second = expected(wend.grad(wend.grad(fun)))
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(jax.grad(f))))(xs), second, rtol=1e-9)
    np.testing.assert_allclose(jax.jit(jax.hessian(f))(xs[1]), second[1], rtol=1e-9)


def test_derivatives_of_wend_are_traced_too() -> None:
    slope = wend.grad(on_jax(counted))
    found = jax.jit(lambda xs: jax.lax.map(slope, xs))(jnp.asarray(POINTS))
    np.testing.assert_allclose(found, expected(wend.grad(counted)), rtol=1e-9)


def test_as_jax_of_such_a_function_is_a_part_of_the_program() -> None:
    f = as_jax(on_jax(counted))
    text = jax.jit(jax.grad(f)).lower(2.0).compile().as_text()
    assert "while" in text
    assert "custom-call" not in text


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_a_loop_that_reaches_its_bound_stops(limit: int) -> None:
    def doubled(x: Any) -> Any:
        return wend.while_loop(lambda v: v < 8.0, lambda v: v * v, x, maximum_iterations=limit)

    f = on_jax(doubled)
    assert float(jax.jit(f)(1.5)) == 1.5 ** (2**limit)
    assert float(jax.jit(jax.grad(f))(1.5)) == wend.grad(doubled)(1.5)


def test_a_tape_without_a_bound_is_refused_in_a_trace_only() -> None:
    f = on_jax(free)
    np.testing.assert_allclose(jax.jit(f)(4.0), 2.0)
    np.testing.assert_allclose(jax.grad(f)(4.0), 0.25)  # the host sees the run
    np.testing.assert_allclose(jax.vmap(jax.grad(f))(jnp.array([4.0, 16.0])), [0.25, 0.125])
    with pytest.raises(UnsupportedError, match=r"the loop at (.|\n)*maximum_iterations=n"):
        jax.jit(jax.grad(f))(4.0)


def test_checkpoints_bound_what_is_kept_of_any_loop() -> None:
    def walk(x: Any) -> Any:
        while x < 300.0:  # hundreds of trips, so segments of many
            x = x + 0.1 * np.sin(x) ** 2 + 0.05
        return x

    with wend.config(memory=wend.Checkpoints(3)):
        for fun in free, walk:
            found = jax.jit(jax.vmap(jax.grad(on_jax(fun))))(jnp.asarray(POINTS))
            np.testing.assert_allclose(found, expected(wend.grad(fun)), rtol=1e-9)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("memory", ["keep", "thin", "recompute", wend.Every(4)], ids=str)
def test_a_tape_without_a_bound_is_refused_whatever_the_policy(memory: Any) -> None:
    slope = jax.grad(on_jax(free))
    with wend.config(memory=memory):
        for run in slope, jax.grad(slope):
            with pytest.raises(
                UnsupportedError, match=r"To fix it: bound the(.|\n)*Checkpoints\(n"
            ):
                jax.jit(run)(4.0)


def test_second_gradients_under_checkpoints_are_refused_with_the_cure() -> None:
    with wend.config(memory=wend.Checkpoints(3)):
        with pytest.raises(UnsupportedError, match=r'and keep (.|\n)*"keep"(.|\n)*first gradients'):
            jax.jit(jax.grad(jax.grad(on_jax(limited))))(4.0)
    second = jax.jit(jax.grad(jax.grad(on_jax(limited))))  # as the cure says
    np.testing.assert_allclose(second(4.0), -0.03125, rtol=1e-9)


@pytest.mark.parametrize("memory", ["thin", wend.Every(4)], ids=str)
@pytest.mark.parametrize("fun", [counted, limited])
def test_policies_that_are_refused_where_trips_have_a_bound(
    fun: Callable[..., Any], memory: Any
) -> None:
    with wend.config(memory=memory):
        with pytest.raises(UnsupportedError, match=r"has no bound(.|\n)*keep(.|\n)*Checkpoints\(n"):
            jax.jit(jax.grad(on_jax(fun)))(4.0)
    slope = jax.jit(jax.grad(on_jax(fun)))(4.0)  # as the cure says
    np.testing.assert_allclose(slope, 0.25, rtol=1e-9)


def checked(a: Any) -> Any:
    if a < 0:
        raise ValueError(f"negative: {a}")
    return counted(a)


@pytest.mark.parametrize("fun", [checked, wend.grad(checked)])
def test_a_failing_check_is_an_error_of_jax(fun: Callable[..., Any]) -> None:
    run = jax.jit(jax.vmap(on_jax(fun)))
    np.testing.assert_allclose(run(jnp.asarray(POINTS)), expected(fun), rtol=1e-9)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"ValueError: negative: -9\.0(.|\n)*t 1"):
        jax.block_until_ready(run(jnp.array([4.0, -9.0])))


def test_pytrees_static_arguments_and_dtypes() -> None:
    @wend.function(backend="jax", static_argnames="power")
    def scaled(tree: Any, power: int, mode: str) -> Any:
        return {"y": tree["x"] ** power if mode == "up" else tree["x"], "one": np.float32(1.0)}

    run = jax.jit(lambda x: (scaled({"x": x}, 3, "up"), scaled({"x": x}, power=2, mode="up")))
    third, second = run(jnp.float32(2.0))
    assert (float(third["y"]), float(second["y"])) == (8.0, 4.0)
    assert third["y"].dtype == third["one"].dtype == np.float32


def test_32_bits() -> None:
    jax.config.update("jax_enable_x64", False)
    found = jax.jit(jax.grad(on_jax(counted)))(4.0)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, 0.25, rtol=1e-5)


def test_what_a_program_cannot_hold_is_refused() -> None:
    v = wend.Variable(2.0)
    with pytest.raises(VariableError, match=r"JAX's trace of (.|\n)*pass its value as an argument"):
        jax.jit(on_jax(lambda x: x * v.value))(2.0)
    with pytest.raises(TypeMismatchError, match="it prints, or calls Python"):
        jax.jit(on_jax(lambda x: print(x)))(2.0)


SHARDED = """
import jax, jax.numpy as jnp, numpy as np, wend
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

jax.config.update("jax_enable_x64", True)

@wend.function(backend="jax")
def root(a):
    x, k = a, 0
    while np.abs(x * x - a) > 1e-12 * a and k < 60:
        x, k = 0.5 * (x + a / x), k + 1
    return x

mesh = Mesh(np.array(jax.devices()), ("batch",))
xs = jax.device_put(np.linspace(2.0, 900.0, 64), NamedSharding(mesh, P("batch")))
for fun, expected in (root, np.sqrt(xs)), (jax.grad(root), 0.5 / np.sqrt(xs)):
    options = dict(mesh=mesh, in_specs=P("batch"), out_specs=P("batch"))
    run = jax.jit(jax.shard_map(jax.vmap(fun), **options))
    np.testing.assert_allclose(run(xs), expected, rtol=1e-9)
    text = run.lower(xs).compile().as_text()  # each device makes the trips of its own elements
    assert "while" in text and "all-" not in text and "custom-call" not in text
total = jax.grad(lambda xs: jnp.sum(jax.shard_map(jax.vmap(root), **options)(xs)))
np.testing.assert_allclose(jax.jit(total)(xs), 0.5 / np.sqrt(xs), rtol=1e-9)
print(jax.jit(jax.vmap(root))(xs).sharding.spec)
"""


def test_each_device_makes_the_trips_of_its_own_elements(tmp_path: Path) -> None:
    script = tmp_path / "sharded.py"
    script.write_text(SHARDED, encoding="utf-8")
    flags = "--xla_force_host_platform_device_count=8"
    environment = {**os.environ, "XLA_FLAGS": flags}
    subprocess.run([sys.executable, str(script)], check=True, env=environment)
