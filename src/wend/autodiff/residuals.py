"""Residuals are found, not declared: the forward values that a finished backward pass reads.

Of those, what is cheap is computed again from the rest, so that the fewest bytes are kept: a
minimum cut between what must be kept somewhere (params, results of costly operations) and what
is read. Enzyme and PyTorch's min-cut partitioner cut the same way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from wend.ir.graph import Node, Remark, Value
from wend.ir.op import Effect
from wend.ir.rewrite import copy_nodes
from wend.ir.traverse import backward_slice, operands_first
from wend.ir.types import TensorType, Type
from wend.ops import lists
from wend.ops.shapes import size_of

# A size that is not known before the run counts as this many elements.
_UNKNOWN_SIZE = 1000
_ENDLESS = float("inf")
# A value of at most so many bytes that takes more than so many operations to have again is kept:
# the predicate of a branch is one byte, what led to it may be half the loop's body.
_SMALL, _LONG = 8, 8


def is_recomputable(value: Value) -> bool:
    """Whether a value can be had again from its operands at little cost."""
    node = value.node
    return node is not None and node.op.is_cheap and node.op.effect is Effect.NONE


def min_cut_residuals(reads: Sequence[Value], free: set[Value]) -> list[Value]:
    """Choose what to keep so that every value read can be had again.

    Args:
        reads: the values that are needed.
        free: values that are there anyway at no cost.

    Returns:
        The values to keep; `backward_slice` says how to get the others from them.
    """
    kept = _MinimumCut(reads, free).keep
    for value in reads:
        at_hand = {*kept, *free}
        if value in at_hand or _bytes(value.type) > _SMALL:
            continue
        if len(backward_slice([value], at_hand)) > _LONG:
            kept.append(value)
    return kept


def rematerialize(nodes: Iterable[Node], mapping: dict[Value, Value]) -> list[Node]:
    """Copies of forward nodes for a backward pass, remarked as that; see `copy_nodes`."""
    copies = copy_nodes(nodes, mapping)
    for copy in copies:
        copy.remark = Remark(is_rematerialized=True)
    return copies


def _bytes(type: Type) -> float:
    if not isinstance(type, TensorType):
        return 16.0  # a list: its length and where it starts
    size = None if type.shape is None else size_of(type.shape)
    return float(type.dtype.itemsize * (_UNKNOWN_SIZE if size is None else size))


def _operands(value: Value) -> Sequence[Value]:
    return () if value.node is None else value.node.operands


class _MinimumCut:
    """Edmonds and Karp's algorithm on the values' dependences, each value split in two.

    The cut nearest to the reads is taken, so that nothing is computed again without gain.
    """

    def __init__(self, reads: Sequence[Value], free: set[Value]) -> None:
        self.capacity: dict[object, dict[object, float]] = {}
        self.values: dict[Value, None] = {}
        self.free = free
        self.costless = set(free)
        for value in operands_first(reads, _operands):
            if self._costs_nothing(value):
                self.costless.add(value)
        for value in reads:
            if value not in self.costless:
                self._add(value)
                self._edge((value, "out"), "sink", _ENDLESS)
        self._saturate()
        behind = self._reaching_sink()
        self.keep = [v for v in self.values if (v, "out") in behind and (v, "in") not in behind]

    def _costs_nothing(self, value: Value) -> bool:
        """Whether it follows from free values alone: constants, what invariants give."""
        return (
            value.node is not None
            and self._can_run_again(value)
            and self.costless.issuperset(value.node.operands)
        )

    def _can_run_again(self, value: Value) -> bool:
        """Also what is read from a list that is there anyway: it is not recorded twice (D11)."""
        node = value.node
        if node is not None and node.op is lists.list_get:
            return node.operands[0] in self.costless
        return is_recomputable(value)

    def _edge(self, start: object, end: object, capacity: float) -> None:
        self.capacity.setdefault(start, {})[end] = capacity
        self.capacity.setdefault(end, {}).setdefault(start, 0.0)

    def _add(self, wanted: Value) -> None:
        """Add a value and what it is computed from, back to what cannot be computed again."""
        waiting = [wanted]
        while waiting:
            value = waiting.pop()
            if value in self.values:
                continue
            self.values[value] = None
            self._edge((value, "in"), (value, "out"), _bytes(value.type))
            if not self._can_run_again(value):
                self._edge("source", (value, "in"), _ENDLESS)
                continue
            operands = [v for v in _operands(value) if v not in self.costless]
            for operand in operands:
                self._edge((operand, "out"), (value, "in"), _ENDLESS)
            waiting += reversed(operands)

    def _saturate(self) -> None:
        while path := self._path():
            flow = min(self.capacity[a][b] for a, b in path)
            for a, b in path:
                self.capacity[a][b] -= flow
                self.capacity[b][a] += flow

    def _path(self) -> list[tuple[object, object]]:
        came_from: dict[object, object] = {"source": None}
        queue: deque[object] = deque(["source"])
        while queue:
            here = queue.popleft()
            for there, capacity in self.capacity.get(here, {}).items():
                if capacity > 0 and there not in came_from:
                    came_from[there] = here
                    queue.append(there)
        if "sink" not in came_from:
            return []
        path: list[tuple[object, object]] = []
        end: object = "sink"
        while (start := came_from[end]) is not None:
            path.append((start, end))
            end = start
        return path

    def _reaching_sink(self) -> set[object]:
        reverse: dict[object, list[object]] = {}
        for start, ends in self.capacity.items():
            for end, capacity in ends.items():
                if capacity > 0:
                    reverse.setdefault(end, []).append(start)
        reached: set[object] = {"sink"}
        queue: deque[object] = deque(["sink"])
        while queue:
            for start in reverse.get(queue.popleft(), []):
                if start not in reached:
                    reached.add(start)
                    queue.append(start)
        return reached
