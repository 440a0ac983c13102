"""Decides which nodes are scalarized, and in which form arrays cross region boundaries.

Assembling an array from its elements costs memory, and splitting it costs a load per element. A
value carried by a loop therefore stays whole if something inside the loop needs it whole; outside
the loop, that may cost one conversion. Elementwise operations between arrays that are whole anyway
stay loops. In a graph that would grow too large, only smaller arrays are split.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from wend.backends.native.emit.scalar.elements import ELEMENTS
from wend.backends.native.scalarize.lists import RULES as LIST_RULES
from wend.backends.native.scalarize.lists import ListForms, list_of
from wend.backends.native.scalarize.table import RULES
from wend.backends.native.target.small_arrays import constant_of, is_small
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import ListType, TensorType
from wend.ops import indexing, shaping
from wend.ops.control import IfParts, WhileParts, call, if_, while_
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
        self.cost = sum(RULES[node.op].cost(node) for node in graph.walk() if self.splits(node))

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
        rule = RULES.get(node.op)
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
        if node.op is while_:
            w = WhileParts.of(node)
            for start, param, following in zip(w.carry, w.before_carry, w.next_carry, strict=True):
                if self._is_whole(param):
                    yield from (start, following)
            for value, param in zip(w.forwarded, w.after_forwarded, strict=True):
                if self._is_whole(param):
                    yield value
            for group in zip(w.invariants, w.before_invariants, w.after_invariants, strict=True):
                if any(map(self._is_whole, group[1:])):
                    yield from group
        elif node.op is if_ or node.op is call:
            operands = IfParts.of(node).operands if node.op is if_ else node.operands
            for operand, *params in zip(operands, *(r.params for r in node.regions), strict=True):
                if any(map(self._is_whole, params)):
                    yield from (operand, *params)
            branch_results = (region.results for region in node.regions)
            for result, *inner in zip(node.results, *branch_results, strict=True):
                if self._is_whole(result):
                    yield from inner
        elif node.op is not frame_state and not self._can_split(node):
            yield from node.operands

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
            for region, results in zip(node.regions, self._split_results(node), strict=True):
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
            node for node in graph.nodes if node.op in _LOOP_OPS and self._can_split(node)
        }
        self._unsplit_nodes |= candidates
        while excluded := {node for node in candidates if not is_loop(node)}:
            candidates -= excluded
            self._unsplit_nodes -= excluded

    def _split_results(self, node: Node) -> Iterator[set[Value]]:
        """Yield, for each region of a node, the results that leave it as elements."""
        if node.op is while_:
            w = WhileParts.of(node)
            yield {
                x for x, p in zip(w.forwarded, w.after_forwarded, strict=True) if self.is_split(p)
            }
            yield {x for x, p in zip(w.next_carry, w.before_carry, strict=True) if self.is_split(p)}
            return
        for region in node.regions:
            pairs = zip(region.results, node.results, strict=False)
            yield {inner for inner, outer in pairs if self.is_split(outer)}

    def _is_available_whole(self, value: Value) -> bool:
        """Return whether an operand is available as a whole array, or is a scalar."""
        node = value.node
        if not is_small(value.type, self._max_elements) or constant_of(value) is not None:
            return True
        return not (self.is_split(value) if node is None or node.regions else self.splits(node))

    def _uses_whole(self, node: Node, value: Value) -> bool:
        if node.op is while_:
            w = WhileParts.of(node)
            carry = w.before_carry
            params = [(*carry, *w.before_invariants), (*carry, *w.after_invariants)]
        elif node.op is if_:
            params = [(node.operands[0], *region.params) for region in node.regions]
        elif node.op is call:
            params = [node.regions[0].params]
        else:
            return node.op is not frame_state and not self.splits(node)
        return not any(
            operand is value and self.is_split(param)
            for region_params in params
            for operand, param in zip(node.operands, region_params, strict=True)
        )
