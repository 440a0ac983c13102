"""Hoisting of loads: reads of elements in branches move before the branches.

Compilers hoist a load that several branches make. Here one branch is enough, for a read that cannot
fail: before the branches, what it finds can come from the carry (`forward_stores.py`).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_nodes, lift, rewrite_nodes, with_operands
from wend.ir.traverse import backward_slice
from wend.ops.build import Build
from wend.ops.control import IfParts, if_
from wend.ops.indexing import gather
from wend.passes.hoist import may_end_run


def hoistable_reads(region: Graph) -> Mapping[Node, Node]:
    """Return reads that could stand before the branches of a region, each with the one in them."""
    reads: dict[Node, Node] = {}
    if region.ops.issuperset((if_, gather)):
        for node in region.nodes:
            _add_reads(reads, node, {x: x for x in node.operands})
    return reads


def _add_reads(reads: dict[Node, Node], node: Node, outer: Mapping[Value, Value]) -> None:
    """Add the reads in the branches of a node; `outer` has what can be computed before them."""
    if node.op is not if_:
        return
    for branch in node.regions:
        pairs = zip(branch.params, IfParts.of(node).operands, strict=True)
        computed = {param: outer[x] for param, x in pairs if x in outer}
        for inner in branch.nodes:
            _add_reads(reads, inner, computed)
            if computed.keys() >= {*inner.operands} and not (inner.regions or may_end_run(inner)):
                copy = with_operands(inner, [computed[x] for x in inner.operands])
                computed.update(zip(inner.results, copy.results, strict=True))
                if copy.op is gather and copy.results[0].tensor.shape == ():
                    reads[copy] = inner


def hoist_reads(region: Graph, reads: Container[Node]) -> Graph:
    """Return a region in which some of the reads in its branches come before them."""
    return _hoisted(region, reads)[0]


def _hoisted(region: Graph, reads: Container[Node]) -> tuple[Graph, list[Node]]:
    """Return a region in which reads come before its branches, and those reads among its nodes."""
    own: list[Node] = []

    def hoist(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        if node.op is if_:
            copy, hoisted = _without_reads(nodes, with_operands(node, operands), reads)
            own.extend(hoisted)
        else:
            copy = with_operands(node, operands)
            own.extend([copy] if node in reads else [])
        nodes.append(copy)
        return copy.results

    return rewrite_nodes(region, hoist), own


def _without_reads(
    nodes: list[Node], node: Node, reads: Container[Node]
) -> tuple[Node, Sequence[Node]]:
    """Append reads in the branches of a node; return it without them, and the reads appended."""
    operands = IfParts.of(node).operands
    values: dict[Value, Value] = {}
    branches = []
    for branch in node.regions:
        hoisted, own = _hoisted(branch, reads)
        branches.append(hoisted)
        sources = dict(zip(hoisted.params, operands, strict=True))
        for result in (x.results[0] for x in own if _is_hoistable(hoisted, x)):
            values[result] = lift([result], nodes, sources)[result]
    if not values:
        return with_operands(node, node.operands, branches), ()
    b = Build("")
    b.source = node.source
    branches = [_with_values(branch, values) for branch in branches]
    new = b.if_(node.operands[0], [*operands, *values.values()], branches)
    return new, [x.node for x in values.values() if x.node is not None]


def _is_hoistable(branch: Graph, read: Node) -> bool:
    array, *positions = read.operands
    if array not in branch.params:
        return False
    nodes = [read, *backward_slice(positions, branch.params)]
    return not any(node.regions or may_end_run(node) for node in nodes)


def _with_values(branch: Graph, values: Mapping[Value, Value]) -> Graph:
    """Return a branch that gets the values of reads, and reads no more."""
    params = [Value(x.type) for x in values]
    mapping = dict(zip(values, params, strict=True))
    nodes = [node for node in branch.nodes if not mapping.keys() & {*node.results}]
    copies = copy_nodes(nodes, mapping)
    results = tuple(mapping.get(x, x) for x in branch.results)
    return Graph(branch.name, (*branch.params, *params), tuple(copies), results)
