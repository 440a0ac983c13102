"""Identities of arithmetic, of logic and of moves of elements, those that change no bit.

x + 0.0 stays (it turns −0.0 to 0.0), and so does a sum over no axes, which adds one; x·0 and x − x
stay (NaN, inf); and nothing is reassociated: what is computed is what the graph said (D21).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.rewrite import on_operands, with_nodes
from wend.ir.types import TensorType
from wend.ops import contracting, creating, elementwise, shaping, updating
from wend.ops.build import Build

# Is given a builder, a node and its operands; gives a value there is, or one of a node that it has
# just appended; or None: it does not apply.
Rule: TypeAlias = Callable[[Build, Node, Sequence[Value]], Value | None]

_HIGHEST_POWER = 64  # from which on a loop is shorter than what a product is made of


def algebra(graph: Graph) -> Graph:
    """Replace nodes by simpler ones of equal value, in regions too."""
    b, uses = Build(graph.name), _uses(graph)

    def put(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        b.nodes = nodes
        if node.op is shaping.transpose and uses[node.operands[0]] == 1:
            b.source = node.source
            found = _of_turned_product(b, operands[0], node.attrs["perm"])
            if found is not None:
                return (found,)
        return _simplified(b, node, operands)

    return with_nodes(graph, put)


def _uses(graph: Graph) -> Counter[Value]:
    """How often each value is taken."""
    taken = (node.operands for node in graph.nodes)
    return Counter(chain(chain.from_iterable(taken), graph.results))


def _simplified(b: Build, node: Node, operands: Sequence[Value]) -> tuple[Value, ...]:
    """Append what stands for a node, and return its results."""
    b.source = node.source
    copy = on_operands(node, operands, [algebra(region) for region in node.regions])
    found = _simpler(b, copy)
    if found is not None:
        return (found,)
    b.nodes.append(copy)
    return copy.results


def _simpler(b: Build, node: Node) -> Value | None:
    """What a rule makes of a node, and rules of that; None: there is nothing to do."""
    rule, there = RULES.get(node.op), len(b.nodes)
    found = None if rule is None else rule(b, node, node.operands)
    if found is None:
        return None
    new = b.nodes[there:]
    if found.type != node.results[0].type:  # its sizes have other names
        del b.nodes[there:]
        return None
    if not new:
        return found
    again = _simpler(b, b.nodes.pop())
    if again is None:
        b.nodes.append(new[-1])
    return found if again is None else again


# What values are made of
def _operands_of(value: Value, op: Op) -> tuple[Value, ...] | None:
    """The operands of the node that made a value, if it is of this operation."""
    node = value.node
    return node.operands if node is not None and node.op is op else None


def _attr_of(value: Value, name: str) -> Any:
    assert value.node is not None
    return value.node.attrs[name]


def _number(value: Value) -> Any:
    """The real number that every element of a value is, if that is known."""
    while (node := value.node) is not None and node.op in (shaping.broadcast_to, shaping.reshape):
        value = node.operands[0]
    if node is None or node.op is not creating.constant:
        return None
    array = np.asarray(node.attrs["value"])
    if not array.size or array.dtype.kind == "c":  # of 1 + 0j the product may be another NaN
        return None
    first = array.flat[0]
    alike = array.tobytes() == first.tobytes() * array.size
    return first if alike else None


def _is(value: Value, number: float) -> bool:
    """Whether every element is a number; 0.0 and −0.0 are two."""
    found = _number(value)
    return found is not None and found == number and np.signbit(found) == np.signbit(number)


# Arithmetic
def _add(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    x, y = operands
    neutral = -0.0 if _is_inexact(x) else 0
    if _is(y, neutral):
        return x
    if _is(x, neutral):
        return y
    if (negated := _operands_of(y, elementwise.neg)) is not None:
        return b.sub(x, negated[0])
    if (negated := _operands_of(x, elementwise.neg)) is not None:
        return b.sub(y, negated[0])
    return None


def _sub(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    x, y = operands
    if _is(y, 0.0):
        return x
    negated = _operands_of(y, elementwise.neg)
    return None if negated is None else b.add(x, negated[0])


def _mul(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    for x, y in (operands, operands[::-1]):
        if _is(y, 1):
            return x
        if _is(y, -1):
            return b.neg(x)
    return _both_negated(b.mul, operands)


def _div(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    x, y = operands
    if _is(y, 1):
        return x
    return b.neg(x) if _is(y, -1) else _both_negated(b.div, operands)


def _pow(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    """A whole power of integers is a product: of squares, for each bit of the exponent."""
    x, y = operands
    exponent = _number(y) if x.tensor.dtype.kind in "iu" else None
    if exponent is None or not 0 < exponent <= _HIGHEST_POWER:
        return None
    found = x
    for bit in f"{int(exponent):b}"[1:]:
        found = b.mul(found, found)
        if bit == "1":
            found = b.mul(found, x)
    return found


def _both_negated(make: Callable[[Value, Value], Value], operands: Sequence[Value]) -> Value | None:
    x, y = (_operands_of(operand, elementwise.neg) for operand in operands)
    # The parts of a product of complex numbers would be summed with other signs of zero.
    if x is None or y is None or x[0].tensor.dtype.kind == "c":
        return None
    return make(x[0], y[0])


def _is_inexact(value: Value) -> bool:
    return value.tensor.dtype.kind in "fc"


def _undone(op: Op) -> Rule:
    """f(f(x)) is x."""

    def rule(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
        inner = _operands_of(operands[0], op)
        return None if inner is None else inner[0]

    return rule


def _of_equals(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    """f(x, x) is x."""
    return operands[0] if operands[0] is operands[1] else None


# Logic and choice
def _logic(neutral: bool) -> Rule:
    """`and` with True, `or` with False; either with a value that decides."""

    def rule(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
        if operands[0].tensor.dtype.kind == "b":
            for x, y in (operands, operands[::-1]):
                number = _number(y)
                if number is not None:
                    return x if bool(number) == neutral else y
        return _of_equals(b, node, operands)

    return rule


def _select(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    pred, x, y = operands
    if x is y:
        return x
    chosen = _number(pred)
    if chosen is not None:
        return x if chosen else y
    negated = _operands_of(pred, elementwise.bit_not)
    return None if negated is None else b.select(negated[0], y, x)


# Types
def _cast(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    (x,), dtype = operands, node.attrs["dtype"]
    if x.tensor.dtype == dtype:
        return x
    inner = _operands_of(x, elementwise.cast)
    if inner is None or not _is_exact(inner[0].tensor.dtype, x.tensor.dtype):
        return None
    return inner[0] if inner[0].tensor.dtype == dtype else b.cast(inner[0], dtype)


def _is_exact(source: np.dtype, target: np.dtype) -> bool:
    """Whether a cast keeps every value; NumPy calls that of i64 to f64 safe as well."""
    if source.kind in "iu" and target.kind in "fc" and source.itemsize >= _real_bytes(target):
        return False
    return np.can_cast(source, target, "safe")


def _real_bytes(dtype: np.dtype) -> int:
    """The bytes of a number, of a complex one those of its real part."""
    return dtype.itemsize // (2 if dtype.kind == "c" else 1)


# Moves of elements. What has the type that it is given, sizes by name included, moves nothing.
def _same_type(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    type = operands[0].type
    is_known = isinstance(type, TensorType) and type.shape is not None
    return operands[0] if is_known and type == node.results[0].type else None


def _onto(op: Op) -> Rule:
    """f(f(x)) is f(x), where sizes are numbers."""

    def rule(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
        inner, target = _operands_of(operands[0], op), node.results[0].tensor
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
    if (inner := _operands_of(x, shaping.transpose)) is not None:
        first = _attr_of(x, "perm")
        return b.transpose(inner[0], perm=tuple(first[axis] for axis in perm))
    return None


def _of_turned_product(b: Build, product: Value, perm: tuple[int, ...]) -> Value | None:
    """(x·y)ᵀ is y·x: what is free in x comes last, as the move wants it.

    The rest of the move, if there is one, keeps rows together. Of a product that others take as
    well there would be two.
    """
    operands = _operands_of(product, contracting.dot_general)
    if operands is None or not perm:
        return None
    contract, batch = _attr_of(product, "contract"), _attr_of(product, "batch")
    shared, rank = len(batch[0]), len(perm)
    mine = len(operands[0].tensor.dims) - shared - len(contract[0])
    if not shared <= perm[-1] < shared + mine:
        return None
    turned = b.dot_general(*operands[::-1], contract=contract[::-1], batch=batch[::-1])
    order = (*range(shared), *range(shared + mine, rank), *range(shared, shared + mine))
    rest = tuple(order.index(axis) for axis in perm)
    return turned if rest == tuple(range(rank)) else b.transpose(turned, perm=rest)


def _dot_general(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    """A product of transposed arrays is one of the arrays, along other axes."""
    xs, contract, batch = [*operands], [*node.attrs["contract"]], [*node.attrs["batch"]]
    for k, operand in enumerate(operands):
        inner = _operands_of(operand, shaping.transpose)
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
    """What replaces all of an array stands for it."""
    is_all = all(bounds == (None, None, None) for bounds in node.attrs["slices"])
    return operands[1] if is_all else None


# Sizes
_ELEMENTWISE = {op for op in vars(elementwise).values() if isinstance(op, Op)}


def _as_large(value: Value, *, is_spread: bool) -> Value:
    """A value of the same sizes that is there before; rather one that is broadcast, or rather not.

    What is broadcast to sizes of the run has been given these.
    """
    while (node := value.node) is not None and (
        node.op in _ELEMENTWISE or node.op is shaping.refine
    ):
        broadcast = [_operands_of(v, shaping.broadcast_to) is not None for v in node.operands]
        value = node.operands[broadcast.index(is_spread) if is_spread in broadcast else 0]
    return value


def _shape_of(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    """Sizes are those of what a value is computed from, which then need not be in memory."""
    source = _as_large(operands[0], is_spread=True)
    inner = _operands_of(source, shaping.broadcast_to)
    if inner is not None and len(inner) == 2:
        return inner[1]
    return None if source is operands[0] else b.shape_of(source)


def _dim_of(b: Build, node: Node, operands: Sequence[Value]) -> Value | None:
    source = _as_large(operands[0], is_spread=False)
    return None if source is operands[0] else b.emit(shaping.dim_of, source, **node.attrs)


RULES: Mapping[Op, Rule] = {
    elementwise.add: _add,
    elementwise.sub: _sub,
    elementwise.mul: _mul,
    elementwise.div: _div,
    elementwise.pow: _pow,
    elementwise.neg: _undone(elementwise.neg),
    elementwise.conj: _undone(elementwise.conj),
    elementwise.maximum: _of_equals,
    elementwise.minimum: _of_equals,
    elementwise.bit_and: _logic(neutral=True),
    elementwise.bit_or: _logic(neutral=False),
    elementwise.bit_not: _undone(elementwise.bit_not),
    elementwise.select: _select,
    elementwise.cast: _cast,
    elementwise.stop_gradient: lambda b, node, operands: operands[0],
    shaping.transpose: _transpose,
    shaping.reshape: _onto(shaping.reshape),
    shaping.broadcast_to: _onto(shaping.broadcast_to),
    shaping.sum_to: _same_type,
    shaping.refine: _same_type,
    shaping.concat: _concat,
    updating.set_slice: _set_slice,
    shaping.shape_of: _shape_of,
    shaping.dim_of: _dim_of,
    contracting.dot_general: _dot_general,
}
