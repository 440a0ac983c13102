"""Integers as far as a graph tells: sums of products, of which equal ones are equal sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from wend.ir.graph import Value
from wend.ir.types import Symbol


@dataclass(frozen=True)
class DerivedSize:
    """What an operation makes of integers, or of other things that decide it."""

    how: str
    of: tuple[object, ...]


Atom: TypeAlias = Value | Symbol | DerivedSize
# A product: each atom with its power.
Product: TypeAlias = frozenset[tuple[Atom, int]]


@dataclass(frozen=True)
class Number:
    """So many times each of some products, and a constant: the product of nothing."""

    terms: frozenset[tuple[Product, int]] = frozenset()

    @property
    def constant(self) -> int:
        return dict(self.terms).get(_ONE, 0)

    @property
    def is_constant(self) -> bool:
        return all(product == _ONE for product, _ in self.terms)

    @property
    def is_size(self) -> bool:
        """Whether it is 0 at least, whatever the sizes are; False where that is not seen."""
        return _is_positive(dict(self.terms), _DEPTH)

    @property
    def symbol(self) -> Symbol | None:
        """The symbol that this is, if it is nothing else."""
        if len(self.terms) != 1:
            return None
        ((product, count),) = self.terms
        factors = list(product)
        if count != 1 or len(factors) != 1 or factors[0][1] != 1:
            return None
        return factors[0][0] if isinstance(factors[0][0], Symbol) else None

    def atoms(self) -> Iterator[Value | Symbol]:
        """What it is made of in the end."""
        for product, _ in self.terms:
            for atom, _ in product:
                yield from _atoms(atom)

    def plus(self, other: Number, times: int = 1) -> Number:
        """`self + times · other`."""
        terms = Counter(dict(self.terms))
        for product, count in other.terms:
            terms[product] += times * count
        return _made(terms)

    def minus(self, other: Number) -> Number:
        return self.plus(other, -1)

    def times(self, other: Number) -> Number:
        terms: Counter[Product] = Counter()
        for mine, count in self.terms:
            for theirs, number in other.terms:
                powers = Counter(dict(mine))
                for atom, power in theirs:
                    powers[atom] += power
                terms[frozenset(powers.items())] += count * number
        return _made(terms)

    def divided(self, by: int) -> Number:
        """Divided by a positive number and rounded down."""
        whole, rest = {}, {}
        for product, count in self.terms:
            if count % by == 0:
                whole[product] = count // by
            elif product == _ONE:
                whole[product], rest[product] = divmod(count, by)
            else:
                rest[product] = count
        left = _made(rest)
        if left.is_constant:
            return _made(whole)
        return _made(whole).plus(one(DerivedSize("floor_divide", (left, by))))

    def over(self, part: Number) -> Number | None:
        """What times `part`, which is one product and not 0, is this; None where that is not seen.

        A constant that does not divide the others leaves nothing to be said.
        """
        if len(part.terms) != 1:
            return None
        ((divisor, by),) = part.terms
        found: Counter[Product] = Counter()
        for product, count in self.terms:
            powers = Counter(dict(product))
            powers.subtract(dict(divisor))
            if count % by or min(powers.values(), default=0) < 0:
                return None
            rest = frozenset((atom, power) for atom, power in powers.items() if power)
            found[rest] += count // by
        return _made(found)

    def positive_part(self) -> Number:
        """The greater one of it and 0."""
        if self.is_size:
            return self
        negative = ZERO.minus(self)
        if negative.is_size:
            return ZERO
        # max(x, 0) = max(−x, 0) + x: one of the two is written.
        if _key(negative) < _key(self):
            return one(DerivedSize("positive_part", (negative,))).plus(self)
        return one(DerivedSize("positive_part", (self,)))

    def least(self, other: Number) -> Number:
        """The smaller one."""
        return self.minus(self.minus(other).positive_part())

    def most(self, other: Number) -> Number:
        """The greater one."""
        return other.plus(self.minus(other).positive_part())


_ONE: Product = frozenset()
_DEPTH = 3  # how often what is taken away is made simpler
ZERO = Number()


def constant(number: int) -> Number:
    """A number that is known."""
    return _made({_ONE: number})


def one(atom: Atom) -> Number:
    """A number of which nothing else is known."""
    return Number(frozenset({(frozenset({(atom, 1)}), 1)}))


def _made(terms: Mapping[Product, int]) -> Number:
    return Number(frozenset((product, count) for product, count in terms.items() if count))


def _atoms(thing: object) -> Iterator[Value | Symbol]:
    if isinstance(thing, DerivedSize):
        for part in thing.of:
            yield from _atoms(part)
    elif isinstance(thing, Number):
        yield from thing.atoms()
    elif isinstance(thing, (Value, Symbol)):
        yield thing


def _key(number: Number) -> tuple[int, list[str]]:
    """An order of numbers, by which one of two that differ in sign is taken."""
    names = sorted(f"{_name(product)} {count}" for product, count in number.terms)
    return number.constant, names


def _name(product: Product) -> str:
    parts = (atom if isinstance(atom, Symbol) else id(atom) for atom, _ in product)
    return " ".join(sorted(map(str, parts)))


def _is_positive(terms: Mapping[Product, int], depth: int) -> bool:
    negative = [product for product, count in terms.items() if count < 0]
    if not negative:
        return all(_is_size(atom) for product in terms for atom, _ in product)
    # What is taken away is at most something simpler.
    return depth > 0 and any(
        _is_positive(simpler, depth - 1)
        for product in negative
        if (simpler := _with_more_taken(terms, product)) is not None
    )


def _with_more_taken(
    terms: Mapping[Product, int], product: Product
) -> Mapping[Product, int] | None:
    """A positive multiple of something that is not greater, without one product."""
    atom = next((atom for atom, power in product if len(product) == power == 1), None)
    if not isinstance(atom, DerivedSize) or not isinstance(atom.of[0], Number):
        return None
    above, by = dict(atom.of[0].terms), 1
    if atom.how == "floor_divide":
        assert isinstance(atom.of[1], int)
        by = atom.of[1]
    elif atom.how == "positive_part":
        above = {p: count for p, count in above.items() if count > 0}
        if not all(_is_size(part) for p in above for part, _ in p):
            return None
    else:
        return None
    found = Counter({p: by * count for p, count in terms.items() if p != product})
    for part, count in above.items():
        found[part] += terms[product] * count
    return {p: count for p, count in found.items() if count}


def _is_size(atom: Atom) -> bool:
    """Whether it is never negative."""
    match atom:
        case Symbol():
            return True
        case DerivedSize(how="positive_part"):
            return True
        case DerivedSize(how="floor_divide", of=(Number() as inner, int())):
            return inner.is_size
    return False
