"""The shape that arrays of two shapes have in common, where only the run knows these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wend.backends.native.exits import BAD_SHAPE
from wend.backends.native.lowering import Emit, Lowering
from wend.backends.native.sizes import known
from wend.backends.native.slots import Slots
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import shaping


def emit_broadcast_shapes(low: Lowering, node: Node, operands: Sequence[Slots]) -> Any:
    """Size by size, from the last one on: equal ones, or the other of 1."""
    shapes = [low.array(node, k) for k in range(2)]
    if not all(known(shape.dims[0]) for shape in shapes):
        return NotImplemented
    ranks, w = [int(shape.dims[0]) for shape in shapes], low.w
    rank = max(ranks)
    made = low.new_result(node, [str(rank)])
    for k in range(rank):
        mine, theirs = (
            low.arrays.load(shape, str(k - rank + size)) if k >= rank - size else "1"
            for shape, size in zip(shapes, ranks, strict=True)
        )
        is_mine = low.sizes.equal(theirs, "1")
        fits = low.sizes.equal(mine, theirs)
        for flag in (is_mine, low.sizes.equal(mine, "1")):
            fits = w.define(f"or i1 {fits}, {flag}")
        low.exits.unless(fits, BAD_SHAPE)
        low.arrays.store(made, str(k), w.define(f"select i1 {is_mine}, i64 {mine}, i64 {theirs}"))
    return [low.give(node, made)]


EMITTERS: Mapping[Op, Emit] = {shaping.broadcast_shapes: emit_broadcast_shapes}
