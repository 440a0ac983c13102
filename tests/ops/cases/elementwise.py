"""Rows of `wend.ops.elementwise`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from tests.helpers.cases import Case
from tests.helpers.samples import between, complexes, tuples
from wend.ir.dtypes import ALL, BOOLS, COMPLEXES, FLOATS, INEXACT, INTEGERS, NUMERIC, REALS

REAL = np.dtype(np.float64)
COMPLEX = np.dtype(np.complex128)


def points(dtypes: Collection[np.dtype], low: float, high: float, arity: int = 1) -> list[Any]:
    """Where derivatives are checked: a scalar, a matrix, a transposed view, complex numbers."""
    found = []
    if REAL in dtypes:
        for shape in ((), (2, 3), (0, 2)):
            found.append(tuple(between(low, high, *shape, seed=seed) for seed in range(arity)))
        found.append(tuple(between(low, high, 3, 4, seed=9 + k)[::2].T for k in range(arity)))
    if COMPLEX in dtypes:
        found.append(tuple(complexes(2, 2, seed=seed) for seed in range(arity)))
    return found


def unary(
    op: str,
    reference: Callable[..., Any],
    dtypes: Collection[np.dtype],
    domain: tuple[float, float] = (-2, 2),
) -> Case:
    return Case(op, reference, tuples(dtypes, 1), points(dtypes, *domain))


def binary(
    op: str,
    reference: Callable[..., Any],
    dtypes: Collection[np.dtype],
    domain: tuple[float, float] = (-2, 2),
) -> Case:
    return Case(op, reference, tuples(dtypes, 2), points(dtypes, *domain, arity=2))


def flat(op: str, reference: Callable[..., Any], dtypes: Collection[np.dtype], arity: int) -> Case:
    """Where there is no derivative to check."""
    return Case(op, reference, tuples(dtypes, arity))


def whole_powers() -> list[Any]:
    """Integers to powers that are not negative: others are NumPy's ValueError."""
    return [(x, np.where(y < 0, y.dtype.type(5), y)) for x, y in tuples(INTEGERS, 2)]


def shifts(dtypes: Collection[np.dtype]) -> list[Any]:
    return [(x, np.clip(y, 0, 7)) for x, y in tuples(dtypes, 2)]


def join(real: Any, imag: Any) -> Any:
    return np.stack([real, imag], -1).view(f"c{2 * np.asarray(real).dtype.itemsize}")[..., 0]


def _direction(x: Any, y: Any) -> Any:
    with np.errstate(invalid="ignore"):
        return np.where((x == 0) & (y == 0), x, x / np.hypot(x, y))


def _upper_half(x: Any, y: Any) -> Any:
    return np.vectorize(lambda a, b: int(a) * int(b) >> 64, otypes=[np.uint64])(x, y)


EDGES = np.array([0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1], np.uint64)
WORDS = [
    (np.uint64(2**64 - 3), np.uint64(2**33 + 5)),
    (EDGES[:, None] * EDGES, EDGES + EDGES[:, None]),
]

CASES = [
    binary("add", np.add, NUMERIC),
    binary("sub", np.subtract, NUMERIC),
    binary("mul", np.multiply, NUMERIC),
    binary("div", np.true_divide, INEXACT, (0.5, 3)),
    unary("neg", np.negative, NUMERIC),
    unary("reciprocal", np.reciprocal, NUMERIC, (0.5, 3)),
    flat("floor_divide", np.floor_divide, REALS, 2),
    Case(
        "remainder",
        np.mod,
        tuples(REALS, 2),
        [
            (between(-5, 5, 2, 3), between(0.7, 1.1, 2, 3, seed=1)),
            (between(-5, 5, 4), -between(0.7, 1.1, 4, seed=2)),
        ],
    ),
    Case(
        "pow",
        np.power,
        [*whole_powers(), *tuples(INEXACT, 2)],
        points(INEXACT, 0.3, 2, arity=2),
    ),
    # A base of 0 or less has a derivative where the exponent is a whole number.
    Case(
        "pow",
        np.power,
        smooth=[
            (np.array([0.0, -2.0, 0.0, 1.5, 0.0]), np.array([3.0, 2.0, 4.0, 0.0, 0.0])),
        ],
        orders=1,
        wrt=(0,),
    ),
    unary("abs", np.fabs, FLOATS, (0.1, 2)),
    Case("abs", lambda x: np.where(x < 0, -x, x), tuples(INTEGERS, 1), [(between(-3, -1, 3),)]),
    flat("sign", lambda x: np.where(np.isnan(x), x, (x > 0) * 1.0 - (x < 0)), [np.dtype("f8")], 1),
    flat("sign", np.sign, REALS, 1),
    binary("maximum", np.maximum, ALL),
    binary("minimum", np.minimum, ALL),
    unary("sqrt", np.sqrt, INEXACT, (0.2, 3)),
    unary("cbrt", np.cbrt, FLOATS, (0.2, 3)),
    unary("exp", np.exp, INEXACT),
    unary("exp2", np.exp2, INEXACT),
    unary("expm1", np.expm1, INEXACT),
    unary("log", np.log, INEXACT, (0.2, 3)),
    unary("log2", np.log2, INEXACT, (0.2, 3)),
    unary("log10", np.log10, INEXACT, (0.2, 3)),
    unary("log1p", np.log1p, INEXACT, (-0.8, 3)),
    unary("sin", np.sin, INEXACT),
    unary("cos", np.cos, INEXACT),
    unary("tan", np.tan, INEXACT, (-1.2, 1.2)),
    unary("asin", np.arcsin, INEXACT, (-0.9, 0.9)),
    unary("acos", np.arccos, INEXACT, (-0.9, 0.9)),
    unary("atan", np.arctan, INEXACT),
    unary("sinh", np.sinh, INEXACT),
    unary("cosh", np.cosh, INEXACT),
    unary("tanh", np.tanh, INEXACT),
    unary("asinh", np.arcsinh, INEXACT),
    unary("acosh", np.arccosh, INEXACT, (1.2, 4)),
    unary("atanh", np.arctanh, INEXACT, (-0.9, 0.9)),
    binary("hypot", np.hypot, FLOATS, (0.3, 2)),
    flat("modulus", np.hypot, FLOATS, 2),
    Case("mul_high", _upper_half, WORDS),
    dataclasses.replace(binary("direction", _direction, FLOATS, (0.3, 2)), exact=False),
    binary("atan2", np.arctan2, FLOATS, (0.3, 2)),
    Case("atan2", np.arctan2, smooth=[(between(-2, -1, 4), between(-2, 2, 4, seed=1))]),
    flat("floor", np.floor, FLOATS, 1),
    flat("ceil", np.ceil, FLOATS, 1),
    flat("trunc", np.trunc, FLOATS, 1),
    flat("rint", np.round, INEXACT, 1),
    unary("real", lambda x: x.real, COMPLEXES),
    unary("imag", lambda x: x.imag, COMPLEXES),
    unary("conj", np.conj, COMPLEXES),
    Case(
        "complex",
        join,
        tuples([np.dtype("f4"), np.dtype("f8")], 2),
        points(FLOATS, -2, 2, arity=2),
    ),
    unary("complex_abs", np.abs, COMPLEXES),
    flat("and", np.bitwise_and, INTEGERS | BOOLS, 2),
    flat("or", np.bitwise_or, INTEGERS | BOOLS, 2),
    flat("xor", np.bitwise_xor, INTEGERS | BOOLS, 2),
    flat("not", np.invert, INTEGERS | BOOLS, 1),
    Case("shift_left", np.left_shift, shifts(INTEGERS)),
    Case("shift_right", np.right_shift, shifts(INTEGERS)),
    flat("eq", np.equal, ALL, 2),
    flat("ne", np.not_equal, ALL, 2),
    flat("lt", np.less, ALL, 2),
    flat("le", np.less_equal, ALL, 2),
    flat("gt", np.greater, ALL, 2),
    flat("ge", np.greater_equal, ALL, 2),
    flat("isnan", lambda x: x != x, INEXACT, 1),
    flat(
        "isinf",
        lambda x: np.isin(x.real, (np.inf, -np.inf)) | np.isin(x.imag, (np.inf, -np.inf)),
        INEXACT,
        1,
    ),
    flat("isfinite", lambda x: np.isfinite(x.real) & np.isfinite(x.imag), INEXACT, 1),
    Case(
        "select",
        np.where,
        [
            (np.resize([True, False], x.shape), x, y[::-1] if x.ndim else y)
            for x, y in tuples(ALL, 2)
        ],
        [
            (np.array([[True], [False]]), between(0, 1, 2, 1), between(2, 3, 2, 1)),
            (np.bool_(False), np.float64(1.0), np.float64(2.0)),
            (np.array([True, False]), complexes(2), complexes(2, seed=3)),
        ],
    ),
    *(
        Case(
            "cast",
            lambda x, dtype: x.astype(dtype),
            tuples(ALL - COMPLEXES, 1),
            [(between(-2, 2, 2, 3),), (np.float64(0.5),)] if dtype in "f8 c16" else [],
            {"dtype": np.dtype(dtype)},
        )
        for dtype in ("f8", "f4", "i4", "u1", "?", "c8", "c16", "f2")
    ),
    Case(
        "cast",
        lambda x, dtype: x.real.astype(dtype),
        tuples(COMPLEXES, 1),
        [(complexes(2, 3),)],
        {"dtype": np.dtype("f8")},
    ),
    Case("cast", lambda x, dtype: x != 0, tuples(COMPLEXES, 1), attrs={"dtype": np.dtype("?")}),
    flat("stop_gradient", lambda x: x, ALL, 1),
    flat("graft", lambda x, y: x, FLOATS, 2),
]

WHOLE = [
    (np.array([[12, 0, 7]], dtype), np.array([[18, 5, 7]], dtype))
    for dtype in sorted(INTEGERS, key=str)
]

CASES += [
    Case("signbit", lambda x: np.copysign(1, x) < 0, tuples(FLOATS - {np.dtype("f2")}, 1)),
    Case("nextafter", np.nextafter, tuples(FLOATS, 2)),
    Case(
        "fmod",
        lambda x, y: np.copysign(np.abs(x) % np.abs(y), x),
        [(between(-9, 9, 6, 2), between(0.5, 3, 6, 2))],
        [(between(-9, 9, 6, 2), between(0.5, 3, 6, 2)), (np.float64(-7.3), np.float64(2.1))],
        exact=False,
    ),
    Case(
        "fmod_int",
        np.vectorize(math.fmod, otypes=[np.int64]),
        [(np.array([-7, 7, 0]), np.array([3, -5, 2]))],
    ),
    Case(
        "gcd", np.vectorize(math.gcd, otypes=[np.int64]), [p for p in WHOLE if p[0].dtype == "i8"]
    ),
    Case(
        "lcm", np.vectorize(math.lcm, otypes=[np.int64]), [p for p in WHOLE if p[0].dtype == "i8"]
    ),
    Case(
        "bit_count",
        np.vectorize(lambda x: abs(int(x)).bit_count(), otypes=[np.uint8]),
        [(x,) for x, _ in WHOLE],
    ),
]
