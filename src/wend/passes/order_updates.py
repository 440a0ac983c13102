"""Scheduling of updates: an array is read before it is updated in place, where that is possible.

An update (`scatter_set`, `add_slice`, …) writes into its operand if nothing reads the old version
afterwards, and into a copy otherwise. A copy in each trip makes a loop quadratic. Nodes that
read the old version and do not depend on the update are therefore moved before it: these are
anti-dependences (write after read; Kennedy and Allen, 2001, chapter 2), which an SSA graph does not
state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.rewrite import rewrite_nodes, with_operands
from wend.ir.types import ListType, MaybeType, TensorType, symbols, without_maybe
from wend.ops.control import if_, while_

Positions = dict[Value, int]


def order_updates(graph: Graph) -> Graph:
    """Order the nodes of a graph and its regions so that updates come after other reads."""
    if not any(op.updates is not None or op in (while_, if_) for op in graph.ops):
        return graph

    def order_regions(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        nodes.append(with_operands(node, operands, list(map(order_updates, node.regions))))
        return nodes[-1].results

    if any(node.regions for node in graph.nodes):
        graph = rewrite_nodes(graph, order_regions)
    late_reads = list(_late_reads(graph))
    if not late_reads:
        return graph
    schedule = _Precedence(graph)
    for read, update in late_reads:
        schedule.put_before(read, update)
    nodes = tuple(graph.nodes[k] for k in schedule.order())
    return Graph(graph.name, graph.params, nodes, graph.results, graph.captures)


def _late_reads(graph: Graph) -> Iterator[tuple[int, int]]:
    """Yield the positions of reads that come after an update of what they read, and its."""
    owners: dict[Value, Value] = {}  # the value whose memory a value may refer to
    users: dict[Value, list[int]] = defaultdict(list)
    updates: list[tuple[int, Value]] = []
    for position, node in enumerate(graph.nodes):
        operand_owners = [owners.get(operand, operand) for operand in node.operands]
        for owner in dict.fromkeys(operand_owners):
            users[owner].append(position)
        if node.op.shares is not None:
            owners[node.results[0]] = operand_owners[node.op.shares]
        updates += [(position, operand_owners[k]) for k in updated_operands(node)]
    # Of several updates of one array, the last writes in place and the others copy.
    last_updates = {owner: position for position, owner in updates}
    for owner, update in last_updates.items():
        yield from ((read, update) for read in users[owner] if read > update)


def updated_operands(node: Node) -> Iterator[int]:
    """Yield the positions of the operands that a node may update in place."""
    if node.op.updates is not None:
        updated: Sequence[int] = range(node.op.updates, node.op.updates + 1)
    elif node.op is while_:
        updated = range(node.attrs["carry"])
    elif node.op is if_:
        reads = [_only_reads(region) for region in node.regions]
        count = len(node.operands)
        updated = [k for k in range(1, count) if not all(only[k - 1] for only in reads)]
    else:
        return
    yield from (k for k in updated if _is_in_memory(node.operands[k]))


def _only_reads(branch: Graph) -> Sequence[bool]:
    """Return, for each param of a branch, whether it only reads it."""
    owners: dict[Value, Value] = {}
    written = set(branch.results)
    for node in branch.nodes:
        if node.op.shares is not None:
            shared = node.operands[node.op.shares]
            owners[node.results[0]] = owners.get(shared, shared)
        written.update(node.operands[k] for k in updated_operands(node))
    written.update(owners[x] for x in [*written] if x in owners)
    return [param not in written for param in branch.params]


def _is_in_memory(value: Value) -> bool:
    type = without_maybe(value.type) if isinstance(value.type, MaybeType) else value.type
    return isinstance(type, ListType) or (isinstance(type, TensorType) and type.shape != ())


class _Precedence:
    """The nodes that must come before each node of a graph, by positions."""

    def __init__(self, graph: Graph) -> None:
        self._predecessors: list[set[int]] = []
        position_of: Positions = {}
        first_of_symbol: dict[object, int] = {}
        last_effect: int | None = None
        for position, node in enumerate(graph.nodes):
            before = {position_of[v] for v in node.operands if v in position_of}
            for result in node.results:
                position_of[result] = position
                for symbol in symbols(result.type):
                    before.add(first_of_symbol.setdefault(symbol, position))
            before.discard(position)
            # What may raise stays after the effects that precede it.
            may_raise = not node.op.is_cheap or node.op.may_fail(node)
            if last_effect is not None and may_raise:
                before.add(last_effect)
            if _has_effect(node):
                last_effect = position
            self._predecessors.append(before)

    def put_before(self, first: int, second: int) -> None:
        """Put a node before another, unless it depends on that."""
        if not self._depends(first, second):
            self._predecessors[second].add(first)

    def _depends(self, node: int, other: int) -> bool:
        pending, seen = [node], {node}
        while pending:
            for k in self._predecessors[pending.pop()] - seen:
                if k == other:
                    return True
                seen.add(k)
                pending.append(k)
        return False

    def order(self) -> list[int]:
        """Return the positions in an order that respects all predecessors, else the old one."""
        waiting = [len(before) for before in self._predecessors]
        successors: list[list[int]] = [[] for _ in waiting]
        for position, before in enumerate(self._predecessors):
            for k in before:
                successors[k].append(position)
        ready = [position for position, count in enumerate(waiting) if not count]
        heapify(ready)
        order = []
        while ready:
            order.append(heappop(ready))
            for k in successors[order[-1]]:
                waiting[k] -= 1
                if not waiting[k]:
                    heappush(ready, k)
        return order


def _has_effect(node: Node) -> bool:
    return node.op.effect is not Effect.NONE or any(region.effects() for region in node.regions)
