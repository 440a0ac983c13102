"""Complex numbers in their real and imaginary parts.

Functions without a rule, such as `exp`, take and return complex numbers in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from wend.backends.native.expand.complex_parts import FORMULAS
from wend.backends.native.scalarize.rule import ExpansionRule
from wend.backends.native.scalarize.scope import ScalarElements, ScalarScope
from wend.backends.native.target.kinds import REGISTERS
from wend.backends.native.target.small_arrays import innermost
from wend.ir.dtypes import real_of
from wend.ir.graph import Node, Value
from wend.ir.op import Op
from wend.ir.types import TensorType, without_maybe
from wend.ops import elementwise, lists


def has_complex(node: Node) -> bool:
    """Return whether a node takes or returns complex numbers, arrays or lists of them."""
    types = (innermost(without_maybe(value.type)) for value in (*node.operands, *node.results))
    return any(isinstance(type, TensorType) and type.dtype.kind == "c" for type in types)


def _rule(emit: Callable[..., Sequence[Value]]) -> ExpansionRule:
    """Return the rule of an operation whose result `emit` computes from the operands' elements."""

    def expand(scope: ScalarScope, node: Node) -> Sequence[ScalarElements]:
        return [tuple(emit(scope.b, *map(scope.elements, node.operands)))]

    return ExpansionRule(expand)


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
    **{op: _rule(formula) for op, formula in FORMULAS.items()},
    elementwise.complex_abs: _rule(lambda b, x: [b.emit(elementwise.modulus, *x)]),
    elementwise.cast: ExpansionRule(_expand_cast, _cast_fits),
    lists.list_stack: ExpansionRule(_expand_stack),
    lists.list_unstack: ExpansionRule(_expand_unstack),
}
