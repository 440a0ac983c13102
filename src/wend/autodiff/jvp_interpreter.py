"""Pushes tangents forward through the nodes of one graph, first node first.

Values and tangents are computed side by side in one new graph. A tangent has the type of its
value, the names of sizes included. One that nothing has arrived at is ZERO, and no arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from wend.autodiff.activity import active_values
from wend.autodiff.backward import BackwardBuild
from wend.autodiff.cotangents import Cotangent, Cotangents
from wend.autodiff.transpose import BackwardPass, Transposer
from wend.base.errors import MissingRuleError
from wend.base.source import at
from wend.base.zero import ZERO, Zero
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import ByRegions, Explicit, Linear, NoGradient, Op, Partials, Rule
from wend.ir.rewrite import copy_node, copy_nodes, rename_dims
from wend.ir.traverse import operands_first
from wend.ir.types import Dim, Symbol, is_differentiable
from wend.ops import elementwise, indexing, lists, maybe, parts, shaping
from wend.ops.build import Build

_transposer = Transposer({})


def jvp_explicit(b: Build, node: Node, vjp: Rule, tangents: Sequence[Cotangent]) -> list[Cotangent]:
    """The tangents of a node's results by the transpose of its rule `vjp`."""
    back = Build(node.op.name)
    back.source = node.source
    cts = [
        back.param(result.type) if is_differentiable(result.type) else ZERO
        for result in node.results
    ]
    pulled = vjp(back, node, tuple(cts))
    linear = Graph(back.name, tuple(back.params), tuple(back.nodes), ())
    bwd = BackwardPass(BackwardBuild(back.name), Cotangents(), active_values(linear, back.params))
    for ct, tangent in zip(pulled, tangents, strict=True):
        if isinstance(ct, Value) and isinstance(tangent, Value):
            bwd.seed(ct, tangent)
    _transposer.pull_back(bwd, back.nodes)
    found = [bwd.cts.get(ct) if isinstance(ct, Value) else ZERO for ct in cts]
    return _move(b, node, cts, [*back.nodes, *bwd.b.forward_shape_reads, *bwd.b.nodes], found)


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


Tangent: TypeAlias = Value | Zero
RegionRule: TypeAlias = Callable[["JvpInterpreter", Build, Node, Sequence[Tangent]], "JvpResult"]

# Operands that an operation adds to what the others give: alone, their tangent is the result's.
_ADDED: Mapping[Op, tuple[int, ...]] = {
    elementwise.add: (0, 1),
    elementwise.sub: (0,),
    maybe.autograd_add: (0, 1),
    lists.list_add: (0, 1),
    lists.list_add_at: (0,),
    indexing.scatter_add: (0,),
    indexing.add_along: (0,),
    shaping.add_slice: (0,),
    shaping.add_narrow: (0,),
    parts.add_part: (0,),
}
_MAYBE = (maybe.instantiate, maybe.present)


@dataclass(frozen=True, slots=True)
class JvpResult:
    """What has become of a node's results, and their tangents."""

    results: Sequence[Value]
    tangents: Sequence[Tangent]


@dataclass(slots=True)
class JvpFrame:
    """A graph of values and tangents under construction.

    Attributes:
        b: what is emitted to.
        values: what the values of the old graph have become.
        tangents: of the new values, those that have one.
        dims: what sizes are called now.
    """

    b: Build
    values: dict[Value, Value] = field(default_factory=dict)
    tangents: dict[Value, Value] = field(default_factory=dict)
    dims: dict[Symbol, Dim] = field(default_factory=dict)

    def open(self, params: Sequence[Value], moves: Sequence[bool]) -> list[Value]:
        """Add params for those of the old graph, and then for the tangents of those that move."""
        for param in params:
            self.values[param] = self.b.param(param.type, param.name)
        moving = [self.values[p] for p, moving in zip(params, moves, strict=True) if moving]
        for param in moving:
            self.tangents[param] = self.b.param(param.type)
        return [self.tangents[param] for param in moving]

    def tangent(self, value: Value) -> Tangent:
        """The tangent of a value of the old graph."""
        return self.tangents.get(self.values[value], ZERO)

    def tangents_of(self, values: Sequence[Value]) -> list[Value]:
        """Tangents of values of the old graph, zeros where there is none."""
        return [self.instantiated(value) for value in values]

    def instantiated(self, value: Value) -> Value:
        tangent = self.tangent(value)
        return self.b.zeros_like(self.values[value]) if isinstance(tangent, Zero) else tangent

    def put(self, value: Value, tangent: Tangent) -> None:
        """Let a new value have a tangent, with its sizes under the value's names."""
        if is_differentiable(value.type) and not isinstance(tangent, Zero):
            self.tangents[value] = self.b.refine(tangent, value.type)


class JvpInterpreter:
    """Forward mode over nodes; `region_rules` handle those that hold regions."""

    def __init__(self, region_rules: Mapping[Op, RegionRule]) -> None:
        self.region_rules = region_rules

    def push(self, ahead: JvpFrame, nodes: Sequence[Node]) -> None:
        """Append every node, and beside it what moves its results."""
        b = ahead.b
        for node in nodes:
            operands = [ahead.values[operand] for operand in node.operands]
            copy = copy_node(node, operands, dims=ahead.dims)
            tangents = [ahead.tangents.get(operand, ZERO) for operand in operands]
            b.source = node.source
            pushed = self._jvp_node(b, copy, tangents)
            if pushed.results is not copy.results:
                rename_dims(ahead.dims, node.results, pushed.results)
            ahead.values.update(zip(node.results, pushed.results, strict=True))
            for result, tangent in zip(pushed.results, pushed.tangents, strict=True):
                ahead.put(result, tangent)

    def jvp_region(
        self, region: Graph, moves: Sequence[bool], name: str | None = None
    ) -> tuple[JvpFrame, list[Value]]:
        """A region's values and tangents; and the params for tangents, which come last."""
        ahead = JvpFrame(Build(name or region.name))
        tangents = ahead.open(region.params, moves)
        self.push(ahead, region.nodes)
        return ahead, tangents

    def _jvp_node(self, b: Build, node: Node, tangents: Sequence[Tangent]) -> JvpResult:
        derivative = node.op.derivative
        moves = any(tangent is not ZERO for tangent in tangents)
        if moves and isinstance(derivative, ByRegions):
            return self.region_rules[node.op](self, b, node, tangents)
        b.nodes.append(node)
        found: Sequence[Tangent] = [ZERO] * len(node.results)
        if moves and any(is_differentiable(result.type) for result in node.results):
            match derivative:
                case NoGradient():
                    pass
                case Partials(rules=rules):
                    found = [_jvp_each(b, node, rules, tangents)]
                case Linear(jointly=False):
                    found = [_jvp_each(b, node, (), tangents)]
                case Linear():
                    found = _jvp_jointly(b, node, tangents)
                case Explicit() if _is_linear(node, tangents):
                    found = _jvp_jointly(b, node, tangents)
                case Explicit(vjp=vjp, jvp=jvp):
                    given = tuple(tangents)
                    found = jvp(b, node, given) if jvp else jvp_explicit(b, node, vjp, given)
                case _:
                    raise MissingRuleError(f"{node.op.name}{at(node.source)} has no derivative")
        return JvpResult(node.results, found)


def _is_linear(node: Node, tangents: Sequence[Tangent]) -> bool:
    """Whether the node is linear in all that moves."""
    return all(t is ZERO or i in node.linear_operands for i, t in enumerate(tangents))


def _jvp_each(
    b: Build,
    node: Node,
    rules: Sequence[Callable[..., Value] | None],
    tangents: Sequence[Tangent],
) -> Tangent:
    """The sum of what each operand moves: the operation itself where it is linear in that one."""
    total: Tangent = ZERO
    for place, tangent in enumerate(tangents):
        if isinstance(tangent, Zero):
            continue
        if place in node.linear_operands:
            part = _again(b, node, {place: tangent}).results[0]
            part = b.refine(part, node.results[0].type)
        elif place < len(rules) and (rule := rules[place]) is not None:
            part = b.mul(tangent, rule(b, *node.operands, *node.results))
        else:
            continue
        total = part if isinstance(total, Zero) else b.add(total, part)
    return total


def _jvp_jointly(b: Build, node: Node, tangents: Sequence[Tangent]) -> Sequence[Tangent]:
    """The operation itself on tangents, zeros where there is none."""
    given = {i: t for i in node.linear_operands if not isinstance(t := tangents[i], Zero)}
    if not given or (node.op in _MAYBE and 0 not in given):
        return [ZERO] * len(node.results)
    if node.op in _MAYBE:
        # Where the value is there its tangent may be Zero nevertheless.
        return [b.instantiate(given[0], node.results[0])]
    if len(given) == 1:
        ((place, tangent),) = given.items()
        if place in _ADDED.get(node.op, ()):
            return [b.instantiate(tangent, node.results[0])]
        if node.op is elementwise.sub:
            return [b.neg(tangent)]
    for i in node.linear_operands:
        if i not in given and is_differentiable(node.operands[i].type):
            given[i] = b.zeros_like(node.operands[i])
    return _again(b, node, given).results


def _again(b: Build, node: Node, replaced: Mapping[int, Value]) -> Node:
    operands = [replaced.get(i, operand) for i, operand in enumerate(node.operands)]
    return b.emit_node(node.op, operands, **node.attrs)
