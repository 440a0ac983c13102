"""What a nest's body asks of its loops: which node belongs where, and when."""

from __future__ import annotations

from dataclasses import dataclass, field

from wend.backends.native.fusion.op_classes import (
    MOST_AGAIN,
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
from wend.ir.graph import Node, Value


@dataclass(eq=False, repr=False, slots=True)
class Section:
    """One run over the axes that are no rows'.

    Attributes:
        nodes: what is computed of each element, in order.
        reductions: what gives a number to each row, or to all.
        memory_reductions: reductions that are added up in memory.
        stored: values that are put into memory.
        loaded: values that an earlier section has put there.
    """

    nodes: list[Node] = field(default_factory=list)
    reductions: list[Node] = field(default_factory=list)
    memory_reductions: list[Node] = field(default_factory=list)
    stored: list[Value] = field(default_factory=list)
    loaded: list[Value] = field(default_factory=list)


@dataclass(eq=False, repr=False, slots=True)
class NestBody:
    """A nest's body by sections; what belongs to rows is done before the section of its number.

    Attributes:
        parts: the nest.
        reductions: what its nodes reduce.
        outer_rank: values that belong to rows.
        memory_reductions: values that are there when all loops are over.
        sections: in order.
        row_nodes: for each section, and the end, what is done for a row before it.
        kept: values that are no results, but in memory until the row is over.
    """

    parts: LoopNestParts
    reductions: dict[Node, Reduction] = field(default_factory=dict)
    outer_rank: set[Value] = field(default_factory=set)
    memory_reductions: set[Value] = field(default_factory=set)
    sections: list[Section] = field(default_factory=list)
    row_nodes: list[list[Node]] = field(default_factory=list)
    kept: list[Value] = field(default_factory=list)
    _at: dict[Value, int] = field(default_factory=dict)
    _again: dict[Value, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nodes = self.parts.body.nodes
        for node in nodes:
            self._sort(node)
        work = [node for node in nodes if not is_free(node)]
        copies = [v for v in dict.fromkeys(self.parts.body.results) if is_copy(v)]
        last = max(map(self._end_of, work), default=int(bool(copies)))
        self.sections = [Section() for _ in range(last)]
        self.row_nodes = [[] for _ in range(last + 1)]
        for value in copies:
            self.sections[0].stored.append(value)
        in_memory = set(self.parts.body.results)
        for node in work:
            self._put(node, in_memory)
        # The last first: it says what the earlier ones have to keep.
        for number in reversed(range(last)):
            self._fill(number, in_memory)

    def _sort(self, node: Node) -> None:
        """Say where a node belongs, and before or in which section it is done."""
        (result,) = node.results
        self._at[result] = max((self._at.get(v, 0) for v in node.operands), default=0)
        if is_free(node):
            return
        reduction = reduction_of(node)
        if reduction is None:
            if self._is_of_rows(node):
                self.outer_rank.add(result)
            return
        self.reductions[node] = reduction
        if reduction.outer_rank(len(self.parts.iteration_space)) is None:
            self.memory_reductions.add(result)
            return
        self.outer_rank.add(result)
        if not self.is_row_sum(node):
            self._at[result] += 1  # when its section is over

    def _end_of(self, node: Node) -> int:
        """How many sections there are, at least, when a node has been done."""
        (result,) = node.results
        return self._at[result] + (result not in self.outer_rank)

    def _put(self, node: Node, in_memory: set[Value]) -> None:
        (result,) = node.results
        number = self._at[result]
        if result in self.memory_reductions:
            self.sections[number].memory_reductions.append(node)
        elif node in self.reductions and not self.is_row_sum(node):
            self.sections[number - 1].reductions.append(node)
        elif result in self.outer_rank:
            self.row_nodes[number].append(node)
        elif result in in_memory:
            self.sections[number].stored.append(result)

    def is_row_sum(self, node: Node) -> bool:
        """Whether it is the sum of rows that lie in memory, which is NumPy's."""
        is_made = node.operands[0].node is not None
        if is_made or node.op not in SUMS or node.results[0] not in self.outer_rank:
            return False
        return node.operands[0].tensor.dtype.kind == "f"

    def _is_of_rows(self, node: Node) -> bool:
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
        made = {v for v in sources if v.node is not None and not is_free(v.node)}
        return bool(made) and made <= self.outer_rank

    def source(self, value: Value) -> Value:
        """What a value is read from, through what only moves elements."""
        while value.node is not None and is_layout(value.node) and value.node.operands:
            value = value.node.operands[0]
        return value

    def is_read_as_it_lies(self, param: Value) -> bool:
        """Whether all that is read of a param is the element at the same place."""
        for node in self.parts.body.nodes:
            if is_free(node) and param in node.operands:
                return False
            if is_lookup(node) and param is node.operands[0]:
                return False
        return True

    def made_for(self, value: Value) -> list[Node]:
        """What computes a value that belongs to no row."""
        needed = {self.source(value)}
        found = []
        for node in reversed(self.parts.body.nodes):
            if not is_free(node) and not needed.isdisjoint(node.results):
                found.append(node)
                needed.update(map(self.source, node.operands))
        return found[::-1]

    def last_read(self, param: Value) -> int:
        """The number of the last section in, or before which a param is read."""
        numbers = [-1]
        for number, section in enumerate(self.sections):
            nodes = (*section.nodes, *section.reductions, *section.memory_reductions)
            if any(param in node.operands for node in nodes):
                numbers.append(number)
        for number, row_nodes in enumerate(self.row_nodes):
            if any(param in node.operands for node in row_nodes):
                numbers.append(number)
        return max(numbers)

    def stored_in(self, value: Value) -> int:
        """The number of the section that puts a value into memory; −1: none does."""
        stores = (k for k, section in enumerate(self.sections) if value in section.stored)
        return max(stores, default=-1)

    def _fill(self, number: int, in_memory: set[Value]) -> None:
        """Find the nodes of a section, and what it takes from memory."""
        section = self.sections[number]
        needed: set[Node] = set()
        wanted = [put_value(value) for value in section.stored]
        for node in (*section.reductions, *section.memory_reductions):
            wanted += node.operands
        while wanted:
            value = self.source(wanted.pop())
            maker = value.node
            if maker is None or is_free(maker) or value in self.outer_rank:
                continue
            if self._at[value] < number:
                if value not in in_memory and self._cost_again(value) > MOST_AGAIN:
                    self.kept.append(value)
                    self.sections[self._at[value]].stored.append(value)
                    in_memory.add(value)
                if value in in_memory:
                    if value not in section.loaded:
                        section.loaded.append(value)
                    continue
            if maker not in needed:
                needed.add(maker)
                wanted += maker.operands
        section.nodes = [node for node in self.parts.body.nodes if node in needed]

    def _cost_again(self, value: Value) -> int:
        """What it costs to compute an element a second time."""
        value = self.source(value)
        node = value.node
        if node is None or is_free(node) or value in self.outer_rank:
            return 0
        if value not in self._again:
            parts = sum(map(self._cost_again, dict.fromkeys(node.operands)))
            self._again[value] = cost(node) + parts
        return self._again[value]


def is_put(value: Value) -> bool:
    """Whether a result is an array of which a part is put in place."""
    return value.node is not None and value.node.op in SUBVIEW_STORES


def put_value(value: Value) -> Value:
    """What is stored for a result: the elements of it, or of the part that is put."""
    if value.node is None or value.node.op not in SUBVIEW_STORES:
        return value
    return value.node.operands[1]


def is_copy(value: Value) -> bool:
    """Whether a result is but elements of a param, perhaps in another order."""
    return value.node is None or is_layout(value.node)


def is_free(node: Node) -> bool:
    """Whether it computes nothing."""
    return is_layout(node) or is_constant(node)
