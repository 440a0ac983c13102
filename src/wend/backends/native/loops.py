"""Loops over the elements of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wend.backends.native.exits import BAD_SHAPE
from wend.backends.native.lowering import Lowering
from wend.backends.native.slots import Slots
from wend.ir.graph import Node


def emit_loop(
    low: Lowering, node: Node, compute: Callable[[Sequence[str]], str]
) -> Sequence[Slots]:
    """A node whose result's elements are computed each from those of its operands."""
    arrays = [low.array(node, k) for k in range(len(node.operands))]
    for other in arrays[1:]:
        for mine, theirs in zip(arrays[0].dims, other.dims, strict=True):
            low.exits.unless(low.sizes.equal(mine, theirs), BAD_SHAPE)
    made = low.new_result(node, arrays[0].dims)

    def each(index: str) -> None:
        value = compute([low.arrays.load(array, index) for array in arrays])
        low.arrays.store(made, index, value)

    low.w.loop(low.arrays.count(made), each)
    return [low.give(node, made)]
