"""Maps in lanes: the elements of arrays, side by side in vectors.

Where the body is one loop, or one with its backward loop, lanes whose elements are done take the
next elements, so the cost is about the sum of the trips. Other bodies are computed for groups of
elements, each loop until the last lane of the group has ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.emit.lanes.elements import LaneElements
from wend.backends.native.emit.lanes.refill import RefilledLoop
from wend.backends.native.emit.lanes.replay import emit_replayed
from wend.backends.native.emit.lanes.vectors import count_from, splat
from wend.backends.native.target.lane_map import ElementProgram, lane_map
from wend.backends.native.target.value_layout import Registers
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.passes.lane_maps import refilled_loops


def emit_lane_map(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Emit the loop over the elements."""
    body: ElementProgram = node.attrs["body"]
    mapped = node.attrs["mapped"]
    low.calls.vectorizable_count += 1
    pairs = zip(node.operands[:mapped], operands, strict=False)
    arrays = [low.arrays.of(x.tensor, slots) for x, slots in pairs]
    count = arrays[0].dims[0]
    outs = [low.arrays.new(x.tensor.dtype, (count,)) for x in node.results]
    elements = LaneElements(low, body, arrays, outs, count)
    shared = zip(body.graph.params[mapped:], operands[mapped:], strict=True)
    for x, (number, *_) in shared:
        elements.regions.values[x] = splat(low, elements.regions.kind(x), number)
    match refilled_loops(body.graph):
        case (loop,):
            RefilledLoop(elements, loop).emit("0")
        case (loop, backward):
            emit_replayed(elements, loop, backward)
        case _:
            _emit_groups(elements)
    elements.regions.release_tapes()
    return [low.array_result(node, out, k) for k, out in enumerate(outs)]


def _emit_groups(elements: LaneElements) -> None:
    """Emit the body for one group of elements after the other."""
    low, lanes = elements.low, elements.lanes
    sizes = low.sizes
    groups = sizes.div(sizes.add(elements.count, str(lanes - 1)), str(lanes))

    def group(k: str) -> None:
        first = sizes.mul(k, str(lanes))
        mask = elements.in_range(count_from(low, lanes, first))
        elements.emit_nodes(elements.body.nodes, elements.loaded(first, mask, None), mask)
        elements.store(first, mask)

    low.w.loop(groups, group)


EMITTERS: Mapping[Op, Emit] = {lane_map: emit_lane_map}
