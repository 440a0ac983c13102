"""What is known of integers is true of them, whatever the sizes are."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wend.ir.builder import new_symbol
from wend.ir.graph import Value
from wend.ir.types import Symbol, TensorType
from wend.trace.sizes.integers import ZERO, DerivedSize, Polynomial, constant, symbolic

N, M = new_symbol(), new_symbol()
V = Value(TensorType(np.dtype("i8"), ()))  # which may be negative


def value(number: Polynomial, sizes: dict[Symbol | Value, int]) -> int:
    """The integer that it is for some sizes."""
    total = 0
    for product, count in number.terms:
        for atom, power in product:
            count *= _value(atom, sizes) ** power
        total += count
    return total


def _value(atom: Any, sizes: dict[Symbol | Value, int]) -> int:
    if isinstance(atom, (Symbol, Value)):
        return sizes[atom]
    assert isinstance(atom, DerivedSize)
    if atom.op_name == "positive_part":
        return max(value(atom.operands[0], sizes), 0)
    assert atom.op_name == "floor_divide"
    return value(atom.operands[0], sizes) // atom.operands[1]


BINARY = {
    "plus": (Polynomial.plus, lambda a, b: a + b),
    "minus": (Polynomial.minus, lambda a, b: a - b),
    "times": (Polynomial.times, lambda a, b: a * b),
    "minimum": (Polynomial.minimum, min),
    "maximum": (Polynomial.maximum, max),
}


@st.composite
def integers(draw: st.DrawFn, depth: int = 4) -> tuple[Polynomial, Any]:
    """A number, and a function of the sizes that computes the same."""
    kind = draw(st.sampled_from(["n", "m", "v", "constant", *BINARY, "floor_div", "positive"]))
    if depth == 0 or kind in ("n", "m", "v", "constant"):
        if kind == "n":
            return symbolic(N), lambda sizes: sizes[N]
        if kind == "m":
            return symbolic(M), lambda sizes: sizes[M]
        if kind == "v":
            return symbolic(V), lambda sizes: sizes[V]
        known = draw(st.integers(-3, 3))
        return constant(known), lambda sizes: known
    a, run_a = draw(integers(depth - 1))
    if kind == "floor_div":
        by = draw(st.integers(1, 3))
        return a.floor_div(by), lambda sizes: run_a(sizes) // by
    if kind == "positive":
        return a.positive_part(), lambda sizes: max(run_a(sizes), 0)
    b, run_b = draw(integers(depth - 1))
    of_numbers, of_integers = BINARY[kind] if kind in BINARY else BINARY["plus"]
    return of_numbers(a, b), lambda sizes: of_integers(run_a(sizes), run_b(sizes))


SIZES = [{N: n, M: m, V: v} for n in range(6) for m in range(6) for v in (-3, -1, 0, 2)]


@given(integers())
def test_numbers_are_what_they_are_made_of(made: tuple[Polynomial, Any]) -> None:
    number, run = made
    found = [value(number, sizes) for sizes in SIZES]
    assert found == [run(sizes) for sizes in SIZES]
    if number.is_nonnegative:
        assert min(found) >= 0
    size = number.positive_part()
    assert size.is_nonnegative
    assert size.positive_part() == size


def test_equal_sizes_are_one_number() -> None:
    n, m, two = symbolic(N), symbolic(M), constant(2)
    rest = n.minus(constant(1)).positive_part()
    assert n.minimum(constant(1)).plus(rest) == n  # [x[:1], x[1:]]
    assert constant(1).minus(n).positive_part() == rest.minus(n).plus(constant(1))
    assert n.minus(m).positive_part().plus(m) == m.minus(n).positive_part().plus(n)
    half = n.floor_div(2)
    assert half.minimum(n) == half
    assert half.plus(n.minus(half).positive_part()) == n
    assert n.times(two).plus(constant(1)).floor_div(2) == n
    assert n.times(m).times(two).exact_quotient(m.times(two)) == n
    assert n.times(m).plus(n).exact_quotient(m) is None
    assert n.minus(n) == ZERO
    assert (n.symbol, two.symbol, n.times(two).symbol) == (N, None, None)


def test_the_positive_part_of_what_may_be_negative_has_no_upper_bound_zero():
    v = symbolic(V)
    size = ZERO.minus(v).positive_part()
    assert not constant(1).minus(size).is_nonnegative
    assert size.minus(constant(1)).positive_part() != ZERO


def test_sizes_that_are_equal_only_where_they_are_small_differ() -> None:
    n, m = (symbolic(new_symbol()) for _ in range(2))
    shorter = n.minus(constant(1)).positive_part()
    assert n.differs_at_large_sizes(shorter)
    assert n.plus(constant(1)).differs_at_large_sizes(n.floor_div(2))
    assert not n.differs_at_large_sizes(m)
    assert not n.differs_at_large_sizes(n)
    opaque = symbolic(DerivedSize("nonzero", (n,)))
    assert not n.differs_at_large_sizes(opaque)
