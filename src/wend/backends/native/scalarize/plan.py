"""Decides which nodes are scalarized, and in which form arrays cross region boundaries.

Assembling an array from its elements costs memory, and splitting it costs a load per element. A
value carried by a loop therefore stays whole if something inside the loop needs it whole; outside
the loop, that may cost one conversion. Elementwise operations between arrays that are whole anyway
stay loops. In a graph that would grow too large, only smaller arrays are split.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from wend.backends.native.emit.scalar.elements import ELEMENTS
from wend.backends.native.scalarize.complexes import has_complex
from wend.backends.native.scalarize.lists import RULES as LIST_RULES
from wend.backends.native.scalarize.lists import ListForms, list_of
from wend.backends.native.scalarize.table import rule_of
from wend.backends.native.target.small_arrays import (
    constant_of,
    is_complex_number,
    is_small,
)
from wend.ir.dataflow import Use, region_edges, region_flow, used_value
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import ListType, TensorType
from wend.ops import indexing, shaping
from wend.ops.frame_states import frame_state

# Operations that may stay loops between whole arrays; several of them fuse into one loop.
_LOOP_OPS = {*ELEMENTS, shaping.broadcast_to, shaping.slice_, indexing.gather}


class SplitPlan:
    """The nodes and values of a graph to split, for arrays of up to `max_elements` elements.

    Attributes:
        cost: the number of scalar operations that result.
    """

    def __init__(self, graph: Graph, max_elements: int) -> None:
        self._max_elements = max_elements
        self._lists = ListForms(graph, max_elements)
        self._whole = set(graph.params)  # values that arrive, or are needed, whole
        self._unsplit_nodes: set[Node] = set()
        self._can_split_cache: dict[Node, bool] = {}
        while self._find_whole(graph):
            pass
        self._find_loops(graph, set())
        split_nodes = (node for node in graph.walk() if self.splits(node))
        self.cost = sum(rule.cost(node) for node in split_nodes if (rule := rule_of(node)))

    def is_split(self, value: Value) -> bool:
        """Return whether a param of a region, or a result of a node with regions, is split."""
        if isinstance(value.type, ListType):
            return self._lists.is_split(value)
        return is_small(value.type, self._max_elements) and value not in self._whole

    def splits(self, node: Node) -> bool:
        """Return whether an operation is done on elements."""
        return node not in self._unsplit_nodes and self._can_split(node)

    def _can_split(self, node: Node) -> bool:
        """Return whether an operation can be done on elements (cached)."""
        if node not in self._can_split_cache:
            self._can_split_cache[node] = self._is_splittable(node)
        return self._can_split_cache[node]

    def _is_splittable(self, node: Node) -> bool:
        rule = rule_of(node)
        if rule is None:
            return False
        if node.op in LIST_RULES:
            list_value = list_of(node)
            return list_value is not None and self._lists.is_split(list_value)
        values = (*node.operands[rule.reads :], *node.results)
        if not all(self._fits_registers(value) for value in values):
            return False
        if not any(is_small(v.type, self._max_elements) for v in (*node.operands, *node.results)):
            return False
        return rule.fits(node)

    def _fits_registers(self, value: Value) -> bool:
        """Return whether a value is a small array or a scalar."""
        type = value.type
        return is_small(type, self._max_elements) or (
            isinstance(type, TensorType) and type.shape == ()
        )

    # Values that are needed whole
    def _find_whole(self, graph: Graph) -> bool:
        """Propagate whole values from users to producers; return whether any were found."""
        num_whole = len(self._whole)
        for node in graph.nodes:
            for region in node.regions:
                self._find_whole(region)
            for value in self._whole_uses(node):
                self._whole.add(value)
        return len(self._whole) > num_whole

    def _whole_uses(self, node: Node) -> Iterator[Value]:
        if region_edges(node):
            for use, inputs in forms(node):
                if any(map(self._is_whole, inputs)):
                    yield used_value(use)
                    if use[0] is node:  # one operand, however many regions it enters
                        yield from inputs
        elif node.op is not frame_state and not self._can_split(node):
            # A complex number in memory is as quickly made as read.
            yield from (value for value in node.operands if not is_complex_number(value.type))

    def _is_whole(self, value: Value) -> bool:
        return not self.is_split(value)

    # Nodes that stay loops
    def _find_loops(self, graph: Graph, split_results: Container[Value]) -> None:
        """Find the nodes that neither read nor feed split values.

        `split_results` are the results of the graph that leave it as elements.
        """
        users: dict[Value, list[Node]] = {}
        for node in graph.nodes:
            for operand in dict.fromkeys(node.operands):
                users.setdefault(operand, []).append(node)
            split_uses = [use for use, inputs in forms(node) if all(map(self.is_split, inputs))]
            for region in node.regions:
                results = {used_value(use) for use in split_uses if use[0] is region}
                self._find_loops(region, results)

        def is_loop(node: Node) -> bool:
            (result,) = node.results
            if not all(map(self._is_available_whole, node.operands)):
                return False
            if not is_small(result.type, self._max_elements):
                return True
            result_users = users.get(result, ())
            return result not in split_results and all(
                self._uses_whole(n, result) for n in result_users
            )

        candidates = {
            node
            for node in graph.nodes
            if node.op in _LOOP_OPS and self._can_split(node) and not has_complex(node)
        }
        self._unsplit_nodes |= candidates
        while excluded := {node for node in candidates if not is_loop(node)}:
            candidates -= excluded
            self._unsplit_nodes -= excluded

    def _is_available_whole(self, value: Value) -> bool:
        """Return whether an operand is available as a whole array, or is a scalar."""
        node = value.node
        if not is_small(value.type, self._max_elements) or constant_of(value) is not None:
            return True
        return not (self.is_split(value) if node is None or node.regions else self.splits(node))

    def _uses_whole(self, node: Node, value: Value) -> bool:
        if not region_edges(node):
            return node.op is not frame_state and not self.splits(node)
        return not any(
            used_value(use) is value and any(map(self.is_split, inputs))
            for use, inputs in forms(node)
            if use[0] is node
        )


def forms(node: Node) -> Iterator[tuple[Use, Sequence[Value]]]:
    """Yield each use that a node passes on, and the values whose form decides the use's.

    They are what it becomes inside the node; outside a loop, a result may be converted once.
    """
    inside: dict[Use, list[Value]] = {}
    outside: dict[Use, list[Value]] = {}
    for use, value in region_flow(node):
        (outside if value.node is node else inside).setdefault(use, []).append(value)
    yield from (outside | inside).items()
