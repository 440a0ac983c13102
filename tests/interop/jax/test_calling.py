"""Calls by compiled programs: machine code on XLA's buffers, Python, or callbacks."""

from __future__ import annotations

import functools
import resource
import threading
import time
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bench.bridges import jax_calls

import wend
from wend.interop.jax import as_jax, calling, ffi_types


def root(a: Any) -> Any:
    x = a
    while np.abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


def doubled(x: Any) -> Any:
    return 2.0 * x, x.sum() > 0, np.zeros((0, 2))


@pytest.fixture
def python_runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions that Python runs for XLA."""
    names: list[str] = []
    execute = calling._execute

    def noted(call: Any) -> None:
        names.append("run")
        execute(call)

    monkeypatch.setattr(calling, "_execute", noted)
    return names


def test_programs_call_the_handler(python_runs: list[str]) -> None:
    f = as_jax(doubled)
    text = jax.jit(f).lower(jnp.ones(3)).as_text()
    assert "wend_call" in text
    assert "callback" not in text
    y, flag, empty = jax.jit(f)(jnp.arange(3.0))
    assert (y.tolist(), flag, empty.shape) == ([0.0, 2.0, 4.0], True, (0, 2))
    assert not python_runs


def test_buffers_of_every_kind(python_runs: list[str]) -> None:
    weights, offset = np.arange(6.0).reshape(2, 3), 0.5

    def fun(flag: Any, small: Any, n: Any, z: Any, xs: Any) -> Any:
        y = np.where(flag, weights @ xs, offset)
        return y, z * n, small * 2, n + 1, ~flag, xs[:0], z[0], np.float32(n) * small

    operands = (
        jnp.array(True),
        jnp.float32(1.5),
        jnp.int32(3),
        jnp.array([1.0 + 2.0j, -1.0j]),
        jnp.array([1.0, -2.0, 0.25]),
    )
    results = jax.jit(as_jax(fun))(*operands)
    expected = wend.function(fun)(*map(np.asarray, operands))
    for got, wanted in zip(results, expected, strict=True):
        assert got.dtype == wanted.dtype
        assert np.asarray(got).tobytes() == np.asarray(wanted).tobytes()
    assert not python_runs


def test_captured_arrays_are_read_where_they_are(python_runs: list[str]) -> None:
    weights = np.array([1.0, 2.0])
    every_other = np.arange(4.0)[::2]
    f, g = jax.jit(as_jax(lambda x: x * weights)), jax.jit(as_jax(lambda x: x * every_other))
    one = jnp.ones(2)
    assert f(one).tolist() == [1.0, 2.0]
    assert not python_runs
    assert g(one).tolist() == [0.0, 2.0]
    assert python_runs == ["run"]  # what is not contiguous is handed to the code by Python
    weights[0] = every_other[1] = 7.0
    assert f(one).tolist() == [7.0, 2.0]
    assert g(one).tolist() == [0.0, 7.0]


def test_integers_of_32_bits_are_written_as_such(python_runs: list[str]) -> None:
    jax.config.update("jax_enable_x64", False)
    y, n, one = jax.jit(as_jax(lambda x: (x * 2, x.argmax(), 1)))(jnp.array([1.0, 3.0]))
    assert (y.dtype, n.dtype, one.dtype) == (np.float32, np.int32, np.int32)
    assert (y.tolist(), int(n), int(one)) == ([2.0, 6.0], 1, 1)
    assert not python_runs


def test_other_backends_are_run_by_python(python_runs: list[str]) -> None:
    with wend.config(backend="numpy"):
        assert np.isclose(jax.jit(as_jax(root))(16.0), 4.0)
    assert python_runs == ["run"]


def test_a_failed_call_leaves_the_next_ones_alone(python_runs: list[str]) -> None:
    def checked(x: Any) -> Any:
        if x[0] < 0.0:
            raise ValueError(f"{x[0]} is negative")
        return np.cumsum(x)

    f = jax.jit(as_jax(checked))
    for k in range(50):
        assert f(jnp.full(100, float(k)))[-1] == 100.0 * k
        with pytest.raises(Exception, match=r"ValueError: -1.0 is negative\nraised at .*calling"):
            f(-jnp.ones(100)).block_until_ready()
    assert not python_runs


def test_more_functions_than_the_first_table_holds(python_runs: list[str]) -> None:
    first = jax.jit(as_jax(root))
    assert np.isclose(first(4.0), 2.0)
    fs = [as_jax(lambda x, k=k: x + k) for k in range(70)]
    total = jax.jit(lambda x: sum(f(x) for f in fs))
    assert total(1.0) == 70 + sum(range(70))
    assert np.isclose(first(9.0), 3.0)
    assert not python_runs


def test_a_hundred_thousand_calls_of_a_compiled_loop(python_runs: list[str]) -> None:
    f = as_jax(lambda x: np.cumsum(x) * 0.5 + 1.0)

    @jax.jit
    def repeat(x: Any, n: Any) -> Any:
        return jax.lax.fori_loop(0, n, lambda _, x: f(x), x)

    expected = np.arange(4.0)
    for _ in range(200):
        expected = np.cumsum(expected) * 0.5 + 1.0
    assert np.array_equal(repeat(jnp.arange(4.0), 200), expected)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    repeat(jnp.zeros(4), 100_000).block_until_ready()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 20_000  # in KiB; a leak of one array header a call would be 4,000 more
    assert not python_runs


def test_calls_in_threads_use_few_workspaces(python_runs: list[str]) -> None:
    f = as_jax(root)

    @jax.jit
    def sum_of_roots(start: Any) -> Any:
        return jax.lax.fori_loop(0, 10_000, lambda k, s: s + f(start + k), 0.0)

    starts = [1.0, 2.0, 3.0, 4.0]
    expected = [float(np.sqrt(s + np.arange(10_000.0)).sum()) for s in starts]
    results: dict[float, list[float]] = {s: [] for s in starts}
    sum_of_roots(1.0)

    def work(start: float) -> None:
        results[start] += [float(sum_of_roots(start)) for _ in range(3)]

    threads = [threading.Thread(target=work, args=(s,)) for s in starts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for start, value in zip(starts, expected, strict=True):
        assert np.allclose(results[start], value, rtol=1e-12)
        assert len(results[start]) == 3
    assert not python_runs
    handler = calling._handler()
    assert handler is not None
    workspaces = [getattr(call, "_workspaces", None) for call in handler._calls.values()]
    assert max(len(own.all()) for own in workspaces if own is not None) <= 16


def test_large_results_do_not_pile_up(python_runs: list[str]) -> None:
    f = jax.jit(as_jax(lambda x: np.cumsum(x) + x[::-1]))
    x = jnp.ones(200_000)
    with wend.config(tape_keep=1000):
        g = jax.jit(as_jax(lambda x: np.cumsum(np.cumsum(x) + x[::-1])))
        for _ in range(20):
            assert f(x)[0] == 2.0
            assert g(x)[0] == 2.0
    assert not python_runs


def _calls(text: str) -> int:
    return text.count('custom_call_target="wend_call"')


def test_calls_are_merged_and_dropped() -> None:
    f = as_jax(root)
    merged = jax.jit(lambda a: f(a) + f(a)).lower(2.0).compile()
    assert _calls(merged.as_text()) == 1
    dropped = jax.jit(lambda a: (f(a), a)[1]).lower(2.0).compile()
    assert _calls(dropped.as_text()) == 0
    assert np.isclose(merged(4.0), 4.0)


def test_each_device_calls_its_own() -> None:
    devices = jax.devices()
    assert len(devices) == 8
    mesh = jax.sharding.Mesh(np.array(devices), ("i",))
    spec = jax.sharding.PartitionSpec("i")
    points = jnp.arange(2.0, 18.0) ** 2
    for fun, wanted in (
        (jax.vmap(as_jax(root)), np.sqrt(points)),
        (jax.vmap(jax.grad(as_jax(root))), 0.5 / np.sqrt(points)),
        (jax.vmap(jax.hessian(as_jax(root))), -0.25 * points**-1.5),
    ):
        mapped = jax.jit(jax.shard_map(fun, mesh=mesh, in_specs=spec, out_specs=spec))
        compiled = mapped.lower(points).compile()
        text = compiled.as_text()
        assert _calls(text) >= 1
        lines = [line for line in text.splitlines() if 'custom_call_target="wend_call"' in line]
        assert all("f64[2" in line and "f64[16" not in line for line in lines)  # its part
        assert not any(name in text for name in ("all-gather", "all-reduce", "all-to-all"))
        assert np.allclose(mapped(points), wanted)
        assert mapped(points).sharding.num_devices == 8


def test_weights_of_all_devices_have_one_gradient() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("i",))
    spec, everywhere = jax.sharding.PartitionSpec("i"), jax.sharding.PartitionSpec()
    f = as_jax(lambda weight, x: root(weight * x))

    def loss(weight: Any, xs: Any) -> Any:
        def part(weight: Any, xs: Any) -> Any:
            return jax.lax.psum(jax.vmap(f, in_axes=(None, 0))(weight, xs).sum(), "i")

        return jax.shard_map(part, mesh=mesh, in_specs=(everywhere, spec), out_specs=everywhere)(
            weight, xs
        )

    xs = jnp.arange(1.0, 17.0)
    assert np.allclose(jax.jit(loss)(2.0, xs), np.sqrt(2.0 * xs).sum())
    assert np.allclose(jax.jit(jax.grad(loss))(2.0, xs), 0.5 * np.sqrt(xs / 2.0).sum())
    second = jax.jit(jax.grad(jax.grad(loss)))(2.0, xs)
    assert np.allclose(second, -0.25 * np.sqrt(xs).sum() * 2.0**-1.5)


def test_an_unknown_interface_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ffi_types, "major_version", lambda: 7)
    # A cache of its own: XLA keeps the handler that is registered
    monkeypatch.setattr(calling, "_register", functools.cache(calling._register.__wrapped__))
    with pytest.warns(UserWarning, match="has version 7, not 0"):
        y, *_ = jax.jit(as_jax(doubled))(jnp.ones(2))
    assert y.tolist() == [2.0, 2.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        assert np.isclose(jax.jit(as_jax(root))(16.0), 4.0)


def test_threads_that_meet_register_one_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    handlers: list[Any] = []

    class SlowHandler:
        address = 1

        def __init__(self, *callbacks: Any) -> None:
            time.sleep(0.1)  # the other thread comes meanwhile
            handlers.append(self)

    monkeypatch.setattr(calling, "XlaHandler", SlowHandler)
    monkeypatch.setattr(jax.ffi, "register_ffi_target", lambda *args, **kwargs: None)
    monkeypatch.setattr(calling, "_register", functools.cache(calling._register.__wrapped__))
    threads = [threading.Thread(target=calling._handler) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(handlers) == 1


def test_the_version_is_that_of_the_header() -> None:
    assert ffi_types.major_version() == ffi_types.MAJOR


def test_the_bench_compares_what_is_equal() -> None:
    results = {name: call() for name, call in jax_calls().items()}
    inside, own = results["as_jax in jit(fori_loop)"], results["wend in its own loop"]
    assert float(inside) == pytest.approx(float(own), rel=1e-12)
    expected = results["wend, 1,000 elements"]
    np.testing.assert_array_equal(results["as_jax, 1,000 elements"], expected)
