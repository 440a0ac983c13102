"""Symbolic integers: polynomials over sizes and values.

Polynomials are kept in a normal form, so two sizes that are provably equal compare equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Value
from wend.ir.types import Symbol


@dataclass(frozen=True)
class DerivedSize:
    """An opaque atom: the result of an operation that is not a polynomial.

    Attributes:
        op_name: the operation, for example `floor_divide`; `offset`: a number from 0 to the first
            operand.
        operands: its operands: polynomials, values or Python objects.
    """

    op_name: str
    operands: tuple[object, ...]


Atom: TypeAlias = Value | Symbol | DerivedSize
# A product of atoms, each with its exponent.
Monomial: TypeAlias = frozenset[tuple[Atom, int]]


@dataclass(frozen=True)
class Polynomial:
    """A sum of monomials with integer coefficients.

    Attributes:
        terms: pairs of a monomial and its coefficient; the constant term has the empty monomial.
    """

    terms: frozenset[tuple[Monomial, int]] = frozenset()

    @property
    def constant(self) -> int:
        return dict(self.terms).get(_ONE, 0)

    @property
    def is_constant(self) -> bool:
        return all(monomial == _ONE for monomial, _ in self.terms)

    @property
    def is_nonnegative(self) -> bool:
        """Whether it is at least 0 for all sizes; False if this cannot be shown."""
        return _is_nonnegative(dict(self.terms), _MAX_BOUND_DEPTH)

    @property
    def symbol(self) -> Symbol | None:
        """The symbol that it equals, or None."""
        if len(self.terms) != 1:
            return None
        ((monomial, count),) = self.terms
        factors = list(monomial)
        if count != 1 or len(factors) != 1 or factors[0][1] != 1:
            return None
        return factors[0][0] if isinstance(factors[0][0], Symbol) else None

    def atoms(self) -> Iterator[Value | Symbol]:
        """Yield the values and symbols that it depends on."""
        for monomial, _ in self.terms:
            for atom, _ in monomial:
                yield from _leaves(atom)

    def differs_at_large_sizes(self, other: Polynomial) -> bool:
        """Return whether polynomials in the same values and symbols differ where these are large.

        So do `n + 1` and `max(n, 0)`, which are equal only for an `n` that is no size.
        """
        atoms = dict.fromkeys(self.atoms())
        if atoms.keys() != dict.fromkeys(other.atoms()).keys():
            return False
        numbers: dict[Value | Symbol, int] = {x: 10**6 + 7919 * k for k, x in enumerate(atoms)}
        one, two = self._at(numbers), other._at(numbers)
        return one is not None and two is not None and one != two

    def _at(self, numbers: Mapping[Value | Symbol, int]) -> int | None:
        """Return the number where the atoms have these values; None if that is not known."""
        total = 0
        for monomial, count in self.terms:
            for atom, power in monomial:
                number = _atom_at(atom, numbers)
                if number is None:
                    return None
                count *= number**power
            total += count
        return total

    def plus(self, other: Polynomial, times: int = 1) -> Polynomial:
        """Return `self + times · other`."""
        terms = Counter(dict(self.terms))
        for monomial, count in other.terms:
            terms[monomial] += times * count
        return _normalized(terms)

    def minus(self, other: Polynomial) -> Polynomial:
        return self.plus(other, -1)

    def times(self, other: Polynomial) -> Polynomial:
        terms: Counter[Monomial] = Counter()
        for lhs, lhs_count in self.terms:
            for rhs, rhs_count in other.terms:
                powers = Counter(dict(lhs))
                for atom, power in rhs:
                    powers[atom] += power
                terms[frozenset(powers.items())] += lhs_count * rhs_count
        return _normalized(terms)

    def floor_div(self, by: int) -> Polynomial:
        """Return the quotient by a positive integer, rounded down."""
        quotient, remainder = {}, {}
        for monomial, count in self.terms:
            if count % by == 0:
                quotient[monomial] = count // by
            elif monomial == _ONE:
                quotient[monomial], remainder[monomial] = divmod(count, by)
            else:
                remainder[monomial] = count
        left = _normalized(remainder)
        if left.is_constant:
            return _normalized(quotient)
        return _normalized(quotient).plus(symbolic(DerivedSize("floor_divide", (left, by))))

    def exact_quotient(self, part: Polynomial) -> Polynomial | None:
        """Return the q with q · `part` = self, or None if it is not found.

        `part` is assumed to be nonzero. It must be a single term, whose coefficient divides all
        coefficients of self.
        """
        if len(part.terms) != 1:
            return None
        ((divisor, by),) = part.terms
        quotient: Counter[Monomial] = Counter()
        for monomial, count in self.terms:
            powers = Counter(dict(monomial))
            powers.subtract(dict(divisor))
            if count % by or min(powers.values(), default=0) < 0:
                return None
            remaining = frozenset((atom, power) for atom, power in powers.items() if power)
            quotient[remaining] += count // by
        return _normalized(quotient)

    def positive_part(self) -> Polynomial:
        """Return max(self, 0)."""
        if self.is_nonnegative:
            return self
        negative = ZERO.minus(self)
        if negative.is_nonnegative:
            return ZERO
        # max(x, 0) = max(−x, 0) + x: only one of the two forms is used.
        if _sort_key(negative) < _sort_key(self):
            return symbolic(DerivedSize("positive_part", (negative,))).plus(self)
        return symbolic(DerivedSize("positive_part", (self,)))

    def minimum(self, other: Polynomial) -> Polynomial:
        """Return the smaller of the two."""
        return self.minus(self.minus(other).positive_part())

    def maximum(self, other: Polynomial) -> Polynomial:
        """Return the greater of the two."""
        return other.plus(self.minus(other).positive_part())


def _atom_at(atom: Atom, numbers: Mapping[Value | Symbol, int]) -> int | None:
    if not isinstance(atom, DerivedSize):
        return numbers[atom]
    match atom.op_name, atom.operands:
        case "positive_part", (Polynomial() as operand,):
            number = operand._at(numbers)
            return None if number is None else max(number, 0)
        case "floor_divide", (Polynomial() as operand, int() as by):
            number = operand._at(numbers)
            return None if number is None else number // by
    return None


_ONE: Monomial = frozenset()
_MAX_BOUND_DEPTH = 3  # how many negative terms in a row are replaced by their upper bounds
ZERO = Polynomial()


def constant(number: int) -> Polynomial:
    """Return the polynomial of a known integer."""
    return _normalized({_ONE: number})


def symbolic(atom: Atom) -> Polynomial:
    """Return the polynomial that is a single atom."""
    return Polynomial(frozenset({(frozenset({(atom, 1)}), 1)}))


def _normalized(terms: Mapping[Monomial, int]) -> Polynomial:
    return Polynomial(frozenset((monomial, count) for monomial, count in terms.items() if count))


def _leaves(thing: object) -> Iterator[Value | Symbol]:
    if isinstance(thing, DerivedSize):
        for operand in thing.operands:
            yield from _leaves(operand)
    elif isinstance(thing, Polynomial):
        yield from thing.atoms()
    elif isinstance(thing, (Value, Symbol)):
        yield thing


def _sort_key(polynomial: Polynomial) -> tuple[int, list[str]]:
    """Return a sort key; it chooses between two polynomials that differ in sign."""
    names = sorted(f"{_name(monomial)} {count}" for monomial, count in polynomial.terms)
    return polynomial.constant, names


def _name(monomial: Monomial) -> str:
    parts = (atom if isinstance(atom, Symbol) else id(atom) for atom, _ in monomial)
    return " ".join(sorted(map(str, parts)))


def _is_nonnegative(terms: Mapping[Monomial, int], depth: int) -> bool:
    if all(count > 0 for count in terms.values()) and all(
        _is_nonnegative_atom(atom) for monomial in terms for atom, _ in monomial
    ):
        return True
    # Replacing what is subtracted by an upper bound of it gives a lower bound of the whole.
    return depth > 0 and any(
        _is_nonnegative(lower_bound, depth - 1)
        for monomial in terms
        if (lower_bound := _lower_bound(terms, monomial)) is not None
    )


def _lower_bound(
    terms: Mapping[Monomial, int], monomial: Monomial
) -> Mapping[Monomial, int] | None:
    """Return a lower bound without a monomial, up to a positive factor."""
    atom = next((atom for atom, power in monomial if len(monomial) == power == 1), None)
    if not isinstance(atom, DerivedSize) or not isinstance(atom.operands[0], Polynomial):
        return None
    upper, by = dict(atom.operands[0].terms), 1
    if terms[monomial] > 0:  # only max(x, 0) has a lower bound that helps: x
        return _replaced(terms, monomial, upper, 1) if atom.op_name == "positive_part" else None
    if atom.op_name == "floor_divide":
        assert isinstance(atom.operands[1], int)
        by = atom.operands[1]
    elif atom.op_name == "positive_part":
        if not all(_is_nonnegative_atom(factor) for p in upper for factor, _ in p):
            return None  # what is subtracted may be negative, too
        upper = {p: count for p, count in upper.items() if count > 0}
    elif atom.op_name != "offset":
        return None
    return _replaced(terms, monomial, upper, by)


def _replaced(
    terms: Mapping[Monomial, int], monomial: Monomial, bound: Mapping[Monomial, int], by: int
) -> Mapping[Monomial, int]:
    """Return `by` times a sum, with a bound in the place of `by` times a monomial."""
    total = Counter({p: by * count for p, count in terms.items() if p != monomial})
    for term, count in bound.items():
        total[term] += terms[monomial] * count
    return {p: count for p, count in total.items() if count}


# `slice`, `cut`, `nonzero`, `spread` and `size` are sizes of arrays
_NEVER_NEGATIVE = {"positive_part", "offset", "slice", "cut", "nonzero", "spread", "size"}


def _is_nonnegative_atom(atom: Atom) -> bool:
    """Return whether an atom is never negative."""
    match atom:
        case Symbol():
            return True
        case DerivedSize(op_name=name) if name in _NEVER_NEGATIVE:
            return True
        case DerivedSize(op_name="floor_divide", operands=(Polynomial() as dividend, int())):
            return dividend.is_nonnegative
    return False
