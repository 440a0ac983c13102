"""Arithmetic of complex numbers in their real and imaginary parts, as NumPy rounds it.

Functions without a rule, such as `exp`, take and return complex numbers in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from wend.backends.native.scalarize.rule import ExpansionRule
from wend.backends.native.scalarize.scope import ScalarElements, ScalarScope
from wend.backends.native.target.kinds import REGISTERS
from wend.backends.native.target.small_arrays import innermost
from wend.ir.dtypes import real_of
from wend.ir.graph import Node, Value
from wend.ir.op import Op
from wend.ir.types import TensorType, without_maybe
from wend.ops import elementwise, lists
from wend.ops.build import Build

_Pair = tuple[Value, Value]


def has_complex(node: Node) -> bool:
    """Return whether a node takes or returns complex numbers, arrays or lists of them."""
    types = (innermost(without_maybe(value.type)) for value in (*node.operands, *node.results))
    return any(isinstance(type, TensorType) and type.dtype.kind == "c" for type in types)


def _rule(emit: Callable[..., Sequence[Value]]) -> ExpansionRule:
    """Return the rule of an operation whose result `emit` computes from the operands' elements."""

    def expand(scope: ScalarScope, node: Node) -> Sequence[ScalarElements]:
        return [tuple(emit(scope.b, *map(scope.elements, node.operands)))]

    return ExpansionRule(expand)


def _each_part(op: Op) -> ExpansionRule:
    """Return the rule of an operation that treats both parts alike."""
    return _rule(lambda b, *operands: [b.emit(op, *xs) for xs in zip(*operands, strict=True)])


def _joined(op: Op, join: Op) -> ExpansionRule:
    """Return the rule of a predicate that joins what it is of the parts."""
    return _rule(
        lambda b, *operands: [
            b.emit(join, *(b.emit(op, *xs) for xs in zip(*operands, strict=True)))
        ]
    )


def _product(b: Build, x: _Pair, y: _Pair) -> _Pair:
    real = b.sub(b.mul(x[0], y[0]), b.mul(x[1], y[1]))
    return real, b.add(b.mul(x[0], y[1]), b.mul(x[1], y[0]))


def _quotient(b: Build, x: _Pair, y: _Pair) -> _Pair:
    """Divide by the algorithm of R. L. Smith (Communications of the ACM 5, 1962), as NumPy does."""
    sizes = [b.emit(elementwise.abs, part) for part in y]
    is_wide = b.emit(elementwise.ge, *sizes)
    large, small = b.select(is_wide, *y), b.select(is_wide, y[1], y[0])
    ratio = b.div(small, large)
    scale = b.div(b.ones_like(large), b.add(large, b.mul(small, ratio)))
    near, far = b.select(is_wide, *x), b.select(is_wide, x[1], x[0])
    real = b.mul(b.add(near, b.mul(far, ratio)), scale)
    turned = b.select(is_wide, b.sub(x[1], b.mul(x[0], ratio)), b.sub(b.mul(x[1], ratio), x[0]))
    imag = b.mul(turned, scale)
    zero = b.zeros_like(large)
    is_zero = b.emit(elementwise.bit_and, is_wide, b.eq(sizes[0], zero))
    return (
        b.select(is_zero, b.div(x[0], sizes[0]), real),
        b.select(is_zero, b.div(x[1], sizes[0]), imag),
    )


def _reciprocal(b: Build, x: _Pair) -> _Pair:
    """Invert by the same algorithm, in the steps of NumPy."""
    is_wide = b.emit(elementwise.ge, *(b.emit(elementwise.abs, part) for part in x))
    large, small = b.select(is_wide, *x), b.select(is_wide, x[1], x[0])
    ratio, one = b.div(small, large), b.ones_like(large)
    scale = b.add(large, b.mul(small, ratio))
    real = b.div(b.select(is_wide, one, ratio), scale)
    return real, b.div(b.neg(b.select(is_wide, ratio, one)), scale)


def _expand_cast(scope: ScalarScope, node: Node) -> Sequence[ScalarElements]:
    dtype = real_of(node.attrs["dtype"])
    parts = [scope.b.cast(x, dtype) for x in scope.elements(node.operands[0])]
    return [tuple(parts) if len(parts) == 2 else (parts[0], scope.b.constant(0, dtype))]


def _cast_fits(node: Node) -> bool:
    source, target = node.operands[0].tensor.dtype, node.attrs["dtype"]
    return target.kind == "c" and (source.kind == "c" or source in REGISTERS)


# Lists, of which each part has one
def _expand_stack(scope: ScalarScope, node: Node) -> Sequence[ScalarElements]:
    b, (result,) = scope.b, node.results
    attrs = {**node.attrs, "dtype": real_of(result.tensor.dtype)}
    shape = [scope.whole(value) for value in node.operands[1:]]
    real, imag = (b.emit(node.op, x, *shape, **attrs) for x in scope.elements(node.operands[0]))
    return [(b.complex(real, b.refine(imag, real.type)),)]


def _expand_unstack(scope: ScalarScope, node: Node) -> Sequence[ScalarElements]:
    whole = scope.whole(node.operands[0])
    return [tuple(scope.b.list_unstack(x) for x in (scope.b.real(whole), scope.b.imag(whole)))]


RULES: Mapping[Op, ExpansionRule] = {
    elementwise.real: _rule(lambda b, x: x[:1]),
    elementwise.imag: _rule(lambda b, x: x[1:]),
    elementwise.complex: _rule(lambda b, x, y: (*x, *y)),
    elementwise.conj: _rule(lambda b, x: (x[0], b.neg(x[1]))),
    elementwise.complex_abs: _rule(lambda b, x: [b.emit(elementwise.modulus, *x)]),
    **{
        op: _each_part(op)
        for op in (elementwise.add, elementwise.sub, elementwise.neg, elementwise.stop_gradient)
    },
    elementwise.mul: _rule(_product),
    elementwise.div: _rule(_quotient),
    elementwise.reciprocal: _rule(_reciprocal),
    elementwise.eq: _joined(elementwise.eq, elementwise.bit_and),
    elementwise.ne: _joined(elementwise.ne, elementwise.bit_or),
    elementwise.isnan: _joined(elementwise.isnan, elementwise.bit_or),
    elementwise.isinf: _joined(elementwise.isinf, elementwise.bit_or),
    elementwise.isfinite: _joined(elementwise.isfinite, elementwise.bit_and),
    elementwise.cast: ExpansionRule(_expand_cast, _cast_fits),
    lists.list_stack: ExpansionRule(_expand_stack),
    lists.list_unstack: ExpansionRule(_expand_unstack),
}
