"""Lists of small arrays: which of them become a list for each element, and what is done to these.

Lists that flow into one another have one form. They keep that of arrays where one of them is
given to the graph or by it, or where something is done that is only done to whole elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from wend.backends.native.analysis.list_uses import is_new_list
from wend.backends.native.scalarize.rule import Rule
from wend.backends.native.scalarize.scope import Elements, Scope
from wend.backends.native.target.small_arrays import innermost, is_small, size
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.types import ListType, MaybeType, TensorType
from wend.ops import lists
from wend.ops.control import IfParts, WhileParts, call, if_, while_


class Lists:
    """Which lists of a graph hold small arrays that can be taken apart."""

    def __init__(self, graph: Graph, most: int) -> None:
        self._most = most
        self._parent: dict[Value, Value] = {}
        self._kept: set[Value] = set()
        for value in (*graph.params, *graph.results):
            self._keep(value)
        self._visit(graph)

    def are_apart(self, value: Value) -> bool:
        """Whether there is a list for each element."""
        if is_new_list(value) or not self._is_of_small(value):
            return False
        return self._root(value) not in self._kept

    def _is_of_small(self, value: Value) -> bool:
        return isinstance(value.type, ListType) and is_small(innermost(value.type), self._most)

    def _root(self, value: Value) -> Value:
        while (parent := self._parent.get(value, value)) is not value:
            value = parent
        return value

    def _keep(self, value: Value) -> None:
        if isinstance(value.type, (ListType, MaybeType)) and not is_new_list(value):
            self._kept.add(self._root(value))

    def _join(self, *values: Value) -> None:
        """Values that are one list, or a list and its elements; a new list is made for any use."""
        found = [v for v in values if isinstance(v.type, (ListType, MaybeType))]
        found = [value for value in found if not is_new_list(value)]
        if len({innermost(value.type) for value in found}) > 1:
            for value in found:
                self._keep(value)
        for other in found[1:]:
            a, b = self._root(found[0]), self._root(other)
            if a is not b:
                self._parent[b] = a
                if b in self._kept:
                    self._kept.add(a)

    def _visit(self, graph: Graph) -> None:
        for node in graph.nodes:
            self._flow(node)
            for region in node.regions:
                self._visit(region)

    def _flow(self, node: Node) -> None:
        if node.op is while_:
            w = WhileParts.of(node)
            for group in zip(w.carry, w.before_carry, w.next_carry, strict=True):
                self._join(*group)
            for group in zip(w.forwarded, w.after_forwarded, node.results, strict=True):
                self._join(*group)
            for group in zip(w.invariants, w.before_invariants, w.after_invariants, strict=True):
                self._join(*group)
        elif node.op is if_ or node.op is call:
            given = IfParts.of(node).operands if node.op is if_ else node.operands
            for group in zip(given, *(region.params for region in node.regions), strict=True):
                self._join(*group)
            results = (region.results for region in node.regions)
            for group in zip(node.results, *results, strict=True):
                self._join(*group)
        elif node.op in RULES:
            self._join(*node.results, *node.operands)
        else:
            for value in (*node.operands, *node.results):
                if node.op is not lists.list_new:
                    self._keep(value)
            for region in node.regions:
                for value in (*region.params, *region.results):
                    self._keep(value)


def list_of(node: Node) -> Value | None:
    """The list that an operation is about; None where there are only new ones."""
    found = (v for v in (*node.results, *node.operands) if isinstance(v.type, ListType))
    return next((value for value in found if not is_new_list(value)), None)


def _write(scope: Scope, node: Node) -> Sequence[Elements]:
    """The same for the list of each element."""
    count = _count(node)
    given = [
        scope.elements(value) if _is_apart(value) else (scope.whole(value),) * count
        for value in node.operands
    ]
    nodes = [scope.b.emit_node(node.op, xs, **node.attrs) for xs in zip(*given, strict=True)]
    return list(zip(*(made.results for made in nodes), strict=True))


def _write_length(scope: Scope, node: Node) -> Sequence[Elements]:
    return [(scope.b.list_len(scope.elements(node.operands[0])[0]),)]


# Between lists and arrays: a column for each element
def _write_stack(scope: Scope, node: Node) -> Sequence[Elements]:
    b, (result,) = scope.b, node.results
    length, *rest = result.tensor.dims
    dtype, none = result.tensor.dtype, b.constant([], np.int64)
    columns = []
    for column in scope.elements(node.operands[0]):
        stacked = b.emit(node.op, column, none, dtype=dtype)
        columns.append(b.refine(b.reshape(stacked, (-1, 1)), TensorType(dtype, (length, 1))))
    rows = b.reshape(b.concat(*columns, axis=1), (-1, *rest))
    return [(b.refine(rows, result.type),)]


def _write_unstack(scope: Scope, node: Node) -> Sequence[Elements]:
    b, count = scope.b, _count(node)
    rows = b.reshape(scope.whole(node.operands[0]), (-1, count))
    columns = (b.part(rows, k, k + 1) for k in range(count))
    return [tuple(b.list_unstack(b.reshape(column, (-1,))) for column in columns)]


def _is_apart(value: Value) -> bool:
    """Whether an operand is a list or what is put into it, and not a position."""
    return isinstance(value.type, ListType) or is_small(value.type)


def _count(node: Node) -> int:
    found = list_of(node)
    assert found is not None
    return size(innermost(found.type))


RULES: Mapping[Op, Rule] = {
    **{
        op: Rule(_write, cost=_count)
        for op in (
            *(lists.list_push, lists.list_pop, lists.list_get, lists.list_set, lists.list_add_at),
            *(lists.list_zeros, lists.list_add),
        )
    },
    lists.list_len: Rule(_write_length),
    lists.list_stack: Rule(_write_stack, cost=_count),
    lists.list_unstack: Rule(_write_unstack, cost=_count),
}
