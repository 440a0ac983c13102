"""Mathematical functions of numbers in registers: ours (`math/`) or the C library's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.emit.scalar.element import Element
from wend.backends.native.rt import special_functions
from wend.backends.native.target.kinds import FLOAT32, Kind
from wend.backends.native.target.value_layout import is_scalar
from wend.ir.dtypes import FLOAT64
from wend.ir.graph import Node, Value
from wend.ir.op import Op
from wend.ops import elementwise as ops
from wend.ops import shaping, special

# Arrays of a few numbers are computed as numbers are: `scalars/` may take those apart, and they are
# to give the same bits then.
FEW = 4
FEW_SINCOS = 8  # LLVM makes no vectors of loops that it unrolls: each element would cost a call


def _in_double(compute: Callable[[Lowering, Kind, Sequence[str]], str]) -> Element:
    """A function that is computed in f64, also of f32."""

    def write(low: Lowering, node: Node, kind: Kind, *given: str) -> str:
        wide = kind.of(FLOAT64)
        if kind.dtype == FLOAT32:
            given = tuple(low.w.define(f"fpext {kind.text} {x} to {wide.text}") for x in given)
        found = compute(low, wide, given)
        if kind.dtype == FLOAT32:
            found = low.w.define(f"fptrunc {wide.text} {found} to {kind.text}")
        return found

    return Element(write, "f")


def inlined(name: str) -> Element:
    """A function of reals that is written in IR, in `math/`, for scalars and for loops."""
    return _function(name, _alone(name))


def _alone(name: str) -> Element:
    """A function of one real, made for who waits for it."""
    return _in_double(lambda low, kind, given: low.calls.inlined(name, kind, *given))


def looped(name: str) -> Element:
    """A function of reals that is written in IR for loops; one number does as well there."""
    return Element(lambda low, node, kind, *given: low.calls.in_loop(name, kind, *given), "f")


def from_libm(name: str) -> Element:
    """A function of reals that is written in IR for loops; of scalars, the C library's."""
    return _function(name, _in_double(lambda low, kind, given: low.calls.from_libm(name, *given)))


def _function(name: str, alone: Element, most: int = FEW) -> Element:
    """A function of `math/` in loops over arrays, and `alone` of up to `most` numbers."""

    def write(low: Lowering, node: Node, kind: Kind, *given: str) -> str:
        if _are_few(node, most):
            return alone.write(low, node, kind, *given)
        return low.calls.in_loop(name, kind, *given)

    return Element(write, "f")


def sin_or_cos(name: str) -> Element:
    """Sine or cosine; where a region wants both of one number they are computed together."""
    index = ("sin", "cos").index(name)
    each = _function(name, _alone(name), FEW_SINCOS)

    def write(low: Lowering, node: Node, kind: Kind, x: str) -> str:
        (operand,) = node.operands
        if operand not in low.sincos_pairs or not is_scalar(operand.type) or kind.dtype != FLOAT64:
            return each.write(low, node, kind, x)
        pair = low.sincos_pairs[operand]
        if pair is None:
            pair = low.sincos_pairs[operand] = sincos_pair(low, kind, x)
        return pair[index]

    return Element(write, "f")


def _are_few(node: Node, most: int) -> bool:
    """Whether the result is known to have so many elements at most."""
    shape = node.results[0].tensor.shape
    known = [dim for dim in shape or () if isinstance(dim, int)]
    return shape is not None and len(known) == len(shape) and math.prod(known) <= most


def sincos_pair(low: Lowering, kind: Kind, x: str) -> tuple[str, str]:
    """Sine and cosine of f64, of any lanes."""
    name = "sincos" if kind.lanes == 1 else f"sincos.v{kind.lanes}"
    low.calls.math.add(name)
    pair = f"{{ {kind.text}, {kind.text} }}"
    both = low.w.define(f"call {pair} @wend.{name}({kind.text} {x})")
    return (
        low.w.define(f"extractvalue {pair} {both}, 0"),
        low.w.define(f"extractvalue {pair} {both}, 1"),
    )


def _power(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
    alone = _are_few(node, FEW)
    if not alone:
        power = low.calls.in_loop("pow", kind, x, y)
    elif kind.dtype == FLOAT64:
        power = low.calls.from_libm("pow", x, y)
    else:
        return _POWER.write(low, node, kind, x, y)
    if kind.dtype == FLOAT32 or not is_one_number(node.operands[1]):
        return power
    # As NumPy has it where there is one exponent, x ** 0.5 is the root also where `pow`
    # disagrees: at −0.0 and −inf.
    w = low.w
    is_half = w.define(f"fcmp oeq double {y}, 0.5")
    is_two = w.define(f"fcmp oeq double {y}, 2.0")
    root = w.define(f"call double @llvm.sqrt.f64(double {x})")
    square = w.define(f"fmul double {x}, {x}")
    chosen = w.define(f"select i1 {is_two}, double {square}, double {power}")
    return w.define(f"select i1 {is_half}, double {root}, double {chosen}")


def _from_scipy(stem: str) -> Element:
    """A function of SciPy's, of one real, called for each element."""

    def compute(low: Lowering, kind: Kind, given: Sequence[str]) -> str:
        low.calls.declared[stem] = special_functions.declaration(stem)
        return low.w.define(
            f"call double @{special_functions.name(stem)}(double {given[0]}, i32 0)"
        )

    return replace(_in_double(compute), suits=lambda node: special_functions.is_there(stem))


def _digamma() -> Element:
    """The first of the polygamma functions; SciPy has no others of this kind."""
    psi = _from_scipy("psi")
    return replace(psi, suits=lambda node: node.attrs["order"] == 0 and psi.suits(node))


def _times_logarithm(logarithm: Op) -> Element:
    """The product x · log y, and 0 where x = 0 but for NaN in y."""

    def write(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
        w, type = low.w, kind.text
        found = FUNCTIONS[logarithm].write(low, node, kind, y)
        product = w.define(f"fmul {type} {x}, {found}")
        is_zero = w.define(f"fcmp oeq {type} {x}, {kind.literal(0)}")
        is_number = w.define(f"fcmp ord {type} {y}, {y}")
        none = w.define(f"and i1 {is_zero}, {is_number}")
        return w.define(f"select i1 {none}, {type} {kind.literal(0)}, {type} {product}")

    return Element(write, "f")


def is_one_number(value: Value) -> bool:
    """Whether it is a scalar, or one broadcast."""
    if value.node is not None and value.node.op is shaping.broadcast_to:
        value = value.node.operands[0]
    return is_scalar(value.type)


_POWER = _in_double(lambda low, kind, given: low.calls.from_libm("pow", *given))
_FROM_LIBM = (
    *(ops.cbrt, ops.exp2, ops.log2, ops.log10, ops.tan, ops.sinh, ops.cosh, ops.atan2),
    *(ops.asin, ops.acos, ops.atan, ops.asinh, ops.acosh, ops.atanh),
)
_FROM_SCIPY = (
    *(special.gamma, special.gammaln, special.erfinv, special.erfcinv, special.ndtri),
    *(special.log_ndtr, special.i0, special.i1, special.j0, special.j1),
)

FUNCTIONS: Mapping[Op, Element] = {
    ops.sin: sin_or_cos("sin"),
    ops.cos: sin_or_cos("cos"),
    ops.pow: Element(_power, "f"),
    **{op: inlined(op.name) for op in (ops.exp, ops.expm1, ops.log, ops.log1p, ops.tanh)},
    **{op: from_libm(op.name) for op in _FROM_LIBM},
    **{op: looped(op.name) for op in (special.erf, special.erfc, special.expit)},
    **{op: _from_scipy(op.name) for op in _FROM_SCIPY},
    special.polygamma: _digamma(),
    special.xlogy: _times_logarithm(ops.log),
    special.xlog1py: _times_logarithm(ops.log1p),
}
