"""Calls of functions with a user-defined derivative rule (D15), and views of their parts.

    custom_vjp(operands; callee, forward, backward0, …)    callee:   operands → outs
    custom_vjp_forward(operands; forward, backward0, …)    forward:  operands → outs, residuals
    custom_jvp(operands; callee, jvp)                      backward: residuals, cts → cts
                                                           jvp:      operands, tangents → the same

A value needs only the callee. Reverse mode puts the forward form in place of either call: its
first results have the user's rule for a derivative, the others are differentiated by their own
computation. Each `backward` takes the cotangents of other outs (attr `seeded`), and gives those of
the operands `wrt`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wend.base.errors import MissingRuleError, ShapeError, TypeMismatchError, explain
from wend.base.lazy.dataclass import dataclass
from wend.base.source import at
from wend.ir.graph import Graph, Node
from wend.ir.op import ByRegions, Op
from wend.ir.types import Dim, Symbol, Type, accepts
from wend.ops.control import infer_call

Positions = tuple[int, ...]


class RecursiveRule:
    """The rule of a function, for calls of that function which the rule itself makes.

    Such a call holds its callee only: a region cannot hold itself. The rule is resolved when the
    function's outer call has been recorded. It stays unresolved where rules call their function in
    ever new ways, too deep to be recorded.
    """

    def __init__(self) -> None:
        self.regions: tuple[Graph, ...] = ()
        self.attrs: dict[str, Any] = {}

    def resolve(self, regions: Sequence[Graph], attrs: Mapping[str, Any]) -> None:
        """Set the regions besides the callee, and the attrs, of a call with this rule."""
        self.regions, self.attrs = tuple(regions), dict(attrs)

    @property
    def is_resolved(self) -> bool:
        return bool(self.regions)

    def __repr__(self) -> str:
        return f"<rule of {self.attrs.get('name', 'a function under way')}>"


@dataclass(frozen=True, slots=True)
class CustomBackward:
    """A backward graph, the outs whose cotangents it takes, and the operands it differentiates."""

    graph: Graph
    seeded: Positions
    wrt: Positions


@dataclass(frozen=True, slots=True)
class CustomVjpParts:
    """The parts of a `custom_vjp` node, or of its forward form.

    Attributes:
        name: the function's name, for messages.
        captured: the number of operands, the last ones, that the function closes over.
        outs: the number of results of `forward` that are the function's own.
        residuals: the number of further results that the backward graphs take.
        forward: operands → outs, residuals, perhaps more.
        backwards: at least one; the first takes the cotangent of every out that can have one.
    """

    name: str
    captured: int
    outs: int
    residuals: int
    forward: Graph
    backwards: tuple[CustomBackward, ...]

    @staticmethod
    def of(node: Node) -> CustomVjpParts:
        attrs, regions = _with_rule(node)
        if node.op is custom_vjp_forward:
            forward, *backwards = regions
            outs, residuals = attrs["outs"], attrs["residuals"]
        else:
            callee, forward, *backwards = regions
            outs = len(callee.results)
            residuals = len(forward.results) - outs
        triples = zip(backwards, attrs["seeded"], attrs["wrt"], strict=True)
        return CustomVjpParts(
            attrs["name"],
            attrs["captured"],
            outs,
            residuals,
            forward,
            tuple(CustomBackward(*triple) for triple in triples),
        )

    @property
    def wrt(self) -> set[int]:
        """The operands that get a cotangent by this rule."""
        return {i for backward in self.backwards for i in backward.wrt}

    def backward_for(self, seeded: set[int]) -> CustomBackward:
        """Return the backward graph that takes the fewest cotangents besides the seeded ones."""
        candidates = [backward for backward in self.backwards if seeded <= {*backward.seeded}]
        return min(candidates, key=lambda backward: len(backward.seeded))


@dataclass(frozen=True, slots=True)
class CustomJvpParts:
    """The parts of a `custom_jvp` node.

    Attributes:
        name: the function's name, for messages.
        captured: the number of operands, the last ones, that the function closes over.
        callee: operands → outs.
        jvp: operands, tangents of the operands `wrt` → outs, tangents of the outs `tangent_outs`.
        wrt: the operands whose tangents the jvp takes.
        tangent_outs: the outs whose tangents the jvp gives.
    """

    name: str
    captured: int
    callee: Graph
    jvp: Graph
    wrt: Positions
    tangent_outs: Positions

    @staticmethod
    def of(node: Node) -> CustomJvpParts:
        attrs, (callee, jvp) = _with_rule(node)
        names = ("wrt", "moved")
        return CustomJvpParts(
            attrs["name"], attrs["captured"], callee, jvp, *(attrs[name] for name in names)
        )

    @property
    def outs(self) -> int:
        return len(self.callee.results)


def has_rule(node: Node) -> bool:
    """Return whether the rule of a call is resolved."""
    rule = node.attrs.get("rule")
    return not isinstance(rule, RecursiveRule) or rule.is_resolved


def _with_rule(node: Node) -> tuple[Mapping[str, Any], Sequence[Graph]]:
    rule = node.attrs.get("rule")
    if not isinstance(rule, RecursiveRule):
        return node.attrs, node.regions
    if not rule.is_resolved:
        name = node.attrs["name"]
        raise MissingRuleError(
            explain(
                f"{name}{at(node.source)}: the rule of {name} calls {name} on something new, whose "
                "rule does so again, without end.",
                "only the copies that the first few orders of derivatives need are recorded; this "
                "is one more",
                cure=f"compute it in the rule without {name}.",
            )
        )
    return rule.attrs, (node.regions[0], *rule.regions)


# Shape rules
def _infer_custom_vjp(*types: Type, regions: Sequence[Graph], **attrs: Any) -> tuple[Type, ...]:
    callee, *rule = regions
    types_of_outs = infer_call(*types, regions=(callee,))
    if rule:
        forward, *backwards = rule
        infer_call(*types, regions=(forward,))
        _check_outs(callee, forward)
        outs = len(callee.results)
        _check_backwards(forward, backwards, outs, len(forward.results) - outs, **attrs)
    return types_of_outs


def _infer_forward(
    *types: Type, regions: Sequence[Graph], outs: int, residuals: int, **attrs: Any
) -> tuple[Type, ...]:
    forward, *backwards = regions
    _check_backwards(forward, backwards, outs, residuals, **attrs)
    return infer_call(*types, regions=(forward,))


def _infer_custom_jvp(*types: Type, regions: Sequence[Graph], **attrs: Any) -> tuple[Type, ...]:
    callee, *rule = regions
    types_of_outs = infer_call(*types, regions=(callee,))
    if rule:
        (jvp,) = rule
        wrt, tangent_outs = attrs["wrt"], attrs["moved"]
        infer_call(*types, *[types[i] for i in wrt], regions=(jvp,))
        _check_outs(callee, jvp)
        expected = [jvp.result_types[i] for i in tangent_outs]
        _check_types("a tangent", expected, jvp.result_types[len(callee.results) :])
    return types_of_outs


def _check_outs(callee: Graph, ruled: Graph) -> None:
    outs = len(callee.results)
    _check_types(f"an out of {ruled.name}", callee.result_types, ruled.result_types[:outs])


def _check_backwards(
    forward: Graph,
    backwards: Sequence[Graph],
    outs: int,
    residuals: int,
    *,
    seeded: tuple[Positions, ...],
    wrt: tuple[Positions, ...],
    **_: Any,
) -> None:
    types = forward.result_types
    for backward, cts, operands in zip(backwards, seeded, wrt, strict=True):
        argument_types = [*types[outs : outs + residuals], *(types[i] for i in cts)]
        _check_types(f"a param of {backward.name}", backward.param_types, argument_types)
        expected = [forward.params[i].type for i in operands]
        _check_types(f"a cotangent of {backward.name}", expected, backward.result_types)


def _check_types(what: str, expected: Sequence[Type], actual: Sequence[Type]) -> None:
    if len(expected) != len(actual):
        raise ShapeError(f"{what}: there are {len(actual)} of them, expected {len(expected)}")
    bound: dict[Symbol, Dim] = {}
    for expected_type, actual_type in zip(expected, actual, strict=True):
        if not accepts(expected_type, actual_type, bound):
            raise TypeMismatchError(f"{what} is {actual_type}, expected {expected_type}")


custom_vjp = Op(
    "custom_vjp", _infer_custom_vjp, None, ByRegions(), regions=("callee", "forward", "backward*")
)
custom_vjp_forward = Op(
    "custom_vjp_forward", _infer_forward, None, ByRegions(), regions=("forward", "backward*")
)
custom_jvp = Op("custom_jvp", _infer_custom_jvp, None, ByRegions(), regions=("callee", "jvp"))

# The first region of each is the primal function.
RULED = frozenset({custom_vjp, custom_vjp_forward, custom_jvp})
