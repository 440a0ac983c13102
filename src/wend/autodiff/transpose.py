"""Reverse mode over the nodes of one graph, last node first.

The backward nodes go into a separate builder and read forward values where rules ask for them.
The values they read are collected afterwards: those are the residuals (see `residuals`).

The computation of a node on its cotangents is a *linear block*: if no cotangent arrives, none
leaves and nothing runs. Where it is known statically whether one arrives, no block is built;
where only the run can tell, it stays a `linear_block` node for `passes/specialize_zeros` and
`passes/lower_linear_blocks`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import field, replace
from typing import Any, TypeAlias

from wend.autodiff.backward import BackwardBuild, build_backward_graph, forward_reads
from wend.autodiff.cotangents import Cotangent, Cotangents
from wend.autodiff.read_only import read_only_arrays
from wend.base.errors import MissingRuleError
from wend.base.lazy.dataclass import dataclass
from wend.base.source import at
from wend.base.zero import ZERO, Zero
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import ByRegions, Explicit, Linear, NoGradient, Op, Partials
from wend.ir.types import MaybeType, without_maybe
from wend.ops import indexing, shaping, updating
from wend.ops.build import Build
from wend.ops.creating import is_constant, is_zeros
from wend.ops.loop_counters import are_equal_integers

# Operations that forward an operand that may be Zero unchanged.


@dataclass(slots=True)
class BackwardPass:
    """One backward pass over a graph's nodes.

    Attributes:
        b: the builder of the backward graph.
        cts: the accumulated cotangents.
        active: the active forward values.
        replaced: forward nodes that must give more results (trip counts, lists of residuals), with
            the nodes that replace each; the last of those gives the results.
        as_linear_blocks: make a linear block of every node, not only where it is needed.
        is_trial: only the set of cotangents that arrive matters, not the nodes.
        changing: the params of the graph that a loop around it changes in place: to read one of
            them in the backward pass, each trip would have to copy it.
    """

    b: BackwardBuild
    cts: Cotangents
    active: set[Value]
    replaced: dict[Node, Sequence[Node]] = field(default_factory=dict)
    as_linear_blocks: bool = False
    is_trial: bool = False
    changing: Set[Value] = frozenset()

    def seed(self, value: Value, ct: Cotangent) -> None:
        """Add a cotangent of a forward value, if that is active."""
        if value in self.active:
            self.cts.add(self.b, value, ct)


RegionRule: TypeAlias = Callable[["Transposer", BackwardPass, Node, Sequence[Cotangent]], None]


class Transposer:
    """Reverse mode over nodes; `region_rules` handle those that hold regions.

    Attributes:
        region_rules: the rules of nodes with regions.
        known: memoizes the adjoints of called graphs; None: no memo.
        read_only: the params of regions that hold arrays whose elements may be read again.
    """

    def __init__(
        self,
        region_rules: Mapping[Op, RegionRule],
        known: dict[Any, Any] | None = None,
        read_only: Set[Value] = frozenset(),
    ) -> None:
        self.region_rules, self.known, self.read_only = region_rules, known, read_only

    def for_graph(self, graph: Graph) -> Transposer:
        """Return a transposer of one graph, in which each callee is transposed once."""
        return Transposer(self.region_rules, {}, read_only_arrays(graph))

    def pull_back(self, bwd: BackwardPass, nodes: Sequence[Node]) -> None:
        """Move the cotangents of all results back to the operands."""
        for node in reversed(nodes):
            cts = [bwd.cts.take(result) for result in node.results]
            if all(ct is ZERO for ct in cts):
                continue
            if any(operand in bwd.active for operand in node.operands):
                bwd.b.source = node.source
                if bwd.as_linear_blocks or (_may_all_be_zero(cts) and not node.op.forwards_zero):
                    self._pull_back_block(bwd, node, cts)
                else:
                    self._pull_back_node(bwd, node, cts)

    def _pull_back_block(self, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]) -> None:
        """Append a linear block that takes the cotangents of all the node's results."""
        body = BackwardBuild(f"{node.op.name}_vjp", outer=bwd.b)
        body.source = node.source
        inner = replace(bwd, b=body, cts=Cotangents(), as_linear_blocks=False)
        block_cts = [
            bwd.b.zero(result.type) if isinstance(ct, Zero) else ct
            for ct, result in zip(cts, node.results, strict=True)
        ]
        params = [body.param(ct.type) for ct in block_cts]
        arrived = [ct for ct in cts if ct is not ZERO]
        is_alone = len(arrived) == 1  # the body runs, so this one arrived
        inner_cts = [
            ZERO if ct is ZERO else body.present(param) if is_alone else param
            for ct, param in zip(cts, params, strict=True)
        ]
        self._pull_back_node(inner, node, inner_cts)
        inner_grads = {value: inner.cts.get(value) for value in dict.fromkeys(node.operands)}
        grads = {value: ct for value, ct in inner_grads.items() if isinstance(ct, Value)}
        if bwd.is_trial:
            for value in grads:
                bwd.cts.add(bwd.b, value, bwd.b.param(MaybeType(without_maybe(value.type))))
        if bwd.is_trial or not grads:
            return
        reads = [v for v in forward_reads(body, grads.values()) if not is_constant(v)]
        graph = build_backward_graph(body, params, reads, list(grads.values()))
        block = bwd.b.linear_block(node.op.name, block_cts, reads, graph)
        for value, ct in zip(grads, block.results, strict=True):
            bwd.cts.add(bwd.b, value, ct)

    def _pull_back_node(self, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]) -> None:
        b, derivative = bwd.b, node.op.derivative
        if isinstance(derivative, ByRegions):
            self.region_rules[node.op](self, bwd, node, cts)
            return
        instantiated_cts = [
            ct if isinstance(ct, Zero) else b.instantiate(ct, result)
            for ct, result in zip(cts, node.results, strict=True)
        ]
        match derivative:
            case NoGradient():
                return
            case Partials(rules=rules):
                for operand, rule in zip(node.operands, rules, strict=True):
                    if rule is not None and operand in bwd.active:
                        factor = rule(b, *node.operands, *node.results)
                        bwd.cts.add(b, operand, b.mul(_value(instantiated_cts[0]), factor))
            case Linear():
                self._pull_back_linear(bwd, node, derivative, _value(instantiated_cts[0]))
            case Explicit(vjp=vjp):
                for operand, ct in zip(
                    node.operands, vjp(b, node, tuple(instantiated_cts)), strict=True
                ):
                    if operand in bwd.active:
                        bwd.cts.add(b, operand, ct)
            case _:
                raise MissingRuleError(f"{node.op.name}{at(node.source)} has no derivative")

    def _pull_back_linear(self, bwd: BackwardPass, node: Node, rule: Linear, ct: Value) -> None:
        b = bwd.b
        # An array that is updated comes first: what its cotangent is read for precedes its update,
        # so both this pass and the adjoint of this pass work in place.
        linear = range(len(node.operands)) if rule.operands is None else rule.operands
        active = [index for index in linear if node.operands[index] in bwd.active]
        active.sort(reverse=True)
        if rule.transpose_all is not None:
            for index, piece in zip(active, rule.transpose_all(b, node, ct, active), strict=True):
                bwd.cts.add(b, node.operands[index], piece)
            return
        for index in active:
            operand = node.operands[index]
            accumulated = bwd.cts.take(operand) if rule.accumulate else ZERO
            if rule.accumulate is None or isinstance(accumulated, Zero):
                bwd.cts.add(b, operand, rule.transpose(b, node, ct, index))
            else:
                into = b.instantiate(accumulated, operand)
                replaced = _stored_over_zeros(b, node, ct, into)
                bwd.cts.set(operand, replaced or rule.accumulate(b, node, ct, index, into))


# Reads by position, and the stores whose adjoints put zeros where they read
_STORES: Mapping[Op, Op] = {
    shaping.slice_: updating.set_slice,
    indexing.gather: updating.scatter_set,
}


def _stored_over_zeros(b: Build, node: Node, ct: Value, into: Value) -> Value | None:
    """Return `into` plus the cotangent of what a node reads, if `into` has zeros there.

    `x[s] += y` reads what it replaces: its adjoint puts zeros into the cotangent of x and adds to
    them, which comes to the cotangent itself. None: there may be other numbers.
    """
    put = into.node
    if put is None or _STORES.get(node.op) is not put.op:
        return None
    if not _are_at_one_place(node, put) or not is_zeros(put.operands[1]):
        return None
    whole, read = put.operands[0], ct.node
    is_read = read is not None and read.op is node.op and read.operands[0] is whole
    if is_read and _are_at_one_place(read, put):
        return whole
    return b.emit(put.op, whole, ct, *put.operands[2:], **put.attrs)


def _are_at_one_place(read: Node | None, put: Node) -> bool:
    """Return whether a read and a store are of the same slices, or the same element or row."""
    if read is None:
        return False
    positions = read.operands[1:]
    if any(x.tensor.dims for x in positions):  # they may repeat
        return False
    if read.attrs.get("slices") != put.attrs.get("slices"):
        return False
    others = put.operands[2:]
    return len(positions) == len(others) and all(map(are_equal_integers, positions, others))


def _value(ct: Cotangent) -> Value:
    assert isinstance(ct, Value)
    return ct


def _may_all_be_zero(cts: Sequence[Cotangent]) -> bool:
    """Return whether only the run can tell if any cotangent arrives."""
    return all(isinstance(ct, Zero) or isinstance(ct.type, MaybeType) for ct in cts)
