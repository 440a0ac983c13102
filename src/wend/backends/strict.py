"""`config(strict=True)`: bit-identical results on every backend.

IEEE 754 defines the results of + − × ÷ √ to the last bit. It does not define those of a sine, the
result of a sum depends on its order, and C leaves the conversion of negative numbers to unsigned
ones undefined. Such operations are replaced by equal ones that backends have no code for, so that
all of them run the same NumPy kernel. NumPy's own loops depend on the memory layout, so they get
contiguous operands.

The bits of a NaN stay undefined: neither IEEE 754 nor LLVM defines which NaN an operation returns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Kernel, Op, Rounding
from wend.ir.rewrite import keep_names, rewrite_nodes, with_operands
from wend.ir.types import TensorType
from wend.ops import (
    elementwise,
)


def is_underspecified(node: Node) -> bool:
    """Return whether rounding, evaluation order or C leaves the results of a node undefined."""
    kinds = {v.type.dtype.kind for v in node.operands if isinstance(v.type, TensorType)}
    is_to_unsigned = node.op is elementwise.cast and node.attrs["dtype"].kind == "u"
    if node.op.rounding is Rounding.OF_FLOATS or is_to_unsigned:
        return not kinds.isdisjoint("fc")
    return node.op.rounding is Rounding.OF_COMPLEX and "c" in kinds


def strict(graph: Graph) -> Graph:
    """Return the graph with such nodes, also those in regions, run by NumPy kernels."""

    def rewrite_node(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = with_operands(node, operands, [strict(region) for region in node.regions])
        if is_underspecified(node):
            types = [result.type for result in node.results]
            copy = Node(_as_host_op(node.op), operands, node.attrs, (), types, node.source)
            keep_names(node.results, copy.results)
        nodes.append(copy)
        return copy.results

    return rewrite_nodes(graph, rewrite_node)


@cache
def _as_host_op(op: Op) -> Op:
    """Return an operation with the same name and meaning for which no backend has code."""
    assert op.kernel is not None
    kernel = _on_contiguous_operands(_power if op is elementwise.pow else op.kernel)
    return replace(op, kernel=kernel, step=None, identity=None, cost=math.inf)


def _on_contiguous_operands(kernel: Kernel) -> Kernel:
    """Return a kernel that gets its operands as C-contiguous arrays, scalars as 0-d ones."""

    def run(*operands: Any, **attrs: Any) -> Any:
        return kernel(*(np.asarray(x, order="C") for x in operands), **attrs)

    return run


def _power(x: np.ndarray, y: np.ndarray) -> Any:
    """Return the power as NumPy computes it for one number as exponent.

    For such exponents NumPy squares and takes roots.
    """
    is_uniform = y.size > 0 and bool((y == y.flat[0]).all())
    return np.power(x, y.flat[0] if is_uniform else y)


def same_bits(x: Any, y: Any) -> bool:
    """Return whether two arrays are equal including the signs of zeros; all NaNs count as equal."""
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    if x.dtype.kind == "c":
        return same_bits(x.real, y.real) and same_bits(x.imag, y.imag)
    if x.dtype.kind != "f":
        return np.array_equal(x, y)
    signs = np.array_equal(np.signbit(x) | np.isnan(x), np.signbit(y) | np.isnan(y))
    return signs and np.array_equal(x, y, equal_nan=True)
