"""Which sizes of a graph are one: those that equal integers determine get one symbol (D10).

So `x[:k] + y[:k]` needs no broadcasting at run time, and `a[:k] += b[:k]` keeps its shape.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from wend.ir.builder import new_symbol
from wend.ir.graph import Value
from wend.ir.types import Symbol
from wend.ops import creating, elementwise, shaping

# Of equal operands they give equal results, and sizes are made of them.
_PURE = frozenset(
    {
        elementwise.add,
        elementwise.sub,
        elementwise.mul,
        elementwise.neg,
        elementwise.floor_divide,
        elementwise.maximum,
        elementwise.minimum,
    }
)


class Sizes:
    """The integers and sizes that one recording has seen."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, Hashable] = {}  # how an integer is made -> the first made so
        self._symbols: dict[Hashable, Symbol] = {}

    def symbol(self, numbers: tuple[Hashable, ...], around: Sequence[Sizes]) -> Symbol:
        """The symbol of the size that these integers determine."""
        if len(numbers) == 1 and isinstance(numbers[0], Symbol):
            return numbers[0]
        for sizes in (self, *around):
            if numbers in sizes._symbols:
                return sizes._symbols[numbers]
        return self._symbols.setdefault(numbers, new_symbol())

    def number(
        self, value: Value, known: Callable[[Value], Hashable], around: Sequence[Sizes]
    ) -> Hashable:
        """What stands for an integer: its number, the symbol it is the size of, or a value."""
        node = value.node
        if node is None or value.tensor.shape != () or value.tensor.dtype.kind not in "iu":
            return value
        if node.op is creating.constant:
            return int(node.attrs["value"])
        if node.op is elementwise.cast:
            # Between integers: a number that does not fit is no size.
            return known(node.operands[0]) if _is_integer(node.operands[0]) else value
        if node.op is shaping.dim_of and node.operands[0].tensor.shape is not None:
            axis: int = node.attrs["axis"]
            return node.operands[0].tensor.dims[axis]
        if node.op not in _PURE:
            return value
        made = (node.op.name, *map(known, node.operands))
        for sizes in (self, *around):
            if made in sizes._numbers:
                return sizes._numbers[made]
        return self._numbers.setdefault(made, value)


def _is_integer(value: Value) -> bool:
    return value.tensor.dtype.kind in "iu"
