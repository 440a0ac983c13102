"""Elements that all branches store in one place are stored after them.

`if x[i] == y[j]: t[i, j] = … else: t[i, j] = …` becomes one store of what the branches give, a
number. Then branches can be selections, and loops carry what the next trip reads (LLVM merges
stores of branches in SimplifyCFG); the adjoint has no branches with arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import lift, rewrite_nodes, with_operands
from wend.ir.traverse import backward_slice, use_counts
from wend.ops.build import Build
from wend.ops.control import IfParts, if_
from wend.ops.updating import scatter_set
from wend.passes.congruence import are_congruent
from wend.passes.hoist import may_end_run


def merge_stores(graph: Graph) -> Graph:
    """Store after branches what all of them store in one place, in inner branches first."""
    if not graph.ops.issuperset((if_, scatter_set)):
        return graph

    def merge(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = with_operands(node, operands, [merge_stores(region) for region in node.regions])
        stores = _common_stores(IfParts.of(copy)) if copy.op is if_ else {}
        if not stores:
            nodes.append(copy)
            return copy.results
        return _stored_after(nodes, copy, stores)

    return rewrite_nodes(graph, merge)


def _common_stores(parts: IfParts) -> dict[int, list[Node]]:
    """Return results that are arrays with an element stored last, with the stores of branches."""
    ends = [_last_stores(branch) for branch in parts.branches]
    common = set.intersection(*(set(stores) for stores in ends))
    stores = {k: [of_branch[k] for of_branch in ends] for k in sorted(common)}
    return {k: nodes for k, nodes in stores.items() if _are_of_one_place(parts, nodes)}


def _last_stores(branch: Graph) -> dict[int, Node]:
    """Return the stores of a number in a param after which nothing fails, by result."""
    uses, stores = use_counts(branch), {}
    for node in reversed(branch.nodes):
        is_store = node.op is scatter_set and node.operands[1].tensor.shape == ()
        result = node.results[0] if is_store else None
        if result in branch.results and uses[result] == 1 and _is_movable(branch, node):
            stores[branch.results.index(result)] = node
        elif may_end_run(node):
            break
    return stores


def _is_movable(branch: Graph, store: Node) -> bool:
    """Return whether a store is in range, and its positions can be computed after the branch."""
    if may_end_run(store) or store.operands[0] not in branch.params:
        return False
    nodes = backward_slice(store.operands[2:], branch.params)
    return not any(node.regions or may_end_run(node) for node in nodes)


def _are_of_one_place(parts: IfParts, stores: Sequence[Node]) -> bool:
    """Return whether the stores of branches are in one place of one array."""
    first = stores[0]
    for branch, store in zip(parts.branches[1:], stores[1:], strict=True):
        pairs = dict(zip(parts.branches[0].params, branch.params, strict=True))
        if first.operands[1].type != store.operands[1].type:
            return False
        if len(first.operands) != len(store.operands):
            return False
        places = zip(first.operands, store.operands, strict=True)
        if not all(k == 1 or are_congruent(x, y, pairs) for k, (x, y) in enumerate(places)):
            return False
    return True


def _stored_after(nodes: list[Node], node: Node, stores: dict[int, list[Node]]) -> Sequence[Value]:
    """Append the branches, which give what they would store, and the stores; return the results."""
    parts, b = IfParts.of(node), Build("")
    b.nodes, b.source = nodes, node.source
    branches = []
    for k, branch in enumerate(parts.branches):
        results = [*branch.results]
        for result, of_branches in stores.items():
            results[result] = of_branches[k].operands[1]
        branches.append(Graph(branch.name, branch.params, branch.nodes, tuple(results)))
    results = [*b.if_(parts.selector, parts.operands, branches).results]
    sources = dict(zip(parts.branches[0].params, parts.operands, strict=True))
    for result, (store, *_) in stores.items():
        array, _, *positions = store.operands
        sources |= lift([array, *positions], nodes, sources)
        b.source = store.source
        operands = [sources[array], results[result], *(sources[x] for x in positions)]
        results[result] = b.emit(scatter_set, *operands, **store.attrs)
    return results
