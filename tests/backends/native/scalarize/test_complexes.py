"""Complex numbers in registers: as the interpreter computes them, to the last bit.

But for products: some of NumPy's loops fuse their multiplications and additions, so they are
compared with the formula.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wend
import wend.numpy as wnp
from wend.backends.native.module import prepare_for_emission
from wend.ir import Graph
from wend.ops import elementwise

PARTS = [0.0, -0.0, 1.0, -2.5, 1e-310, 1e308, np.inf, -np.inf, np.nan]
SPECIAL = [complex(x, y) for x, y in itertools.product(PARTS, PARTS)]
DTYPES = [np.complex64, np.complex128]

UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": lambda z: -z,
    "conj": lambda z: z.conjugate(),
    "abs": abs,
    "reciprocal": wnp.reciprocal,
    "real": lambda z: z.real,
    "imag": lambda z: z.imag,
    "isnan": wnp.isnan,
    "isinf": wnp.isinf,
    "isfinite": wnp.isfinite,
    "wide": lambda z: z.astype(np.complex128),
    "narrow": lambda z: z.astype(np.complex64),
    "exp": wnp.exp,
    "sqrt": wnp.sqrt,
    "is_true": lambda z: z.astype(bool),
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "div": lambda x, y: x / y,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "lt": lambda x, y: x < y,
    "where": lambda x, y: wnp.where(x == y, x, y),
}


def on_both(fun: Callable[..., Any]) -> tuple[Any, Any]:
    """Return a function compiled for either backend, native first."""
    return wend.function(fun, backend="native"), wend.function(fun, backend="numpy")


def assert_same(found: Any, expected: Any, message: str = "") -> None:
    """Equal dtypes and bits, but any NaN for NaN."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype, message
    for part in ("real", "imag") if expected.dtype.kind == "c" else ("real",):
        x, y = getattr(found, part), getattr(expected, part)
        np.testing.assert_array_equal(x, y, message)
        numbers = ~np.isnan(y.astype(float))
        np.testing.assert_array_equal(np.signbit(x * 1.0)[numbers], np.signbit(y * 1.0)[numbers])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_operations_on_one_number(name: str, dtype: Any) -> None:
    native, numpy = on_both(UNARY[name])
    with np.errstate(all="ignore"):
        for z in map(dtype, SPECIAL):
            assert_same(native(z), numpy(z), f"{name}({z})")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_operations_on_two_numbers(name: str, dtype: Any) -> None:
    native, numpy = on_both(BINARY[name])
    with np.errstate(all="ignore"):
        for x, y in itertools.product(map(dtype, SPECIAL), map(dtype, SPECIAL[::4])):
            assert_same(native(x, y), numpy(x, y), f"{name}({x}, {y})")


@pytest.mark.parametrize("dtype", DTYPES)
def test_products(dtype: Any) -> None:
    product = wend.function(lambda x, y: x * y, backend="native")
    with np.errstate(all="ignore"):
        for x, y in itertools.product(map(dtype, SPECIAL), map(dtype, SPECIAL[::4])):
            found = product(x, y)
            assert_same(found.real, x.real * y.real - x.imag * y.imag, f"{x} * {y}")
            assert_same(found.imag, x.real * y.imag + x.imag * y.real, f"{x} * {y}")


@given(st.complex_numbers(), st.complex_numbers())
def test_quotients(x: complex, y: complex) -> None:
    with np.errstate(all="ignore"):
        expected = np.complex128(x) / np.complex128(y)
        assert_same(QUOTIENT(np.complex128(x), np.complex128(y)), expected, f"{x} / {y}")


QUOTIENT = wend.function(lambda x, y: x / y, backend="native")


# Programs: a complex number is carried, chosen, kept in a list, read from an array, written to one
def escapes(c: Any, most: Any) -> Any:
    z, count = 0j, 0
    while count < most and abs(z) < 2.0:
        z = z * z + c
        count += 1
    return z, count


def chosen(c: Any, most: Any) -> Any:
    z = c
    for k in range(most):
        if z.real > z.imag:
            z = z * 1j - c
        elif k % 2 == 0:
            z = z.conjugate() / (1.5 + c)
        else:
            z = wnp.exp(z) / (1 + abs(z))
    return z


def collected(c: Any, most: Any) -> Any:
    kept = [c, -c]
    z = c
    while len(kept) < most:
        z = kept[-1] * z / (1.0 + abs(kept[-2]))
        kept.append(z + c)
    kept[1] = kept[0] * 2.0
    return wnp.stack(kept), kept[-1], len(kept)


def through_arrays(c: Any, most: Any) -> Any:
    row = wnp.zeros(8, complex)
    for k in range(most):
        row[k % 8] = row[k % 8 - 1] * c + k
    total = 0j
    for z in row:
        total = total * 0.5 + z
    return row, total, row[2]


def narrow(c: Any, most: Any) -> Any:
    z = wnp.complex64(c)
    for _ in range(most):
        z = z * z * wnp.complex64(0.5) + wnp.complex64(c)
    return z, abs(z)


def nested(c: Any, most: Any) -> Any:
    total = 0j
    for i in range(most):
        z, k = complex(0.1 * i, 0.3), 0
        while abs(z) < 3.0 and k < 5:
            z, k = z * (1.2 + c), k + 1
        total += z
    return total


PROGRAMS = [escapes, chosen, collected, through_arrays, narrow, nested]
POINTS = [0.3 + 0.4j, -1.2 - 0.1j, 0.6 - 0.7j, 1e200 + 1j, 0j]


def leaves(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("trips", [2, 3, 13])
def test_programs(program: Callable[..., Any], trips: int) -> None:
    native, numpy = on_both(program)
    for c in POINTS:
        with np.errstate(all="ignore"):
            found, expected = native(c, trips), numpy(c, trips)
        for x, y in zip(leaves(found), leaves(expected), strict=True):
            assert np.asarray(x).dtype == np.asarray(y).dtype
            np.testing.assert_allclose(x, y, rtol=1e-5 if program is narrow else 1e-13)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients(program: Callable[..., Any]) -> None:
    """To order 2, against the interpreter; of the real and the imaginary part of the input."""

    def real(x: Any, y: Any) -> Any:
        parts = [z for z in leaves(program(x + 1j * y, 5)) if wnp.iscomplexobj(z)]
        return sum(wnp.sum(wnp.abs(z) ** 2) for z in parts)

    for c in POINTS[:3]:
        for order in (wend.grad(real, (0, 1)), wend.hessian(real)):
            found, expected = (
                wend.function(order, backend=backend)(c.real, c.imag)
                for backend in ("native", "numpy")
            )
            tolerance = 1e-4 if program is narrow else 1e-11
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def emitted(fun: Callable[..., Any], *args: Any) -> Graph:
    run = wend.function(fun, backend="native").get_concrete_function(*args)
    run(*args)
    (optimized,) = run.compiled.optimized_graphs()
    return prepare_for_emission(optimized)


@pytest.mark.parametrize("program", [escapes, nested])
def test_a_loop_over_complex_numbers_has_none_in_memory(program: Callable[..., Any]) -> None:
    graph = emitted(program, 0.1j, 5)
    inside = [
        node
        for outer in graph.walk()
        for region in outer.regions
        for node in region.walk()
        if any(
            value.type.dtype.kind == "c" for value in node.results if hasattr(value.type, "dtype")
        )
    ]
    assert not inside, [node.op.name for node in inside]
    assert all(node.op is not elementwise.complex_abs for node in graph.walk())
