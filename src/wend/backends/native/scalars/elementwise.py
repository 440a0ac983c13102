"""Operations that are done element by element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wend.backends.native.emit.elements import ELEMENTS
from wend.backends.native.emit.functions import is_one_number
from wend.backends.native.kinds import FLOAT32
from wend.backends.native.scalars.rule import Rule
from wend.backends.native.scalars.scope import Elements, Scope
from wend.backends.native.small import size
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import elementwise

# What counts as one operation, of those that are not functions
_PLAIN = {
    *(elementwise.add, elementwise.sub, elementwise.mul, elementwise.div, elementwise.neg),
    *(elementwise.abs, elementwise.sqrt, elementwise.select, elementwise.cast),
    *(elementwise.bit_and, elementwise.bit_or, elementwise.bit_xor, elementwise.bit_not),
    *(elementwise.eq, elementwise.ne, elementwise.lt, elementwise.le, elementwise.gt),
    *(elementwise.ge, elementwise.reciprocal, elementwise.maximum, elementwise.minimum),
    *(elementwise.isnan, elementwise.isinf, elementwise.isfinite, elementwise.sign),
}
_FUNCTION = 12  # so many instructions a function is worth, at least
_MOST_FUNCTIONS = 4  # of more elements they are computed faster by vectors, in a loop


def _each_fits(node: Node) -> bool:
    if node.op not in _PLAIN and size(node.results[0].type) > _MOST_FUNCTIONS:
        return False
    is_power = node.op is elementwise.pow and node.results[0].tensor.dtype != FLOAT32
    if is_power and not is_one_number(node.operands[1]):
        return False  # an exponent for each element is another power than one for all
    return ELEMENTS[node.op].takes(node)


def _write_each(scope: Scope, node: Node) -> Sequence[Elements]:
    given = zip(*(scope.elements(value) for value in node.operands), strict=True)
    return [tuple(scope.b.emit(node.op, *xs, **node.attrs) for xs in given)]


def _each_cost(node: Node) -> int:
    return size(node.results[0].type) * (1 if node.op in _PLAIN else _FUNCTION)


def _write_same(scope: Scope, node: Node) -> Sequence[Elements]:
    return [scope.elements(node.operands[0])]


RULES: Mapping[Op, Rule] = {
    **{op: Rule(_write_each, _each_fits, _each_cost) for op in ELEMENTS},
    elementwise.stop_gradient: Rule(_write_same),
}
