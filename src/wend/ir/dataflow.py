"""Dataflow analysis through regions: states that flow along the edges of a node with regions.

An operation that holds regions lists its edges (`Op.region_edges`), as MLIR's
`RegionBranchOpInterface` does: operands of the node that become params of a region, results of a
region that become params of another or of itself, and those that become results of the node. An
analysis brings a lattice, as its join, and a transfer function for one region. The fixpoint over
the regions of a node is the same for all analyses; `dce` is an example of a backward one,
`activity` of a forward one. Regions are analysed once for each node that holds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import RegionEdge

S = TypeVar("S")
Use: TypeAlias = tuple[Node | Graph, int]  # an operand of a node or a result of a graph
# (region, states where the flow enters it) -> states where the flow leaves it
Transfer: TypeAlias = Callable[[int, Sequence[S]], Sequence[S]]
Join: TypeAlias = Callable[[S, S], S]


def region_edges(node: Node) -> Sequence[RegionEdge]:
    """Return the edges of a node; none for a node without regions or with rules of its own."""
    return () if node.op.region_edges is None else node.op.region_edges(node)


def used_value(use: Use) -> Value:
    """Return the value of a use."""
    owner, index = use
    return (owner.operands if isinstance(owner, Node) else owner.results)[index]


def region_flow(node: Node) -> Iterator[tuple[Use, Value]]:
    """Yield each use that an edge of a node passes on, and the value that it becomes."""
    for edge in region_edges(node):
        owner = node if edge.source is None else node.regions[edge.source]
        inputs = node.results if edge.target is None else node.regions[edge.target].params
        for use, k in edge.positions():
            yield (owner, use), inputs[k]


@dataclass(frozen=True, slots=True)
class RegionStates(Generic[S]):
    """The states at a node with regions once they no longer change.

    Attributes:
        entered: by region, the states where the flow enters it: of its params if it flows forward,
            of its results if it flows backward.
        left: by region, the states where the flow leaves it.
        node: the states of the node's results if it flows forward, of its operands otherwise.
    """

    entered: Sequence[Sequence[S]]
    left: Sequence[Sequence[S]]
    node: Sequence[S]


def flow_forward(
    node: Node, operands: Sequence[S], join: Join[S], transfer: Transfer[S]
) -> RegionStates[S]:
    """Propagate states from the operands of a node through its regions to its results.

    Args:
        node: a node with region edges.
        operands: the state of each operand.
        join: the least state above two states; where edges meet, their states are joined.
        transfer: maps the states of a region's params to those of its results; monotone.

    Returns:
        The least fixpoint. The last call of `transfer` for each region had the final states.
    """
    sizes = [len(region.params) for region in node.regions]
    return _solve(region_edges(node), (*sizes, len(node.results)), operands, join, transfer, None)


def flow_backward(
    node: Node, results: Sequence[S], join: Join[S], transfer: Transfer[S], unforwarded: S
) -> RegionStates[S]:
    """Propagate states from the results of a node through its regions to its operands.

    As `flow_forward`, against the edges: `transfer` maps the states of a region's results to those
    of its params, and `unforwarded` is the state of operands and results that no edge passes on,
    since the node itself uses them (a predicate, a selector).
    """
    sizes = [len(region.results) for region in node.regions]
    edges = [edge.reversed() for edge in region_edges(node)]
    return _solve(edges, (*sizes, len(node.operands)), results, join, transfer, unforwarded)


def _solve(
    edges: Sequence[RegionEdge],
    sizes: Sequence[int],
    start: Sequence[S],
    join: Join[S],
    transfer: Transfer[S],
    unforwarded: Any,
) -> RegionStates[S]:
    """Run the regions until no state changes.

    `sizes` are the numbers of states that enter each region and, last, the node.
    """
    *regions, outside = range(len(sizes))
    entered: list[Sequence[S]] = [()] * len(regions)
    left: dict[int | None, Sequence[S]] = {None: start}

    def arriving(target: int | None, size: int) -> list[S]:
        states: dict[int, S] = {}
        for edge in edges:
            if edge.target == target and edge.source in left:
                for source, k in edge.positions():
                    state = left[edge.source][source]
                    states[k] = join(states[k], state) if k in states else state
        return [states.get(k, unforwarded) for k in range(size)]

    is_changing = True
    while is_changing:
        is_changing = False
        for region in regions:
            states = arriving(region, sizes[region])
            if region not in left or states != entered[region]:
                entered[region], left[region] = states, transfer(region, states)
                is_changing = True
    return RegionStates(entered, [left[k] for k in regions], arriving(None, sizes[outside]))
