"""Which sizes of a graph are one: those that equal integers determine get one symbol (D10).

So `x[:k] + y[:k]` needs no broadcasting at run time, `a[:k] += b[:k]` keeps its shape, and a loop
may carry what it joins of parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wend.ir.builder import new_symbol
from wend.ir.graph import Value
from wend.ir.op import Op
from wend.ir.types import Dim, Symbol, Type, substitute, symbols
from wend.ops import creating, elementwise, shaping
from wend.trace.sizes.integers import (
    ZERO,
    Number,
    constant,
    one,
)
from wend.trace.sizes.result_sizes import RULES


class SizeTable:
    """The integers and sizes that one recording has seen.

    Args:
        around: those of the recording around a region.
        entered: the region's params, with the values around it that they stand for.
    """

    def __init__(self, around: SizeTable | None, entered: Mapping[Value, Value]) -> None:
        self._around, self._entered = around, entered
        self._numbers: dict[Value, Number] = {}
        self._symbols: dict[Number, Symbol] = {}
        self._meanings: dict[Symbol, Number] = {}
        self._own: set[Value | Symbol] = set()  # what differs from run to run of the region

    def size(self, number: Number) -> Dim:
        """The size that is this integer: a number where it is known."""
        if number.is_constant:
            return number.constant
        if number.symbol is not None:
            return number.symbol
        if self._around is not None and self.is_steady(number):
            return self._around.size(number)
        if number not in self._symbols:
            symbol = self._symbols[number] = new_symbol()
            self._meanings[symbol] = number
        return self._symbols[number]

    def is_steady(self, number: Number) -> bool:
        """Whether it is what it is outside of the region."""
        return self._own.isdisjoint(number.atoms())

    def number(self, value: Value) -> Number:
        """What is known of an integer."""
        if self._around is not None and value in self._entered:
            return self._around.number(self._entered[value])
        if value not in self._numbers:
            self._numbers[value] = self._found(value)
        return self._numbers[value]

    def of_dim(self, dim: Dim) -> Number:
        """A size as an integer."""
        if isinstance(dim, int):
            return constant(dim)
        if dim in self._meanings:
            return self._meanings[dim]
        return one(dim) if self._around is None else self._around.of_dim(dim)

    def source(self, value: Value) -> Value:
        """A value, as the outermost recording knows it that has it."""
        if self._around is not None and value in self._entered:
            return self._around.source(self._entered[value])
        if value.node is not None and value.node.op is shaping.keep_shape:
            return self.source(value.node.operands[0])
        self._own.add(value)
        return value

    def named(
        self, op: Op, operands: Sequence[Value], attrs: Mapping[str, Any], types: tuple[Type, ...]
    ) -> tuple[Type, ...]:
        """The types of an operation's results with their new sizes named."""
        unknown = {s for type in types for s in symbols(type) if s.is_fresh}
        if not unknown:
            return types
        names: dict[Symbol, Dim] = {}
        rule = RULES.get(op)
        for symbol in sorted(unknown, key=str):
            number = None if rule is None else rule(self, operands, attrs, int(symbol.name[1:]))
            names[symbol] = self._new() if number is None else self.size(number)
        return tuple(substitute(type, names) for type in types)

    def _new(self) -> Symbol:
        symbol = new_symbol()
        self._own.add(symbol)
        return symbol

    def _unknown(self, value: Value) -> Number:
        return one(self.source(value))

    def _found(self, value: Value) -> Number:
        node = value.node
        if node is None or value.tensor.shape != () or value.tensor.dtype.kind not in "iu":
            return self._unknown(value)
        if node.op is creating.constant:
            return constant(int(node.attrs["value"]))
        if node.op is elementwise.cast:
            # Between integers: a number that does not fit is no size.
            (operand,) = node.operands
            is_integer = operand.tensor.dtype.kind in "iu"
            return self.number(operand) if is_integer else self._unknown(value)
        if node.op is shaping.dim_of and node.operands[0].tensor.shape is not None:
            return self.of_dim(node.operands[0].tensor.dims[node.attrs["axis"]])
        if node.op is creating.nonnegative:
            return self.number(node.operands[0])
        if node.op is elementwise.neg:
            return ZERO.minus(self.number(node.operands[0]))
        if node.op not in _ARITHMETIC:
            return self._unknown(value)
        x, y = map(self.number, node.operands)
        found = _ARITHMETIC[node.op](x, y)
        return self._unknown(value) if found is None else found


def _quotient(x: Number, y: Number) -> Number | None:
    return x.divided(y.constant) if y.is_constant and y.constant > 0 else None


_ARITHMETIC = {
    elementwise.add: Number.plus,
    elementwise.sub: Number.minus,
    elementwise.mul: Number.times,
    elementwise.maximum: Number.most,
    elementwise.minimum: Number.least,
    elementwise.floor_divide: _quotient,
}
