"""Arrays that loops update through the only reference to them, so trips need not count references.

An array is followed along its *chain*: what updates it gives the next value, a loop or a branch
takes it as an operand and gives it back. Where each value of the chain has one such use, after all
others, and the others only read elements, a reference that is the only one stays the only one.
"""

from __future__ import annotations

from dataclasses import field

from wend.backends.native.analysis.liveness import LastUses
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import TensorType
from wend.ops import indexing, updating
from wend.ops.control import IfParts, WhileParts, if_, while_
from wend.ops.frame_states import frame_state


@dataclass(frozen=True, slots=True)
class UniqueCarry:
    """A carry whose reference stays the only one.

    Attributes:
        forwarded: its number among the forwarded values.
        is_updated: whether each trip updates it, apart from inner loops.
    """

    forwarded: int
    is_updated: bool


@dataclass(eq=False, repr=False, slots=True)
class UniqueReferences:
    """Follows arrays through a graph.

    Attributes:
        unique: the values that are the only reference to their memory until their last use, which
            may take it over.
    """

    unique: set[Value] = field(default_factory=set)
    _carries: dict[tuple[Node, int], UniqueCarry | None] = field(default_factory=dict)
    _uses: dict[Graph, dict[Value, list[tuple[Node | None, int]]]] = field(default_factory=dict)

    def add_result(self, value: Value, uses: LastUses) -> None:
        """Record a new value that is the only reference, unless its region makes another one."""
        users = uses.users(value)
        takers = [node for node in users if not self._only_reads(node, value)]
        if len(takers) == 1 and not uses.is_result(value):
            self.unique.add(value)

    def unique_carry(self, loop: Node, carry: int) -> UniqueCarry | None:
        """Return how a loop hands on a carry; None if another reference may arise."""
        key = loop, carry
        if key not in self._carries:
            self._carries[key] = None  # a loop does not contain itself
            self._carries[key] = self._follow_carry(WhileParts.of(loop), carry)
        return self._carries[key]

    def unique_result(self, branches: Node, operand: int) -> int | None:
        """Return the result of an `if` that is an operand of its branches, perhaps updated."""
        return self._end_of_branches(branches, operand)[0]

    def _end_of_branches(self, branches: Node, operand: int) -> tuple[int | None, bool]:
        """Return the result that ends the chain in each branch, and whether each updates it."""
        ends, updates = zip(
            *(
                self._end(branch, branch.params[operand])
                for branch in IfParts.of(branches).branches
            ),
            strict=True,
        )
        return (ends[0] if len({*ends}) == 1 else None), all(updates)

    def _follow_carry(self, parts: WhileParts, carry: int) -> UniqueCarry | None:
        param, start = parts.before_carry[carry], parts.carry[carry]
        position, is_updated_before = self._end(parts.before, param)
        if position is None or position == 0 or param.type != start.type:
            return None
        forwarded = parts.after_forwarded[position - 1]
        end, is_updated = self._end(parts.after, forwarded)
        if end != carry or not param.type == forwarded.type == parts.next_carry[carry].type:
            return None
        return UniqueCarry(position - 1, is_updated or is_updated_before)

    def _end(self, region: Graph, value: Value) -> tuple[int | None, bool]:
        """Return the result that ends the chain of a value, and whether an update is on it."""
        is_updated, type = False, value.type
        if not isinstance(type, TensorType) or not type.shape:
            return None, False
        while True:
            use = self._only_use(region, value)
            if use is None or value.type != type:
                return None, False
            node, index = use
            if node is None:
                return index, is_updated
            if node.op in (updating.scatter_set, indexing.scatter_add) and index == 0:
                is_updated, value = True, node.results[0]
            elif node.op is while_ and (unshared := self._carry_of(node, index)) is not None:
                value = node.results[unshared.forwarded]
            elif node.op is if_:
                end, in_each_branch = self._end_of_branches(node, index - 1)
                if end is None:
                    return None, False
                is_updated, value = is_updated or in_each_branch, node.results[end]
            else:
                return None, False

    def _carry_of(self, loop: Node, operand: int) -> UniqueCarry | None:
        is_carry = operand < len(WhileParts.of(loop).carry)
        return self.unique_carry(loop, operand) if is_carry else None

    def _uses_in(self, region: Graph) -> dict[Value, list[tuple[Node | None, int]]]:
        if region not in self._uses:
            self._uses[region] = _uses(region)
        return self._uses[region]

    def _only_use(self, region: Graph, value: Value) -> tuple[Node | None, int] | None:
        """Return the use of a value besides reads, if there is one and it is the last."""
        uses = self._uses_in(region).get(value, [])
        others = [k for k, use in enumerate(uses) if not self._is_read(*use)]
        return uses[-1] if others == [len(uses) - 1] else None

    def _only_reads(self, node: Node, value: Value) -> bool:
        """Return whether a node reads elements of an operand and makes no other reference to it."""
        return all(self._is_read(node, k) for k, x in enumerate(node.operands) if x is value)

    def _is_read(self, node: Node | None, operand: int) -> bool:
        if node is not None and node.op in (indexing.gather, frame_state):
            return True  # no result shares memory with the operand
        if node is None or node.op is not if_ or operand == 0:
            return False
        return all(
            self._is_read(*use)
            for branch in IfParts.of(node).branches
            for use in self._uses_in(branch).get(branch.params[operand - 1], ())
        )


def _uses(region: Graph) -> dict[Value, list[tuple[Node | None, int]]]:
    """Return the uses of each value in program order: nodes and operands, or results."""
    uses: dict[Value, list[tuple[Node | None, int]]] = {}
    for node in region.nodes:
        for k, value in enumerate(node.operands):
            uses.setdefault(value, []).append((node, k))
    for k, value in enumerate(region.results):
        uses.setdefault(value, []).append((None, k))
    return uses
