"""Replaces operations that have no emitter by others that do, so that Python need not run them.

Also those that are faster as others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from wend.backends.native.expand import complexes, exponents, matrices
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.rewrite import rewrite_nodes, with_operands
from wend.ops.build import Build

# (builder, node, operands) → results, or None where the node stays as it is
Expand: TypeAlias = Callable[[Any, Node, Sequence[Value]], Sequence[Value] | None]

_ALL_RULES = (matrices.RULES, complexes.RULES, exponents.RULES)
RULES: Mapping[Op, Sequence[Expand]] = {
    op: [rules[op] for rules in _ALL_RULES if op in rules] for rules in _ALL_RULES for op in rules
}


def expand_operations(graph: Graph) -> Graph:
    """Expand nodes, in regions too, and what they expand to."""
    if graph.ops.isdisjoint(RULES):
        return graph
    b = Build(graph.name)

    def rewrite(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        for rule in RULES.get(node.op, ()):
            start = len(nodes)
            b.nodes, b.source = nodes, node.source
            results = rule(b, node, operands)
            if results is not None:
                expanded, nodes[start:] = nodes[start:], []
                return _expand_all(nodes, expanded, results)
        nodes.append(with_operands(node, operands, list(map(expand_operations, node.regions))))
        return nodes[-1].results

    def _expand_all(
        nodes: list[Node], expanded: Sequence[Node], results: Sequence[Value]
    ) -> Sequence[Value]:
        copies: dict[Value, Value] = {}
        for node in expanded:
            new_results = rewrite(nodes, node, [copies.get(v, v) for v in node.operands])
            copies.update(zip(node.results, new_results, strict=True))
        return [copies.get(value, value) for value in results]

    return rewrite_nodes(graph, rewrite)
