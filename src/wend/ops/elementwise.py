"""Arithmetic and the usual functions, one element at a time.

Operands have equal types. A partial derivative is a rule `(b, *operands, result) -> factor`;
it may use the result where that is cheaper.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Unpack

import numpy as np

from wend.base.zero import ZERO
from wend.ir.dtypes import (
    ALL,
    BOOL,
    BOOLS,
    COMPLEXES,
    FLOATS,
    INEXACT,
    INTEGERS,
    NUMERIC,
    REALS,
    complex_of,
    is_supported,
    real_of,
    unsupported,
)
from wend.ir.graph import Node
from wend.ir.op import (
    Derivative,
    Explicit,
    Facts,
    Linear,
    Op,
    Partials,
    Raises,
    Rounding,
    Rule,
    no_gradient,
)
from wend.ir.types import TensorType, Type
from wend.ops.inverse_partials import (
    acosh_partial,
    asinh_partial,
    atan_partial,
    atanh_partial,
    root_of_one_minus_square,
)
from wend.ops.raising import if_negative_power
from wend.ops.shapes import check_dtype, check_same, tensor_of


def _batch(c: Any, node: Any, operands: Sequence[Any], flags: Sequence[bool]) -> Any:
    """Compute for the values of all elements, to whose shape the others are broadcast."""
    like = operands[flags.index(True)]
    values = [
        x if flag else c.b.broadcast_like(x, like) for x, flag in zip(operands, flags, strict=True)
    ]
    return c.emit(node, values)


def elementwise(
    name: str,
    kernel: Callable[..., Any],
    dtypes: Collection[np.dtype],
    partials: Sequence[Rule | None] | None = None,
    *,
    linear: tuple[int, ...] = (),
    derivative: Derivative | None = None,
    result: Callable[[np.dtype], np.dtype] = lambda dtype: dtype,
    raises: Raises | Callable[[Node], Raises] = (),
    **facts: Unpack[Facts],
) -> Op:
    """Make an elementwise operation; without `partials` or `derivative` it has no gradient.

    `linear`: the operands it is linear in while the others stay constant.
    """

    def infer(*types: Type) -> TensorType:
        first = check_same(types)
        check_dtype(first, dtypes)
        return first.with_dtype(result(first.dtype))

    if partials is not None:
        derivative = Partials(tuple(partials), linear)
    derivative = derivative or no_gradient()
    return Op(name, infer, kernel, derivative, is_cheap=True, raises=raises, batch=_batch, **facts)


def _to_bool(_: np.dtype) -> np.dtype:
    return BOOL


# Arithmetic
add = elementwise(
    "add",
    np.add,
    NUMERIC,
    derivative=Linear(lambda b, node, ct, index: ct),
    addends=(0, 1),
    cost=0.05,
)
sub = elementwise(
    "sub",
    np.subtract,
    NUMERIC,
    derivative=Linear(lambda b, node, ct, index: b.neg(ct) if index else ct),
    addends=(0,),
    cost=0.05,
)
mul = elementwise(
    "mul",
    np.multiply,
    NUMERIC,
    [lambda b, x, y, z: y, lambda b, x, y, z: x],
    linear=(0, 1),
    cost=0.05,
    rounding=Rounding.OF_COMPLEX,
)
div = elementwise(
    "div",
    np.divide,
    INEXACT,
    [lambda b, x, y, z: b.reciprocal(y), lambda b, x, y, z: b.neg(b.div(z, y))],
    linear=(0,),
    cost=0.2,
    rounding=Rounding.OF_COMPLEX,
)
neg = elementwise(
    "neg", np.negative, NUMERIC, derivative=Linear(lambda b, n, ct, i: b.neg(ct)), cost=0.05
)
reciprocal = elementwise(
    "reciprocal",
    np.reciprocal,
    NUMERIC,
    [lambda b, x, y: b.neg(b.square(y))],
    cost=0.2,
    rounding=Rounding.OF_COMPLEX,
)
floor_divide = elementwise("floor_divide", np.floor_divide, REALS)
remainder = elementwise(
    "remainder",
    np.remainder,
    REALS,
    [lambda b, x, y, z: b.ones_like(x), lambda b, x, y, z: b.neg(b.floor_divide(x, y))],
)


def _pow_base(b: Any, x: Any, y: Any) -> Any:
    # y·x^(y−1); where y = 0 as y·x^y/x, whose derivatives in x stay 0, and 0 for x = y = 0.
    one, is_constant = b.ones_like(y), b.eq(y, b.zeros_like(y))
    power = b.mul(y, b.pow(x, b.select(is_constant, one, b.sub(y, one))))
    divisor = b.select(b.eq(x, b.zeros_like(x)), one, x)
    divisor = b.select(is_constant, divisor, one)
    return b.select(is_constant, b.div(b.mul(y, b.pow(divisor, y)), divisor), power)


def _pow_exponent(b: Any, x: Any, z: Any) -> Any:
    # log(x)·x^y, and 0 at x = 0, where the limit is 0 for every y > 0.
    safe = b.select(b.eq(x, b.zeros_like(x)), b.ones_like(x), x)
    return b.mul(b.log(safe), z)


def _pull_back_pow(b: Any, node: Any, cts: Any) -> Any:
    (x, y), (z,) = node.operands, node.results
    return b.mul(cts[0], _pow_base(b, x, y)), b.mul(cts[0], _pow_exponent(b, x, z))


def _push_pow(b: Any, node: Any, tangents: Any) -> Any:
    (x, y), (z,) = node.operands, node.results
    terms = []
    if tangents[0] is not ZERO:
        terms.append(b.mul(tangents[0], _pow_base(b, x, y)))
    if tangents[1] is not ZERO:
        factor = _pow_exponent(b, x, z)
        if x.type.dtype.kind == "f":
            # A negative number has a derivative as long as its exponent stands still.
            zero = b.zeros_like(x)
            at_rest = b.select(b.eq(tangents[1], zero), zero, factor)
            factor = b.select(b.lt(x, zero), at_rest, factor)
        terms.append(b.mul(tangents[1], factor))
    return (terms[0] if len(terms) == 1 else b.add(*terms),)


pow = elementwise(
    "pow",
    np.power,
    NUMERIC,
    derivative=Explicit(_pull_back_pow, _push_pow),
    raises=if_negative_power,
    cost=7,
    rounding=Rounding.OF_FLOATS,
)
abs = elementwise("abs", np.abs, REALS, [lambda b, x, y: b.sign(x)], cost=0.05)
sign = elementwise("sign", np.sign, REALS, cost=0.1)


def _tie_partial(compare: str) -> Rule:
    # Where the two are equal each gets half, as in JAX.
    def partial(b: Any, x: Any, y: Any, z: Any) -> Any:
        one = b.ones_like(x)
        strict = b.select(getattr(b, compare)(x, y), one, b.zeros_like(x))
        return b.select(b.eq(x, y), b.full_like(x, 0.5), strict)

    return partial


maximum = elementwise(
    "maximum",
    np.maximum,
    ALL,
    [_tie_partial("gt"), lambda b, x, y, z: _tie_partial("gt")(b, y, x, z)],
    cost=0.05,
)
minimum = elementwise(
    "minimum",
    np.minimum,
    ALL,
    [_tie_partial("lt"), lambda b, x, y, z: _tie_partial("lt")(b, y, x, z)],
    cost=0.05,
)

# Powers, exponentials, logarithms
sqrt = elementwise(
    "sqrt",
    np.sqrt,
    INEXACT,
    [lambda b, x, y: b.div(b.full_like(y, 0.5), y)],
    cost=0.4,
    rounding=Rounding.OF_COMPLEX,
)
cbrt = elementwise(
    "cbrt",
    np.cbrt,
    FLOATS,
    [lambda b, x, y: b.div(b.full_like(y, 1 / 3), b.square(y))],
    cost=1.6,
    rounding=Rounding.OF_FLOATS,
)
exp = elementwise(
    "exp", np.exp, INEXACT, [lambda b, x, y: y], cost=0.8, rounding=Rounding.OF_FLOATS
)
exp2 = elementwise(
    "exp2",
    np.exp2,
    INEXACT,
    [lambda b, x, y: b.scale(y, np.log(2.0))],
    cost=0.8,
    rounding=Rounding.OF_FLOATS,
)
expm1 = elementwise(
    "expm1",
    np.expm1,
    INEXACT,
    [lambda b, x, y: b.emit(exp, x)],
    cost=0.8,
    rounding=Rounding.OF_FLOATS,
)
log = elementwise(
    "log", np.log, INEXACT, [lambda b, x, y: b.reciprocal(x)], cost=1.6, rounding=Rounding.OF_FLOATS
)
log2 = elementwise(
    "log2",
    np.log2,
    INEXACT,
    [lambda b, x, y: b.div(b.full_like(x, 1 / np.log(2.0)), x)],
    cost=1.6,
    rounding=Rounding.OF_FLOATS,
)
log10 = elementwise(
    "log10",
    np.log10,
    INEXACT,
    [lambda b, x, y: b.div(b.full_like(x, 1 / np.log(10.0)), x)],
    cost=1.6,
    rounding=Rounding.OF_FLOATS,
)
log1p = elementwise(
    "log1p",
    np.log1p,
    INEXACT,
    [lambda b, x, y: b.reciprocal(b.add(x, b.ones_like(x)))],
    cost=1.6,
    rounding=Rounding.OF_FLOATS,
)

# Trigonometric and hyperbolic functions
sin = elementwise(
    "sin", np.sin, INEXACT, [lambda b, x, y: b.cos(x)], cost=2.5, rounding=Rounding.OF_FLOATS
)
cos = elementwise(
    "cos", np.cos, INEXACT, [lambda b, x, y: b.neg(b.sin(x))], cost=2.5, rounding=Rounding.OF_FLOATS
)
tan = elementwise(
    "tan",
    np.tan,
    INEXACT,
    [lambda b, x, y: b.add(b.ones_like(y), b.square(y))],
    cost=3.4,
    rounding=Rounding.OF_FLOATS,
)
asin = elementwise(
    "asin",
    np.arcsin,
    INEXACT,
    [lambda b, x, y: b.reciprocal(root_of_one_minus_square(b, x))],
    cost=1.6,
    rounding=Rounding.OF_FLOATS,
)
acos = elementwise(
    "acos",
    np.arccos,
    INEXACT,
    [lambda b, x, y: b.neg(b.reciprocal(root_of_one_minus_square(b, x)))],
    cost=1.6,
    rounding=Rounding.OF_FLOATS,
)
atan = elementwise(
    "atan",
    np.arctan,
    INEXACT,
    [lambda b, x, y: atan_partial(b, x)],
    cost=1.8,
    rounding=Rounding.OF_FLOATS,
)
sinh = elementwise(
    "sinh", np.sinh, INEXACT, [lambda b, x, y: b.cosh(x)], cost=1.8, rounding=Rounding.OF_FLOATS
)
cosh = elementwise(
    "cosh", np.cosh, INEXACT, [lambda b, x, y: b.sinh(x)], cost=1.3, rounding=Rounding.OF_FLOATS
)
tanh = elementwise(
    "tanh",
    np.tanh,
    INEXACT,
    [lambda b, x, y: b.one_minus(b.square(y))],
    cost=1.3,
    rounding=Rounding.OF_FLOATS,
)
asinh = elementwise(
    "asinh",
    np.arcsinh,
    INEXACT,
    [lambda b, x, y: asinh_partial(b, x)],
    cost=3.4,
    rounding=Rounding.OF_FLOATS,
)
acosh = elementwise(
    "acosh",
    np.arccosh,
    INEXACT,
    [lambda b, x, y: acosh_partial(b, x)],
    cost=2.5,
    rounding=Rounding.OF_FLOATS,
)
atanh = elementwise(
    "atanh",
    np.arctanh,
    INEXACT,
    [lambda b, x, y: atanh_partial(b, x)],
    cost=2.5,
    rounding=Rounding.OF_FLOATS,
)


# Lengths and directions: analytic, also where |x| = |y|, except at the origin
def _kernel_direction(x: Any, y: Any) -> Any:
    length = np.hypot(x, y)
    return (x / np.where(length == 0, np.ones_like(length), length))[()]


def _per_length(b: Any, numerator: Any, x: Any, y: Any) -> Any:
    """Divide by √(x² + y²), or by 1 at the origin."""
    length = b.emit(hypot, x, y)
    is_origin = b.eq(length, b.zeros_like(length))
    return b.div(numerator, b.select(is_origin, b.ones_like(length), length))


# x over √(x² + y²), and 0 at the origin
direction: Op = elementwise(
    "direction",
    _kernel_direction,
    FLOATS,
    [
        lambda b, x, y, z: _per_length(b, b.square(b.emit(direction, y, x)), x, y),
        lambda b, x, y, z: b.neg(_per_length(b, b.mul(z, b.emit(direction, y, x)), x, y)),
    ],
    rounding=Rounding.OF_FLOATS,
)
hypot: Op = elementwise(
    "hypot",
    np.hypot,
    FLOATS,
    [
        lambda b, x, y, z: b.emit(direction, x, y),
        lambda b, x, y, z: b.emit(direction, y, x),
    ],
    rounding=Rounding.OF_FLOATS,
)
# The absolute value of a complex number by its parts. Python's `abs` takes C's `hypot` for it, from
# which the op of that name may differ in the last bit, on which the trips of a loop may depend.
modulus = elementwise("modulus", np.hypot, FLOATS, rounding=Rounding.OF_FLOATS)
atan2 = elementwise(
    "atan2",
    np.arctan2,
    FLOATS,
    [
        lambda b, y, x, z: b.div(b.emit(direction, x, y), b.emit(hypot, x, y)),
        lambda b, y, x, z: b.neg(b.div(b.emit(direction, y, x), b.emit(hypot, x, y))),
    ],
    cost=1.8,
    rounding=Rounding.OF_FLOATS,
)

# Rounding: flat almost everywhere
floor = elementwise("floor", np.floor, FLOATS, cost=0.05)
ceil = elementwise("ceil", np.ceil, FLOATS, cost=0.05)
trunc = elementwise("trunc", np.trunc, FLOATS, cost=0.05)
rint = elementwise("rint", np.rint, INEXACT, cost=0.05)

# Complex numbers: cotangents are transposed, not conjugated (D19)
real = elementwise(
    "real",
    lambda x: np.real(x).copy(),
    COMPLEXES,
    derivative=Linear(lambda b, n, ct, i: b.complex(ct, b.zeros_like(ct))),
    result=real_of,
    view_of=0,
    cost=0.05,
)
imag = elementwise(
    "imag",
    lambda x: np.imag(x).copy(),
    COMPLEXES,
    derivative=Linear(lambda b, n, ct, i: b.complex(b.zeros_like(ct), b.neg(ct))),
    result=real_of,
    view_of=0,
    cost=0.05,
)
conj = elementwise(
    "conj", np.conjugate, COMPLEXES, derivative=Linear(lambda b, n, ct, i: b.conj(ct)), cost=0.05
)


def _make_complex(real: Any, imag: Any) -> Any:
    out = np.empty(np.shape(real), complex_of(np.asarray(real).dtype))
    out.real, out.imag = real, imag
    return out[()]


complex = elementwise(
    "complex",
    _make_complex,
    [dtype for dtype in FLOATS if dtype.itemsize >= 4],
    derivative=Linear(lambda b, n, ct, i: b.neg(b.imag(ct)) if i else b.real(ct)),
    result=complex_of,
    cost=0.05,
)


def _pull_back_complex_abs(b: Any, node: Any, cts: Any) -> Any:
    # |z|' = conj(z)/|z| in the convention of D19, and 0 at 0.
    x, y = b.real(node.operands[0]), b.imag(node.operands[0])
    parts = b.emit(direction, x, y), b.neg(b.emit(direction, y, x))
    return (b.complex(*(b.mul(cts[0], part) for part in parts)),)


# Bits and logic: on bool `and`, `or`, `xor`, `not` are the logical ones
bit_and = elementwise("and", np.bitwise_and, INTEGERS | BOOLS, cost=0.05)
bit_or = elementwise("or", np.bitwise_or, INTEGERS | BOOLS, cost=0.05)
bit_xor = elementwise("xor", np.bitwise_xor, INTEGERS | BOOLS, cost=0.05)
bit_not = elementwise("not", np.invert, INTEGERS | BOOLS, cost=0.05)
shift_left = elementwise("shift_left", np.left_shift, INTEGERS)
shift_right = elementwise("shift_right", np.right_shift, INTEGERS)

# Comparison
eq = elementwise("eq", np.equal, ALL, result=_to_bool, cost=0.05)
ne = elementwise("ne", np.not_equal, ALL, result=_to_bool, cost=0.05)
lt = elementwise("lt", np.less, ALL, result=_to_bool, cost=0.05)
le = elementwise("le", np.less_equal, ALL, result=_to_bool, cost=0.05)
gt = elementwise("gt", np.greater, ALL, result=_to_bool, cost=0.05)
ge = elementwise("ge", np.greater_equal, ALL, result=_to_bool, cost=0.05)
isnan = elementwise("isnan", np.isnan, INEXACT, result=_to_bool, cost=0.05)
isinf = elementwise("isinf", np.isinf, INEXACT, result=_to_bool, cost=0.05)
isfinite = elementwise("isfinite", np.isfinite, INEXACT, result=_to_bool, cost=0.05)


# Choice and conversion
def _infer_select(pred: Type, x: Type, y: Type) -> TensorType:
    chosen = check_same((x, y))
    check_dtype(tensor_of(pred, "the predicate"), BOOLS, "the predicate")
    check_same((tensor_of(pred).with_dtype(chosen.dtype), chosen))
    return chosen


def _transpose_select(b: Any, node: Any, ct: Any, index: int) -> Any:
    pred, zeros = node.operands[0], b.zeros_like(ct)
    return b.select(pred, ct, zeros) if index == 1 else b.select(pred, zeros, ct)


def _kernel_select(pred: Any, x: Any, y: Any) -> Any:
    return np.where(pred, x, y)[()]


select = Op(
    "select",
    _infer_select,
    _kernel_select,
    Linear(_transpose_select, operands=(1, 2)),
    is_cheap=True,
    cost=0.05,
    batch=_batch,
)


def _infer_cast(x: Type, *, dtype: np.dtype) -> TensorType:
    if not is_supported(dtype):
        raise unsupported(dtype)
    return tensor_of(x).with_dtype(dtype)


def _kernel_cast(x: Any, *, dtype: np.dtype) -> Any:
    x = np.asarray(x)
    drops_imag = x.dtype.kind == "c" and dtype.kind not in "cb"
    return (x.real if drops_imag else x).astype(dtype)[()]


def _transpose_cast(b: Any, node: Any, ct: Any, index: int) -> Any:
    return b.cast(ct, node.operands[0].type.dtype)


cast = Op(
    "cast",
    _infer_cast,
    _kernel_cast,
    Linear(_transpose_cast),
    is_cheap=True,
    cost=0.05,
    batch=_batch,
)

complex_abs = elementwise(
    "complex_abs",
    np.abs,
    COMPLEXES,
    derivative=Explicit(_pull_back_complex_abs),
    result=real_of,
    rounding=Rounding.OF_FLOATS,
)

# The identity, constant to every derivative
stop_gradient = elementwise("stop_gradient", lambda x: x, ALL, cost=0)
# The first operand, with the derivatives of the second: a formula for the value, another for them.
# Without differentiation only the first is computed.
graft = elementwise(
    "graft", lambda x, y: x, FLOATS, [None, lambda b, x, y, z: b.ones_like(z)], cost=0
)


def _fmod_divisor(b: Any, x: Any, y: Any, z: Any) -> Any:
    return b.neg(b.emit(trunc, b.div(x, y)))


signbit = elementwise("signbit", np.signbit, FLOATS, result=lambda _: BOOL, cost=0.05)
nextafter = elementwise("nextafter", np.nextafter, FLOATS)

# The remainder with the sign of x
fmod = elementwise("fmod", np.fmod, FLOATS, [lambda b, x, y, z: b.ones_like(x), _fmod_divisor])
fmod_int = elementwise("fmod_int", np.fmod, INTEGERS)

gcd = elementwise("gcd", np.gcd, INTEGERS)
lcm = elementwise("lcm", np.lcm, INTEGERS)


def _kernel_mul_high(x: Any, y: Any) -> Any:
    half, low = np.uint64(32), np.uint64(2**32 - 1)
    (x_high, y_high), (x_low, y_low) = (x >> half, y >> half), (x & low, y & low)
    middle = x_high * y_low + (x_low * y_low >> half)
    return x_high * y_high + (middle >> half) + (x_low * y_high + (middle & low) >> half)


# The upper 64 of the 128 bits of a product
mul_high = elementwise("mul_high", _kernel_mul_high, {np.dtype(np.uint64)})
bit_count = elementwise(
    "bit_count", np.bitwise_count, INTEGERS, result=lambda _: np.dtype(np.uint8)
)
