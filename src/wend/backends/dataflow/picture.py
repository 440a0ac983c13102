"""Pictures of dataflow graphs: a box for each node, loops closed by edges of another color."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from wend.backends.dataflow.node import DataflowNode, Output, Primitive, is_back_edge
from wend.pictures import letters
from wend.pictures.arrange import arrange
from wend.pictures.boxes import DETAIL, GAP, Box, Drawing, Port
from wend.pictures.layers import Edge
from wend.pictures.svg import unlabelled_svg

if TYPE_CHECKING:
    from wend.backends.dataflow.graph import DataflowGraph

_HEIGHT = DETAIL + 5


def to_svg(graph: DataflowGraph) -> str:
    """Return a picture of a graph; see `DataflowGraph.to_svg`."""
    sketch = _FlatSketch()
    for param in graph.params:
        sketch.add("param", f"{param.name or 'param'}: {param.type}", [], [param])
    for node in graph.in_order():
        # The way back is drawn from the Merge down to the NextIteration, which stands below it
        backs = [x for x in node.inputs if is_back_edge(x, node)]
        inputs = [x for x in (*node.inputs, *node.controls) if x not in backs]
        number = sketch.add("node", _title(node), inputs, node.outputs)
        sketch.heads.update(dict.fromkeys(backs, number))
        for output in node.outputs:
            if output in sketch.heads:
                sketch.close(sketch.heads[output], number)
    for result in graph.results:
        sketch.add("result", "result", [result], [])
    drawing = Drawing("", sketch.boxes, sketch.edges, [], sketch.colored)
    arrange(drawing)
    return unlabelled_svg(drawing, graph.name)


def _title(node: DataflowNode) -> str:
    if node.op is Primitive.ENTER:
        return f"Enter {node.attrs['frame']}{' (constant)' if node.attrs['is_constant'] else ''}"
    value = node.attrs.get("value")
    return str(value) if isinstance(value, np.ndarray) and value.size == 1 else node.name


class _FlatSketch:
    """The boxes and edges of a drawing, before layout.

    Attributes:
        heads: the box to which each way back leads.
    """

    def __init__(self) -> None:
        self.boxes: list[Box] = []
        self.edges: list[Edge] = []
        self.colored: set[int] = set()
        self.heads: dict[Output, int] = {}
        self._origins: dict[Output, tuple[int, int, int]] = {}  # box, port, key
        self._keys = itertools.count()

    def add(
        self, kind: str, title: str, inputs: Sequence[Output], outputs: Sequence[Output]
    ) -> int:
        """Add a box below the boxes that it takes values from, and return its number.

        The last port above and below is for an edge that closes a loop.
        """
        number = len(self.boxes)
        width = letters.width(title, letters.SMALL) + GAP
        ins, outs = (
            [Port(width * (k + 1) / (len(ends) + 2)) for k in range(len(ends) + 1)]
            for ends in (inputs, outputs)
        )
        self.boxes.append(Box(kind, title, ins=ins, outs=outs, width=width, height=_HEIGHT))
        for port, x in enumerate(inputs):
            start, start_port, key = self._origins[x]
            self.edges.append(Edge(start, start_port, number, port, key))
        for port, x in enumerate(outputs):
            self._origins[x] = number, port, next(self._keys)
        return number

    def close(self, head: int, again: int) -> None:
        """Add the edge that closes a loop."""
        key = next(self._keys)
        self.colored.add(key)
        ends = len(self.boxes[head].outs) - 1, len(self.boxes[again].ins) - 1
        self.edges.append(Edge(head, ends[0], again, ends[1], key))
