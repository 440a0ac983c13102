"""Nodes for one element, appended for all elements at once, in regions too.

A loop whose test the elements share becomes one loop on the values of all, and so does a branch. A
loop that elements leave at different trips gets lanes (`batch_lanes.py`), where it can.
Of a branch that elements take differently both sides are computed, where they are short and cannot
fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.rewrite import copy_node
from wend.ir.types import TensorType
from wend.ops.batching import BatchBuild
from wend.ops.build import Build
from wend.ops.control import PREDICATE, IfParts, WhileParts, if_, while_
from wend.ops.shapes import size_of
from wend.passes.batch_lanes import LANES, Lanes, LaneTarget
from wend.passes.lane_maps import is_elementwise, is_loop_of_numbers

# A value, and whether it has those of all elements
State: TypeAlias = tuple[Value, bool]
# Arithmetic on larger elements gains nothing from being done for all at once
_MAX_BATCHED_ELEMENTS = 1 << 13
# Branches with more nodes are not computed for elements that do not take them
_MAX_SPECULATED_NODES = 32


def may_run_once(node: Node, size: object) -> bool:
    """Return whether a node of a map may run once for all elements, though there may be none."""
    has_element = isinstance(size, int) and size > 0
    inner = [node, *(x for region in node.regions for x in region.walk())]
    return all(x.op.effect is Effect.NONE and (has_element or not x.op.errors_of(x)) for x in inner)


class Batcher:
    """Appends the nodes of a graph for all elements.

    Attributes:
        c: the builder.
        states: the state of each value of the graph that has one.
        is_whole: whether every node has a rule.
        has_lanes: whether a loop that elements leave at different trips may have lanes.
        target: which of these have lanes; loops whose lanes are in registers stay as they are.
    """

    def __init__(self, c: BatchBuild, target: LaneTarget = LaneTarget()) -> None:  # noqa: B008
        self.c, self.target = c, target
        self.states: dict[Value, State] = {}
        self.is_whole = self.has_lanes = True

    def assume(self, values: Iterable[Value]) -> None:
        """Take the values of all elements for known."""
        for value in values:
            type = self.c.type_of(value.type)
            if type is not None:
                self.states[value] = Value(type), True

    def append(self, node: Node) -> bool:
        """Append a node for all elements; return whether that is possible."""
        if any(x not in self.states for x in node.operands):
            return False
        values = [self.states[x][0] for x in node.operands]
        flags = [self.states[x][1] for x in node.operands]
        self.c.b.source = node.source
        if not any(flags):
            if not may_run_once(node, self.c.size):
                return False
            copy = copy_node(node, values)
            self.c.b.nodes.append(copy)
            self.states.update(
                (x, (y, False)) for x, y in zip(node.results, copy.results, strict=True)
            )
            return True
        results = self._batched(node, values, flags)
        if results is None:
            return False
        for old, new in zip(node.results, results, strict=True):
            is_batched = new not in self.c.shared
            self.states[old] = self._with_sizes_of(old, new) if is_batched else new, is_batched
        return True

    def _with_sizes_of(self, old: Value, new: Value) -> Value:
        """Return the values of all elements with the symbols that the value of one has.

        A rule knows no names of sizes, and the nodes that follow may need equal ones.
        """
        type = self.c.type_of(old.type)
        return self.c.b.refine(new, type) if isinstance(type, TensorType) else new

    def _batched(
        self, node: Node, values: Sequence[Value], flags: Sequence[bool]
    ) -> Sequence[Value] | None:
        if node.op is while_:
            return self._loop(WhileParts.of(node), values, flags)
        if node.op is if_:
            return self._branch(IfParts.of(node), values, flags)
        if node.op.batch is None or _is_large_arithmetic(node):
            return None
        results = node.op.batch(self.c, node, values, flags)
        return [results] if isinstance(results, Value) else results

    def region(self, graph: Graph, flags: Sequence[bool]) -> Batcher | None:
        """Return a region for all elements, which also takes their number.

        It `is_whole` unless a node has no rule. None where a param has no type.
        """
        b = Build(graph.name)
        types = [
            self.c.type_of(param.type) if flag else param.type
            for param, flag in zip(graph.params, flags, strict=True)
        ]
        if None in types:
            return None
        params = [b.param(type) for type in types if type is not None]
        count = b.param(self.c.count.type)
        inner = Batcher(BatchBuild(b, count, self.c.size), self.target)
        inner.states.update(zip(graph.params, zip(params, flags, strict=True), strict=True))
        inner.has_lanes = self.has_lanes
        inner.is_whole = all(map(inner.append, graph.nodes))
        return inner

    def needed(self, params: Sequence[Value]) -> list[int]:
        """Return the positions of params, lists that all elements share, which must not be so."""
        return [k for k, x in enumerate(params) if self.states[x][0] in self.c.needed]

    def flags_of(self, values: Iterable[Value]) -> list[bool]:
        """Return which values differ from element to element."""
        return [self.states[x][1] for x in values]

    def finish(self, results: Sequence[Value], flags: Sequence[bool]) -> Graph | None:
        """Return the region, with the values of all elements where flagged."""
        expanded = self.expanded([self.states[x] for x in results], flags)
        return None if expanded is None else self.c.b.finish(expanded)

    def expanded(self, states: Sequence[State], flags: Sequence[bool]) -> list[Value] | None:
        """Return the values of all elements where flagged; None where there are none."""
        values: list[Value] = []
        for (value, is_batched), flag in zip(states, flags, strict=True):
            batched = self.c.expand(value) if flag and not is_batched else value
            if batched is None:
                return None
            values.append(batched)
        return values

    def _loop(
        self, w: WhileParts, values: Sequence[Value], flags: Sequence[bool]
    ) -> Sequence[Value] | None:
        """Append a loop whose test the elements share; the carries that differ by a fixpoint."""
        count = len(w.carry)
        carry, invariants = list(flags[:count]), flags[count:]
        while True:
            before = self.region(w.before, [*carry, *invariants])
            if before is None:
                return None
            if not before.is_whole:
                if not _flag(carry, before.needed(w.before_carry)):
                    return None
                continue
            if before.states[w.predicate][1]:
                return self._lanes(w, values, flags)
            forwarded = before.flags_of(w.forwarded)
            after = self.region(w.after, [*forwarded, *invariants])
            if after is None:
                return None
            if not after.is_whole:
                sources = [w.forwarded[k] for k in after.needed(w.after_forwarded)]
                needed = [k for k, x in enumerate(w.before_carry) if x in sources]
                if not _flag(carry, needed):
                    return None
                continue
            following = after.flags_of(w.next_carry)
            if not _flag(carry, [k for k, flag in enumerate(following) if flag]):
                break
        starts = self.expanded(list(zip(values[:count], flags[:count], strict=True)), carry)
        before_graph = before.finish([w.predicate, *w.forwarded], [False, *forwarded])
        after_graph = after.finish(w.next_carry, carry)
        if starts is None or before_graph is None or after_graph is None:
            return None
        outer = [*values[count:], self.c.count]
        node = self.c.b.while_(starts, outer, before_graph, after_graph, memory=w.memory)
        return self._marked(node.results, forwarded)

    def _lanes(
        self, w: WhileParts, values: Sequence[Value], flags: Sequence[bool]
    ) -> Sequence[Value] | None:
        """Append a loop that each element leaves at another trip."""
        if not self.has_lanes or not self.target.suits(w, self.c.size):
            return None
        if self.target.in_registers and is_loop_of_numbers(w):
            return None
        count, lanes = len(w.carry), Lanes.of(self.c, self.target.count or LANES)
        starts = self.expanded(
            list(zip(values[:count], flags[:count], strict=True)), [True] * count
        )
        inner = Batcher(BatchBuild(self.c.b, lanes.count, lanes.size))
        inner.has_lanes = False
        own = flags[count:]
        before = inner.region(w.before, [*(True for _ in w.carry), *own])
        after = inner.region(w.after, [*(True for _ in w.forwarded), *own])
        if starts is None or before is None or after is None:
            return None
        if not before.is_whole or not after.is_whole:
            return None
        first = before.finish([w.predicate, *w.forwarded], [True] * (1 + len(w.forwarded)))
        second = after.finish(w.next_carry, [True] * count)
        if first is None or second is None:
            return None
        return lanes.append(first, second, starts, values[count:], own)

    def _branch(
        self, parts: IfParts, values: Sequence[Value], flags: Sequence[bool]
    ) -> Sequence[Value] | None:
        if flags[0]:
            return self._choice(parts, values, flags)
        regions = [self.region(branch, flags[1:]) for branch in parts.branches]
        for region, branch in zip(regions, parts.branches, strict=True):
            if region is not None and not region.is_whole:
                self.c.needed.update(values[1 + k] for k in region.needed(branch.params))
        known = [region for region in regions if region is not None and region.is_whole]
        if len(known) < len(regions):
            return None
        pairs = list(zip(known, parts.branches, strict=True))
        differ = [
            any(column) for column in zip(*(r.flags_of(g.results) for r, g in pairs), strict=True)
        ]
        graphs = [region.finish(graph.results, differ) for region, graph in pairs]
        finished = [graph for graph in graphs if graph is not None]
        if len(finished) < len(graphs):
            return None
        node = self.c.b.if_(values[0], [*values[1:], self.c.count], finished)
        return self._marked(node.results, differ)

    def _choice(
        self, parts: IfParts, values: Sequence[Value], flags: Sequence[bool]
    ) -> Sequence[Value] | None:
        """Compute both branches, and choose for each element."""
        nodes = [node for branch in parts.branches for node in branch.nodes]
        if parts.selector.type != PREDICATE or not all(map(_is_speculatable, nodes)):
            return None
        if len(nodes) > _MAX_SPECULATED_NODES or len(parts.branches) != 2:
            return None
        sides: list[list[Value]] = []
        for branch in parts.branches:
            inner = Batcher(self.c, self.target)
            operands = zip(values[1:], flags[1:], strict=True)
            inner.states.update(zip(branch.params, operands, strict=True))
            if not all(isinstance(x.type, TensorType) for x in branch.results):
                return None
            if not all(map(inner.append, branch.nodes)):
                return None
            states = [inner.states[x] for x in branch.results]
            side = self.expanded(states, [True] * len(states))
            if side is None:
                return None
            sides.append(side)
        return [self._chosen(values[0], yes, no) for no, yes in zip(*sides, strict=True)]

    def _chosen(self, test: Value, yes: Value, no: Value) -> Value:
        b = self.c.b
        test = b.insert_axes(test, axes=tuple(range(1, len(yes.tensor.dims))))
        return b.select(b.broadcast_like(test, yes), yes, b.refine(no, yes.type))

    def _marked(self, results: Sequence[Value], flags: Sequence[bool]) -> Sequence[Value]:
        self.c.shared.update(x for x, flag in zip(results, flags, strict=True) if not flag)
        return results


def _flag(flags: list[bool], positions: Sequence[int]) -> bool:
    """Set flags; return whether any was not set."""
    is_new = any(not flags[k] for k in positions)
    for k in positions:
        flags[k] = True
    return is_new


def _is_speculatable(node: Node) -> bool:
    is_pure = node.op.effect is Effect.NONE and not node.regions
    is_free = node.op.is_cheap or node.op.is_speculatable
    return is_pure and is_free and not node.op.may_fail(node)


def _is_large_arithmetic(node: Node) -> bool:
    """Return whether elements are so large that their arithmetic is vectorized by itself."""
    if not is_elementwise(node):
        return False
    size = size_of(node.results[0].tensor.dims)
    return size is not None and size > _MAX_BATCHED_ELEMENTS
