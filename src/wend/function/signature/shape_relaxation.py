"""Which unknown sizes let one trace serve arrays of several shapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wend.ir.builder import new_symbol
from wend.ir.types import Dim, Symbol, TensorType, accepts
from wend.trace.recording.arguments import LeafType

Types = Sequence[LeafType]
# A dimension: of which leaf, and which one.
Storage = tuple[int, int]

# Broadcasting, squeezing and empty results tell these sizes from all others.
SPECIAL = (0, 1)


def serves(general: Types, given: Types, *, special: bool) -> bool:
    """Whether a trace for `general` types takes arrays of the `given` ones.

    Args:
        general: types with unknown sizes.
        given: types that agree with them in all but their sizes.
        special: whether an unknown size may also be 0 or 1.
    """
    bound: dict[Symbol, Dim] = {}
    if not all(accepts(a.type, b.type, bound) for a, b in zip(general, given, strict=True)):
        return False
    return special or not any(size in SPECIAL for size in bound.values())


def unknown_places(types: Types) -> frozenset[Storage]:
    """Where sizes are unknown."""
    return frozenset(place for place, dim in _dims(types) if isinstance(dim, Symbol))


def all_unknown(types: Types) -> list[LeafType] | None:
    """Types in which every size that is not special is unknown; None where there is none."""
    return _renamed(types, [(dim, dim) for _, dim in _dims(types)])


def merged(earlier: Types, given: Types) -> list[LeafType] | None:
    """Types with unknown sizes in place of those that differ, equal ones by one name.

    None where a size that differs is special, or unknown only because the caller's is.
    """
    pairs = [(a, b) for (_, a), (_, b) in zip(_dims(earlier), _dims(given), strict=True)]
    differ = [a != b or isinstance(a, Symbol) for a, b in pairs]
    return _renamed(given, [pair if d else None for pair, d in zip(pairs, differ, strict=True)])


def _renamed(types: Types, pairs: Sequence[tuple[Dim, Dim] | None]) -> list[LeafType] | None:
    names: dict[tuple[Dim, Dim], Symbol] = {}
    rest = iter(pairs)
    found = []
    for type in types:
        dims: list[Dim] = []
        for dim in type.type.shape or ():
            pair = next(rest)
            is_kept = type.variable is not None  # a variable keeps its shape
            if is_kept or pair is None or (pair == (dim, dim) and dim in SPECIAL):
                dims.append(dim)
                continue
            if isinstance(pair[1], Symbol) or not {*pair}.isdisjoint(SPECIAL):
                return None
            dims.append(names.setdefault(pair, new_symbol()))
        shape = None if type.type.shape is None else tuple(dims)
        found.append(LeafType(TensorType(type.type.dtype, shape), type.weak, type.variable))
    return found if names else None


def _dims(types: Types) -> Iterator[tuple[Storage, Dim]]:
    for k, type in enumerate(types):
        for axis, dim in enumerate(type.type.shape or ()):
            yield (k, axis), dim
