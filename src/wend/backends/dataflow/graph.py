"""The cyclic graph itself; its nodes are described in `node.py`."""

from __future__ import annotations

from collections.abc import Iterator

from wend.backends.dataflow.node import DataflowNode, Output, Primitive, origins, post_order
from wend.backends.dataflow.printer import to_text
from wend.base.lazy.dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class DataflowGraph:
    """A cyclic graph: params, nodes, results. Every cycle passes a `NextIteration`.

    `captures` are the last of the params, as those of `Graph`.

    `print` shows it as text, with the number of each output; `to_svg` draws it.
    """

    name: str
    params: tuple[Output, ...]
    nodes: tuple[DataflowNode, ...]
    results: tuple[Output, ...]
    captures: tuple[Output, ...] = ()

    def count(self, name: str | None = None) -> int:
        """Return the number of nodes of an operation or primitive, or of all nodes."""
        return sum(name in (None, node.name) for node in self.nodes)

    def frames(self) -> list[str]:
        """Return the names of its loops, in order."""
        return list(dict.fromkeys(node.attrs["frame"] for node in self.enters()))

    def enters(self) -> Iterator[DataflowNode]:
        """Yield the nodes that enter a loop."""
        return (node for node in self.nodes if node.op is Primitive.ENTER)

    def in_order(self) -> list[DataflowNode]:
        """Return the nodes, inputs first but where a loop closes; else in their order."""
        return post_order(self.nodes, origins)

    def to_svg(self) -> str:
        """Return a picture of the graph, as the text of a self-contained SVG file.

        The edges that close loops, from `NextIteration` up to `Merge`, have the color of records.
        """
        from wend.backends.dataflow.picture import to_svg  # imported only when a picture is drawn

        return to_svg(self)

    def _repr_html_(self) -> str:
        """Return the picture for notebooks."""
        return f'<div style="overflow:auto;max-height:80vh">{self.to_svg()}</div>'

    def __str__(self) -> str:
        return to_text(self)

    def __repr__(self) -> str:
        return f"<dataflow graph {self.name}: {len(self.nodes)} nodes>"
