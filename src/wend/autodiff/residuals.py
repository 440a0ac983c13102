"""Choice of residuals: which of the forward values that a backward pass reads to keep.

Cheap ones are recomputed from the rest, so that what is kept and what is recomputed take the least
time together. This is a minimum cut between the values that must be stored (params, results of
operations that are never recomputed) and the reads, as in Enzyme and PyTorch's min-cut partitioner.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from math import isfinite, prod

from wend.ir.graph import Node, Remark, Value
from wend.ir.op import Effect
from wend.ir.rewrite import copy_nodes
from wend.ir.traverse import backward_slice, operands_first
from wend.ir.types import Dim, TensorType, Type
from wend.ops import lists, parts, shaping
from wend.ops.indexing import gather
from wend.ops.shapes import size_of
from wend.passes.hoist import may_end_run

# The number of elements assumed for a size that is only known at run time.
_ASSUMED_ELEMENTS = 1000
# Nanoseconds to write and read a byte of a record; `Op.cost` has those of an element
_NS_PER_BYTE = 0.5
# The cost of an element of an operation whose cost has not been measured
_ASSUMED_COST = 1.0
_INFINITE_CAPACITY = float("inf")
# A value of at most this many bytes is kept if its recomputation takes more than this many
# operations: the predicate of a branch is one byte, but may take half the loop's body to recompute.
_SCALAR_BYTES, _MAX_RECOMPUTED_OPS = 8, 8

# What is cut out of an array at positions of the run is taken to be a share of it: a program that
# cuts twice out of what it changes keeps both parts.
_CUTS = (shaping.narrow, parts.take_part)
_SHARE_OF_CUTS = 16
# Any other array of unknown size is taken to be half of what it is computed from
_SHARE_OF_OTHERS = 2


def is_recomputable(value: Value) -> bool:
    """Return whether a value is cheap to recompute from its operands."""
    node = value.node
    return node is not None and node.op.is_cheap and node.op.effect is Effect.NONE


def min_cut_residuals(
    reads: Sequence[Value], available: set[Value], read_only: Container[Value] = ()
) -> list[Value]:
    """Choose the values to keep so that every value read can be recomputed.

    Args:
        reads: the values that are needed.
        available: values that cost nothing to keep.
        read_only: arrays whose elements may be read again, where they are available.

    Returns:
        The values to keep; `backward_slice` computes the others from them.
    """
    residuals = _MinimumCut(reads, available, read_only).keep
    for value in reads:
        stored = {*residuals, *available}
        if value in stored or estimated_bytes(value.type) > _SCALAR_BYTES:
            continue
        if len(backward_slice([value], stored)) > _MAX_RECOMPUTED_OPS:
            residuals.append(value)
    return residuals


def rematerialize(nodes: Iterable[Node], mapping: dict[Value, Value]) -> list[Node]:
    """Return copies of forward nodes for a backward pass, marked as such; see `copy_nodes`."""
    copies = copy_nodes(nodes, mapping)
    for copy in copies:
        copy.remark = Remark(is_rematerialized=True)
    return copies


def estimated_bytes(type: Type) -> float:
    """Return the bytes of a value of a type; unknown sizes are guessed."""
    if not isinstance(type, TensorType):
        return 16.0  # a list: its length and address
    size = _size(type)
    return float(type.dtype.itemsize * (_ASSUMED_ELEMENTS if size is None else size))


def estimated_size(dim: Dim) -> int:
    """Return a size; one that only the run knows is guessed."""
    return dim if isinstance(dim, int) else _ASSUMED_ELEMENTS


def _recomputation_ns(value: Value) -> float:
    """Return the estimated time to compute a value again from its operands."""
    assert value.node is not None
    cost = value.node.op.cost
    elements = estimated_bytes(value.type)
    if isinstance(value.type, TensorType):
        elements /= value.type.dtype.itemsize
    return elements * (cost if isfinite(cost) else _ASSUMED_COST)


def _kept_bytes(value: Value) -> float:
    """Return the estimated cost of keeping a value, in bytes.

    What is cut out of an array at positions of the run is smaller than the array: keeping the
    array would also force a copy wherever that is updated later.
    """
    if _size(value.type) is not None or not isinstance(value.type, TensorType):
        return estimated_bytes(value.type)
    if value.node is not None and value.node.op is shaping.slice_:
        sliced = float(value.type.dtype.itemsize * prod(_sliced_sizes(value.node)))
        return min(estimated_bytes(value.type), sliced)
    is_cut = value.node is not None and value.node.op in _CUTS
    share = _SHARE_OF_CUTS if is_cut else _SHARE_OF_OTHERS
    wholes = [size for x in _operands(value) if (size := _size(x.type)) is not None and size > 1]
    elements = max(wholes, default=_ASSUMED_ELEMENTS if is_cut else share * _ASSUMED_ELEMENTS)
    return min(estimated_bytes(value.type), value.type.dtype.itemsize * elements / share)


def _sliced_sizes(node: Node) -> Iterator[int]:
    """Yield the size of each axis of a slice, which the bounds tell of an array of guessed size."""
    for dim, bounds in zip(node.operands[0].tensor.dims, node.attrs["slices"], strict=True):
        yield len(range(estimated_size(dim))[slice(*bounds)])


def _size(type: Type) -> int | None:
    """Return the number of elements of an array type if it is known."""
    if not isinstance(type, TensorType) or type.shape is None:
        return None
    return size_of(type.shape)


def _operands(value: Value) -> Sequence[Value]:
    return () if value.node is None else value.node.operands


class _MinimumCut:
    """Dinic's algorithm on the data-flow graph, with an in- and an out-node per value.

    The cut nearest to the reads is taken, so that nothing is recomputed without gain.
    """

    def __init__(
        self, reads: Sequence[Value], available: set[Value], read_only: Container[Value]
    ) -> None:
        self.capacity: dict[object, dict[object, float]] = {}
        self.values: dict[Value, None] = {}
        self.available, self.read_only = available, read_only
        self.costless = set(available)
        for value in operands_first(reads, _operands):
            if self._is_free(value):
                self.costless.add(value)
        for value in reads:
            if value not in self.costless:
                self._add(value)
                self._edge((value, "out"), "sink", _INFINITE_CAPACITY)
        self._saturate()
        sink_side = self._reaching_sink()
        self.keep = [
            v for v in self.values if (v, "out") in sink_side and (v, "in") not in sink_side
        ]

    def _is_free(self, value: Value) -> bool:
        """Return whether a value follows from available values alone."""
        return (
            value.node is not None
            and self._is_rematerializable(value)
            and self.costless.issuperset(value.node.operands)
        )

    def _is_rematerializable(self, value: Value) -> bool:
        """Return whether a value may be recomputed; list reads may, to save a list (D11)."""
        node = value.node
        if node is not None and node.op is lists.list_get:
            return node.operands[0] in self.costless
        if node is not None and node.op is gather and node.operands[0] in self.read_only:
            # One that may fail has to fail in the forward pass
            return not may_end_run(node) and self.costless.issuperset(node.operands)
        return is_recomputable(value)

    def _edge(self, start: object, end: object, capacity: float) -> None:
        self.capacity.setdefault(start, {})[end] = capacity
        self.capacity.setdefault(end, {}).setdefault(start, 0.0)

    def _add(self, read: Value) -> None:
        """Add a value and its backward slice, up to the values that cannot be recomputed."""
        worklist = [read]
        while worklist:
            value = worklist.pop()
            if value in self.values:
                continue
            self.values[value] = None
            self._edge((value, "in"), (value, "out"), _kept_bytes(value) * _NS_PER_BYTE)
            if not self._is_rematerializable(value):
                self._edge("source", (value, "in"), _INFINITE_CAPACITY)
                continue
            self._edge("source", (value, "in"), _recomputation_ns(value))
            operands = [v for v in _operands(value) if v not in self.costless]
            for operand in operands:
                self._edge((operand, "out"), (value, "in"), _INFINITE_CAPACITY)
            worklist += reversed(operands)

    def _saturate(self) -> None:
        """Push flow along shortest paths until none is left."""
        while "sink" in (levels := self._levels()):
            successors = {start: [*ends] for start, ends in self.capacity.items()}
            position = dict.fromkeys(successors, 0)  # of the first successor that may take flow
            path: list[tuple[object, object]] = []
            node: object = "source"
            while True:
                if node == "sink":
                    node = self._push(path)
                elif position[node] == len(successors[node]):
                    if not path:
                        break
                    node, _ = path.pop()
                    position[node] += 1
                else:
                    successor = successors[node][position[node]]
                    is_next = levels.get(successor) == levels[node] + 1
                    if is_next and self.capacity[node][successor] > 0:
                        path.append((node, successor))
                        node = successor
                    else:
                        position[node] += 1

    def _push(self, path: list[tuple[object, object]]) -> object:
        """Push what a path takes; cut it at its first full edge, and return the node there."""
        flow = min(self.capacity[a][b] for a, b in path)
        for a, b in path:
            self.capacity[a][b] -= flow
            self.capacity[b][a] += flow
        full = next(k for k, (a, b) in enumerate(path) if self.capacity[a][b] <= 0)
        node, _ = path[full]
        del path[full:]
        return node

    def _levels(self) -> dict[object, int]:
        """Return the distance from the source of each node that flow may still reach."""
        levels: dict[object, int] = {"source": 0}
        queue: deque[object] = deque(["source"])
        while queue:
            node = queue.popleft()
            for successor, capacity in self.capacity.get(node, {}).items():
                if capacity > 0 and successor not in levels:
                    levels[successor] = levels[node] + 1
                    queue.append(successor)
        return levels

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
