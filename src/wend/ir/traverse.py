"""Traversals of graphs: uses, forward reachability, backward slices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

from wend.ir.graph import Graph, Node, Value


def use_counts(graph: Graph) -> dict[Value, int]:
    """Count the uses of each value by the graph's own nodes and results (regions are closed)."""
    counts: dict[Value, int] = {}
    for node in graph.nodes:
        for operand in node.operands:
            counts[operand] = counts.get(operand, 0) + 1
    for result in graph.results:
        counts[result] = counts.get(result, 0) + 1
    return counts


def users_of(nodes: Iterable[Node]) -> Mapping[Value, Sequence[Node]]:
    """Return the nodes that use each value, in order and each once; none of other values."""
    users: dict[Value, list[Node]] = defaultdict(list)
    for node in nodes:
        for operand in dict.fromkeys(node.operands):
            users[operand].append(node)
    return users


def reached_values(graph: Graph, sources: Iterable[Value]) -> set[Value]:
    """Return the values that depend on one of the sources, the sources included."""
    reached = set(sources)
    for node in graph.nodes:
        if any(operand in reached for operand in node.operands):
            reached.update(node.results)
    return reached


def operands_first(
    roots: Iterable[Value], operands: Callable[[Value], Iterable[Value]]
) -> Iterator[Value]:
    """Yield each value once, in post-order of `operands`; iterative, so long chains are safe."""
    seen: set[Value] = set()
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        path = [(root, iter(operands(root)))]
        while path:
            value, pending = path[-1]
            operand = next((operand for operand in pending if operand not in seen), None)
            if operand is None:
                path.pop()
                yield value
            else:
                seen.add(operand)
                path.append((operand, iter(operands(operand))))


def backward_slice(roots: Iterable[Value], available: Container[Value]) -> list[Node]:
    """Return the nodes to run, in order, to compute the roots from the available values.

    Raises:
        ValueError: a value depends on a param that is not available.
    """

    def operands(value: Value) -> Sequence[Value]:
        if value in available:
            return ()
        if value.node is None:
            raise ValueError(f"{value!r} is not at hand, and no node gives it")
        return value.node.operands

    needed = (value for value in operands_first(roots, operands) if value not in available)
    return list(dict.fromkeys(value.node for value in needed if value.node is not None))
