"""Pulls cotangents back through the nodes of one graph, last node first.

The backward nodes go into a builder of their own and read forward values where rules ask for
them. Which ones they read is looked up afterwards: those are the residuals (see `residuals`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from wend.autodiff.cotangents import Cotangent, Cotangents
from wend.base.errors import MissingRuleError
from wend.base.source import at
from wend.base.zero import ZERO, Zero
from wend.ir.graph import Node, Value
from wend.ir.op import ByRegions, Explicit, Linear, NoGradient, Op, Partials
from wend.ops import shaping
from wend.ops.build import Build


class BackwardBuild(Build):
    """A backward graph under construction.

    Sizes of forward values are asked for in the forward pass and kept as sizes: `extras` are the
    nodes that do so, to be added to the forward graph.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.extras: list[Node] = []
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
        key = (op, x, *sorted(attrs.items()))
        if key not in self._asked:
            node = Build.emit_node(self, op, [x], **attrs)
            self.nodes.remove(node)
            self.extras.append(node)
            self._asked[key] = node.results[0]
        found = self._asked[key].node
        assert found is not None
        return found

    def is_own(self, value: Value) -> bool:
        """Whether the value belongs to the backward graph, not to the forward one."""
        return value in self._own


@dataclass(slots=True)
class Pass:
    """One backward pass over a graph's nodes.

    `replaced`: forward nodes that must give more results than they do (trip counts, lists of
    residuals), with the nodes to stand for each, the last of them giving the results.
    """

    b: BackwardBuild
    cts: Cotangents
    active: set[Value]
    replaced: dict[Node, Sequence[Node]] = field(default_factory=dict)

    def seed(self, value: Value, ct: Cotangent) -> None:
        """Let a cotangent arrive at a forward value, if anything depends on it."""
        if value in self.active:
            self.cts.add(self.b, value, ct)


RegionRule: TypeAlias = Callable[["Transposer", Pass, Node, Sequence[Cotangent]], None]


class Transposer:
    """Reverse mode over nodes; `region_rules` handle those that hold regions."""

    def __init__(self, region_rules: Mapping[Op, RegionRule]) -> None:
        self.region_rules = region_rules

    def pull_back(self, this: Pass, nodes: Sequence[Node]) -> None:
        """Move the cotangents of all results to where they came from."""
        for node in reversed(nodes):
            cts = [this.cts.take(result) for result in node.results]
            if all(ct is ZERO for ct in cts):
                continue
            if any(operand in this.active for operand in node.operands):
                this.b.source = node.source
                self._pull_back_node(this, node, cts)

    def _pull_back_node(self, this: Pass, node: Node, cts: Sequence[Cotangent]) -> None:
        b, derivative = this.b, node.op.derivative
        if isinstance(derivative, ByRegions):
            self.region_rules[node.op](self, this, node, cts)
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
                    if rule is not None and operand in this.active:
                        factor = rule(b, *node.operands, *node.results)
                        this.cts.add(b, operand, b.mul(_value(ready[0]), factor))
            case Linear():
                self._pull_back_linear(this, node, derivative, _value(ready[0]))
            case Explicit(vjp=vjp):
                for operand, ct in zip(node.operands, vjp(b, node, tuple(ready)), strict=True):
                    if operand in this.active:
                        this.cts.add(b, operand, ct)
            case _:
                raise MissingRuleError(f"{node.op.name}{at(node.source)} has no derivative")

    def _pull_back_linear(self, this: Pass, node: Node, rule: Linear, ct: Value) -> None:
        b = this.b
        for index, operand in enumerate(node.operands):
            is_linear = rule.operands is None or index in rule.operands
            if not is_linear or operand not in this.active:
                continue
            into = this.cts.take(operand) if rule.accumulate else ZERO
            if rule.accumulate is None or isinstance(into, Zero):
                this.cts.add(b, operand, rule.transpose(b, node, ct, index))
            else:
                ready = b.instantiate(into, operand)
                this.cts.put(operand, rule.accumulate(b, node, ct, index, ready))


def _value(ct: Cotangent) -> Value:
    assert isinstance(ct, Value)
    return ct
