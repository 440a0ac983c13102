"""`config(strict=True)`: what rounding and C leave open is decided alike on every backend.

IEEE 754 says what + − × ÷ √ give, to the last bit. It does not say so of a sine, a sum depends on
its order, and C does not say what a negative number is as an unsigned one. Such operations become
others that backends have no code for, so all of them run one NumPy kernel; NumPy's own loops depend
on where elements lie, so it is given them side by side.

What bits a NaN has stays open: neither IEEE 754 nor LLVM says which NaN an operation gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Kernel, Op
from wend.ir.rewrite import keep_names, rewrite_nodes, with_operands
from wend.ir.types import TensorType
from wend.ops import (
    contracting,
    decompositions,
    elementwise,
    factors,
    linalg,
    random,
    reducing,
    scanning,
    shaping,
    special,
)


def ops_of(*modules: ModuleType) -> set[Op]:
    """The operations of families."""
    return {op for module in modules for op in vars(module).values() if isinstance(op, Op)}


_OF_FLOATS = {
    *(elementwise.pow, elementwise.cbrt, elementwise.exp, elementwise.exp2, elementwise.expm1),
    *(elementwise.log, elementwise.log2, elementwise.log10, elementwise.log1p),
    *(elementwise.sin, elementwise.cos, elementwise.tan),
    *(elementwise.asin, elementwise.acos, elementwise.atan, elementwise.atan2),
    *(elementwise.sinh, elementwise.cosh, elementwise.tanh),
    *(elementwise.asinh, elementwise.acosh, elementwise.atanh, elementwise.complex_abs),
    *(random.exponential_quantile, random.gumbel_quantile),
    # Extremes too: of 0.0 and −0.0 either is the larger.
    *(reducing.reduce_sum, reducing.reduce_prod, reducing.reduce_max, reducing.reduce_min),
    shaping.sum_to,
    *ops_of(special, contracting, contracting, linalg, factors, decompositions),
}
# Their products are sums.
_OF_COMPLEX = {
    *(elementwise.mul, elementwise.div, elementwise.reciprocal, elementwise.sqrt),
    *(scanning.cumprod, scanning.linear_recurrence),
}


def is_open(node: Node) -> bool:
    """Whether rounding, its order, or C leaves open what a node gives."""
    kinds = {v.type.dtype.kind for v in node.operands if isinstance(v.type, TensorType)}
    if node.op in _OF_FLOATS or (node.op is elementwise.cast and node.attrs["dtype"].kind == "u"):
        return not kinds.isdisjoint("fc")
    return node.op in _OF_COMPLEX and "c" in kinds


def strict(graph: Graph) -> Graph:
    """Let NumPy's kernels decide what is left open, in regions too."""

    def put(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = with_operands(node, operands, [strict(region) for region in node.regions])
        if is_open(node):
            types = [result.type for result in node.results]
            copy = Node(_without_code(node.op), operands, node.attrs, (), types, node.source)
            keep_names(node.results, copy.results)
        nodes.append(copy)
        return copy.results

    return rewrite_nodes(graph, put)


@cache
def _without_code(op: Op) -> Op:
    """An operation of this name and meaning that no backend knows."""
    assert op.kernel is not None
    return replace(op, kernel=_side_by_side(_power if op is elementwise.pow else op.kernel))


def _side_by_side(kernel: Kernel) -> Kernel:
    """A kernel that is given all elements side by side, numbers as arrays without axes."""

    def run(*operands: Any, **attrs: Any) -> Any:
        return kernel(*(np.asarray(x, order="C") for x in operands), **attrs)

    return run


def _power(x: np.ndarray, y: np.ndarray) -> Any:
    """NumPy squares and takes roots where it sees that exponents are one number."""
    is_one = y.size > 0 and bool((y == y.flat[0]).all())
    return np.power(x, y.flat[0] if is_one else y)


def same_bits(x: Any, y: Any) -> bool:
    """Whether two arrays are equal, with the signs of zeros; any NaN is as good as another."""
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    if x.dtype.kind == "c":
        return same_bits(x.real, y.real) and same_bits(x.imag, y.imag)
    if x.dtype.kind != "f":
        return np.array_equal(x, y)
    signs = np.array_equal(np.signbit(x) | np.isnan(x), np.signbit(y) | np.isnan(y))
    return signs and np.array_equal(x, y, equal_nan=True)
