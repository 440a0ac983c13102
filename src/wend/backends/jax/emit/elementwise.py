"""Arithmetic and the usual functions, one element at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np

from wend.backends.jax.lowering import Emitter, GraphLowering
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import elementwise as ew
from wend.ops import special
from wend.ops.frame_states import may_fail


def _apply(function: Callable[..., Any]) -> Emitter:
    def run(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
        dtypes = [x.tensor.dtype for x in node.operands]
        pairs = zip(operands, dtypes, strict=True)
        result = function(*(jnp.asarray(x, dtype) for x, dtype in pairs))
        return jnp.asarray(result, node.results[0].tensor.dtype)

    return run


def _floor_divide(x: Any, y: Any) -> Any:
    if x.dtype.kind not in "iu":
        return _float_divmod(x, y)[0]
    # A quotient by 0 is 0, as in NumPy
    safe = jnp.where(y == 0, jnp.ones_like(y), y)
    return jnp.where(y == 0, jnp.zeros_like(x), jnp.floor_divide(x, safe))


def _remainder(x: Any, y: Any) -> Any:
    if x.dtype.kind not in "iu":
        return _float_divmod(x, y)[1]
    safe = jnp.where(y == 0, jnp.ones_like(y), y)
    return jnp.where(y == 0, jnp.zeros_like(x), jnp.remainder(x, safe))


def _float_divmod(x: Any, y: Any) -> tuple[Any, Any]:
    """Quotient and remainder as NumPy computes them, from C's `fmod`."""
    modulus = jax.lax.rem(x, y)
    quotient = (x - modulus) / y
    is_off = (modulus != 0) & ((y < 0) != (modulus < 0))
    remainder = jnp.where(is_off, modulus + y, modulus)
    remainder = jnp.where(modulus == 0, jnp.copysign(jnp.zeros_like(x), y), remainder)
    quotient = jnp.where(is_off, quotient - 1, quotient)
    nearest = jnp.floor(quotient)
    nearest = jnp.where(quotient - nearest > 0.5, nearest + 1, nearest)
    signed_zero = jnp.copysign(jnp.zeros_like(x), x / y)
    quotient = jnp.where(quotient != 0, nearest, signed_zero)
    quotient = jnp.where(jnp.isnan(modulus), modulus, quotient)
    return (
        jnp.where(y == 0, x / y, quotient),
        jnp.where(y == 0, jnp.full_like(x, jnp.nan), remainder),
    )


def _cast(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    dtype = node.attrs["dtype"]
    x = jnp.asarray(operands[0])
    x = x.real if x.dtype.kind == "c" and dtype.kind not in "cb" else x
    if x.dtype.kind == "f" and dtype.kind in "iu":
        return _float_to_integer(x.astype(jnp.float32) if x.dtype.itemsize == 2 else x, dtype)
    return x.astype(dtype)


def _float_to_integer(x: Any, dtype: np.dtype) -> Any:
    """Convert as x86 does: what has no integer becomes the least one."""
    wide: np.dtype[np.signedinteger[Any]] = np.dtype(
        np.int64 if dtype.itemsize > 4 or dtype == np.uint32 else np.int32
    )
    if dtype == np.uint64:
        return x.astype(dtype)
    info = np.iinfo(wide)
    is_outside = ~((x >= float(info.min)) & (x < -float(info.min)))
    return jnp.where(is_outside, wide.type(info.min), x.astype(wide)).astype(dtype)


def _direction(x: Any, y: Any) -> Any:
    length = jnp.hypot(x, y)
    return x / jnp.where(length == 0, jnp.ones_like(length), length)


def _sinh(x: Any) -> Any:
    if x.dtype.kind == "c":
        return jnp.sinh(x)
    half = jnp.exp(jnp.abs(x) / 2)  # of a large number, whose exponential may overflow
    return jnp.where(jnp.abs(x) < _LARGE, jnp.sinh(x), jnp.copysign(half / 2 * half, x))


def _cosh(x: Any) -> Any:
    if x.dtype.kind == "c":
        return jnp.cosh(x)
    half = jnp.exp(jnp.abs(x) / 2)
    return jnp.where(jnp.abs(x) < _LARGE, jnp.cosh(x), half / 2 * half)


_LARGE = 20  # e**-2x is less than a unit in the last place


def _pow(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x, y = (jnp.asarray(v, o.tensor.dtype) for v, o in zip(operands, node.operands, strict=True))
    if may_fail(node):
        ctx.check(
            node, jnp.any(y < 0), lambda _: np.power(np.ones(1, np.int64), -np.ones(1, np.int64))
        )
    if x.dtype.kind in "iu" and x.dtype.kind == y.dtype.kind:
        return _integer_power(x, y)
    return jnp.power(x, y)


def _integer_power(x: Any, y: Any) -> Any:
    """Square and multiply, wrapping around as NumPy does; 1 for negative exponents."""

    def multiply(k: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        power, result = state
        is_factor = ((y >> k.astype(y.dtype)) & 1).astype(bool) & (y >= 0)
        return power * power, jnp.where(is_factor, result * power, result)

    bits = 8 * y.dtype.itemsize - (y.dtype.kind == "i")
    return jax.lax.fori_loop(0, bits, multiply, (x, jnp.ones_like(x)))[1]


def _rint(x: Any) -> Any:
    if x.dtype.kind == "c":
        return jax.lax.complex(jnp.rint(x.real), jnp.rint(x.imag))
    return jnp.rint(x)


def _kl_div(x: Any, y: Any) -> Any:
    """Return x log(x/y) − x + y; elsewhere what SciPy has, where JAX may have NaN."""
    outside = jnp.where((x == 0) & (y >= 0), y, jnp.inf)
    outside = jnp.where(jnp.isnan(x) | jnp.isnan(y), jnp.nan, outside)
    return jnp.where((x > 0) & (y > 0), x * jnp.log(x / y) - x + y, outside)


_FUNCTIONS: dict[Op, Callable[..., Any]] = {
    ew.add: jax.lax.add,
    ew.sub: jax.lax.sub,
    ew.mul: jax.lax.mul,
    ew.div: jax.lax.div,
    ew.neg: jax.lax.neg,
    ew.reciprocal: lambda x: 1 / x,
    ew.floor_divide: _floor_divide,
    ew.remainder: _remainder,
    ew.abs: jnp.abs,
    ew.sign: jnp.sign,
    ew.maximum: jnp.maximum,
    ew.minimum: jnp.minimum,
    ew.sqrt: jnp.sqrt,
    ew.cbrt: jnp.cbrt,
    ew.exp: jnp.exp,
    ew.exp2: jnp.exp2,
    ew.expm1: jnp.expm1,
    ew.log: jnp.log,
    ew.log2: jnp.log2,
    ew.log10: jnp.log10,
    ew.log1p: jnp.log1p,
    ew.sin: jnp.sin,
    ew.cos: jnp.cos,
    ew.tan: jnp.tan,
    ew.asin: jnp.arcsin,
    ew.acos: jnp.arccos,
    ew.atan: jnp.arctan,
    ew.sinh: _sinh,
    ew.cosh: _cosh,
    ew.tanh: jnp.tanh,
    ew.asinh: jnp.arcsinh,
    ew.acosh: jnp.arccosh,
    ew.atanh: jnp.arctanh,
    ew.direction: _direction,
    ew.hypot: jnp.hypot,
    ew.atan2: jnp.arctan2,
    ew.floor: jnp.floor,
    ew.ceil: jnp.ceil,
    ew.trunc: jnp.trunc,
    ew.rint: _rint,
    ew.real: jnp.real,
    ew.imag: jnp.imag,
    ew.conj: jnp.conj,
    ew.complex: jax.lax.complex,
    ew.bit_and: jnp.bitwise_and,
    ew.bit_or: jnp.bitwise_or,
    ew.bit_xor: jnp.bitwise_xor,
    ew.bit_not: jnp.invert,
    ew.shift_left: jnp.left_shift,
    ew.shift_right: jnp.right_shift,
    ew.eq: jnp.equal,
    ew.ne: jnp.not_equal,
    ew.lt: jnp.less,
    ew.le: jnp.less_equal,
    ew.gt: jnp.greater,
    ew.ge: jnp.greater_equal,
    ew.isnan: jnp.isnan,
    ew.isinf: jnp.isinf,
    ew.isfinite: jnp.isfinite,
    ew.select: jnp.where,
    ew.complex_abs: lambda x: jnp.hypot(x.real, x.imag),
    ew.stop_gradient: lambda x: x,
    ew.graft: lambda x, y: x,
    ew.signbit: jnp.signbit,
    ew.nextafter: jnp.nextafter,
    ew.fmod: jax.lax.rem,
    ew.fmod_int: lambda x, y: jnp.where(
        y == 0, jnp.zeros_like(x), jax.lax.rem(x, jnp.where(y == 0, jnp.ones_like(y), y))
    ),
    ew.gcd: jnp.gcd,
    ew.lcm: jnp.lcm,
    ew.bit_count: lambda x: jax.lax.population_count(jnp.abs(x)),
    special.erf: jsp.erf,
    special.erfc: jsp.erfc,
    special.expit: jsp.expit,
    special.logaddexp: jnp.logaddexp,
    special.xlogy: jsp.xlogy,
    special.xlog1py: jsp.xlog1py,
    special.kl_div: _kl_div,
}
EMITTERS: dict[Op, Emitter] = {op: _apply(function) for op, function in _FUNCTIONS.items()}
# Kinds of dtypes for which NumPy's kernels compute: XLA's order of NaN, its sides of branch cuts at
# −0.0 and its integer 1/0 are others.
BY_KERNEL: dict[Op, str] = {
    ew.lt: "c",
    ew.le: "c",
    ew.gt: "c",
    ew.ge: "c",
    ew.maximum: "c",
    ew.minimum: "c",
    ew.sqrt: "c",
    ew.pow: "c",
    ew.asin: "c",
    ew.acos: "c",
    ew.atan: "c",
    ew.asinh: "c",
    ew.acosh: "c",
    ew.atanh: "c",
    ew.reciprocal: "iu",
}
EMITTERS |= {ew.cast: _cast, ew.pow: _pow}
