"""Batching: array operations in the body of a `parallel_map` become operations on all elements.

A body is cut in three: what is computed for all elements at once before the operations that have
no batch rule, these in a smaller `parallel_map`, and what is computed afterwards. What no element
enters is computed once. Sums change their order, as those of one call may (D21);
`config(strict=True)` leaves this pass out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_nodes, rewrite_nodes, with_operands
from wend.ir.types import ListType, TensorType, symbols
from wend.ops import contracting, shaping
from wend.ops.batching import BatchBuild
from wend.ops.build import Build
from wend.ops.parallel_map import LIST, STACK, SUM, ParallelMapParts, is_stackable, parallel_map
from wend.passes.batch_lanes import LaneTarget
from wend.passes.batch_nodes import Batcher
from wend.passes.lane_maps import runs_in_lanes


def batch_maps(graph: Graph) -> Graph:
    """Batch the `parallel_map` nodes of a graph, inner ones first."""
    return _batched(graph, in_registers=False)


def batch_maps_around_lanes(graph: Graph) -> Graph:
    """Batch the `parallel_map` nodes of a graph, but for loops that have lanes in registers."""
    return _batched(graph, in_registers=True)


def _batched(graph: Graph, *, in_registers: bool) -> Graph:
    if parallel_map not in graph.ops:
        return graph

    def batch(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        regions = [_batched(region, in_registers=in_registers) for region in node.regions]
        copy = with_operands(node, operands, regions)
        if copy.op is parallel_map:
            return _BatchedMap(nodes, copy, in_registers=in_registers).results()
        nodes.append(copy)
        return copy.results

    return rewrite_nodes(graph, batch)


class _BatchedMap:
    """A `parallel_map` that is being batched into a list of nodes."""

    def __init__(self, nodes: list[Node], node: Node, *, in_registers: bool) -> None:
        self.b = Build("")
        self.b.nodes, self.b.source = nodes, node.source
        self.node, self.p = node, ParallelMapParts.of(node)
        self.target = LaneTarget(in_registers, self.p.limits.get("lanes"))
        self.listed = {
            inner: outer
            for inner, outer in zip(self.p.elements, self.p.mapped, strict=True)
            if not isinstance(outer.type, TensorType)
        }
        operands = (*self.p.mapped, *self.p.starts, *self.p.invariants)
        self.outer = {symbol for x in operands for symbol in symbols(x.type)}
        self.done: dict[int, Value] = {}

    def results(self) -> Sequence[Value]:
        """Append what replaces the node, and return its results."""
        p, body = self.p, self.p.body
        remaining = None if self._is_out_of_scope() else self._remaining_nodes()
        if remaining is None or len(remaining) == len(body.nodes):
            self.b.nodes.append(self.node)
            return self.node.results
        self.batcher = self._batcher(self.b)
        after = _dependents(body, remaining)
        for node in body.nodes:
            if node not in after:
                self.batcher.append(node)
        self._append_map([node for node in body.nodes if node in remaining], after - remaining)
        for node in body.nodes:
            if node in after and node not in remaining:
                self.batcher.append(node)
        return [
            self.b.refine(self._result(k, form, value), self.node.results[k].type)
            for k, (form, value) in enumerate(zip(p.forms, body.results, strict=True))
        ]

    def _is_out_of_scope(self) -> bool:
        """Return whether the node has no array that counts the elements, or sums of lists."""
        arrays = any(isinstance(x.type, TensorType) for x in self.p.mapped)
        passed = not self.listed.keys().isdisjoint(self.p.body.results)
        return (
            not arrays or passed or any(not isinstance(x.type, TensorType) for x in self.p.starts)
        )

    def _batcher(self, b: Build) -> Batcher:
        p = self.p
        first = next(x for x in p.mapped if isinstance(x.type, TensorType))
        build = BatchBuild(b, b.size_of(first, 0), first.tensor.dims[0])
        batcher = Batcher(build, self.target)
        for inner, outer in zip(p.elements, p.mapped, strict=True):
            if inner not in self.listed:
                batcher.states[inner] = outer, True
        for inner, outer in zip(p.body_invariants, p.invariants, strict=True):
            batcher.states[inner] = outer, False
        return batcher

    def _remaining_nodes(self) -> set[Node]:
        """Return the nodes that stay: those without a rule, and what lies between them."""
        body = self.p.body
        forced = {
            value.node
            for form, value in zip(self.p.forms, body.results, strict=True)
            if form == LIST and not isinstance(value.type, TensorType)
        }
        while True:
            remaining = self._remaining_with(forced)
            reads = [x for node in remaining for x in node.operands if isinstance(x.type, ListType)]
            # The lists of all elements are no lists of elements
            producers = {x.node for x in reads if x.node not in remaining and self._differs(x)}
            readers = {x for x in body.nodes if x not in remaining and self._reads(x, remaining)}
            if not producers and not readers:
                return remaining
            forced |= producers | readers

    def _reads(self, node: Node, remaining: Collection[Node]) -> bool:
        """Return whether a node reads what those that remain cannot give as a stack."""
        inner = [x for x in node.operands if x.node in remaining]
        return not all(is_stackable(x.type, self.outer) for x in inner)

    def _differs(self, value: Value) -> bool:
        return value in self.trial.states and self.trial.states[value][1]

    def _remaining_with(self, forced: Collection[Node | None]) -> set[Node]:
        body, trial = self.p.body, self._batcher(Build(""))
        self.trial = trial
        ruleless: set[Node] = set()
        for node in body.nodes:
            if node in forced or not trial.append(node):
                ruleless.add(node)
                trial.assume([x for x in node.results if is_stackable(x.type, self.outer)])
        needed = {value for node in ruleless for value in node.operands}
        above: set[Node] = set()
        for node in reversed(body.nodes):
            if not needed.isdisjoint(node.results):
                above.add(node)
                needed.update(node.operands)
        return ruleless | (_dependents(body, ruleless) & above)

    def _append_map(self, remaining: Sequence[Node], after: Collection[Node]) -> None:
        """Append the `parallel_map` of the nodes that remain, with the constants that they read."""
        p, states = self.p, self.batcher.states
        defined = {value for node in remaining for value in node.results}
        read_after = {value for node in after for value in node.operands}
        stacks = [x for x in defined if x in read_after]
        numbers = [k for k, x in enumerate(p.body.results) if x in defined]
        if not stacks and not numbers:
            return
        read = {x for node in remaining for x in node.operands if x not in defined}
        # An empty list from outside would be no tape of the loop that an element has
        constants = [x for x in p.body.nodes if not x.operands and not read.isdisjoint(x.results)]
        constants = [node for node in constants if node not in remaining]
        defined.update(value for node in constants for value in node.results)
        reads = list(
            dict.fromkeys(x for node in remaining for x in node.operands if x not in defined)
        )
        elements = [x for x in reads if x in self.listed or states[x][1]]
        shared = [x for x in reads if x not in elements]
        counting = next(x for x in p.elements if x not in self.listed)
        if not any(x not in self.listed for x in elements):
            elements.append(counting)
        inner = Build(p.body.name)
        mapping = {x: inner.param(x.type, x.name) for x in (*elements, *shared)}
        inner.nodes += copy_nodes([*constants, *remaining], mapping)
        mapped = [self.listed[x] if x in self.listed else states[x][0] for x in elements]
        fixed = [states[x][0] for x in shared]
        graph = inner.finish([mapping[x] for x in (*stacks, *(p.body.results[k] for k in numbers))])
        if self.target.in_registers and self._append_lanes(mapped, fixed, graph, stacks, numbers):
            return
        node = self.b.parallel_map(
            mapped,
            [p.start_of(k) for k in numbers if p.forms[k] == SUM],
            fixed,
            graph,
            [*(STACK for _ in stacks), *(p.forms[k] for k in numbers)],
            **p.limits,
        )
        states.update((x, (y, True)) for x, y in zip(stacks, node.results, strict=False))
        self.done.update(zip(numbers, node.results[len(stacks) :], strict=True))

    def _append_lanes(
        self,
        mapped: Sequence[Value],
        fixed: Sequence[Value],
        graph: Graph,
        stacks: Sequence[Value],
        numbers: Sequence[int],
    ) -> bool:
        """Append a map that runs in lanes, whose sums are those of stacks, if there is one."""
        p, b = self.p, Build("")
        b.source = p.source
        forms = {p.forms[k] for k in numbers}
        if SUM not in forms or LIST in forms:
            return False
        forms_of_all = [STACK] * len(graph.results)
        node = b.parallel_map(mapped, [], fixed, graph, forms_of_all, **p.limits)
        if not runs_in_lanes(node):
            return False
        self.b.nodes += b.nodes
        states = self.batcher.states
        states.update((x, (y, True)) for x, y in zip(stacks, node.results, strict=False))
        for k, x in zip(numbers, node.results[len(stacks) :], strict=True):
            if p.forms[k] == SUM:
                start = p.start_of(k)
                x = self.b.add(start, self.b.refine(_sum_of_elements(self.b, x), start.type))
            self.done[k] = x
        return True

    def _result(self, k: int, form: str, value: Value) -> Value:
        if k in self.done:
            return self.done[k]
        b, (outer, is_batched) = self.b, self.batcher.states[value]
        if form == SUM:
            start = self.p.start_of(k)
            total = _sum_of_elements(b, outer) if is_batched else self._multiple(outer)
            return b.add(start, b.refine(total, start.type))
        stack = outer if is_batched else self.batcher.c.expand(outer)
        assert stack is not None
        return stack if form == STACK else b.list_unstack(stack)

    def _multiple(self, x: Value) -> Value:
        """Return the sum of what is the same for every element."""
        count = self.b.cast(self.batcher.c.count, x.tensor.dtype)
        return self.b.mul(x, self.b.broadcast_like(count, x))


def _dependents(body: Graph, sources: Iterable[Node]) -> set[Node]:
    """Return the nodes that depend on some, with those."""
    dependents = {*sources}
    values = {value for node in dependents for value in node.results}
    for node in body.nodes:
        if not values.isdisjoint(node.operands):
            dependents.add(node)
            values.update(node.results)
    return dependents


def _sum_of_elements(b: Build, x: Value) -> Value:
    """Return the sum over the first axis; that of products is one product."""
    node = x.node
    if node is not None and node.op is shaping.transpose and node.attrs["perm"][0] == 0:
        perm = tuple(axis - 1 for axis in node.attrs["perm"][1:])
        return b.transpose(_sum_of_elements(b, node.operands[0]), perm=perm)
    if node is not None and node.op is contracting.dot_general:
        contract, batch = node.attrs["contract"], node.attrs["batch"]
        if batch[0][:1] == (0,) and batch[1][:1] == (0,):
            contract = ((0, *contract[0]), (0, *contract[1]))
            return b.dot_general(
                *node.operands, contract=contract, batch=(batch[0][1:], batch[1][1:])
            )
    return b.reduce_sum(x, axes=(0,))
