"""Walks over graphs: who uses a value, what a value depends on."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence

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


def backward_slice(wanted: Iterable[Value], at_hand: Container[Value]) -> list[Node]:
    """The nodes to run, in order, to have every wanted value from those at hand.

    Raises:
        ValueError: a value depends on a param that is not at hand.
    """

    def operands(value: Value) -> Sequence[Value]:
        if value in at_hand:
            return ()
        if value.node is None:
            raise ValueError(f"{value!r} is not at hand, and no node gives it")
        return value.node.operands

    needed = (value for value in operands_first(wanted, operands) if value not in at_hand)
    return list(dict.fromkeys(value.node for value in needed if value.node is not None))
