"""Nodes of a graph that become a region of one node, and the errors of those that cannot."""

from __future__ import annotations

from collections.abc import Collection
from typing import NoReturn

from wend.base.errors import GraphError, explain
from wend.base.source import at
from wend.ir.graph import Node, Value


def ancestors(nodes: Collection[Node], within: Collection[Node]) -> set[Node]:
    """Return the nodes among some that others need, these included."""
    members = within if isinstance(within, set) else {*within}
    needed, stack = {*nodes}, [*nodes]
    while stack:
        for x in stack.pop().operands:
            if x.node is not None and x.node in members and x.node not in needed:
                needed.add(x.node)
                stack.append(x.node)
    return needed


def check_equal_types(what: str, value: Value, other: Value) -> None:
    """Check that a value may stand for another one.

    Raises:
        GraphError: their types differ.
    """
    if value.type != other.type:
        fail(f"{what} {name_of(other)} is {other.type}, and {name_of(value)} {value.type}")


def name_of(value: Value) -> str:
    """Return how messages name a value: by its name, or by the node that gives it."""
    if value.name:
        return f"`{value.name}`"
    return "a param" if value.node is None else f"the result of {text_of(value.node)}"


def text_of(node: Node) -> str:
    """Return how messages name a node: by its operation and the user's line."""
    return f"{node.op.name}{at(node.source)}"


def fail(text: str, cure: str | None = None) -> NoReturn:
    """Raise the error for nodes that are no region.

    Raises:
        GraphError: always.
    """
    raise GraphError(explain(f"{text}.", cure=cure))
