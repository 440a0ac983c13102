"""Algebraic simplification: identities of arithmetic, logic and data movement that change no bit.

Excluded are x + 0.0 (it turns −0.0 into 0.0), a sum over no axes (it adds such a zero), and x·0
and x − x (NaN, inf). Nothing is reassociated: the result is what the graph says (D21).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.rewrite import rewrite_nodes, with_operands
from wend.ir.types import TensorType
from wend.ops import contracting, creating, elementwise, shaping, updating
from wend.ops.build import Build
from wend.ops.shapes import WHOLE

# (builder, node, operands) -> an existing value, the result of a node just appended to the
# builder, or None where the rule does not apply.
RewriteRule: TypeAlias = Callable[[Build, Node, Sequence[Value]], Value | None]

_MAX_UNROLLED_EXPONENT = 64  # beyond it a loop is shorter than the unrolled product


def algebra(graph: Graph) -> Graph:
    """Replace nodes by simpler ones of equal value, in regions too."""
    if shaping.transpose not in graph.ops and graph.ops.isdisjoint(RULES):
        return graph
    b, uses = Build(graph.name), _uses(graph)

    def simplify(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        b.nodes = nodes
        if node.op is shaping.transpose and uses[node.operands[0]] == 1:
            b.source = node.source
            transposed = _transposed_product(b, operands[0], node.attrs["perm"])
            if transposed is not None:
                return (transposed,)
        return _simplify_node(b, node, operands)

    return rewrite_nodes(graph, simplify)


def _uses(graph: Graph) -> Counter[Value]:
    """Count the uses of each value."""
    operand_lists = (node.operands for node in graph.nodes)
    return Counter(chain(chain.from_iterable(operand_lists), graph.results))


def _simplify_node(b: Build, node: Node, operands: Sequence[Value]) -> tuple[Value, ...]:
    """Append the simplified form of a node and return its results."""
    b.source = node.source
    copy = with_operands(node, operands, [algebra(region) for region in node.regions])
    result = _apply_rules(b, copy)
    if result is not None:
        return (result,)
    b.nodes.append(copy)
    return copy.results


def _apply_rules(b: Build, node: Node) -> Value | None:
    """Return the value that the rules give for a node, repeatedly applied; None if none applies."""
    rule, start = RULES.get(node.op), len(b.nodes)
    replacement = None if rule is None else rule(b, node, node.operands)
    if replacement is None:
        return None
    new = b.nodes[start:]
    if replacement.type != node.results[0].type:  # a size has another symbol
        del b.nodes[start:]
        return None
    if not new:
        return replacement
    simpler = _apply_rules(b, b.nodes.pop())
    if simpler is None:
        b.nodes.append(new[-1])
    return replacement if simpler is None else simpler


# Matching
def _match_op(value: Value, op: Op) -> tuple[Value, ...] | None:
    """Return the operands of the node that defines a value, if that is of this operation."""
    node = value.node
    return node.operands if node is not None and node.op is op else None


def _attr_of(value: Value, name: str) -> Any:
    assert value.node is not None
    return value.node.attrs[name]


def splat_value(value: Value) -> Any:
    """Return the real number that every element of a value equals, if it is known."""
    while (node := value.node) is not None and node.op in (shaping.broadcast_to, shaping.reshape):
        value = node.operands[0]
    if node is None or node.op is not creating.constant:
        return None
    array = np.asarray(node.attrs["value"])
    if not array.size or array.dtype.kind == "c":  # (1 + 0j)·z may be another NaN than z
        return None
    first = array.flat[0]
    is_uniform = array.tobytes() == first.tobytes() * array.size
    return first if is_uniform else None


def _is_splat(value: Value, number: float) -> bool:
    """Return whether every element equals a number; 0.0 and −0.0 are distinct."""
    splat = splat_value(value)
    return splat is not None and splat == number and np.signbit(splat) == np.signbit(number)


# Arithmetic
def _add(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    x, y = operands
    neutral = -0.0 if _is_inexact(x) else 0
    if _is_splat(y, neutral):
        return x
    if _is_splat(x, neutral):
        return y
    if (negated := _match_op(y, elementwise.neg)) is not None:
        return b.sub(x, negated[0])
    if (negated := _match_op(x, elementwise.neg)) is not None:
        return b.sub(y, negated[0])
    return None


def _sub(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    x, y = operands
    if _is_splat(y, 0.0):
        return x
    negated = _match_op(y, elementwise.neg)
    return None if negated is None else b.add(x, negated[0])


def _mul(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    for x, y in (operands, operands[::-1]):
        if _is_splat(y, 1):
            return x
        if _is_splat(y, -1):
            return b.neg(x)
    return _cancel_negations(b.mul, operands)


def _div(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    x, y = operands
    if _is_splat(y, 1):
        return x
    return b.neg(x) if _is_splat(y, -1) else _cancel_negations(b.div, operands)


def _pow(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    """Expand an integer power of integers into multiplications, by binary exponentiation."""
    x, y = operands
    exponent = splat_value(y) if x.tensor.dtype.kind in "iu" else None
    if exponent is None or not 0 < exponent <= _MAX_UNROLLED_EXPONENT:
        return None
    power = x
    for bit in f"{int(exponent):b}"[1:]:
        power = b.mul(power, power)
        if bit == "1":
            power = b.mul(power, x)
    return power


def _cancel_negations(
    emit: Callable[[Value, Value], Value], operands: Sequence[Value]
) -> Value | None:
    x, y = (_match_op(operand, elementwise.neg) for operand in operands)
    # A complex product sums its parts: cancelling the signs may flip the sign of a zero.
    if x is None or y is None or x[0].tensor.dtype.kind == "c":
        return None
    return emit(x[0], y[0])


def _is_inexact(value: Value) -> bool:
    return value.tensor.dtype.kind in "fc"


def _involution(op: Op) -> RewriteRule:
    """Return the rule f(f(x)) = x."""

    def rule(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
        inner = _match_op(operands[0], op)
        return None if inner is None else inner[0]

    return rule


def _idempotent(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    """Apply f(x, x) = x."""
    return operands[0] if operands[0] is operands[1] else None


# Logic and choice
def _logic(neutral: bool) -> RewriteRule:
    """Return the rule for `and` (neutral True) or `or` (neutral False) with a constant operand."""

    def rule(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
        if operands[0].tensor.dtype.kind == "b":
            for x, y in (operands, operands[::-1]):
                number = splat_value(y)
                if number is not None:
                    return x if bool(number) == neutral else y
        return _idempotent(b, node, operands)

    return rule


def _select(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    pred, x, y = operands
    if x is y:
        return x
    chosen = splat_value(pred)
    if chosen is not None:
        return x if chosen else y
    negated = _match_op(pred, elementwise.bit_not)
    return None if negated is None else b.select(negated[0], y, x)


# Types
def _cast(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    (x,), dtype = operands, node.attrs["dtype"]
    if x.tensor.dtype == dtype:
        return x
    inner = _match_op(x, elementwise.cast)
    if inner is None or not _is_exact(inner[0].tensor.dtype, x.tensor.dtype):
        return None
    return inner[0] if inner[0].tensor.dtype == dtype else b.cast(inner[0], dtype)


def _is_exact(source: np.dtype, target: np.dtype) -> bool:
    """Return whether a cast keeps every value; NumPy also calls i64 to f64 safe, which is not."""
    if source.kind in "iu" and target.kind in "fc" and source.itemsize >= _real_bytes(target):
        return False
    return np.can_cast(source, target, "safe")


def _real_bytes(dtype: np.dtype) -> int:
    """Return the item size of a dtype, of a complex one that of its real part."""
    return dtype.itemsize // (2 if dtype.kind == "c" else 1)


# Data movement. An operation whose result type equals its operand's, symbols included, is a no-op.
def _same_type(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    type = operands[0].type
    is_known = isinstance(type, TensorType) and type.shape is not None
    return operands[0] if is_known and type == node.results[0].type else None


def _composable(op: Op) -> RewriteRule:
    """Return the rule f(f(x)) = f(x), for static shapes."""

    def rule(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
        inner, target = _match_op(operands[0], op), node.results[0].tensor
        if inner is not None and len(operands) == 1 and target.is_static:
            if inner[0].type == target:
                return inner[0]
            if inner[0].tensor.is_static:
                return b.emit(op, inner[0], **node.attrs)
        return _same_type(b, node, operands)

    return rule


def _transpose(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    (x,), perm = operands, node.attrs["perm"]
    if perm == tuple(range(len(perm))):
        return x
    if (inner := _match_op(x, shaping.transpose)) is not None:
        first = _attr_of(x, "perm")
        return b.transpose(inner[0], perm=tuple(first[axis] for axis in perm))
    return None


def _transposed_product(b: Build, product: Value, perm: tuple[int, ...]) -> Value | None:
    """Rewrite (x·y)ᵀ as y·x, followed by a transpose that keeps rows contiguous if need be.

    Applied only to a product with one use: otherwise it would be computed twice.
    """
    operands = _match_op(product, contracting.dot_general)
    if operands is None or not perm:
        return None
    contract, batch = _attr_of(product, "contract"), _attr_of(product, "batch")
    shared, rank = len(batch[0]), len(perm)
    x_free = len(operands[0].tensor.dims) - shared - len(contract[0])
    if not shared <= perm[-1] < shared + x_free:
        return None
    swapped = b.dot_general(*operands[::-1], contract=contract[::-1], batch=batch[::-1])
    order = (*range(shared), *range(shared + x_free, rank), *range(shared, shared + x_free))
    remaining_perm = tuple(order.index(axis) for axis in perm)
    return (
        swapped
        if remaining_perm == tuple(range(rank))
        else b.transpose(swapped, perm=remaining_perm)
    )


def _dot_general(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    """Fold transposes of the operands into the contraction axes of a product."""
    xs, contract, batch = [*operands], [*node.attrs["contract"]], [*node.attrs["batch"]]
    for k, operand in enumerate(operands):
        inner = _match_op(operand, shaping.transpose)
        if inner is None:
            continue
        perm = _attr_of(operand, "perm")
        used = (*contract[k], *batch[k])
        free = [perm[axis] for axis in range(len(perm)) if axis not in used]
        if free == sorted(free):
            xs[k] = inner[0]
            contract[k] = tuple(perm[axis] for axis in contract[k])
            batch[k] = tuple(perm[axis] for axis in batch[k])
    if all(new is old for new, old in zip(xs, operands, strict=True)):
        return None
    return b.dot_general(*xs, contract=(contract[0], contract[1]), batch=(batch[0], batch[1]))


def _concat(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    return operands[0] if len(operands) == 1 else None


def _set_slice(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    """Replace a store to a whole array by the value stored."""
    is_all = all(bounds == WHOLE for bounds in node.attrs["slices"])
    return operands[1] if is_all else None


# Sizes
_ELEMENTWISE = {op for op in vars(elementwise).values() if isinstance(op, Op)}


def _shape_source(value: Value, *, is_spread: bool) -> Value:
    """Trace a value back to an operand of the same shape; `is_spread` prefers broadcast operands.

    Sizes known at run time only are operands of the broadcast that introduces them.
    """
    while (node := value.node) is not None and (
        node.op in _ELEMENTWISE or node.op is shaping.refine
    ):
        broadcast = [_match_op(v, shaping.broadcast_to) is not None for v in node.operands]
        value = node.operands[broadcast.index(is_spread) if is_spread in broadcast else 0]
    return value


def _shape_of(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    """Take the shape from a source of the value, which then need not be materialized."""
    source = _shape_source(operands[0], is_spread=True)
    inner = _match_op(source, shaping.broadcast_to)
    if inner is not None and len(inner) == 2:
        return inner[1]
    return None if source is operands[0] else b.shape_of(source)


def _dim_of(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    source = _shape_source(operands[0], is_spread=False)
    return None if source is operands[0] else b.emit(shaping.dim_of, source, **node.attrs)


RULES: Mapping[Op, RewriteRule] = {
    elementwise.add: _add,
    elementwise.sub: _sub,
    elementwise.mul: _mul,
    elementwise.div: _div,
    elementwise.pow: _pow,
    elementwise.neg: _involution(elementwise.neg),
    elementwise.conj: _involution(elementwise.conj),
    elementwise.maximum: _idempotent,
    elementwise.minimum: _idempotent,
    elementwise.bit_and: _logic(neutral=True),
    elementwise.bit_or: _logic(neutral=False),
    elementwise.bit_not: _involution(elementwise.bit_not),
    elementwise.select: _select,
    elementwise.cast: _cast,
    elementwise.stop_gradient: lambda b, node, operands: operands[0],
    elementwise.graft: lambda b, node, operands: operands[0],
    shaping.transpose: _transpose,
    shaping.reshape: _composable(shaping.reshape),
    shaping.broadcast_to: _composable(shaping.broadcast_to),
    shaping.sum_to: _same_type,
    shaping.refine: _same_type,
    shaping.concat: _concat,
    updating.set_slice: _set_slice,
    shaping.shape_of: _shape_of,
    shaping.dim_of: _dim_of,
    contracting.dot_general: _dot_general,
}
