"""Calls that run one graph and are differentiated by another (D31).

    scheduled(operands; callee, plain) {outs=n}

`callee` is what runs: a schedule over checkpoints, say. `plain` computes its first `outs` results
in a form whose derivatives keep little memory; its other results are placeholders of the right
types, which no derivative reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.base.errors import ShapeError, TypeMismatchError
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import ByRegions, Op
from wend.ir.types import Dim, Symbol, Type, accepts
from wend.ops.control import infer_call


@dataclass(frozen=True, slots=True)
class ScheduledParts:
    """The parts of a `scheduled` node.

    Attributes:
        operands: the operands of both graphs.
        callee: the graph that runs.
        plain: the graph that is differentiated.
        outs: the number of results that both compute, the first ones.
    """

    operands: tuple[Value, ...]
    callee: Graph
    plain: Graph
    outs: int

    @staticmethod
    def of(node: Node) -> ScheduledParts:
        callee, plain = node.regions
        return ScheduledParts(node.operands, callee, plain, node.attrs["outs"])


def _infer_scheduled(*types: Type, regions: Sequence[Graph], outs: int) -> tuple[Type, ...]:
    callee, plain = regions
    results = infer_call(*types, regions=(callee,))
    plain_results = infer_call(*types, regions=(plain,))
    if len(results) != len(plain_results) or not 0 <= outs <= len(results):
        raise ShapeError(f"scheduled: {len(results)} results, {len(plain_results)} plain ones")
    bound: dict[Symbol, Dim] = {}
    for type, plain_type in zip(results, plain_results, strict=True):
        if not accepts(type, plain_type, bound):
            raise TypeMismatchError(f"scheduled: a result is {type}, and {plain_type} if plain")
    return results


scheduled = Op("scheduled", _infer_scheduled, None, ByRegions(), regions=("callee", "plain"))
