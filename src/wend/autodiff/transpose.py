"""Pulls cotangents back through the nodes of one graph, last node first.

The backward nodes go into a builder of their own and read forward values where rules ask for
them. Which ones they read is looked up afterwards: those are the residuals (see `residuals`).

What a node does with its cotangents is a *linear block*: nothing arrives, nothing leaves, nothing
runs. Where it is known now whether a cotangent arrives, the block is not even made; where only
the run can tell, it stays a `linear_block` node, which `passes/zeros` and `passes/blocks` treat.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from wend.autodiff.backward import BackwardBuild, closed, forward_reads, is_constant
from wend.autodiff.cotangents import Cotangent, Cotangents
from wend.base.errors import MissingRuleError
from wend.base.source import at
from wend.base.zero import ZERO, Zero
from wend.ir.graph import Node, Value
from wend.ir.op import ByRegions, Explicit, Linear, NoGradient, Op, Partials
from wend.ir.types import MaybeType, without_maybe
from wend.ops import maybe, shaping

# These hand on what may be Zero as it is.
ZERO_TRANSPARENT = {maybe.present, maybe.instantiate, maybe.autograd_add, shaping.refine}


@dataclass(slots=True)
class BackwardPass:
    """One backward pass over a graph's nodes.

    `replaced`: forward nodes that must give more results than they do (trip counts, lists of
    residuals), with the nodes to stand for each, the last of them giving the results.
    `in_blocks`: make a linear block of every node, not only where it is needed.
    `is_trial`: nobody reads the nodes, only which cotangents arrive.
    """

    b: BackwardBuild
    cts: Cotangents
    active: set[Value]
    replaced: dict[Node, Sequence[Node]] = field(default_factory=dict)
    in_blocks: bool = False
    is_trial: bool = False

    def seed(self, value: Value, ct: Cotangent) -> None:
        """Let a cotangent arrive at a forward value, if anything depends on it."""
        if value in self.active:
            self.cts.add(self.b, value, ct)


RegionRule: TypeAlias = Callable[["Transposer", BackwardPass, Node, Sequence[Cotangent]], None]


class Transposer:
    """Reverse mode over nodes; `region_rules` handle those that hold regions.

    `known`: what graphs that are called have become, for calls of the same; None: not kept.
    """

    def __init__(
        self, region_rules: Mapping[Op, RegionRule], known: dict[Any, Any] | None = None
    ) -> None:
        self.region_rules, self.known = region_rules, known

    def with_cache(self) -> Transposer:
        """The same for one derivation, in which each callee is transposed once."""
        return Transposer(self.region_rules, {})

    def pull_back(self, bwd: BackwardPass, nodes: Sequence[Node]) -> None:
        """Move the cotangents of all results to where they came from."""
        for node in reversed(nodes):
            cts = [bwd.cts.take(result) for result in node.results]
            if all(ct is ZERO for ct in cts):
                continue
            if any(operand in bwd.active for operand in node.operands):
                bwd.b.source = node.source
                if bwd.in_blocks or (_may_all_be_zero(cts) and node.op not in ZERO_TRANSPARENT):
                    self._pull_back_block(bwd, node, cts)
                else:
                    self._pull_back_node(bwd, node, cts)

    def _pull_back_block(self, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]) -> None:
        """Append a linear block that takes the cotangents of all the node's results."""
        body = BackwardBuild(f"{node.op.name}_vjp", outer=bwd.b)
        body.source = node.source
        within = BackwardPass(body, Cotangents(), bwd.active, bwd.replaced, is_trial=bwd.is_trial)
        given = [
            bwd.b.zero(result.type) if isinstance(ct, Zero) else ct
            for ct, result in zip(cts, node.results, strict=True)
        ]
        params = [body.param(ct.type) for ct in given]
        arrived = [ct for ct in cts if ct is not ZERO]
        is_alone = len(arrived) == 1  # the body runs: so it is this one that arrived
        taken = [
            ZERO if ct is ZERO else body.present(param) if is_alone else param
            for ct, param in zip(cts, params, strict=True)
        ]
        self._pull_back_node(within, node, taken)
        found = {value: within.cts.get(value) for value in dict.fromkeys(node.operands)}
        grads = {value: ct for value, ct in found.items() if isinstance(ct, Value)}
        if bwd.is_trial:
            for value in grads:
                type = MaybeType(without_maybe(value.type))
                bwd.cts.add(bwd.b, value, bwd.b.param(type))
        if bwd.is_trial or not grads:
            return
        reads = [v for v in forward_reads(body, grads.values()) if not is_constant(v)]
        graph = closed(body, params, reads, list(grads.values()))
        block = bwd.b.linear_block(node.op.name, given, reads, graph)
        for value, ct in zip(grads, block.results, strict=True):
            bwd.cts.add(bwd.b, value, ct)

    def _pull_back_node(self, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]) -> None:
        b, derivative = bwd.b, node.op.derivative
        if isinstance(derivative, ByRegions):
            self.region_rules[node.op](self, bwd, node, cts)
            return
        ready = [
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
                        bwd.cts.add(b, operand, b.mul(_value(ready[0]), factor))
            case Linear():
                self._pull_back_linear(bwd, node, derivative, _value(ready[0]))
            case Explicit(vjp=vjp):
                for operand, ct in zip(node.operands, vjp(b, node, tuple(ready)), strict=True):
                    if operand in bwd.active:
                        bwd.cts.add(b, operand, ct)
            case _:
                raise MissingRuleError(f"{node.op.name}{at(node.source)} has no derivative")

    def _pull_back_linear(self, bwd: BackwardPass, node: Node, rule: Linear, ct: Value) -> None:
        b = bwd.b
        for index, operand in enumerate(node.operands):
            is_linear = rule.operands is None or index in rule.operands
            if not is_linear or operand not in bwd.active:
                continue
            into = bwd.cts.take(operand) if rule.accumulate else ZERO
            if rule.accumulate is None or isinstance(into, Zero):
                bwd.cts.add(b, operand, rule.transpose(b, node, ct, index))
            else:
                ready = b.instantiate(into, operand)
                bwd.cts.put(operand, rule.accumulate(b, node, ct, index, ready))


def _value(ct: Cotangent) -> Value:
    assert isinstance(ct, Value)
    return ct


def _may_all_be_zero(cts: Sequence[Cotangent]) -> bool:
    """Whether only the run can tell if any cotangent arrives."""
    return all(isinstance(ct, Zero) or isinstance(ct.type, MaybeType) for ct in cts)
