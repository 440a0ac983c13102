"""Alias classes of lists: lists that meet anywhere in a graph have one capacity.

A union-find merges a carry, its start, its next value and the loop's result. A `list_new` makes a
new list at each use, so two loops that start from the same empty list have classes of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.dataflow import Use, region_edges, region_flow, used_value
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import ListType, MaybeType, Type
from wend.ops import custom, lists, maybe, schedules, shaping
from wend.ops.parallel_map import LIST, SUM, ParallelMapParts, parallel_map

_SAME = {lists.list_pop, lists.list_zeros, lists.list_add, shaping.refine}
_SAME |= {maybe.autograd_add, maybe.instantiate, maybe.present}


class CapacityClass:
    """Lists that may meet.

    Attributes:
        inner: the class of their elements, if these are lists.
        number: the position of its capacity.
    """

    def __init__(self, inner: CapacityClass | None) -> None:
        self.inner = inner
        self.number = -1
        self._parent: CapacityClass | None = None

    @property
    def element(self) -> CapacityClass | None:
        """The class of the elements, if these are lists."""
        inner = self.root.inner
        return None if inner is None else inner.root

    @property
    def root(self) -> CapacityClass:
        """The representative of the class."""
        node = self
        while node._parent is not None:
            node = node._parent
        return node

    def join(self, other: CapacityClass | None) -> None:
        """Merge the two, and the classes of their elements."""
        if other is None:
            return
        a, b = self.root, other.root
        if a is b:
            return
        b._parent = a
        if a.inner is None:
            a.inner = b.inner
        else:
            a.inner.join(b.inner)


def _class_of(type: Type) -> CapacityClass | None:
    match type:
        case ListType(element=element):
            return CapacityClass(_class_of(element))
        case MaybeType(of=inner):
            return _class_of(inner)
    return None


class CapacityClasses:
    """The list classes of a graph.

    Attributes:
        count: the number of classes.
    """

    def __init__(self, graph: Graph) -> None:
        self._by_value: dict[Value, CapacityClass | None] = {}
        self._by_use: dict[Use, CapacityClass | None] = {}
        for param in graph.params:
            self._of_value(param)
        self._visit(graph)
        self.count = 0
        for start in (*self._by_value.values(), *self._by_use.values()):
            self._number(start)

    def of(self, value: Value) -> CapacityClass | None:
        """Return the class of a value, or None if it is not a list."""
        list_class = self._by_value.get(value)
        return None if list_class is None else list_class.root

    def of_use(self, owner: Node | Graph, index: int) -> CapacityClass | None:
        """Return the class of an operand of a node, or of a result of a graph."""
        use = (owner, index)
        list_class = (
            self._by_use[use] if use in self._by_use else self._by_value.get(used_value(use))
        )
        return None if list_class is None else list_class.root

    def _number(self, start: CapacityClass | None) -> None:
        while start is not None:
            if start.root.number < 0:
                start.root.number = self.count
                self.count += 1
            start = start.root.inner

    def _of_value(self, value: Value) -> CapacityClass | None:
        if value not in self._by_value:
            self._by_value[value] = _class_of(value.type)
        return self._by_value[value]

    def _of_use(self, owner: Node | Graph, index: int) -> CapacityClass | None:
        value = used_value((owner, index))
        if value.node is None or value.node.op is not lists.list_new:
            return self._of_value(value)
        if (owner, index) not in self._by_use:
            self._by_use[owner, index] = _class_of(value.type)
        return self._by_use[owner, index]

    def _visit(self, graph: Graph) -> None:
        for node in graph.nodes:
            self._join_node(node)
            for region in node.regions:
                self._visit(region)
        for k in range(len(graph.results)):
            self._of_use(graph, k)

    def _join(self, a: CapacityClass | None, b: CapacityClass | None) -> None:
        if a is not None:
            a.join(b)

    def _join_node(self, node: Node) -> None:
        operands = [self._of_use(node, k) for k in range(len(node.operands))]
        results = [self._of_value(result) for result in node.results]
        if node.op is parallel_map:
            self._join_map(ParallelMapParts.of(node), operands, results)
        elif region_edges(node):
            for use, value in region_flow(node):
                self._join(self._of_value(value), self._of_use(*use))
        elif node.op in custom.RULED or node.op is schedules.scheduled:
            callee = node.regions[0]
            for param, operand in zip(callee.params, operands, strict=True):
                self._join(self._of_value(param), operand)
            for k, result in enumerate(results):
                self._join(result, self._of_use(callee, k))
        elif node.op is lists.list_push:
            self._join(results[0], operands[0])
            self._join_element(operands[0], operands[1])
        elif node.op is lists.list_get:
            self._join_element(operands[0], results[0])
        elif node.op in (lists.list_set, lists.list_add_at):
            self._join(results[0], operands[0])
            self._join_element(operands[0], operands[2])
        elif node.op in _SAME:
            for operand in operands:
                self._join(results[0], operand)
            if node.op is lists.list_pop:
                self._join_element(operands[0], results[1])

    def _join_map(
        self,
        p: ParallelMapParts,
        operands: Sequence[CapacityClass | None],
        results: Sequence[CapacityClass | None],
    ) -> None:
        mapped, first = len(p.mapped), len(p.mapped) + len(p.starts)
        for param, operand in zip(p.elements, operands[:mapped], strict=True):
            self._join_element(operand, self._of_value(param))
        for param, operand in zip(p.body_invariants, operands[first:], strict=True):
            self._join(self._of_value(param), operand)
        starts = iter(operands[mapped:first])
        for k, (form, result) in enumerate(zip(p.forms, results, strict=True)):
            yielded = self._of_use(p.body, k)
            if form == LIST:
                self._join_element(result, yielded)
            elif form == SUM:
                self._join(result, next(starts))
                self._join(result, yielded)

    def _join_element(self, list: CapacityClass | None, element: CapacityClass | None) -> None:
        if list is None or element is None:
            return
        if list.root.inner is None:
            list.root.inner = element
        else:
            list.root.inner.join(element)
