"""Which sizes of a graph are one: those that equal integers determine get one symbol (D10).

So `x[:k] + y[:k]` needs no broadcasting at run time, and `a[:k] += b[:k]` keeps its shape.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from wend.ir.builder import new_symbol
from wend.ir.graph import Value
from wend.ir.types import Symbol
from wend.ops import creating, elementwise, shaping

# Of equal operands they give equal results, and sizes are made of them.
_PURE = frozenset({elementwise.floor_divide, elementwise.maximum, elementwise.minimum})

Atom: TypeAlias = Value | Symbol


@dataclass(frozen=True)
class Number:
    """An integer as far as its graph tells: a constant and so many times each of some others."""

    constant: int
    terms: frozenset[tuple[Atom, int]] = frozenset()

    def plus(self, other: Number, times: int = 1) -> Number:
        """`self + times · other`."""
        terms: dict[Atom, int] = dict(self.terms)
        for atom, count in other.terms:
            terms[atom] = terms.get(atom, 0) + times * count
        return _made(self.constant + times * other.constant, terms)


def _made(constant: int, terms: Mapping[Atom, int]) -> Number:
    return Number(constant, frozenset((atom, n) for atom, n in terms.items() if n))


ZERO = Number(0)


class Sizes:
    """The integers and sizes that one recording has seen."""

    def __init__(self) -> None:
        self._atoms: dict[Hashable, Atom] = {}  # how an integer is made -> the first made so
        self._symbols: dict[tuple[Number, ...], Symbol] = {}

    def symbol(self, numbers: tuple[Number, ...], around: Sequence[Sizes]) -> Symbol:
        """The symbol of the size that these integers determine."""
        for sizes in (self, *around):
            if numbers in sizes._symbols:
                return sizes._symbols[numbers]
        if len(numbers) == 1 and numbers[0].constant == 0 and len(numbers[0].terms) == 1:
            ((atom, count),) = numbers[0].terms
            if isinstance(atom, Symbol) and count == 1:
                return atom
        return self._symbols.setdefault(numbers, new_symbol())

    def number(
        self, value: Value, known: Callable[[Value], Number], around: Sequence[Sizes]
    ) -> Number:
        """What is known of an integer; `known` tells the same of what it is made of."""
        node = value.node
        if node is None or value.tensor.shape != () or value.tensor.dtype.kind not in "iu":
            return _one(value)
        if node.op is creating.constant:
            return Number(int(node.attrs["value"]))
        if node.op is elementwise.cast:
            # Between integers: a number that does not fit is no size.
            return known(node.operands[0]) if _is_integer(node.operands[0]) else _one(value)
        if node.op is shaping.dim_of and node.operands[0].tensor.shape is not None:
            axis: int = node.attrs["axis"]
            dim = node.operands[0].tensor.dims[axis]
            return Number(dim) if isinstance(dim, int) else _one(dim)
        if node.op is elementwise.neg:
            return ZERO.plus(known(node.operands[0]), -1)
        if node.op in (elementwise.add, elementwise.sub):
            sign = 1 if node.op is elementwise.add else -1
            return known(node.operands[0]).plus(known(node.operands[1]), sign)
        if node.op is elementwise.mul:
            for one, other in (node.operands, node.operands[::-1]):
                factor = known(one)
                if not factor.terms:
                    return ZERO.plus(known(other), factor.constant)
        if node.op not in _PURE and node.op is not elementwise.mul:
            return _one(value)
        made = (node.op.name, *map(known, node.operands))
        for sizes in (self, *around):
            if made in sizes._atoms:
                return _one(sizes._atoms[made])
        return _one(self._atoms.setdefault(made, value))


def _one(atom: Atom) -> Number:
    return Number(0, frozenset({(atom, 1)}))


def _is_integer(value: Value) -> bool:
    return value.tensor.dtype.kind in "iu"
