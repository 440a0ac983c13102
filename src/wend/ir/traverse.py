"""Walks over graphs: who uses a value, what a value depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from wend.ir.graph import Graph, Node, Value


def use_counts(graph: Graph) -> dict[Value, int]:
    """How often each value is read by this graph's own nodes and results (regions are closed)."""
    counts: dict[Value, int] = {}
    for node in graph.nodes:
        for operand in node.operands:
            counts[operand] = counts.get(operand, 0) + 1
    for result in graph.results:
        counts[result] = counts.get(result, 0) + 1
    return counts


def needed_nodes(nodes: Iterable[Node], wanted: Iterable[Value]) -> list[Node]:
    """The nodes that the wanted values depend on, in program order."""
    needed = set(wanted)
    kept = []
    for node in reversed(list(nodes)):
        if any(result in needed for result in node.results):
            kept.append(node)
            needed.update(node.operands)
    return kept[::-1]


def reached_values(graph: Graph, sources: Iterable[Value]) -> set[Value]:
    """Every value that depends on one of the sources, the sources included."""
    reached = set(sources)
    for node in graph.nodes:
        if any(operand in reached for operand in node.operands):
            reached.update(node.results)
    return reached


def operands_first(
    wanted: Iterable[Value], operands: Callable[[Value], Iterable[Value]]
) -> Iterator[Value]:
    """Each value once, after those that `operands` names for it. Long chains do no harm."""
    seen: set[Value] = set()
    for root in wanted:
        if root in seen:
            continue
        seen.add(root)
        path = [(root, iter(operands(root)))]
        while path:
            value, rest = path[-1]
            operand = next((operand for operand in rest if operand not in seen), None)
            if operand is None:
                path.pop()
                yield value
            else:
                seen.add(operand)
                path.append((operand, iter(operands(operand))))
