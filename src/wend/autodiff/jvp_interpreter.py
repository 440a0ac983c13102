"""Forward mode over the nodes of one graph, first node first.

Values and tangents are computed side by side in one new graph. A tangent has the type of its
value, dimension symbols included. A tangent that is known to be zero is ZERO, without arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from wend.autodiff.activity import active_values
from wend.autodiff.backward import BackwardBuild
from wend.autodiff.cotangents import Cotangent, Cotangents
from wend.autodiff.transpose import BackwardPass, Transposer
from wend.base.errors import MissingRuleError
from wend.base.lazy.dataclass import dataclass
from wend.base.source import at
from wend.base.zero import ZERO, Zero
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import ByRegions, Explicit, Linear, NoGradient, Op, Partials, Rule
from wend.ir.rewrite import copy_node, copy_nodes, rename_dims
from wend.ir.traverse import operands_first
from wend.ir.types import Dim, Symbol, is_differentiable
from wend.ops import elementwise, maybe
from wend.ops.build import Build

_transposer = Transposer({})


def jvp_explicit(b: Build, node: Node, vjp: Rule, tangents: Sequence[Cotangent]) -> list[Cotangent]:
    """Return the tangents of a node's results by transposing its rule `vjp`."""
    rule_builder = Build(node.op.name)
    rule_builder.source = node.source
    cts = [
        rule_builder.param(result.type) if is_differentiable(result.type) else ZERO
        for result in node.results
    ]
    operand_cts = vjp(rule_builder, node, tuple(cts))
    linear = Graph(rule_builder.name, tuple(rule_builder.params), tuple(rule_builder.nodes), ())
    bwd = BackwardPass(
        BackwardBuild(rule_builder.name), Cotangents(), active_values(linear, rule_builder.params)
    )
    for ct, tangent in zip(operand_cts, tangents, strict=True):
        if isinstance(ct, Value) and isinstance(tangent, Value):
            bwd.seed(ct, tangent)
    _transposer.pull_back(bwd, rule_builder.nodes)
    tangents_of_results = [bwd.cts.get(ct) if isinstance(ct, Value) else ZERO for ct in cts]
    return _append_needed(
        b,
        node,
        cts,
        [*rule_builder.nodes, *bwd.b.forward_shape_reads, *bwd.b.nodes],
        tangents_of_results,
    )


def _append_needed(
    b: Build,
    node: Node,
    cts: Sequence[Cotangent],
    nodes: Sequence[Node],
    tangents: Sequence[Cotangent],
) -> list[Cotangent]:
    """Append the nodes that some tangents need, and return the tangents."""
    candidates = set(nodes)

    def operands(value: Value) -> Sequence[Value]:
        return value.node.operands if value.node in candidates else ()

    needed = operands_first([v for v in tangents if isinstance(v, Value)], operands)
    order = dict.fromkeys(value.node for value in needed if value.node in candidates)
    # Only the sizes of a cotangent are read, and they are those of the result.
    pairs = zip(cts, node.results, strict=True)
    mapping = {ct: result for ct, result in pairs if isinstance(ct, Value)}
    b.nodes += copy_nodes([node for node in order if node is not None], mapping)
    return [mapping.get(v, v) if isinstance(v, Value) else ZERO for v in tangents]


Tangent: TypeAlias = Value | Zero
RegionRule: TypeAlias = Callable[["JvpInterpreter", Build, Node, Sequence[Tangent]], "JvpResult"]

# Operands that are addends of the result: alone, their tangent is the result's.
_MAYBE_OPS = (maybe.instantiate, maybe.present)


@dataclass(frozen=True, slots=True)
class JvpResult:
    """The results of a node in the new graph, and their tangents."""

    results: Sequence[Value]
    tangents: Sequence[Tangent]


@dataclass(slots=True)
class JvpFrame:
    """A graph of values and tangents under construction.

    Attributes:
        b: the builder.
        values: maps the values of the old graph to new ones.
        tangents: maps new values to their tangents, where they have one.
        dims: maps the dimension symbols of the old graph to new ones.
    """

    b: Build
    values: dict[Value, Value] = field(default_factory=dict)
    tangents: dict[Value, Value] = field(default_factory=dict)
    dims: dict[Symbol, Dim] = field(default_factory=dict)

    def add_params(self, params: Sequence[Value], is_active: Sequence[bool]) -> list[Value]:
        """Add params for those of the old graph, then for the tangents of the active ones."""
        for param in params:
            self.values[param] = self.b.param(param.type, param.name)
        active = [self.values[p] for p, flag in zip(params, is_active, strict=True) if flag]
        for param in active:
            self.tangents[param] = self.b.param(param.type)
        return [self.tangents[param] for param in active]

    def tangent(self, value: Value) -> Tangent:
        """Return the tangent of a value of the old graph."""
        return self.tangents.get(self.values[value], ZERO)

    def tangents_of(self, values: Sequence[Value]) -> list[Value]:
        """Return tangents of values of the old graph, zeros where there is none."""
        return [self.instantiated(value) for value in values]

    def instantiated(self, value: Value) -> Value:
        tangent = self.tangent(value)
        return self.b.zeros_like(self.values[value]) if isinstance(tangent, Zero) else tangent

    def set_tangent(self, value: Value, tangent: Tangent) -> None:
        """Set the tangent of a new value, refined to the value's dimension symbols."""
        if is_differentiable(value.type) and not isinstance(tangent, Zero):
            self.tangents[value] = self.b.refine(tangent, value.type)


class JvpInterpreter:
    """Forward mode over nodes; `region_rules` handle those that hold regions."""

    def __init__(self, region_rules: Mapping[Op, RegionRule]) -> None:
        self.region_rules = region_rules

    def run(self, frame: JvpFrame, nodes: Sequence[Node]) -> None:
        """Append every node, followed by the computation of its results' tangents."""
        b = frame.b
        for node in nodes:
            operands = [frame.values[operand] for operand in node.operands]
            copy = copy_node(node, operands, dims=frame.dims)
            tangents = [frame.tangents.get(operand, ZERO) for operand in operands]
            b.source = node.source
            result = self._jvp_node(b, copy, tangents)
            if result.results is not copy.results:
                rename_dims(frame.dims, node.results, result.results)
            frame.values.update(zip(node.results, result.results, strict=True))
            for value, tangent in zip(result.results, result.tangents, strict=True):
                frame.set_tangent(value, tangent)

    def jvp_region(
        self, region: Graph, is_active: Sequence[bool], name: str | None = None
    ) -> tuple[JvpFrame, list[Value]]:
        """Return a region's frame, and the params for tangents, which come last."""
        frame = JvpFrame(Build(name or region.name))
        tangents = frame.add_params(region.params, is_active)
        self.run(frame, region.nodes)
        return frame, tangents

    def _jvp_node(self, b: Build, node: Node, tangents: Sequence[Tangent]) -> JvpResult:
        derivative = node.op.derivative
        is_active = any(tangent is not ZERO for tangent in tangents)
        if is_active and isinstance(derivative, ByRegions):
            return self.region_rules[node.op](self, b, node, tangents)
        b.nodes.append(node)
        result_tangents: Sequence[Tangent] = [ZERO] * len(node.results)
        if is_active and any(is_differentiable(result.type) for result in node.results):
            match derivative:
                case NoGradient():
                    pass
                case Partials(rules=rules):
                    result_tangents = [_jvp_each(b, node, rules, tangents)]
                case Linear(jointly=False):
                    result_tangents = [_jvp_each(b, node, (), tangents)]
                case Linear():
                    result_tangents = _jvp_jointly(b, node, tangents)
                case Explicit() if _is_linear(node, tangents):
                    result_tangents = _jvp_jointly(b, node, tangents)
                case Explicit(vjp=vjp, jvp=jvp):
                    operand_tangents = tuple(tangents)
                    result_tangents = (
                        jvp(b, node, operand_tangents)
                        if jvp
                        else jvp_explicit(b, node, vjp, operand_tangents)
                    )
                case _:
                    raise MissingRuleError(f"{node.op.name}{at(node.source)} has no derivative")
        return JvpResult(node.results, result_tangents)


def _is_linear(node: Node, tangents: Sequence[Tangent]) -> bool:
    """Return whether the node is linear in all its active operands."""
    return all(t is ZERO or i in node.linear_operands for i, t in enumerate(tangents))


def _jvp_each(
    b: Build, node: Node, rules: Sequence[Callable[..., Value] | None], tangents: Sequence[Tangent]
) -> Tangent:
    """Sum the contributions of the operands; of a linear one, the operation on its tangent."""
    total: Tangent = ZERO
    for place, tangent in enumerate(tangents):
        if isinstance(tangent, Zero):
            continue
        if place in node.linear_operands:
            term = _with_replaced_operands(b, node, {place: tangent}).results[0]
            term = b.refine(term, node.results[0].type)
        elif place < len(rules) and (rule := rules[place]) is not None:
            term = b.mul(tangent, rule(b, *node.operands, *node.results))
        else:
            continue
        total = term if isinstance(total, Zero) else b.add(total, term)
    return total


def _jvp_jointly(b: Build, node: Node, tangents: Sequence[Tangent]) -> Sequence[Tangent]:
    """Apply the operation to the tangents, with zeros where there is none."""
    operand_tangents = {
        i: t for i in node.linear_operands if not isinstance(t := tangents[i], Zero)
    }
    if not operand_tangents or (node.op in _MAYBE_OPS and 0 not in operand_tangents):
        return [ZERO] * len(node.results)
    if node.op in _MAYBE_OPS:
        # Even where the value is present its tangent may be Zero.
        return [b.instantiate(operand_tangents[0], node.results[0])]
    if len(operand_tangents) == 1:
        ((place, tangent),) = operand_tangents.items()
        if place in node.op.addends:
            return [b.instantiate(tangent, node.results[0])]
        if node.op is elementwise.sub:
            return [b.neg(tangent)]
    for i in node.linear_operands:
        if i not in operand_tangents and is_differentiable(node.operands[i].type):
            operand_tangents[i] = b.zeros_like(node.operands[i])
    return _with_replaced_operands(b, node, operand_tangents).results


def _with_replaced_operands(b: Build, node: Node, replaced: Mapping[int, Value]) -> Node:
    operands = [replaced.get(i, operand) for i, operand in enumerate(node.operands)]
    return b.emit_node(node.op, operands, **node.attrs)
