"""Forward mode of operations that only say how to pull back: the transpose of that.

A pull-back is linear in its cotangents, so it can be pulled back through in its turn: what comes
out for the cotangents is the tangent of the results.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.autodiff.activity import active_values
from wend.autodiff.backward import BackwardBuild
from wend.autodiff.cotangents import Cotangent, Cotangents
from wend.autodiff.transpose import Pass, Transposer
from wend.base.zero import ZERO
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Rule
from wend.ir.rewrite import copy_nodes
from wend.ir.traverse import operands_first
from wend.ir.types import is_differentiable
from wend.ops.build import Build

_transposer = Transposer({})


def push_explicit(
    b: Build, node: Node, vjp: Rule, tangents: Sequence[Cotangent]
) -> list[Cotangent]:
    """The tangents of a node's results by the transpose of its rule `vjp`."""
    back = Build(node.op.name)
    back.source = node.source
    cts = [
        back.param(result.type) if is_differentiable(result.type) else ZERO
        for result in node.results
    ]
    pulled = vjp(back, node, tuple(cts))
    linear = Graph(back.name, tuple(back.params), tuple(back.nodes), ())
    this = Pass(BackwardBuild(back.name), Cotangents(), active_values(linear, back.params))
    for ct, tangent in zip(pulled, tangents, strict=True):
        if isinstance(ct, Value) and isinstance(tangent, Value):
            this.seed(ct, tangent)
    _transposer.pull_back(this, back.nodes)
    found = [this.cts.get(ct) if isinstance(ct, Value) else ZERO for ct in cts]
    return _move(b, node, cts, [*back.nodes, *this.b.extras, *this.b.nodes], found)


def _move(
    b: Build,
    node: Node,
    cts: Sequence[Cotangent],
    nodes: Sequence[Node],
    found: Sequence[Cotangent],
) -> list[Cotangent]:
    """Append those of the nodes that what was found needs."""
    own = set(nodes)

    def operands(value: Value) -> Sequence[Value]:
        return value.node.operands if value.node in own else ()

    needed = operands_first([v for v in found if isinstance(v, Value)], operands)
    order = dict.fromkeys(value.node for value in needed if value.node in own)
    # Of a cotangent nothing is read but its sizes, which are those of the result.
    pairs = zip(cts, node.results, strict=True)
    mapping = {ct: result for ct, result in pairs if isinstance(ct, Value)}
    b.nodes += copy_nodes([node for node in order if node is not None], mapping)
    return [mapping.get(v, v) if isinstance(v, Value) else ZERO for v in found]
