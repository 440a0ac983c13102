"""Constant folding, and inlining of branches whose selector is constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wend.ir.dtypes import is_supported
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.printer import INLINE_ELEMENTS
from wend.ir.rewrite import inline, rewrite_nodes, with_operands
from wend.ir.types import MaybeType, TensorType
from wend.ops import creating, effects, shaping
from wend.ops.build import Build
from wend.ops.control import IfParts, if_
from wend.ops.shapes import size_of
from wend.passes.lane_maps import is_elementwise


def fold(graph: Graph) -> Graph:
    """Evaluate nodes whose operands are all constant, where the result is small.

    Elementwise nodes of constants that are broadcast are evaluated before the broadcast. A check
    that passes is dropped.
    """
    if creating.constant not in graph.ops:
        return graph
    b = Build(graph.name)

    def fold_node(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        b.nodes = nodes
        return _rewrite_node(b, node, operands)

    return rewrite_nodes(graph, fold_node)


def _rewrite_node(b: Build, node: Node, operands: list[Value]) -> tuple[Value, ...]:
    """Append the folded form of a node and return its results."""
    b.source = node.source
    if node.op is if_ and _constant(operands[0]) is not None:
        chosen = IfParts.of(node).branches[int(_constant(operands[0]))]  # type: ignore[arg-type]
        if not any(_is_widened(*types) for types in zip(chosen.results, node.results, strict=True)):
            pairs = zip(inline(fold(chosen), operands[1:], b.nodes), node.results, strict=True)
            return tuple(b.refine(value, result.type) for value, result in pairs)
    if node.op is effects.raise_if:
        predicate = _constant(operands[1])
        if predicate is not None and not predicate:
            return (operands[0],)
    if _is_foldable(node, operands):
        value = _evaluate(node, operands)
        if value is not None:
            return (b.constant(value, node.results[0].type.dtype),)  # type: ignore[union-attr]
    if is_elementwise(node):
        spread = _evaluate_before_broadcast(b, node, operands)
        if spread is not None:
            return (spread,)
    copy = with_operands(node, operands, [fold(region) for region in node.regions])
    b.nodes.append(copy)
    return copy.results


def _evaluate_before_broadcast(b: Build, node: Node, operands: list[Value]) -> Value | None:
    """Return the broadcast of the result for the numbers that the operands are broadcasts of.

    Without it `x ** -1.5` has a derivative with powers whose exponents are arrays.
    """
    numbers = []
    for v in operands:
        if v.node is None or v.node.op is not shaping.broadcast_to:
            return None
        numbers.append(v.node.operands[0])
    if any(_constant(x) is None or x.tensor.shape != () for x in numbers):
        return None
    value = _evaluate(node, numbers)
    if value is None:
        return None
    return b.broadcast_like(b.constant(value, node.results[0].tensor.dtype), operands[0])


def _evaluate(node: Node, operands: list[Value]) -> Any:
    """Return the result of a node; None if its kernel raises, which is left to the run."""
    assert node.op.kernel is not None
    try:
        with np.errstate(all="ignore"):
            return node.op.kernel(*(_constant(v) for v in operands), **node.attrs)
    except Exception:  # noqa: BLE001  # whatever a kernel raises
        return None


def _is_widened(inner: Value, outer: Value) -> bool:
    """Return whether a result is a maybe only because another branch does not compute it."""
    return isinstance(outer.type, MaybeType) and not isinstance(inner.type, MaybeType)


def _constant(value: Value) -> np.ndarray | None:
    node = value.node
    if node is None or node.op is not creating.constant:
        return None
    return node.attrs["value"][()]  # type: ignore[no-any-return]


def _is_foldable(node: Node, operands: list[Value]) -> bool:
    if node.regions or not operands or len(node.results) != 1:
        return False
    if node.op is shaping.broadcast_to and operands[0].tensor.shape == ():
        number = _constant(operands[0])
        if number is not None and number == 0.5:
            return False  # the power by a number, unlike one by an array of it, is a root (±0, −∞)
    if node.op.effect is not Effect.NONE or any(_constant(v) is None for v in operands):
        return False
    type = node.results[0].type
    if not isinstance(type, TensorType) or type.shape is None or not is_supported(type.dtype):
        return False
    size = size_of(type.shape)
    return size is not None and size <= INLINE_ELEMENTS
