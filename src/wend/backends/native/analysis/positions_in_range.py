"""Positions in arrays that need no test, for all their values are in range where they are used."""

from __future__ import annotations

from collections.abc import Iterator

from wend.ir.graph import Graph, Node, Value
from wend.ir.types import Dim, TensorType
from wend.ops import parts
from wend.ops.control import while_
from wend.ops.creating import is_constant
from wend.ops.updating import ELEMENT_POSITIONS
from wend.passes.integer_ranges import ranges_of_positions

_PARTS = {parts.take_part: 1, parts.set_part: 2, parts.add_part: 2}


def positions_in_range(graph: Graph) -> dict[tuple[Node, int], str]:
    """Return the positions that are in range in each run, in a graph with loops.

    They are told by node and operand, each with what is to be added to count from the front. A
    position may be out of range where it is not used: reads and writes there stay where they are.
    """
    if while_ not in graph.ops or graph.ops.isdisjoint([*ELEMENT_POSITIONS, *_PARTS]):
        return {}
    if not any(_is_tested(node) for node in graph.walk()):
        return {}

    def positions_of(node: Node) -> Iterator[Value]:
        return (node.operands[k] for k, _ in _positions(node))

    ranges = ranges_of_positions(graph, positions_of)
    offsets = {}
    for node in graph.walk():
        for k, size in _positions(node):
            low, high = ranges.get(node.operands[k], (0, -1))
            if not isinstance(size, int) or low > high:
                continue
            if low >= 0 and high < size:
                offsets[node, k] = "0"
            elif -size <= low and high < 0:
                offsets[node, k] = str(size)
    return offsets


def _is_tested(node: Node) -> bool:
    """Return whether a position of a node is not yet known to be in range."""
    positions = (node.operands[k] for k, size in _positions(node) if isinstance(size, int))
    return not node.attrs.get("in_bounds") and not all(map(is_constant, positions))


def _positions(node: Node) -> Iterator[tuple[int, Dim]]:
    """Yield the operands of a node that are positions along axes, with the sizes of these."""
    first = ELEMENT_POSITIONS.get(node.op) or _PARTS.get(node.op)
    if first is None or not _is_ranked(node.operands[0]):
        return
    dims, operands = node.operands[0].tensor.dims, range(first, len(node.operands))
    if node.op in ELEMENT_POSITIONS:
        yield from zip(operands, dims, strict=False)
        return
    entries = parts.by_axis(node.attrs["entries"], operands)
    for size, (entry, positions) in zip(dims, entries, strict=True):
        if entry == parts.AT:
            yield positions[0], size


def _is_ranked(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.shape is not None
