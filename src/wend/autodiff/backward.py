"""A backward graph under construction, and what of the forward one it reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.rewrite import copy_nodes
from wend.ops import creating, shaping
from wend.ops.build import Build


class BackwardBuild(Build):
    """A backward graph under construction.

    Sizes of forward values are read in the forward pass and kept as sizes: `forward_shape_reads`
    are the nodes that do so, to be added to the forward graph. The body of a block asks its
    `outer` one.
    """

    def __init__(self, name: str, outer: BackwardBuild | None = None) -> None:
        super().__init__(name)
        self.outer = outer
        self.forward_shape_reads: list[Node] = []
        self._own: set[Value] = set()
        self._asked: dict[tuple[Any, ...], Value] = {}

    def param(self, type: Any, name: str | None = None) -> Value:
        value = super().param(type, name)
        self._own.add(value)
        return value

    def emit_node(self, op: Op, operands: Sequence[Value], *args: Any, **attrs: Any) -> Node:
        if op in (shaping.shape_of, shaping.dim_of) and operands[0] not in self._own:
            return self._ask_forward(op, operands[0], attrs)
        node = super().emit_node(op, operands, *args, **attrs)
        self._own.update(node.results)
        return node

    def _ask_forward(self, op: Op, x: Value, attrs: Mapping[str, Any]) -> Node:
        if self.outer is not None:
            return self.outer.emit_node(op, [x], **attrs)
        key = (op, x, *sorted(attrs.items()))
        if key not in self._asked:
            node = Build.emit_node(self, op, [x], **attrs)
            self.nodes.remove(node)
            self.forward_shape_reads.append(node)
            self._asked[key] = node.results[0]
        found = self._asked[key].node
        assert found is not None
        return found

    def is_own(self, value: Value) -> bool:
        """Whether the value belongs to the backward graph, not to the forward one."""
        return value in self._own


def forward_reads(b: BackwardBuild, results: Iterable[Value]) -> list[Value]:
    """The forward values that a backward graph reads, in order of first use."""
    reads = dict.fromkeys(operand for node in b.nodes for operand in node.operands)
    reads.update(dict.fromkeys(results))
    return [value for value in reads if not b.is_own(value)]


def is_constant(value: Value) -> bool:
    """Whether a value is the same in every run: it is copied, never kept."""
    return value.node is not None and value.node.op is creating.constant


def closed(
    b: BackwardBuild, first: Sequence[Value], then: Sequence[Value], results: Sequence[Value]
) -> Graph:
    """The graph that takes forward values, cotangents or both, with constants of its own."""
    out = Build(b.name)
    mapping = {value: out.param(value.type) for value in (*first, *then)}
    constants = [value for value in forward_reads(b, results) if is_constant(value)]
    out.nodes += copy_nodes([value.node for value in constants if value.node], mapping)
    out.nodes += copy_nodes(b.nodes, mapping)
    return out.finish([mapping[value] for value in results])
