"""Lists of small arrays: which of them are split into one list per element, and their rules.

Lists that flow into one another have the same form. They stay lists of arrays if one of them is a
param or result of the graph, or is used by an operation that needs whole elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from wend.backends.native.analysis.list_uses import is_new_list
from wend.backends.native.scalarize.rule import ExpansionRule
from wend.backends.native.scalarize.scope import ScalarElements, ScalarScope
from wend.backends.native.target.small_arrays import innermost, is_small, size
from wend.ir.dataflow import region_edges, region_flow, used_value
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.types import ListType, MaybeType, TensorType
from wend.ops import lists


class ListForms:
    """The lists of small arrays in a graph that can be split."""

    def __init__(self, graph: Graph, max_elements: int) -> None:
        self._max_elements = max_elements
        self._parent: dict[Value, Value] = {}
        self._unsplit: set[Value] = set()
        for value in (*graph.params, *graph.results):
            self._mark_unsplit(value)
        self._visit(graph)

    def is_split(self, value: Value) -> bool:
        """Return whether a list is represented by one list per element."""
        if is_new_list(value) or not self._has_small_elements(value):
            return False
        return self._root(value) not in self._unsplit

    def _has_small_elements(self, value: Value) -> bool:
        return isinstance(value.type, ListType) and is_small(
            innermost(value.type), self._max_elements
        )

    def _root(self, value: Value) -> Value:
        while (parent := self._parent.get(value, value)) is not value:
            value = parent
        return value

    def _mark_unsplit(self, value: Value) -> None:
        if isinstance(value.type, (ListType, MaybeType)) and not is_new_list(value):
            self._unsplit.add(self._root(value))

    def _unify(self, *values: Value) -> None:
        """Unify values that are one list, or a list and its elements; empty lists fit any form."""
        candidates = [v for v in values if isinstance(v.type, (ListType, MaybeType))]
        candidates = [value for value in candidates if not is_new_list(value)]
        if len({innermost(value.type) for value in candidates}) > 1:
            for value in candidates:
                self._mark_unsplit(value)
        for other in candidates[1:]:
            a, b = self._root(candidates[0]), self._root(other)
            if a is not b:
                self._parent[b] = a
                if b in self._unsplit:
                    self._unsplit.add(a)

    def _visit(self, graph: Graph) -> None:
        for node in graph.nodes:
            self._unify_node(node)
            for region in node.regions:
                self._visit(region)

    def _unify_node(self, node: Node) -> None:
        if region_edges(node):
            for use, value in region_flow(node):
                self._unify(used_value(use), value)
        elif node.op in RULES:
            self._unify(*node.results, *node.operands)
        else:
            for value in (*node.operands, *node.results):
                if node.op is not lists.list_new:
                    self._mark_unsplit(value)
            for region in node.regions:
                for value in (*region.params, *region.results):
                    self._mark_unsplit(value)


def list_of(node: Node) -> Value | None:
    """Return the list that an operation is about, or None if it only has empty ones."""
    candidates = (v for v in (*node.results, *node.operands) if isinstance(v.type, ListType))
    return next((value for value in candidates if not is_new_list(value)), None)


def _expand(scope: ScalarScope, node: Node) -> Sequence[ScalarElements]:
    """Apply the operation to the list of each element."""
    count = _num_elements(node)
    operands = [
        scope.elements(value) if _is_split_operand(value) else (scope.whole(value),) * count
        for value in node.operands
    ]
    nodes = [scope.b.emit_node(node.op, xs, **node.attrs) for xs in zip(*operands, strict=True)]
    return list(zip(*(node_copy.results for node_copy in nodes), strict=True))


def _expand_length(scope: ScalarScope, node: Node) -> Sequence[ScalarElements]:
    return [(scope.b.list_len(scope.elements(node.operands[0])[0]),)]


# Conversions between lists and arrays: one column per element
def _expand_stack(scope: ScalarScope, node: Node) -> Sequence[ScalarElements]:
    b, (result,) = scope.b, node.results
    length, *row_dims = result.tensor.dims
    dtype, none = result.tensor.dtype, b.constant([], np.int64)
    columns = []
    for column in scope.elements(node.operands[0]):
        stacked = b.emit(node.op, column, none, dtype=dtype)
        columns.append(b.refine(b.reshape(stacked, (-1, 1)), TensorType(dtype, (length, 1))))
    rows = b.reshape(b.concat(*columns, axis=1), (-1, *row_dims))
    return [(b.refine(rows, result.type),)]


def _expand_unstack(scope: ScalarScope, node: Node) -> Sequence[ScalarElements]:
    b, count = scope.b, _num_elements(node)
    rows = b.reshape(scope.whole(node.operands[0]), (-1, count))
    columns = (b.part(rows, k, k + 1) for k in range(count))
    return [tuple(b.list_unstack(b.reshape(column, (-1,))) for column in columns)]


def _is_split_operand(value: Value) -> bool:
    """Return whether an operand is a list or an element, as opposed to an index."""
    return isinstance(value.type, ListType) or is_small(value.type)


def _num_elements(node: Node) -> int:
    list_value = list_of(node)
    assert list_value is not None
    return size(innermost(list_value.type))


RULES: Mapping[Op, ExpansionRule] = {
    **{
        op: ExpansionRule(_expand, cost=_num_elements)
        for op in (
            *(lists.list_push, lists.list_pop, lists.list_get, lists.list_set, lists.list_add_at),
            *(lists.list_zeros, lists.list_add),
        )
    },
    lists.list_len: ExpansionRule(_expand_length),
    lists.list_stack: ExpansionRule(_expand_stack, cost=_num_elements),
    lists.list_unstack: ExpansionRule(_expand_unstack, cost=_num_elements),
}
