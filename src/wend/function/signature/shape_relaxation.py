"""Shape relaxation: symbolic sizes that let one trace accept several shapes.

Sizes 0 and 1 are never made symbolic from examples, since broadcasting, squeezing and empty results
treat them differently (zero-one specialization).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from wend.ir.builder import new_symbol
from wend.ir.types import Dim, Symbol, TensorType, accepts
from wend.trace.recording.arguments import LeafType

Types = Sequence[LeafType]
# The leaf, and the axis of its shape
Axis = tuple[int, int]

SPECIALIZED_SIZES = (0, 1)
# Stands for the axes of arrays of unknown rank, where they could not be left unknown
ANY_RANK: frozenset[Axis] = frozenset({(-1, -1)})


def subsumes(general: Types, specific: Types, *, accepts_zero_one: bool) -> bool:
    """Return whether a trace for the `general` types accepts arrays of the `specific` types.

    They differ in sizes only. `accepts_zero_one` tells whether a symbolic size may also be 0 or 1.
    """
    bindings: dict[Symbol, Dim] = {}
    if not all(accepts(a.type, b.type, bindings) for a, b in zip(general, specific, strict=True)):
        return False
    return accepts_zero_one or not any(size in SPECIALIZED_SIZES for size in bindings.values())


def symbolic_axes(types: Types) -> frozenset[Axis]:
    """Return the axes with a symbolic size."""
    return frozenset(axis for axis, dim in _dims(types) if isinstance(dim, Symbol))


def ranks_apart(family: Any, other: Any) -> tuple[int, ...]:
    """Return the leaves whose ranks differ between two families that are else equal; () if none."""
    if family[0] != other[0] or family[1] != other[1] or family[3:] != other[3:]:
        return ()
    pairs = enumerate(zip(family[2], other[2], strict=True))
    differing = [(k, a, b) for k, (a, b) in pairs if a != b]
    if any(not _differ_in_rank(a, b) for _, a, b in differing):
        return ()
    return tuple(k for k, _, _ in differing)


def _differ_in_rank(generic: Any, other: Any) -> bool:
    return all(isinstance(x, tuple) for x in (generic, other)) and (
        (generic[0], *generic[2:]) == (other[0], *other[2:])
    )


def without_ranks(types: Types, leaves: Collection[int]) -> list[LeafType]:
    """Return the types with unknown shapes for some leaves."""
    return [
        replace(type, type=TensorType(type.type.dtype, None)) if k in leaves else type
        for k, type in enumerate(types)
    ]


def fully_symbolic(types: Types, earlier: Types | None = None) -> list[LeafType] | None:
    """Return the types with every size but 0 and 1 made symbolic; None if there is no other.

    Sizes that are equal share a symbol, if they were equal in the `earlier` types, too.
    """
    befores = types if earlier is None else earlier
    pairs = [(a, b) for (_, a), (_, b) in zip(_dims(befores), _dims(types), strict=True)]
    return _with_symbols(
        types,
        [(b, b) if b in SPECIALIZED_SIZES else (_BEFORE.get(a, a), b) for a, b in pairs],
    )


_BEFORE: dict[Dim, Dim] = {0: -1, 1: -2}  # sizes that were 0 or 1 in an earlier trace


def merge_shapes(earlier: Types, current: Types) -> list[LeafType] | None:
    """Return the current types with symbols for the sizes that differ from earlier types.

    Axes whose pairs of sizes are equal share a symbol. None if a size that differs is 0 or 1 now or
    before, or is symbolic only because the caller's is.
    """
    pairs = [(a, b) for (_, a), (_, b) in zip(_dims(earlier), _dims(current), strict=True)]
    needs_symbol = [a != b or isinstance(a, Symbol) for a, b in pairs]
    return _with_symbols(
        current,
        [
            pair if is_symbolic else None
            for pair, is_symbolic in zip(pairs, needs_symbol, strict=True)
        ],
    )


def _with_symbols(types: Types, pairs: Sequence[tuple[Dim, Dim] | None]) -> list[LeafType] | None:
    """Return the types with a symbol for each different pair of sizes; None if not possible."""
    symbols: dict[tuple[Dim, Dim], Symbol] = {}
    remaining_pairs = iter(pairs)
    relaxed = []
    for type in types:
        dims: list[Dim] = []
        for dim in type.type.shape or ():
            pair = next(remaining_pairs)
            is_fixed = type.variable is not None  # the shape of a variable never changes
            if is_fixed or pair is None or (pair == (dim, dim) and dim in SPECIALIZED_SIZES):
                dims.append(dim)
                continue
            if isinstance(pair[1], Symbol) or not {*pair}.isdisjoint(SPECIALIZED_SIZES):
                return None
            dims.append(symbols.setdefault(pair, new_symbol()))
        shape = None if type.type.shape is None else tuple(dims)
        relaxed.append(replace(type, type=TensorType(type.type.dtype, shape)))
    return relaxed if symbols else None


def _dims(types: Types) -> Iterator[tuple[Axis, Dim]]:
    for k, type in enumerate(types):
        for axis, dim in enumerate(type.type.shape or ()):
            yield (k, axis), dim
