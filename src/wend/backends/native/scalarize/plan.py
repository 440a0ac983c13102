"""Decides what is taken apart: which nodes, and in which form arrays cross into regions.

An array costs memory where it is made of its elements, and a read for each where it is taken apart.
So a value that goes from trip to trip stays whole where something inside the loop takes it whole;
outside it may cost that once. Elementwise operations between arrays that are whole anyway stay
loops. A graph that would grow too large has only its smaller arrays taken apart.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from wend.backends.native.emit.scalar.elements import ELEMENTS
from wend.backends.native.scalarize.lists import RULES as LIST_RULES
from wend.backends.native.scalarize.lists import Lists, list_of
from wend.backends.native.scalarize.table import RULES
from wend.backends.native.target.small_arrays import constant_of, is_small
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import ListType, TensorType
from wend.ops import indexing, shaping
from wend.ops.control import IfParts, WhileParts, call, if_, while_

# Operations that may stay as they are between whole arrays; one loop can do several of them.
_LOOPS = {*ELEMENTS, shaping.broadcast_to, shaping.slice_, indexing.gather}


class Plan:
    """What is taken apart of a graph, of arrays of up to `most` elements.

    Attributes:
        cost: how many scalar operations come of it.
    """

    def __init__(self, graph: Graph, most: int) -> None:
        self._most = most
        self._lists = Lists(graph, most)
        self._whole = set(graph.params)  # what comes, or is taken, whole
        self._stays: set[Node] = set()
        self._ways: dict[Node, bool] = {}
        while self._find_whole(graph):
            pass
        self._find_loops(graph, set())
        self.cost = sum(RULES[node.op].cost(node) for node in graph.walk() if self.splits(node))

    def is_apart(self, value: Value) -> bool:
        """Whether a param of a region, or what a node with regions gives, is its elements."""
        if isinstance(value.type, ListType):
            return self._lists.are_apart(value)
        return is_small(value.type, self._most) and value not in self._whole

    def splits(self, node: Node) -> bool:
        """Whether an operation is done on elements."""
        return node not in self._stays and self._can_split(node)

    def _can_split(self, node: Node) -> bool:
        """Whether there is a way to do an operation on elements."""
        if node not in self._ways:
            self._ways[node] = self._has_way(node)
        return self._ways[node]

    def _has_way(self, node: Node) -> bool:
        rule = RULES.get(node.op)
        if rule is None:
            return False
        if node.op in LIST_RULES:
            found = list_of(node)
            return found is not None and self._lists.are_apart(found)
        values = (*node.operands[rule.reads :], *node.results)
        if not all(self._fits_registers(value) for value in values):
            return False
        if not any(is_small(v.type, self._most) for v in (*node.operands, *node.results)):
            return False
        return rule.fits(node)

    def _fits_registers(self, value: Value) -> bool:
        """Whether it is small, or a scalar."""
        type = value.type
        return is_small(type, self._most) or (isinstance(type, TensorType) and type.shape == ())

    # What is taken whole
    def _find_whole(self, graph: Graph) -> bool:
        """Follow from takers to makers; whether something was found."""
        known = len(self._whole)
        for node in graph.nodes:
            for region in node.regions:
                self._find_whole(region)
            for taken in self._takes(node):
                self._whole.add(taken)
        return len(self._whole) > known

    def _takes(self, node: Node) -> Iterator[Value]:
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
            given = IfParts.of(node).operands if node.op is if_ else node.operands
            for operand, *params in zip(given, *(r.params for r in node.regions), strict=True):
                if any(map(self._is_whole, params)):
                    yield from (operand, *params)
            found = (region.results for region in node.regions)
            for result, *inner in zip(node.results, *found, strict=True):
                if self._is_whole(result):
                    yield from inner
        elif not self._can_split(node):
            yield from node.operands

    def _is_whole(self, value: Value) -> bool:
        return not self.is_apart(value)

    # What may stay a loop
    def _find_loops(self, graph: Graph, leaving: Container[Value]) -> None:
        """Find the nodes that neither read nor feed what is taken apart.

        `leaving`: results of the graph that leave it as their elements.
        """
        users: dict[Value, list[Node]] = {}
        for node in graph.nodes:
            for operand in dict.fromkeys(node.operands):
                users.setdefault(operand, []).append(node)
            for region, results in zip(node.regions, self._leaving(node), strict=True):
                self._find_loops(region, results)

        def is_loop(node: Node) -> bool:
            (result,) = node.results
            if not all(map(self._comes_whole, node.operands)):
                return False
            if not is_small(result.type, self._most):
                return True
            takers = users.get(result, ())
            return result not in leaving and all(self._takes_whole(n, result) for n in takers)

        found = {node for node in graph.nodes if node.op in _LOOPS and self._can_split(node)}
        self._stays |= found
        while lost := {node for node in found if not is_loop(node)}:
            found -= lost
            self._stays -= lost

    def _leaving(self, node: Node) -> Iterator[set[Value]]:
        """For each region of a node the results that leave it as their elements."""
        if node.op is while_:
            w = WhileParts.of(node)
            yield {
                x for x, p in zip(w.forwarded, w.after_forwarded, strict=True) if self.is_apart(p)
            }
            yield {x for x, p in zip(w.next_carry, w.before_carry, strict=True) if self.is_apart(p)}
            return
        for region in node.regions:
            pairs = zip(region.results, node.results, strict=False)
            yield {inner for inner, outer in pairs if self.is_apart(outer)}

    def _comes_whole(self, value: Value) -> bool:
        """Whether an operand is there as an array, or is a scalar."""
        node = value.node
        if not is_small(value.type, self._most) or constant_of(value) is not None:
            return True
        return not (self.is_apart(value) if node is None or node.regions else self.splits(node))

    def _takes_whole(self, node: Node, value: Value) -> bool:
        if node.op is while_:
            w = WhileParts.of(node)
            carry = w.before_carry
            params = [(*carry, *w.before_invariants), (*carry, *w.after_invariants)]
        elif node.op is if_:
            params = [(node.operands[0], *region.params) for region in node.regions]
        elif node.op is call:
            params = [node.regions[0].params]
        else:
            return not self.splits(node)
        return not any(
            operand is value and self.is_apart(param)
            for given in params
            for operand, param in zip(node.operands, given, strict=True)
        )
