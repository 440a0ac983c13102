"""Size tables: sizes that are provably equal share one dimension symbol (D10).

Hence `x[:k] + y[:k]` needs no broadcasting at run time, `a[:k] += b[:k]` keeps its shape, and a
loop may carry an array that each trip concatenates from parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wend.ir.builder import new_symbol
from wend.ir.dtypes import INT64
from wend.ir.graph import Node, Value
from wend.ir.op import Op
from wend.ir.types import Dim, Symbol, Type, substitute, symbols
from wend.ops import creating, effects, elementwise, shaping
from wend.passes.cse import attrs_key
from wend.passes.lane_maps import is_elementwise
from wend.trace.sizes.integers import ZERO, DerivedSize, Polynomial, constant, symbolic
from wend.trace.sizes.result_sizes import RULES

_MAX_DEPTH = 6  # of expressions that are compared


class SizeTable:
    """The integers and sizes of one recording.

    Args:
        outer: the table of the recording around a region.
        outer_values: the region's params, with the outer values that they stand for.
    """

    def __init__(self, outer: SizeTable | None, outer_values: Mapping[Value, Value]) -> None:
        self._outer, self._outer_values = outer, outer_values
        self._of_value: dict[Value, Polynomial] = {}
        self._symbols: dict[Polynomial, Symbol] = {}
        self._definitions: dict[Symbol, Polynomial] = {}
        self._variant: set[Value | Symbol] = set()  # may differ between runs of the region

    def size(self, number: Polynomial) -> Dim:
        """Return the dimension that equals a polynomial: an int if it is known."""
        if number.is_constant:
            return number.constant
        if number.symbol is not None:
            return number.symbol
        if self._outer is not None and self.is_invariant(number):
            return self._outer.size(number)
        if number not in self._symbols:
            symbol = self._symbols[number] = new_symbol()
            self._definitions[symbol] = number
        return self._symbols[number]

    def is_invariant(self, number: Polynomial) -> bool:
        """Return whether a polynomial has the same value in every run of the region."""
        return self._variant.isdisjoint(number.atoms())

    def of_value(self, value: Value) -> Polynomial:
        """Return an integer value as a polynomial."""
        if self._outer is not None and value in self._outer_values:
            return self._outer.of_value(self._outer_values[value])
        if value not in self._of_value:
            self._of_value[value] = self._analyze(value)
        return self._of_value[value]

    def note_range(self, value: Value, low: Polynomial, high: Polynomial) -> None:
        """Note that an integer is at least `low` and below `high` in each run of the region."""
        last = high.minus(low).minus(constant(1))
        self._of_value[value] = low.plus(
            symbolic(DerivedSize("offset", (last, self.source(value))))
        )

    def of_dim(self, dim: Dim) -> Polynomial:
        """Return a dimension as a polynomial."""
        if isinstance(dim, int):
            return constant(dim)
        if dim in self._definitions:
            return self._definitions[dim]
        return symbolic(dim) if self._outer is None else self._outer.of_dim(dim)

    def source(self, value: Value) -> Value:
        """Return a value as the outermost recording that has it names it."""
        if self._outer is not None and value in self._outer_values:
            return self._outer.source(self._outer_values[value])
        if value.node is not None and value.node.op is shaping.keep_shape:
            return self.source(value.node.operands[0])
        self._variant.add(value)
        return value

    def expression(self, value: Value, depth: int = _MAX_DEPTH) -> object:
        """Return what a value is computed from, equal for values that are computed alike.

        So the masks of `x[x > 0] = y[x > 0]` select equally many elements.
        """
        if self._outer is not None and value in self._outer_values:
            return self._outer.expression(self._outer_values[value], depth)
        node = value.node
        if node is None or not depth or not _is_simple(node):
            return self.source(value)
        if node.op is shaping.broadcast_to:
            number = self.expression(node.operands[0], depth - 1)
            return DerivedSize(node.op.name, (number, *map(self.of_dim, value.tensor.dims)))
        parts = [self.expression(operand, depth - 1) for operand in node.operands]
        return DerivedSize(node.op.name, (attrs_key(node), *parts))

    def name_sizes(
        self, op: Op, operands: Sequence[Value], attrs: Mapping[str, Any], types: tuple[Type, ...]
    ) -> tuple[Type, ...]:
        """Return the types of an operation's results, with symbols for their new sizes."""
        unknown = {s for type in types for s in symbols(type) if s.is_fresh}
        if not unknown:
            return types
        dims: dict[Symbol, Dim] = {}
        rule = RULES.get(op)
        for symbol in sorted(unknown, key=str):
            number = None if rule is None else rule(self, operands, attrs, int(symbol.name[1:]))
            dims[symbol] = self._new() if number is None else self.size(number)
        return tuple(substitute(type, dims) for type in types)

    def _new(self) -> Symbol:
        symbol = new_symbol()
        self._variant.add(symbol)
        return symbol

    def _opaque(self, value: Value) -> Polynomial:
        return symbolic(self.source(value))

    def _analyze(self, value: Value) -> Polynomial:
        node = value.node
        if node is None or value.tensor.shape != () or value.tensor.dtype.kind not in "iu":
            return self._opaque(value)
        if node.op is creating.constant:
            return constant(int(node.attrs["value"]))
        if node.op is elementwise.cast:
            # Wider integers keep every number that can be a size.
            (operand,) = node.operands
            known = operand.tensor.dtype
            is_kept = known.kind in "iu" and known.itemsize <= value.tensor.dtype.itemsize
            return self.of_value(operand) if is_kept else self._opaque(value)
        if node.op is shaping.dim_of and node.operands[0].tensor.shape is not None:
            return self.of_dim(node.operands[0].tensor.dims[node.attrs["axis"]])
        if node.op in (creating.nonnegative, effects.checked):
            return self.of_value(node.operands[0])
        if value.tensor.dtype != INT64:  # arithmetic that may wrap
            return self._opaque(value)
        if node.op is elementwise.neg:
            return ZERO.minus(self.of_value(node.operands[0]))
        if node.op not in _ARITHMETIC:
            return self._opaque(value)
        x, y = map(self.of_value, node.operands)
        result = _ARITHMETIC[node.op](x, y)
        return self._opaque(value) if result is None else result


def _is_simple(node: Node) -> bool:
    """Return whether a node repeats a number, is one, or computes element by element."""
    if node.op is creating.constant:
        return node.results[0].tensor.shape == ()
    if node.op is shaping.broadcast_to:
        return node.results[0].tensor.shape is not None
    return is_elementwise(node)


def _quotient(x: Polynomial, y: Polynomial) -> Polynomial | None:
    return x.floor_div(y.constant) if y.is_constant and y.constant > 0 else None


_ARITHMETIC = {
    elementwise.add: Polynomial.plus,
    elementwise.sub: Polynomial.minus,
    elementwise.mul: Polynomial.times,
    elementwise.maximum: Polynomial.maximum,
    elementwise.minimum: Polynomial.minimum,
    elementwise.floor_divide: _quotient,
}
