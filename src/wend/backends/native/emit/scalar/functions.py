"""Math functions of numbers in registers: from `math/`, the C library or SciPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.emit.scalar.element import Element
from wend.backends.native.emit.scalar.normal_quantile import emit_normal_quantile
from wend.backends.native.emit.scalar.powers import known_power, power_of_number
from wend.backends.native.rt import special_functions
from wend.backends.native.target.kinds import FLOAT32, Kind
from wend.backends.native.target.value_layout import is_scalar
from wend.ir.dtypes import FLOAT64
from wend.ir.graph import Node, Value
from wend.ir.op import Op
from wend.ops import elementwise as ops
from wend.ops import shaping, special

# Arrays of at most this many elements use the scalar functions, because `scalarize/` may replace
# them by scalars and the results must not change by a bit.
MAX_SCALAR_MATH_ELEMENTS = 4
# LLVM unrolls loops this short without vectorizing them, so each element would cost a call.
MAX_SCALAR_SINCOS_ELEMENTS = 8


def _in_double(compute: Callable[[Lowering, Kind, Sequence[str]], str]) -> Element:
    """Return a function that computes in f64, also for f32 operands."""

    def emit(low: Lowering, node: Node, kind: Kind, *args: str) -> str:
        wide = kind.of(FLOAT64)
        if kind.dtype == FLOAT32:
            args = tuple(low.w.define(f"fpext {kind.text} {x} to {wide.text}") for x in args)
        result = compute(low, wide, args)
        if kind.dtype == FLOAT32:
            result = low.w.define(f"fptrunc {wide.text} {result} to {kind.text}")
        return result

    return Element(emit, "f")


def inlined(name: str) -> Element:
    """Return a function defined in IR in `math/`, for scalars and for loops."""
    return _looped_or_scalar(name, _scalar(name))


def _scalar(name: str) -> Element:
    """Return the scalar variant of a function of `math/`, which is tuned for latency."""
    return _in_double(lambda low, kind, args: low.calls.math_function(name, kind, *args))


def vectorizable(name: str) -> Element:
    """Return a function of `math/` that has one variant for loops and scalars."""
    return Element(
        lambda low, node, kind, *args: low.calls.vectorizable(name, kind, *args),
        "f",
        loop_function=name,
    )


def from_libm(name: str) -> Element:
    """Return a function of `math/` in loops, and of the C library for scalars."""
    return _looped_or_scalar(
        name, _in_double(lambda low, kind, args: low.calls.from_libm(name, *args))
    )


def _looped_or_scalar(
    name: str, scalar: Element, max_scalar_elements: int = MAX_SCALAR_MATH_ELEMENTS
) -> Element:
    """Return a function of `math/` in loops; up to `max_scalar_elements` elements, `scalar`."""

    def emit(low: Lowering, node: Node, kind: Kind, *args: str) -> str:
        if _takes_loop_function(low, node, kind, max_scalar_elements):
            return low.calls.vectorizable(name, kind, *args)
        return scalar.emit(low, node, kind, *args)

    return Element(emit, "f", loop_function=name)


def sin_or_cos(name: str) -> Element:
    """Return sine or cosine; if a region needs both of one operand, one call computes them."""
    index = ("sin", "cos").index(name)
    single = _looped_or_scalar(name, _scalar(name), MAX_SCALAR_SINCOS_ELEMENTS)

    def emit(low: Lowering, node: Node, kind: Kind, x: str) -> str:
        (operand,) = node.operands
        has_pair = operand in low.sincos_pairs and is_scalar(operand.type)
        if not has_pair or kind.dtype != FLOAT64 or low.vectorizes:
            return single.emit(low, node, kind, x)
        pair = low.sincos_pairs[operand]
        if pair is None:
            pair = low.sincos_pairs[operand] = sincos_pair(low, kind, x)
        return pair[index]

    return Element(emit, "f", loop_function=name)


def _takes_loop_function(low: Lowering, node: Node, kind: Kind, most: int) -> bool:
    """Return whether LLVM can widen what computes a node, which has more elements than `most`."""
    return (low.vectorizes and kind.lanes == 1) or not _has_at_most(node, most)


def _has_at_most(node: Node, count: int) -> bool:
    """Return whether the result is known to have at most `count` elements."""
    shape = node.results[0].tensor.shape
    static_dims = [dim for dim in shape or () if isinstance(dim, int)]
    return shape is not None and len(static_dims) == len(shape) and math.prod(static_dims) <= count


def sincos_pair(low: Lowering, kind: Kind, x: str) -> tuple[str, str]:
    """Emit the sine and the cosine of an f64, of any number of lanes."""
    name = "sincos" if kind.lanes == 1 else f"sincos.v{kind.lanes}"
    low.calls.math.add(name)
    pair_type = f"{{ {kind.text}, {kind.text} }}"
    result = low.w.define(f"call {pair_type} @wend.{name}({kind.text} {x})")
    return (
        low.w.define(f"extractvalue {pair_type} {result}, 0"),
        low.w.define(f"extractvalue {pair_type} {result}, 1"),
    )


def _power(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
    """Emit x ** y."""
    is_widened = _takes_loop_function(low, node, kind, MAX_SCALAR_MATH_ELEMENTS)
    if is_widened or kind.dtype == FLOAT64:
        known = known_power(low.w, kind, x, y)
        if known is not None:
            return known
    if is_widened:
        power = low.calls.vectorizable("pow", kind, x, y)
    elif kind.dtype == FLOAT64:
        power = low.calls.from_libm("pow", x, y)
    else:
        power = _POWER.emit(low, node, kind, x, y)
    if not is_scalar_or_splat(node.operands[1]):
        return power
    return power_of_number(low.w, kind, x, y, power)


def _call_scipy(low: Lowering, stem: str, args: Sequence[str]) -> str:
    """Emit a call of a SciPy function of one or two reals."""
    low.calls.external[stem] = special_functions.declaration(stem, len(args))
    operands = ", ".join(f"double {arg}" for arg in args)
    return low.w.define(f"call double @{special_functions.name(stem)}({operands}, i32 0)")


def _from_scipy(stem: str) -> Element:
    """Return a SciPy function of one real, called once per element."""
    return replace(
        _in_double(lambda low, kind, args: _call_scipy(low, stem, args)),
        is_supported=lambda node: special_functions.is_available(stem),
    )


def _normal_quantile() -> Element:
    def compute(low: Lowering, kind: Kind, args: Sequence[str]) -> str:
        def call(number: str) -> str:
            return _call_scipy(low, "ndtri", [number])

        (x,) = args
        return call(x) if kind.lanes == 1 else emit_normal_quantile(low, kind, x, call)

    return replace(
        _in_double(compute),
        is_supported=lambda node: special_functions.is_available("ndtri"),
        takes_vectors=True,
    )


def _member_from_scipy(*firsts: str, others: str | None = None) -> Element:
    """Return a family of SciPy functions: those of the first orders, and one of any order."""

    def stem_of(node: Node) -> str | None:
        order = node.attrs["order"]
        return firsts[order] if order < len(firsts) else others

    def emit(low: Lowering, node: Node, kind: Kind, *args: str) -> str:
        stem, order = stem_of(node) or "", node.attrs["order"]
        orders = [kind.of(FLOAT64).literal(order)] if stem == others else []
        return _in_double(lambda low, kind, args: _call_scipy(low, stem, [*orders, *args])).emit(
            low, node, kind, *args
        )

    def is_supported(node: Node) -> bool:
        stem = stem_of(node)
        return stem is not None and special_functions.is_available(stem)

    return Element(emit, "f", is_supported=is_supported)


def _log_ndtr() -> Element:
    """Return log Φ and its first derivative, √(2/π)/erfcx(−x/√2)."""

    def derivative(low: Lowering, kind: Kind, args: Sequence[str]) -> str:
        scaled = low.w.define(f"fmul double {args[0]}, {kind.literal(-math.sqrt(0.5))}")
        factor = kind.literal(math.sqrt(2 / math.pi))
        return low.w.define(f"fdiv double {factor}, {_call_scipy(low, 'erfcx', [scaled])}")

    members = _from_scipy("log_ndtr"), _in_double(derivative)

    def emit(low: Lowering, node: Node, kind: Kind, *args: str) -> str:
        return members[node.attrs["order"]].emit(low, node, kind, *args)

    def is_supported(node: Node) -> bool:
        order = node.attrs["order"]
        return order < 2 and special_functions.is_available(("log_ndtr", "erfcx")[order])

    return Element(emit, "f", is_supported=is_supported)


def _beta_without_poles() -> Element:
    """Return Β(x, y) without its terms 1/x and 1/y of the poles that are near."""

    def compute(low: Lowering, kind: Kind, args: Sequence[str]) -> str:
        w, poles = low.w, kind.literal(0)
        for x in args:
            size = _absolute(low, kind, x)
            bound = kind.literal(special.NEAR_POLE)
            is_near = w.define(f"fcmp olt double {size}, {bound}")
            pole = w.define(f"fdiv double {kind.literal(1)}, {x}")
            term = w.define(f"select i1 {is_near}, double {pole}, double {kind.literal(0)}")
            poles = w.define(f"fadd double {poles}, {term}")
        regular = w.define(f"fsub double {_call_scipy(low, 'beta', args)}, {poles}")
        is_finite = w.define(
            f"fcmp olt double {_absolute(low, kind, poles)}, {kind.literal(float('inf'))}"
        )
        return w.define(f"select i1 {is_finite}, double {regular}, double {kind.literal(0)}")

    def is_supported(node: Node) -> bool:
        is_value = not node.attrs["first"] and not node.attrs["second"]
        return is_value and special_functions.is_available("beta")

    return replace(_in_double(compute), is_supported=is_supported)


def _x_times_log(logarithm: Op) -> Element:
    """Return x · log y, which is 0 for x = 0 unless y is NaN."""

    def emit(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
        w, type = low.w, kind.text
        log_y = FUNCTIONS[logarithm].emit(low, node, kind, y)
        product = w.define(f"fmul {type} {x}, {log_y}")
        is_zero = w.define(f"fcmp oeq {type} {x}, {kind.literal(0)}")
        is_number = w.define(f"fcmp ord {type} {y}, {y}")
        is_zero_product = w.define(f"and i1 {is_zero}, {is_number}")
        return w.define(f"select i1 {is_zero_product}, {type} {kind.literal(0)}, {type} {product}")

    return Element(emit, "f")


def _ordered(low: Lowering, kind: Kind, x: str, y: str) -> tuple[str, str]:
    """Emit the larger and the smaller of two numbers; if one is NaN, so is one of these."""
    is_larger = low.w.define(f"fcmp ogt {kind.text} {x}, {y}")
    larger = low.w.define(f"select i1 {is_larger}, {kind.text} {x}, {kind.text} {y}")
    return larger, low.w.define(f"select i1 {is_larger}, {kind.text} {y}, {kind.text} {x}")


def _absolute(low: Lowering, kind: Kind, x: str) -> str:
    return low.w.define(f"call {kind.text} @llvm.fabs.{kind.suffix}({kind.text} {x})")


def hypot(low: Lowering, kind: Kind, x: str, y: str) -> str:
    """Emit the root of x² + y², scaled by the larger, within 2 ulp.

    As in C, an infinity comes before NaN. NumPy has this formula for arrays of complex numbers.
    """
    w, type, one = low.w, kind.text, kind.literal(1)
    x, y = _absolute(low, kind, x), _absolute(low, kind, y)
    larger, smaller = _ordered(low, kind, x, y)
    is_zero = w.define(f"fcmp oeq {type} {larger}, {kind.literal(0)}")
    divisor = w.define(f"select i1 {is_zero}, {type} {one}, {type} {larger}")
    ratio = w.define(f"fdiv {type} {smaller}, {divisor}")
    factors = f"{type} {ratio}, {type} {ratio}, {type} {one}"
    square = w.define(f"call {type} @llvm.fmuladd.{kind.suffix}({factors})")
    root = w.define(f"call {type} @llvm.sqrt.{kind.suffix}({type} {square})")
    length = w.define(f"fmul {type} {larger}, {root}")
    infinity = kind.literal(float("inf"))
    is_infinite = [w.define(f"fcmp oeq {type} {part}, {infinity}") for part in (x, y)]
    either = w.define(f"or i1 {is_infinite[0]}, {is_infinite[1]}")
    return w.define(f"select i1 {either}, {type} {infinity}, {type} {length}")


def _direction(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
    """Emit x over the length of (x, y), which is 0 at the origin."""
    w, type = low.w, kind.text
    length = hypot(low, kind, x, y)
    is_origin = w.define(f"fcmp oeq {type} {length}, {kind.literal(0)}")
    divisor = w.define(f"select i1 {is_origin}, {type} {kind.literal(1)}, {type} {length}")
    return w.define(f"fdiv {type} {x}, {divisor}")


def _logaddexp(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
    """Emit log(exp x + exp y) from the larger and the distance, which equal infinities lack."""
    w, type = low.w, kind.text
    larger, _ = _ordered(low, kind, x, y)
    distance = _absolute(low, kind, w.define(f"fsub {type} {x}, {y}"))
    is_tie = w.define(f"fcmp oeq {type} {x}, {y}")
    negated = w.define(f"fneg {type} {distance}")
    gap = w.define(f"select i1 {is_tie}, {type} {kind.literal(0)}, {type} {negated}")
    ratio = FUNCTIONS[ops.exp].emit(low, node, kind, gap)
    return w.define(f"fadd {type} {larger}, {FUNCTIONS[ops.log1p].emit(low, node, kind, ratio)}")


def is_scalar_or_splat(value: Value) -> bool:
    """Return whether a value is a scalar or the broadcast of one."""
    if value.node is not None and value.node.op is shaping.broadcast_to:
        value = value.node.operands[0]
    return is_scalar(value.type)


_POWER = _in_double(lambda low, kind, args: low.calls.from_libm("pow", *args))
_FROM_LIBM = (
    *(ops.cbrt, ops.exp2, ops.log2, ops.log10, ops.tan, ops.sinh, ops.cosh, ops.atan2),
    *(ops.asin, ops.acos, ops.atan, ops.asinh, ops.acosh, ops.atanh),
)
_FROM_SCIPY = (
    *(special.gamma, special.gammaln, special.erfinv, special.erfcinv),
    *(special.betaln, special.kl_div),
)

FUNCTIONS: Mapping[Op, Element] = {
    ops.sin: sin_or_cos("sin"),
    ops.cos: sin_or_cos("cos"),
    ops.pow: Element(_power, "f", loop_function="pow"),
    **{op: inlined(op.name) for op in (ops.exp, ops.expm1, ops.log, ops.log1p, ops.tanh)},
    **{op: from_libm(op.name) for op in _FROM_LIBM},
    **{op: vectorizable(op.name) for op in (special.erf, special.erfc, special.expit)},
    **{op: _from_scipy(op.name) for op in _FROM_SCIPY},
    special.ndtri: _normal_quantile(),
    special.polygamma: _member_from_scipy("psi"),
    special.bessel_i: _member_from_scipy("i0", "i1", others="iv"),
    special.bessel_j: _member_from_scipy("j0", "j1", others="jv"),
    special.log_ndtr: _log_ndtr(),
    ops.modulus: _in_double(lambda low, kind, args: low.calls.from_libm("hypot", *args)),
    special.beta_without_poles: _beta_without_poles(),
    ops.hypot: Element(lambda low, node, kind, x, y: hypot(low, kind, x, y), "f"),
    ops.direction: Element(_direction, "f"),
    special.logaddexp: Element(_logaddexp, "f"),
    special.xlogy: _x_times_log(ops.log),
    special.xlog1py: _x_times_log(ops.log1p),
}
