"""Short rows: unrolled, so that the loop over rows is innermost and its vectors hold many rows.

A row of three elements fills no vector, and what is computed once per row, a function or a
division, would be scalar.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.emit.loops.index_maps import IndexMap
from wend.backends.native.emit.loops.loops import Axis, Offsets, advance
from wend.backends.native.fusion.body import NestBody
from wend.backends.native.fusion.op_classes import is_lookup
from wend.backends.native.fusion.symbolic_strides import ZERO_EXTENT, Extent, materialize
from wend.backends.native.target.kinds import Kind
from wend.backends.native.target.sizes import is_literal

# Longer rows fill a vector themselves.
MAX_UNROLLED_ELEMENTS = 8
# More operations than these would take long to compile.
_MAX_UNROLLED_NODES = 128
# Fewer rows fill no vector.
_MIN_ROWS = 8


def unrolls_rows(body: NestBody, sizes: Sequence[Extent]) -> bool:
    """Return whether the rows of a nest are known to be short enough to be unrolled."""
    outer_rank = body.parts.outer_rank
    if not outer_rank or any(registers for _, registers in sizes[outer_rank:]):
        return False
    nodes = [node for section in body.sections for node in section.nodes]
    if any(map(is_lookup, nodes)):
        return False  # positions are checked and hoisted by the loops over elements
    count = math.prod(size for size, _ in sizes[outer_rank:])
    return 0 < count <= MAX_UNROLLED_ELEMENTS and count * len(nodes) <= _MAX_UNROLLED_NODES


def has_vector_of_rows(axis: Axis) -> bool:
    """Return whether a loop over rows may be long enough for vectors."""
    return not is_literal(axis.count) or int(axis.count) >= _MIN_ROWS


def column_axes(
    low: Lowering, sizes: Sequence[Extent], outer_rank: int, index_maps: Sequence[IndexMap]
) -> list[Axis]:
    """Return the axes of a row, of known sizes, in the order of its elements."""
    return [
        Axis(
            materialize(low.sizes, sizes[axis]),
            {
                index_map: materialize(low.sizes, index_map.steps[axis])
                for index_map in index_maps
                if index_map.steps[axis] != ZERO_EXTENT
            },
        )
        for axis in range(outer_rank, len(sizes))
    ]


def column_offsets(
    low: Lowering, columns: Sequence[Axis], row: Offsets, position: Sequence[int]
) -> Offsets:
    """Return the offsets of the element of a row at a position."""
    for axis, index in zip(columns, position, strict=True):
        row = advance(low, axis, row, str(index))
    return row


def short_sum(low: Lowering, kind: Kind, terms: Sequence[str]) -> str:
    """Emit the sum of up to eight terms, bit for bit as `wend.sum` computes it."""
    w = low.w
    if len(terms) < MAX_UNROLLED_ELEMENTS:
        total, remaining = kind.literal(0), terms
    else:
        partial = [*terms]
        while len(partial) > 1:
            pairs = zip(partial[::2], partial[1::2], strict=True)
            partial = [w.define(f"fadd {kind.text} {x}, {y}") for x, y in pairs]
        total, remaining = partial[0], [kind.literal(0)]
    for term in remaining:
        total = w.define(f"fadd {kind.text} {total}, {term}")
    return total
