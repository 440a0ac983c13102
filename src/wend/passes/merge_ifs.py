"""Joins branches on one predicate: what follows an `if` and depends on the same moves into it.

The gradient of a branch is full of these: each pass over it adds an `if` with the selector of the
first, whose operands are maybes that the first gave. In one `if` nothing has to be asked twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wend.base.zero import ZERO
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.rewrite import graph_of, on_operands, rename_dims
from wend.ir.types import Dim, MaybeType, Symbol
from wend.ops import creating, maybe
from wend.ops.build import Build
from wend.ops.control import PREDICATE, IfParts, if_
from wend.passes.specialize_zeros import Specializer, State, retyped

# What is moved into a branch if a maybe of it is an operand.
_FOLLOWS = {maybe.autograd_add, maybe.instantiate, maybe.any_nonzero}


def merge_ifs(graph: Graph) -> Graph:
    """Join branches, in regions too."""
    if not any(node.op is if_ for node in graph.walk()):
        return graph
    b = Build(graph.name)
    mapping: dict[Value, Value] = {}
    dims: dict[Symbol, Dim] = {}
    joins: list[_Join] = []
    inside: list[tuple[Value, Value]] = []  # results of regions, before and after
    for node in graph.nodes:
        taking = next((join for join in joins if join.takes(node, mapping)), None)
        for join in [join for join in joins if join is not taking and join.feeds(node)]:
            join.emit(b, mapping, dims)
            joins.remove(join)
        if taking is not None:
            taking.add(node, mapping)
        elif node.op is if_ and not _has_effects(node):
            joins.append(_Join(node, mapping))
        else:
            regions = [merge_ifs(region) for region in node.regions]
            for old, new in zip(node.regions, regions, strict=True):
                inside += zip(old.results, new.results, strict=True)
            operands = [mapping.get(v, v) for v in node.operands]
            copy = on_operands(node, operands, regions, dims)
            b.nodes.append(copy)
            mapping.update(zip(node.results, copy.results, strict=True))
    for join in joins:
        join.emit(b, mapping, dims)
    results = tuple(mapping.get(value, value) for value in graph.results)
    joined = graph_of(graph, graph.params, b.nodes, results)
    return retyped(joined) if _are_narrowed([*mapping.items(), *inside]) else joined


def _are_narrowed(pairs: Iterable[tuple[Value, Value]]) -> bool:
    """Whether a maybe has turned out to be there, so that those who read it know more."""
    return any(
        isinstance(old.type, MaybeType) and not isinstance(new.type, MaybeType)
        for old, new in pairs
    )


class _Join:
    """An `if` that grows, with what its branches know of its values so far."""

    def __init__(self, first: Node, mapping: Mapping[Value, Value]) -> None:
        self.source = first.source
        self.selector = mapping.get(first.operands[0], first.operands[0])
        self.branches = [Build(branch.name) for branch in IfParts.of(first).branches]
        self.runs = [Specializer() for _ in self.branches]
        self.states: list[dict[Value, State]] = [{} for _ in self.branches]
        self.given: list[Value] = []
        self.results: dict[Value, None] = {}
        self.add(first, mapping)

    def feeds(self, node: Node) -> bool:
        return any(operand in self.results for operand in node.operands)

    def takes(self, node: Node, mapping: Mapping[Value, Value]) -> bool:
        """Whether a node belongs into the branches."""
        if node.op is if_:
            selector = mapping.get(node.operands[0], node.operands[0])
            same = selector is self.selector or self._is_selector(selector)
            return same and len(node.regions) == len(self.branches) and not _has_effects(node)
        given = [operand in self.results for operand in node.operands]
        if node.op is maybe.any_nonzero:
            return all(given)
        return node.op in _FOLLOWS and any(
            is_mine and isinstance(operand.type, MaybeType)
            for is_mine, operand in zip(given, node.operands, strict=True)
        )

    def _is_selector(self, value: Value) -> bool:
        """Whether a result is the selector again: false in branch 0, true in branch 1."""
        if value not in self.results or not value.type == self.selector.type == PREDICATE:
            return False
        found = [_known(states[value]) for states in self.states]
        return found == [False, True]

    def add(self, node: Node, mapping: Mapping[Value, Value]) -> None:
        """Let each branch run a node."""
        operands = node.operands[1:] if node.op is if_ else node.operands
        for operand in operands:
            if operand not in self.states[0]:
                self._give(operand, mapping.get(operand, operand))
        for k, (b, run, states) in enumerate(
            zip(self.branches, self.runs, self.states, strict=True)
        ):
            b.source = node.source
            given = [states[operand] for operand in operands]
            if node.op is if_:
                found = run.splice(b, IfParts.of(node).branches[k], given)
            else:
                found = [*run.node(b, node, given, {})]
            states.update(zip(node.results, found, strict=True))
        self.results.update(dict.fromkeys(node.results))

    def _give(self, old: Value, new: Value) -> None:
        """Take a value from outside; the selector itself is known inside."""
        is_selector = new is self.selector
        if not is_selector:
            self.given.append(new)
        for k, (b, states) in enumerate(zip(self.branches, self.states, strict=True)):
            known = b.constant(k, new.tensor.dtype) if is_selector else None
            states[old] = b.param(new.type, new.name) if known is None else known

    def emit(self, b: Build, mapping: dict[Value, Value], dims: dict[Symbol, Dim]) -> None:
        """Append the `if`."""
        results = []
        for result in self.results:
            if self._is_selector(result):
                mapping[result] = self.selector
            else:
                results.append(result)
        graphs = []
        for branch, states in zip(self.branches, self.states, strict=True):
            values = [
                branch.zero(result.type) if states[result] is ZERO else states[result]
                for result in results
            ]
            graphs.append(merge_ifs(branch.finish(values)))  # type: ignore[arg-type]
        b.source = self.source
        found = b.if_(self.selector, self.given, graphs).results
        for old, new in zip(results, found, strict=True):
            mapping[old] = new
            rename_dims(dims, [old], [new])


def _known(state: State) -> object:
    """The number that a state is known to be."""
    node = state.node if isinstance(state, Value) else None
    return node.attrs["value"][()] if node is not None and node.op is creating.constant else None


def _has_effects(node: Node) -> bool:
    """Whether it does more than give results: then it stays where it is among others that do."""
    inside = (within.op for region in node.regions for within in region.walk())
    return any(op.effect is not Effect.NONE for op in inside)
