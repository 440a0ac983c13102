"""The `lane_map` op: a `parallel_map` whose elements are computed side by side, in vectors.

Its region is an attribute, so that other analyses of the code generator do not walk it: the lists
in it are the records of its loops, which have memory of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op, no_gradient
from wend.ir.rewrite import rewrite_nodes, with_operands
from wend.ir.types import Type
from wend.ops.parallel_map import parallel_map
from wend.passes.lane_maps import lane_count, runs_in_lanes
from wend.passes.lower_parallel_maps import lower_parallel_maps


@dataclass(frozen=True, eq=False, slots=True)
class ElementProgram:
    """The program of an element.

    Attributes:
        graph: the region of the `parallel_map`.
        lanes: the number of elements that are computed at a time.
    """

    graph: Graph
    lanes: int

    def __str__(self) -> str:
        return self.graph.name


def _infer(
    *types: Type, mapped: int, body: ElementProgram, results: tuple[Type, ...]
) -> Sequence[Type]:
    return results


lane_map = Op("lane_map", _infer, None, no_gradient())


def detach_lanes(graph: Graph, has_code: Callable[[Node], bool]) -> Graph:
    """Replace `parallel_map` nodes, in regions too; those that cannot run in lanes by loops.

    `has_code` says whether native code computes an operation on numbers.
    """
    if parallel_map not in graph.ops:
        return graph

    def detach(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = with_operands(
            node, operands, [detach_lanes(region, has_code) for region in node.regions]
        )
        lanes = lane_count(copy) if runs_in_lanes(copy) else 1
        if lanes > 1 and all(map(has_code, copy.regions[0].walk())):
            types = tuple(x.type for x in copy.results)
            body = ElementProgram(copy.regions[0], lanes)
            attrs = {"mapped": copy.attrs["mapped"], "body": body, "results": types}
            copy = Node(lane_map, operands, attrs, (), types, node.source)
        nodes.append(copy)
        return copy.results

    return lower_parallel_maps(rewrite_nodes(graph, detach))
