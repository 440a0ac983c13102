"""Shape relaxation: symbolic sizes that let one trace accept several shapes.

Sizes 0 and 1 are never made symbolic from examples, since broadcasting, squeezing and empty results
treat them differently (zero-one specialization).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from wend.ir.builder import new_symbol
from wend.ir.types import Dim, Symbol, TensorType, accepts
from wend.trace.recording.arguments import LeafType

Types = Sequence[LeafType]
# The leaf, and the axis of its shape
Axis = tuple[int, int]

SPECIALIZED_SIZES = (0, 1)


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


def fully_symbolic(types: Types) -> list[LeafType] | None:
    """Return the types with every size but 0 and 1 made symbolic; None if there is no other."""
    return _with_symbols(types, [(dim, dim) for _, dim in _dims(types)])


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
