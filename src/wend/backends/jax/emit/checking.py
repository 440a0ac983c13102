"""Checks, and assignments to variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wend.backends.jax.lowering import Emitter, GraphLowering
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import effects, state
from wend.ops.frame_states import frame_state


def _raise_if(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    _, predicate, *values = operands
    kernel, attrs = node.op.kernel, node.attrs

    def fail(noted: Sequence[Any]) -> None:
        kernel(None, np.bool_(True), *noted, **attrs)  # type: ignore[misc]

    ctx.check(node, predicate, fail, *values)
    return [None]


def _checked(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x, *predicates = operands
    check_each(ctx, node, predicates, x)
    return x


def check_each(ctx: GraphLowering, node: Node, predicates: Sequence[Any], x: Any) -> None:
    """Add the checks of a node; their messages show an operand."""
    kernel, attrs = node.op.kernel, node.attrs
    for k, predicate in enumerate(predicates):

        def fail(noted: Sequence[Any], k: int = k) -> None:
            flags = [np.bool_(j == k) for j in range(len(predicates))]
            kernel(noted[0], *flags, **attrs)  # type: ignore[misc]

        ctx.check(node, predicate, fail, x)


def _token(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    return [None]


def _after(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    return operands[0]


def _store(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    return operands[1]  # the run gives it as a result, and the executable puts it


EMITTERS: dict[Op, Emitter] = {
    effects.raise_if: _raise_if,
    effects.checked: _checked,
    effects.token: _token,
    effects.after: _after,
    frame_state: _token,
    state.store: _store,
}
