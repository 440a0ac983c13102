"""Frame states: contents of changed arguments, for the error that ends a run (D36).

A frame state stands before the operations that may fail. It costs a run nothing: a backend reads
its operands where such an operation has failed, and the caller writes them back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from wend.base.errors import TypeMismatchError
from wend.ir.graph import Graph, Node
from wend.ir.op import Effect, Op, no_gradient
from wend.ir.types import TOKEN, Shape, TokenType, Type

# Stands among the numbers of arguments for the number of the element that `vmap` is at; lower
# numbers are of arrays in containers of the caller
ELEMENT = -1


def _infer_frame_state(
    token: Type, *contents: Type, written: Sequence[int], shapes: Sequence[Shape | None] = ()
) -> TokenType:
    if token != TOKEN:
        raise TypeMismatchError(f"the first operand must be a token, not {token}")
    return TOKEN


# The contents of the arguments numbered `written`. Where there are `shapes`, an array that has one
# is passed by its elements.
frame_state = Op(
    "frame_state",
    _infer_frame_state,
    lambda token, *contents, **attrs: token,
    no_gradient(),
    effect=Effect.CHECK,
)


def contents_of(node: Node, values: Sequence[Any]) -> Mapping[int, Any]:
    """Return the contents of the changed arguments, by number, from the operands of a state."""
    written = node.attrs["written"]
    shapes = node.attrs.get("shapes") or [None] * len(written)
    remaining = zip(node.operands[1:], values[1:], strict=True)
    return {
        k: next(remaining)[1] if shape is None else _assembled(remaining, shape)
        for k, shape in zip(written, shapes, strict=True)
    }


def _assembled(pairs: Iterator[tuple[Any, Any]], shape: Shape) -> np.ndarray:
    """Return an array made of the next elements of a frame state."""
    count = int(np.prod(shape))  # type: ignore[arg-type]
    elements = [next(pairs) for _ in range(count)]
    dtype = elements[0][0].tensor.dtype
    return np.array([x for _, x in elements], dtype).reshape(shape)  # type: ignore[arg-type]


def may_fail(node: Node) -> bool:
    """Return whether a run of a node, or of its regions, may end with an error."""
    if node.op.may_fail(node) or node.op.effect is Effect.WORLD:
        return True
    return any(may_fail(inner) for region in node.regions for inner in region.nodes)


def current_states(graph: Graph) -> Mapping[int, Node]:
    """Return the frame state of each node of a region that may fail, by the node's position."""
    states: dict[int, Node] = {}
    state: Node | None = None
    for position, node in enumerate(graph.nodes):
        if node.op is frame_state:
            state = node
        elif state is not None and may_fail(node):
            states[position] = state
    return states
