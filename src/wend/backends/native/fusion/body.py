"""Scheduling of the body of a loop nest: which node belongs to which loop, and when."""

from __future__ import annotations

from dataclasses import field

from wend.backends.native.fusion.op_classes import (
    MAX_RECOMPUTE_COST,
    SUMS,
    Reduction,
    cost,
    is_constant,
    is_layout,
    is_lookup,
    reduction_of,
)
from wend.backends.native.fusion.subview_alias import SUBVIEW_STORES
from wend.backends.native.target.loop_nest import LoopNestParts
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Node, Value


@dataclass(eq=False, repr=False, slots=True)
class Section:
    """One pass over the inner axes of a row.

    Attributes:
        nodes: the nodes computed for each element, in order.
        reductions: the reductions to one number per row, or to a single number.
        memory_reductions: the reductions that accumulate in memory.
        stored: the values that are stored.
        loaded: the values that an earlier section has stored.
    """

    nodes: list[Node] = field(default_factory=list)
    reductions: list[Node] = field(default_factory=list)
    memory_reductions: list[Node] = field(default_factory=list)
    stored: list[Value] = field(default_factory=list)
    loaded: list[Value] = field(default_factory=list)


@dataclass(eq=False, repr=False, slots=True)
class NestBody:
    """The body of a nest, split into sections; row nodes precede the section of their number.

    Attributes:
        parts: the nest.
        reductions: the reductions among its nodes.
        row_values: the values that belong to rows.
        memory_reductions: the values that are complete only after all loops.
        sections: the sections, in order.
        row_nodes: for each section, and for the end, the row nodes that precede it.
        row_buffers: the values that are not results but are stored until the row is done.
    """

    parts: LoopNestParts
    reductions: dict[Node, Reduction] = field(default_factory=dict)
    row_values: set[Value] = field(default_factory=set)
    memory_reductions: set[Value] = field(default_factory=set)
    sections: list[Section] = field(default_factory=list)
    row_nodes: list[list[Node]] = field(default_factory=list)
    row_buffers: list[Value] = field(default_factory=list)
    _section_of: dict[Value, int] = field(default_factory=dict)
    _recompute_costs: dict[Value, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nodes = self.parts.body.nodes
        for node in nodes:
            self._classify(node)
        computing_nodes = [node for node in nodes if not is_free(node)]
        copies = [v for v in dict.fromkeys(self.parts.body.results) if is_copy(v)]
        num_sections = max(map(self._min_sections, computing_nodes), default=int(bool(copies)))
        self.sections = [Section() for _ in range(num_sections)]
        self.row_nodes = [[] for _ in range(num_sections + 1)]
        for value in copies:
            self.sections[0].stored.append(value)
        in_memory = set(self.parts.body.results)
        for node in computing_nodes:
            self._schedule(node, in_memory)
        # The last section first: it determines what earlier sections must store.
        for number in reversed(range(num_sections)):
            self._fill_section(number, in_memory)

    def _classify(self, node: Node) -> None:
        """Determine whether a node belongs to rows, and the section it precedes or is part of."""
        (result,) = node.results
        self._section_of[result] = max(
            (self._section_of.get(v, 0) for v in node.operands), default=0
        )
        if is_free(node):
            return
        reduction = reduction_of(node)
        if reduction is None:
            if self._is_row_value(node):
                self.row_values.add(result)
            return
        self.reductions[node] = reduction
        if reduction.outer_rank(len(self.parts.iteration_space)) is None:
            self.memory_reductions.add(result)
            return
        self.row_values.add(result)
        if not self.is_row_sum(node):
            self._section_of[result] += 1  # available after its section

    def _min_sections(self, node: Node) -> int:
        """Return the minimum number of sections, given that this node is done."""
        (result,) = node.results
        return self._section_of[result] + (result not in self.row_values)

    def _schedule(self, node: Node, in_memory: set[Value]) -> None:
        (result,) = node.results
        number = self._section_of[result]
        if result in self.memory_reductions:
            self.sections[number].memory_reductions.append(node)
        elif node in self.reductions and not self.is_row_sum(node):
            self.sections[number - 1].reductions.append(node)
        elif result in self.row_values:
            self.row_nodes[number].append(node)
        elif result in in_memory:
            self.sections[number].stored.append(result)

    def is_row_sum(self, node: Node) -> bool:
        """Return whether a node sums rows that lie in memory, which follows NumPy's order."""
        is_computed = node.operands[0].node is not None
        if is_computed or node.op not in SUMS or node.results[0] not in self.row_values:
            return False
        return node.operands[0].tensor.dtype.kind == "f"

    def _is_row_value(self, node: Node) -> bool:
        outer_rank, iteration_space = self.parts.outer_rank, self.parts.iteration_space
        if not outer_rank:
            return False
        shapes = (
            iteration_space[:outer_rank],
            (*iteration_space[:outer_rank], *(1 for _ in iteration_space[outer_rank:])),
        )
        if node.results[0].tensor.dims not in shapes:
            return False
        sources = {self.source(value) for value in node.operands}
        computed = {v for v in sources if v.node is not None and not is_free(v.node)}
        return bool(computed) and computed <= self.row_values

    def source(self, value: Value) -> Value:
        """Return the value that a value is read from, looking through layout operations."""
        while value.node is not None and is_layout(value.node) and value.node.operands:
            value = value.node.operands[0]
        return value

    def is_read_elementwise(self, param: Value) -> bool:
        """Return whether every read of a param is of the element at the same position."""
        for node in self.parts.body.nodes:
            if is_free(node) and param in node.operands:
                return False
            if is_lookup(node) and param is node.operands[0]:
                return False
        return True

    def producers_of(self, value: Value) -> list[Node]:
        """Return the nodes that compute a value that belongs to no row."""
        needed = {self.source(value)}
        producers = []
        for node in reversed(self.parts.body.nodes):
            if not is_free(node) and not needed.isdisjoint(node.results):
                producers.append(node)
                needed.update(map(self.source, node.operands))
        return producers[::-1]

    def last_reading_section(self, param: Value) -> int:
        """Return the number of the last section in or before which a param is read."""
        numbers = [-1]
        for number, section in enumerate(self.sections):
            nodes = (*section.nodes, *section.reductions, *section.memory_reductions)
            if any(param in node.operands for node in nodes):
                numbers.append(number)
        for number, row_nodes in enumerate(self.row_nodes):
            if any(param in node.operands for node in row_nodes):
                numbers.append(number)
        return max(numbers)

    def storing_section(self, value: Value) -> int:
        """Return the number of the section that stores a value, or −1."""
        stores = (k for k, section in enumerate(self.sections) if value in section.stored)
        return max(stores, default=-1)

    def _fill_section(self, number: int, in_memory: set[Value]) -> None:
        """Find the nodes of a section and the values that it loads from memory."""
        section = self.sections[number]
        needed: set[Node] = set()
        worklist = [stored_value(value) for value in section.stored]
        for node in (*section.reductions, *section.memory_reductions):
            worklist += node.operands
        while worklist:
            value = self.source(worklist.pop())
            producer = value.node
            if producer is None or is_free(producer) or value in self.row_values:
                continue
            if self._section_of[value] < number:
                if value not in in_memory and self._recompute_cost(value) > MAX_RECOMPUTE_COST:
                    self.row_buffers.append(value)
                    self.sections[self._section_of[value]].stored.append(value)
                    in_memory.add(value)
                if value in in_memory:
                    if value not in section.loaded:
                        section.loaded.append(value)
                    continue
            if producer not in needed:
                needed.add(producer)
                worklist += producer.operands
        section.nodes = [node for node in self.parts.body.nodes if node in needed]

    def _recompute_cost(self, value: Value) -> int:
        """Return the cost of computing an element a second time."""
        value = self.source(value)
        node = value.node
        if node is None or is_free(node) or value in self.row_values:
            return 0
        if value not in self._recompute_costs:
            operand_costs = sum(map(self._recompute_cost, dict.fromkeys(node.operands)))
            self._recompute_costs[value] = cost(node) + operand_costs
        return self._recompute_costs[value]


def is_subview_store(value: Value) -> bool:
    """Return whether a result is an array of which a subview is updated in place."""
    return value.node is not None and value.node.op in SUBVIEW_STORES


def stored_value(value: Value) -> Value:
    """Return the value that is stored for a result: itself, or the subview that is updated."""
    if value.node is None or value.node.op not in SUBVIEW_STORES:
        return value
    return value.node.operands[1]


def is_copy(value: Value) -> bool:
    """Return whether a result only copies elements of a param, possibly permuted."""
    return value.node is None or is_layout(value.node)


def is_free(node: Node) -> bool:
    """Return whether a node computes nothing."""
    return is_layout(node) or is_constant(node)
