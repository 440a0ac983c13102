"""Sizes of arrays, found by the run."""

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
    """The sizes that two arrays have in common: an axis of size 1 takes the other's."""
    mine, theirs = low.array(node, 0), low.array(node, 1)
    if not (known(mine.dims[0]) and known(theirs.dims[0])):
        return NotImplemented
    sizes, ranks = low.sizes, (int(mine.dims[0]), int(theirs.dims[0]))
    found = []
    for k in range(-max(ranks), 0):
        a, b = (
            low.arrays.load(array, str(rank + k)) if rank + k >= 0 else "1"
            for array, rank in zip((mine, theirs), ranks, strict=True)
        )
        is_one = sizes.equal(a, "1")
        fits = low.w.define(f"or i1 {is_one}, {sizes.equal(b, '1')}")
        low.exits.unless(low.w.define(f"or i1 {fits}, {sizes.equal(a, b)}"), BAD_SHAPE)
        found.append(low.w.define(f"select i1 {is_one}, i64 {b}, i64 {a}"))
    made = low.new_result(node, [str(len(found))])
    for k, size in enumerate(found):
        low.arrays.store(made, str(k), size)
    return [low.give(node, made)]


EMITTERS: Mapping[Op, Emit] = {shaping.broadcast_shapes: emit_broadcast_shapes}
