"""Numbers of 64 bits where `jax_enable_x64` is off, as JAX has it by default.

A program of its own keeps wend's dtypes. Where JAX takes 32 bits, as in a trace of its own,
integers that do not fit are errors that name the setting. A device without such numbers is one too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wend
from wend.backends.jax.executable import XlaProgram
from wend.base.errors import UnsupportedError
from wend.interop.jax import as_jax

ENABLE = r'call jax\.config\.update\("jax_enable_x64", True\)'


@pytest.fixture(autouse=True)
def x64() -> Iterator[None]:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", False)
    yield
    assert not jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", before)


def wide(n: Any, ints: Any, words: Any, x: Any, square: Any) -> dict[str, Any]:
    """Numbers that 32 bits would change, from each kind of operation."""
    key = wend.random.key(n)
    limit = np.iinfo(np.int64).max
    trips, far, tape = 0, n, []
    while far < 2**50:
        far, trips = far * 3, trips + 1
        tape.append(far)
    return {
        "constant": n + 2**40,
        "array": ints * 2,
        "wraps": ints * 2**30,
        "unsigned": words ^ np.uint64(2**63 + 1),
        "shift": words >> np.uint64(40),
        "sentinel": np.minimum(ints, limit),
        "sorted": np.sort(ints)[::-1],
        "cumulative": np.cumsum(ints),
        "bits": wend.random.bits(key, (3,)),
        "uniform": wend.random.uniform(key, (3,)),
        "float": np.sin(x) + 1e-12,
        "integer of float": (x * 1e15).astype(np.int64),
        "complex": np.exp(1j * x),
        "solve": np.linalg.solve(square, x),
        "host": wend.numpy.linalg.eigvals(square),
        "carry": (far, trips),
        "tape": np.array(tape),
    }


ARGUMENTS: tuple[Any, ...] = (
    5,
    np.array([2**40, -(2**33), 7]),
    np.array([2**63, 12], np.uint64),
    np.array([0.1, 0.7]),
    np.array([[2.0, 1.0], [-1.5, 3.0]]),
)


@pytest.mark.filterwarnings("ignore:.*64-bit numbers")
def test_a_program_of_its_own_has_the_dtypes_of_wend() -> None:
    results = wend.function(wide, backend="jax")(*ARGUMENTS)
    expected = wend.function(wide, backend="numpy")(*ARGUMENTS)
    for name, value in expected.items():
        for x, y in zip(jax.tree.leaves(results[name]), jax.tree.leaves(value), strict=True):
            assert np.asarray(x).dtype == np.asarray(y).dtype, name
            np.testing.assert_allclose(x, y, rtol=1e-15, atol=1e-15, err_msg=name)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.int64, np.uint64])
def test_a_warning_names_the_setting_once(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wend.backends.jax.boundary._warned", set())
    doubled = wend.function(lambda x: x + x, backend="jax")
    doubled(np.ones(2, np.float32 if dtype != np.int64 else np.int32))
    with pytest.warns(UserWarning, match=r'set jax\.config\.update\("jax_enable_x64", True\)'):
        doubled(np.ones(2, dtype))
    doubled(np.ones(3, dtype))  # warnings are errors


def trips_of(x: Any) -> Any:
    n = 0
    while x < 100.0 and n < 90:
        x, n = x * 2, n + 1
    return n


# Integers in traces of JAX: at 1 they fit 32 bits, at 0 and -1 they do not
TRACED: dict[str, Callable[[Any], Any]] = {
    "constant": lambda n: n + 2**40 - 2**40 * (n > 0),
    "array": lambda n: np.array([2**40, -3]) * (n < 0),
    "unsigned": lambda n: np.array([2**63, 3], np.uint64) >> np.uint64(31 + (n > 0)),
    "sum": lambda n: np.sum(np.full(4, 2**30) * (n < 0)),
    "sentinel": lambda n: np.where(n > 0, 1, np.iinfo(np.int64).max),
    "negative": lambda n: np.where(n > 0, 1, -(2**31) - 1),
    "one more": lambda n: 2**31 - np.minimum(n, 1) * np.ones(1, np.int64),
    "bits": lambda n: wend.random.bits(wend.random.key(3), (2,)) >> np.uint64(32 * (n > 0)),
    "carry": lambda n: wend.fori_loop(0, 40, lambda _, k: k * np.where(n > 0, 1, 2), 1),
    "pytree": lambda n: {"small": n, "large": np.where(n > 0, 2**31 - 1, 2**31)},
}
WAYS: dict[str, Callable[[Any], Any]] = {
    "native": as_jax,
    "native, jit": lambda f: jax.jit(as_jax(f)),
    "xla": lambda f: jax.jit(wend.function(f, backend="jax")),
}


@pytest.mark.sampled(9)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", TRACED)
def test_an_integer_that_does_not_fit_is_an_error(name: str, way: str) -> None:
    f = WAYS[way](TRACED[name])
    large = -1 if name in ("array", "sum", "constant") else 0
    expected = TRACED[name](1)
    for x, y in zip(jax.tree.leaves(f(1)), jax.tree.leaves(expected), strict=True):
        assert x.dtype in (np.int32, np.uint32)
        np.testing.assert_array_equal(x, y)
    # ValueError: what `block_until_ready` makes of the error of a run
    with pytest.raises(
        (RuntimeError, ValueError), match=rf"(?s)OverflowError: .* has integers from .*{ENABLE}"
    ):
        jax.block_until_ready(f(large))


@pytest.mark.parametrize("way", WAYS)
def test_what_jax_computes_on_positions_and_counts_fits(way: str) -> None:
    """Functions of JAX in a program are lowered with 64 bits, as they are traced."""
    x = jnp.array([3.0, 1.0, 2.0], jnp.float32)

    def positions(x: Any) -> Any:
        order = np.argsort(x)
        return np.argmax(x), order, np.searchsorted(x[order], x), np.sum(x > 1.5), trips_of(x[1])

    for a, b in zip(WAYS[way](positions)(x), positions(np.asarray(x)), strict=True):
        assert a.dtype == np.int32
        np.testing.assert_array_equal(a, b)


def test_arguments_that_do_not_fit_are_errors() -> None:
    f = as_jax(lambda n: n)
    for x in (np.array([2**31]), np.int64(-(2**31) - 1), np.array([2**32], np.uint64)):
        with pytest.raises(OverflowError, match=rf"an argument has integers from .*\n.*{ENABLE}"):
            f(x)
    assert f(np.array([2**31 - 1])).dtype == np.int32


def test_the_setting_is_a_part_of_the_signature() -> None:
    f, x = as_jax(lambda x: np.array([2**40]) * (x > 0)), jnp.float32(0.0)
    assert f(x).dtype == np.int32
    jax.config.update("jax_enable_x64", True)
    assert f(x + 1) == 2**40
    jax.config.update("jax_enable_x64", False)
    assert f(x).dtype == np.int32


# What XLA says of TPUs and of Metal
LACKING = [
    "UNIMPLEMENTED: While rewriting computation to not contain X64 element types, XLA encountered…",
    "UNKNOWN: error: failed to legalize operation 'mhlo.sine': tensor<f64>",
]


@pytest.mark.parametrize("text", LACKING)
def test_a_device_without_64_bits(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise jax.errors.JaxRuntimeError(text)

    monkeypatch.setattr(XlaProgram, "_trace", fail)
    double = wend.function(lambda x: x + x, backend="jax")
    message = (
        r"computes with float64, and the device, cpu, does not: .*\n.*np\.float32 and np\.int32"
    )
    with pytest.raises(UnsupportedError, match=message):
        double(np.ones(2))
    with pytest.raises(jax.errors.JaxRuntimeError, match=re.escape(text)):
        double(np.ones(2, np.float32))


def test_other_errors_of_a_device_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: no room for f64[1000000]")

    monkeypatch.setattr(XlaProgram, "_trace", fail)
    with pytest.raises(jax.errors.JaxRuntimeError, match="no room"):
        wend.function(lambda x: x + x, backend="jax")(np.ones(2))
