"""Merging of `if` nodes on one selector: later ones and what depends on them move into the first.

The backward graph of a branch is full of these: each pass over it adds an `if` with the selector
of the first, whose operands are maybes that the first gave. In one `if` nothing is tested twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wend.base.zero import ZERO
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.rewrite import rebuild_graph, rename_dims, with_operands
from wend.ir.types import Dim, MaybeType, Symbol, substitute, without_maybe
from wend.ops import (
    creating,
    maybe,
    shaping,
)
from wend.ops.build import Build
from wend.ops.control import PREDICATE, IfParts, if_
from wend.passes.specialize_zeros import reinfer_types, specializer
from wend.passes.zero_interpreter import State

# Operations moved into the branches if one of their operands is a maybe that the `if` gives.
_SINKABLE = {maybe.autograd_add, maybe.instantiate, maybe.any_nonzero, shaping.refine}


def merge_ifs(graph: Graph) -> Graph:
    """Merge `if` nodes on one selector, in regions too."""
    if if_ not in graph.ops:
        return graph
    b = Build(graph.name)
    mapping: dict[Value, Value] = {}
    dims: dict[Symbol, Dim] = {}
    pending: list[_MergedIf] = []
    region_results: list[tuple[Value, Value]] = []  # results of regions, old and new
    for node in graph.nodes:
        accepting = next((merged for merged in pending if merged.accepts(node, mapping)), None)
        is_relevant = pending or node.op is if_
        is_effect = is_relevant and (node.op.effect is not Effect.NONE or _has_effects(node))
        for merged in [
            merged
            for merged in pending
            if merged is not accepting and (merged.feeds(node) or (is_effect and merged.may_fail()))
        ]:
            merged.emit(b, mapping, dims)
            pending.remove(merged)
        if accepting is not None:
            accepting.add(node, mapping)
        elif node.op is if_ and not is_effect:
            pending.append(_MergedIf(node, mapping))
        else:
            regions = [merge_ifs(region) for region in node.regions]
            for old, new in zip(node.regions, regions, strict=True):
                region_results += zip(old.results, new.results, strict=True)
            copy = with_operands(node, [mapping.get(v, v) for v in node.operands], regions, dims)
            b.nodes.append(copy)
            mapping.update(zip(node.results, copy.results, strict=True))
    for merged in pending:
        merged.emit(b, mapping, dims)
    results = tuple(mapping.get(value, value) for value in graph.results)
    rewritten = rebuild_graph(graph, graph.params, b.nodes, results)
    return (
        reinfer_types(rewritten)
        if _has_narrowed([*mapping.items(), *region_results])
        else rewritten
    )


def _has_narrowed(pairs: Iterable[tuple[Value, Value]]) -> bool:
    """Return whether a maybe has become a plain value, so that its users' types are stale."""
    return any(
        isinstance(old.type, MaybeType) and not isinstance(new.type, MaybeType)
        for old, new in pairs
    )


class _MergedIf:
    """An `if` under construction, with the state of its values in each branch."""

    def __init__(self, first: Node, mapping: Mapping[Value, Value]) -> None:
        self.source = first.source
        self.selector = mapping.get(first.operands[0], first.operands[0])
        self.branches = [Build(branch.name) for branch in IfParts.of(first).branches]
        self.runs = [specializer() for _ in self.branches]
        self.states: list[dict[Value, State]] = [{} for _ in self.branches]
        self.operands: list[Value] = []
        self.results: dict[Value, None] = {}
        self.add(first, mapping)

    def feeds(self, node: Node) -> bool:
        return any(operand in self.results for operand in node.operands)

    def may_fail(self) -> bool:
        """Return whether an error may come from it, which comes before later effects."""
        nodes = (n for b in self.branches for n in b.finish([]).walk())
        return any(node.op.may_fail(node) for node in nodes)

    def accepts(self, node: Node, mapping: Mapping[Value, Value]) -> bool:
        """Return whether a node belongs in the branches."""
        if node.op is if_:
            selector = mapping.get(node.operands[0], node.operands[0])
            same = selector is self.selector or self._is_selector(selector)
            return same and len(node.regions) == len(self.branches) and not _has_effects(node)
        is_result = [operand in self.results for operand in node.operands]
        if node.op is maybe.any_nonzero:
            return all(is_result)
        return node.op in _SINKABLE and any(
            is_local and isinstance(operand.type, MaybeType)
            for is_local, operand in zip(is_result, node.operands, strict=True)
        )

    def _is_selector(self, value: Value) -> bool:
        """Return whether a result is the selector again: false in branch 0, true in branch 1."""
        if value not in self.results or not value.type == self.selector.type == PREDICATE:
            return False
        return [_constant_of(states[value]) for states in self.states] == [False, True]

    def add(self, node: Node, mapping: Mapping[Value, Value]) -> None:
        """Run a node in each branch."""
        operands = node.operands[1:] if node.op is if_ else node.operands
        for operand in operands:
            if operand not in self.states[0]:
                self._add_operand(operand, mapping.get(operand, operand))
        for k, (b, run, states) in enumerate(
            zip(self.branches, self.runs, self.states, strict=True)
        ):
            b.source = node.source
            operand_states = [states[operand] for operand in operands]
            if node.op is if_:
                results = run.splice(b, IfParts.of(node).branches[k], operand_states)
            else:
                results = [*run.node(b, node, operand_states, {})]
            states.update(zip(node.results, results, strict=True))
        self.results.update(dict.fromkeys(node.results))

    def _add_operand(self, old: Value, new: Value) -> None:
        """Add an outer value as an operand; the selector itself is a constant in each branch."""
        is_selector = new is self.selector
        if not is_selector:
            self.operands.append(new)
        for k, (b, states) in enumerate(zip(self.branches, self.states, strict=True)):
            constant = b.constant(k, new.tensor.dtype) if is_selector else None
            states[old] = b.param(new.type, new.name) if constant is None else constant

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
        new_results = b.if_(self.selector, self.operands, graphs).results
        for old, new in zip(results, new_results, strict=True):
            if old.node is not None and old.node.op is if_:
                mapping[old] = new
                rename_dims(dims, [old], [new])
            else:
                # Its sizes may have names that the `if` cannot know.
                type = substitute(old.type, dims)
                is_maybe = isinstance(new.type, MaybeType)
                mapping[old] = b.refine(new, type if is_maybe else without_maybe(type))


def _constant_of(state: State) -> object:
    """Return the number that a state is known to be."""
    node = state.node if isinstance(state, Value) else None
    return node.attrs["value"][()] if node is not None and node.op is creating.constant else None


def _has_effects(node: Node) -> bool:
    """Return whether a node has effects: then it keeps its place in their order."""
    return any(region.effects() for region in node.regions)
