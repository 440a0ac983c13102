"""A backward graph under construction, and the forward values that it reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.rewrite import copy_nodes
from wend.ops import shaping
from wend.ops.build import Build
from wend.ops.creating import is_constant

_SHAPE_READS = (shaping.shape_of, shaping.dim_of)


class BackwardBuild(Build):
    """A builder of a backward graph.

    Shapes of forward values are read in the forward pass, and only the sizes are kept:
    `forward_shape_reads` are the nodes that do so, to be appended to the forward graph. The body of
    a linear block delegates these to its `outer` builder.
    """

    def __init__(self, name: str, outer: BackwardBuild | None = None) -> None:
        super().__init__(name)
        self.outer = outer
        self.forward_shape_reads: list[Node] = []
        self._backward_values: set[Value] = set()
        self._shape_reads: dict[tuple[Any, ...], Value] = {}

    def param(self, type: Any, name: str | None = None) -> Value:
        value = super().param(type, name)
        self._backward_values.add(value)
        return value

    def emit_node(self, op: Op, operands: Sequence[Value], *args: Any, **attrs: Any) -> Node:
        if op in _SHAPE_READS and operands[0] not in self._backward_values:
            return self._read_forward_shape(op, operands[0], attrs)
        node = super().emit_node(op, operands, *args, **attrs)
        self._backward_values.update(node.results)
        return node

    def _read_forward_shape(self, op: Op, x: Value, attrs: Mapping[str, Any]) -> Node:
        if self.outer is not None:
            return self.outer.emit_node(op, [x], **attrs)
        key = (op, x, *sorted(attrs.items()))
        if key not in self._shape_reads:
            node = Build.emit_node(self, op, [x], **attrs)
            self.nodes.remove(node)
            self.forward_shape_reads.append(node)
            self._shape_reads[key] = node.results[0]
        shape_read = self._shape_reads[key].node
        assert shape_read is not None
        return shape_read

    def is_backward(self, value: Value) -> bool:
        """Return whether a value belongs to the backward graph, not to the forward one."""
        return value in self._backward_values


def is_shape_read(node: Node) -> bool:
    """Return whether a node reads sizes of an array, of known rank."""
    return node.op in _SHAPE_READS and node.results[0].tensor.is_static


def forward_reads(b: BackwardBuild, results: Iterable[Value]) -> list[Value]:
    """Return the forward values that a backward graph reads, in order of first use."""
    reads = dict.fromkeys(operand for node in b.nodes for operand in node.operands)
    reads.update(dict.fromkeys(results))
    return [value for value in reads if not b.is_backward(value)]


def build_backward_graph(
    b: BackwardBuild, first: Sequence[Value], then: Sequence[Value], results: Sequence[Value]
) -> Graph:
    """Return the graph from forward values and cotangents to `results`; constants are copied in."""
    out = Build(b.name)
    mapping = {value: out.param(value.type) for value in (*first, *then)}
    constants = [value for value in forward_reads(b, results) if is_constant(value)]
    out.nodes += copy_nodes([value.node for value in constants if value.node], mapping)
    out.nodes += copy_nodes(b.nodes, mapping)
    return out.finish([mapping[value] for value in results])
