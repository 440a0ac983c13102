"""Elementwise operations; those without a kernel for doubles in onnxruntime are composed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wend.interop.onnx.builder import ELEMENT_TYPES, ModelBuilder, cure_of, unsupported
from wend.ir.graph import Node

Names = Sequence[str]


def _plain(op: str) -> Any:
    """Return the emitter of an operation that ONNX has."""
    return lambda m, node, x: m.emit(op, *x)


class _Arithmetic:
    """Arithmetic on names, with numbers as constants of the dtype of a node's operand."""

    def __init__(self, m: ModelBuilder, node: Node) -> None:
        self.m = m
        self.dtype = node.operands[0].tensor.dtype

    def __call__(self, op: str, *operands: str | float) -> str:
        names = [x if isinstance(x, str) else self.m.constant(x, self.dtype) for x in operands]
        return self.m.emit(op, *names)

    def polynomial(self, x: str, coefficients: Sequence[float]) -> str:
        """Return the value of a polynomial, the highest coefficient first (Horner)."""
        value: str | float = coefficients[0]
        for coefficient in coefficients[1:]:
            value = self("Add", self("Mul", value, x), coefficient)
        return str(value)


def _composed(compose: Callable[[_Arithmetic, str], str]) -> Any:
    """Return the emitter of a function of one operand."""
    return lambda m, node, x: compose(_Arithmetic(m, node), x[0])


def _tan(a: _Arithmetic, x: str) -> str:
    return a("Div", a("Sin", x), a("Cos", x))


def _expm1(a: _Arithmetic, x: str) -> str:
    # Kahan's way: the errors of exp(x) - 1 and of log(exp(x)) cancel.
    y = a("Exp", x)
    d = a("Sub", y, 1.0)
    kahan = a("Div", a("Mul", d, x), a("Log", y))
    is_tiny = a("Equal", d, 0.0)
    is_far = a("Or", a("Equal", d, -1.0), a("Equal", y, math.inf))
    return a("Where", is_tiny, x, a("Where", is_far, d, kahan))


def _log1p(a: _Arithmetic, x: str) -> str:
    y = a("Add", x, 1.0)
    d = a("Sub", y, 1.0)
    kahan = a("Div", a("Mul", a("Log", y), x), d)
    is_far = a("Or", a("Equal", y, math.inf), a("Equal", d, -1.0))
    return a("Where", a("Equal", d, 0.0), x, a("Where", is_far, a("Log", y), kahan))


def _sinh(a: _Arithmetic, x: str) -> str:
    d = _expm1(a, a("Abs", x))
    ratio = a("Where", a("Equal", d, math.inf), 1.0, a("Div", d, a("Add", d, 1.0)))
    half = a("Mul", 0.5, a("Add", d, ratio))
    return a("Mul", a("Sign", x), half)


def _cosh(a: _Arithmetic, x: str) -> str:
    y = a("Exp", a("Abs", x))
    return a("Mul", 0.5, a("Add", y, a("Div", 1.0, y)))


def _asinh(a: _Arithmetic, x: str) -> str:
    y = a("Abs", x)
    square = a("Mul", y, y)
    small = a("Div", square, a("Add", 1.0, a("Sqrt", a("Add", square, 1.0))))
    far = a("Add", a("Log", y), math.log(2.0))
    value = a("Where", a("Greater", y, 1e15), far, _log1p(a, a("Add", y, small)))
    return a("Mul", a("Sign", x), value)


def _acosh(a: _Arithmetic, x: str) -> str:
    d = a("Sub", x, 1.0)
    return _log1p(a, a("Add", d, a("Sqrt", a("Add", a("Mul", 2.0, d), a("Mul", d, d)))))


def _atanh(a: _Arithmetic, x: str) -> str:
    return a("Mul", 0.5, _log1p(a, a("Div", a("Mul", 2.0, x), a("Sub", 1.0, x))))


# S. L. Moshier, Cephes 2.8: atan.c
_ATAN_P = (
    *(-8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1),
    *(-1.228866684490136173410e2, -6.485021904942025371773e1),
)
_ATAN_Q = (
    *(1.0, 2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2),
    *(4.853903996359136964868e2, 1.945506571482613964425e2),
)


def _atan(a: _Arithmetic, x: str) -> str:
    y = a("Abs", x)
    is_large = a("Greater", y, math.tan(3 * math.pi / 8))
    is_middle = a("Greater", y, 0.66)
    shifted = a("Div", a("Sub", y, 1.0), a("Add", y, 1.0))
    reduced = a("Where", is_large, a("Div", -1.0, y), a("Where", is_middle, shifted, y))
    start = a("Where", is_large, math.pi / 2, a("Where", is_middle, math.pi / 4, 0.0))
    z = a("Mul", reduced, reduced)
    ratio = a("Div", a.polynomial(z, _ATAN_P), a.polynomial(z, _ATAN_Q))
    value = a("Add", reduced, a("Mul", a("Mul", reduced, z), ratio))
    return a("Mul", a("Sign", x), a("Add", start, value))


def _asin(a: _Arithmetic, x: str) -> str:
    other = a("Sqrt", a("Mul", a("Sub", 1.0, x), a("Add", 1.0, x)))
    return _atan(a, a("Div", x, other))


def _acos(a: _Arithmetic, x: str) -> str:
    half = a("Sqrt", a("Div", a("Sub", 1.0, x), a("Add", 1.0, x)))
    return a("Mul", 2.0, _atan(a, half))


def _atan2(m: ModelBuilder, node: Node, x: Names) -> str:
    a = _Arithmetic(m, node)
    y_name, x_name = x
    # Infinite operands are replaced by finite ones of the same direction.
    y_far, x_far = a("IsInf", y_name), a("IsInf", x_name)
    is_far = a("Or", y_far, x_far)
    signs = [a("Sign", name) for name in x]
    v, u = (
        a("Where", is_far, a("Where", far, sign, a("Mul", sign, 0.0)), name)
        for far, sign, name in zip((y_far, x_far), signs, x, strict=True)
    )
    is_left, is_below = _is_negative(a, x_name), _is_negative(a, y_name)
    at_origin = a("And", a("Equal", u, 0.0), a("Equal", v, 0.0))
    angle = a("Where", at_origin, v, _atan(a, a("Div", v, u)))
    # Off the axis of u, the quotient tells on which side.
    turn = a("Where", is_left, a("Where", is_below, -math.pi, math.pi), 0.0)
    on_axis = a("And", a("Equal", u, 0.0), a("Not", at_origin))
    quarter = a("Mul", a("Sign", v), math.pi / 2)
    return a("Where", on_axis, quarter, a("Add", angle, turn))


def _is_negative(a: _Arithmetic, x: str) -> str:
    """Return whether a number is below zero, or the zero below it."""
    return a("Or", a("Less", x, 0.0), a("Less", a("Reciprocal", x), 0.0))


# S. L. Moshier, Cephes 2.8: ndtr.c
_ERF_T = (
    *(9.60497373987051638749e0, 9.00260197203842689217e1, 2.23200534594684319226e3),
    *(7.00332514112805075473e3, 5.55923013010394962768e4),
)
_ERF_U = (
    *(1.0, 3.35617141647503099647e1, 5.21357949780152679795e2, 4.59432382970980127987e3),
    *(2.26290000613890934246e4, 4.92673942608635921086e4),
)
_ERFC_P = (
    *(2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687e0),
    *(4.86371970985681366614e1, 1.96520832956077098242e2, 5.26445194995477358631e2),
    *(9.34528527171957607540e2, 1.02755188689515710272e3, 5.57535335369399327526e2),
)
_ERFC_Q = (
    *(1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2),
    *(9.75708501743205489753e2, 1.82390916687909736289e3, 2.24633760818710981792e3),
    *(1.65666309194161350182e3, 5.57535340817727675546e2),
)
_ERFC_R = (
    *(5.64189583547755073984e-1, 1.27536670759978104416e0, 5.01905042251180477414e0),
    *(6.16021097993053585195e0, 7.40974269950448939160e0, 2.97886665372100240670e0),
)
_ERFC_S = (
    *(1.0, 2.26052863220117276590e0, 9.39603524938001434673e0, 1.20489539808096656605e1),
    *(1.70814450747565897222e1, 9.60896809063285878198e0, 3.36907645100081516050e0),
)


def _erf(a: _Arithmetic, x: str) -> str:
    y = a("Min", a("Abs", x), 27.0)
    z = a("Mul", y, y)
    inner = a("Div", a("Mul", y, a.polynomial(z, _ERF_T)), a.polynomial(z, _ERF_U))
    outer = a("Sub", 1.0, _erfc_tail(a, y))
    return a("Mul", a("Sign", x), a("Where", a("Less", y, 1.0), inner, outer))


def _erfc_tail(a: _Arithmetic, y: str) -> str:
    """Return erfc of a number of at least 1."""
    ratio = a(
        "Where",
        a("Less", y, 8.0),
        a("Div", a.polynomial(y, _ERFC_P), a.polynomial(y, _ERFC_Q)),
        a("Div", a.polynomial(y, _ERFC_R), a.polynomial(y, _ERFC_S)),
    )
    return a("Mul", a("Exp", a("Neg", a("Mul", y, y))), ratio)


def _erfc(a: _Arithmetic, x: str) -> str:
    y = a("Min", a("Abs", x), 27.0)
    tail = _erfc_tail(a, y)
    far = a("Where", a("Less", x, 0.0), a("Sub", 2.0, tail), tail)
    return a("Where", a("Less", y, 1.0), a("Sub", 1.0, _erf(a, x)), far)


def _cbrt(a: _Arithmetic, x: str) -> str:
    root = a("Pow", a("Abs", x), 1.0 / 3.0)
    # One step of Newton's method rounds it as the function is rounded.
    better = a(
        "Sub", root, a("Div", a("Sub", root, a("Div", a("Abs", x), a("Mul", root, root))), 3.0)
    )
    return a(
        "Mul",
        a("Sign", x),
        a("Where", a("Or", a("Equal", root, 0.0), a("IsInf", root)), root, better),
    )


def _expit(a: _Arithmetic, x: str) -> str:
    return a("Div", 1.0, a("Add", 1.0, a("Exp", a("Neg", x))))


def _logaddexp(m: ModelBuilder, node: Node, x: Names) -> str:
    a = _Arithmetic(m, node)
    larger = a("Max", *x)
    gap = a("Neg", a("Abs", a("Sub", *x)))
    return a(
        "Where",
        a("Equal", x[0], x[1]),
        a("Add", x[0], math.log(2.0)),
        a("Add", larger, _log1p(a, a("Exp", gap))),
    )


def _xlogy(m: ModelBuilder, node: Node, x: Names) -> str:
    a = _Arithmetic(m, node)
    is_zero = a("And", a("Equal", x[0], 0.0), a("Not", a("IsNaN", x[1])))
    return a("Where", is_zero, 0.0, a("Mul", x[0], a("Log", x[1])))


def _hypot(m: ModelBuilder, node: Node, x: Names) -> str:
    a = _Arithmetic(m, node)
    u, v = a("Abs", x[0]), a("Abs", x[1])
    large, small = a("Max", u, v), a("Min", u, v)
    ratio = a("Div", small, large)
    value = a("Mul", large, a("Sqrt", a("Add", 1.0, a("Mul", ratio, ratio))))
    is_far = a("Or", a("IsInf", u), a("IsInf", v))
    return a("Where", is_far, math.inf, a("Where", a("Equal", large, 0.0), 0.0, value))


def _direction(m: ModelBuilder, node: Node, x: Names) -> str:
    length = _hypot(m, node, x)
    a = _Arithmetic(m, node)
    return a("Div", x[0], a("Where", a("Equal", length, 0.0), 1.0, length))


def _is_float(node: Node) -> bool:
    return node.operands[0].tensor.dtype.kind == "f"


def _floor_divide(m: ModelBuilder, node: Node, x: Names) -> str:
    a = _Arithmetic(m, node)
    if not _is_float(node):
        return _unless_zero(a, x[1], lambda y: _floored(a, x[0], y))
    remainder, is_opposite = _truncated_remainder(a, x)
    towards_zero = a("Div", a("Sub", x[0], remainder), x[1])
    quotient = a("Where", is_opposite, a("Sub", towards_zero, 1.0), towards_zero)
    below = a("Floor", quotient)
    rounded = a("Where", a("Greater", a("Sub", quotient, below), 0.5), a("Add", below, 1.0), below)
    return a("Where", a("Equal", x[1], 0.0), a("Div", *x), rounded)


def _floored(a: _Arithmetic, x: str, y: str) -> str:
    """Return a quotient of integers, which ONNX divides towards zero."""
    quotient = a("Div", x, y)
    is_exact = a("Equal", a("Mod", x, y), 0)
    is_below = a("And", a("Xor", a("Less", x, 0), a("Less", y, 0)), a("Not", is_exact))
    return a("Where", is_below, a("Sub", quotient, 1), quotient)


def _truncated_remainder(a: _Arithmetic, x: Names) -> tuple[str, str]:
    """Return C's remainder, and whether its sign is opposite to that of the divisor."""
    remainder = a.m.emit("Mod", *x, fmod=1)
    return remainder, a("Less", a("Mul", a("Sign", remainder), a("Sign", x[1])), 0.0)


def _remainder(m: ModelBuilder, node: Node, x: Names) -> str:
    a = _Arithmetic(m, node)
    if not _is_float(node):
        return _unless_zero(a, x[1], lambda y: a("Mod", x[0], y))
    remainder, is_opposite = _truncated_remainder(a, x)
    return a("Where", is_opposite, a("Add", remainder, x[1]), remainder)


def _unless_zero(a: _Arithmetic, divisor: str, divide: Callable[[str], str]) -> str:
    """Return a quotient of integers, 0 where the divisor is 0."""
    is_zero = a("Equal", divisor, 0)
    return a("Where", is_zero, 0, divide(a("Where", is_zero, 1, divisor)))


def _extremum(comparison: str, of_integers: str, of_bools: str) -> Any:
    """Return the emitter of a maximum or minimum that is NaN where an operand is."""

    def emit(m: ModelBuilder, node: Node, x: Names) -> str:
        if not _is_float(node):
            is_bool = node.operands[0].tensor.dtype.kind == "b"
            return m.emit(of_bools if is_bool else of_integers, *x)
        is_first = m.emit("Or", m.emit(comparison, *x), m.emit("IsNaN", x[0]))
        return m.emit("Where", is_first, *x)

    return emit


def _select(m: ModelBuilder, node: Node, x: Names) -> str:
    if node.results[0].tensor.dtype.kind != "b":
        return m.emit("Where", *x)
    predicate, first, second = x
    other = m.emit("And", m.emit("Not", predicate), second)
    return m.emit("Or", m.emit("And", predicate, first), other)


def _reciprocal(m: ModelBuilder, node: Node, x: Names) -> str:
    if not _is_float(node):
        raise unsupported(node, "ONNX has no reciprocal of integers", "use floats.")
    return m.emit("Reciprocal", *x)


def _logical(of_bools: str, of_bits: str) -> Any:
    def emit(m: ModelBuilder, node: Node, x: Names) -> str:
        is_bool = node.operands[0].tensor.dtype.kind == "b"
        return m.emit(of_bools if is_bool else of_bits, *x)

    return emit


def _compared(op: str) -> Any:
    """Return the emitter of a comparison, of bools as of numbers."""

    def emit(m: ModelBuilder, node: Node, x: Names) -> str:
        if node.operands[0].tensor.dtype.kind == "b" and op != "Equal":
            x = [m.emit("Cast", name, to=ELEMENT_TYPES[np.dtype(np.int32)]) for name in x]
        return m.emit(op, *x)

    return emit


def _cast(m: ModelBuilder, node: Node, x: Names) -> str:
    return m.emit("Cast", x[0], to=ELEMENT_TYPES[node.attrs["dtype"]])


def _constant(m: ModelBuilder, node: Node, x: Names) -> str:
    value = node.attrs["value"]
    if value.dtype not in ELEMENT_TYPES:
        raise unsupported(
            node, f"values of dtype {value.dtype} are not exported", cure_of(value.dtype)
        )
    return m.constant(value, value.dtype)


def _sign(m: ModelBuilder, node: Node, x: Names) -> str:
    if not _is_float(node):
        return m.emit("Sign", *x)
    return m.emit("Where", m.emit("IsNaN", x[0]), x[0], m.emit("Sign", *x))


ELEMENTWISE: Mapping[str, Any] = {
    **{
        name: _plain(op)
        for name, op in [
            *(("add", "Add"), ("sub", "Sub"), ("mul", "Mul"), ("div", "Div"), ("neg", "Neg")),
            *(("pow", "Pow"), ("abs", "Abs"), ("sqrt", "Sqrt"), ("rint", "Round")),
            *(("exp", "Exp"), ("log", "Log"), ("sin", "Sin"), ("cos", "Cos"), ("tanh", "Tanh")),
            *(("floor", "Floor"), ("ceil", "Ceil")),
            *(("isnan", "IsNaN"), ("isinf", "IsInf"), ("stop_gradient", "Identity")),
        ]
    },
    **{
        name: _compared(op)
        for name, op in [
            *(("eq", "Equal"), ("lt", "Less"), ("le", "LessOrEqual"), ("gt", "Greater")),
            ("ge", "GreaterOrEqual"),
        ]
    },
    **{
        name: _composed(compose)
        for name, compose in [
            *(("tan", _tan), ("expm1", _expm1), ("log1p", _log1p), ("sinh", _sinh)),
            *(("cosh", _cosh), ("asinh", _asinh), ("acosh", _acosh), ("atanh", _atanh)),
            *(("atan", _atan), ("asin", _asin), ("acos", _acos), ("erf", _erf), ("erfc", _erfc)),
            *(("cbrt", _cbrt), ("expit", _expit)),
            ("exp2", lambda a, x: a("Pow", 2.0, x)),
            ("log2", lambda a, x: a("Div", a("Log", x), math.log(2.0))),
            ("log10", lambda a, x: a("Div", a("Log", x), math.log(10.0))),
            ("trunc", lambda a, x: a("Mul", a("Sign", x), a("Floor", a("Abs", x)))),
        ]
    },
    "constant": _constant,
    "cast": _cast,
    "sign": _sign,
    "atan2": _atan2,
    "direction": _direction,
    "logaddexp": _logaddexp,
    "xlogy": _xlogy,
    "hypot": _hypot,
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "fmod": lambda m, node, x: m.emit("Mod", *x, fmod=1),
    "maximum": _extremum("Greater", "Max", "Or"),
    "minimum": _extremum("Less", "Min", "And"),
    "select": _select,
    "reciprocal": _reciprocal,
    "and": _logical("And", "BitwiseAnd"),
    "or": _logical("Or", "BitwiseOr"),
    "xor": _logical("Xor", "BitwiseXor"),
    "not": _logical("Not", "BitwiseNot"),
    "ne": lambda m, node, x: m.emit("Not", m.emit("Equal", *x)),
    "isfinite": lambda m, node, x: m.emit(
        "Not", m.emit("Or", m.emit("IsNaN", *x), m.emit("IsInf", *x))
    ),
}
