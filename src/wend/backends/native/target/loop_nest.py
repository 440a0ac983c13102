"""The node that is a loop nest: operations on arrays that are done in one go over their elements.

Its body is an ordinary graph. Every array in it has the sizes of the nest's *space*, or is read by
way of operations that only move elements; those of *rows* have the first `outer_rank` axes of the
space, and come of reductions over the others. Values of the body that are no results are never in
memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wend.base.source import at
from wend.ir.graph import Graph, Node
from wend.ir.op import ByRegions, Op
from wend.ir.types import Shape, Type
from wend.ops.control import infer_call


def _infer(
    *types: Type, iteration_space: Shape, outer_rank: int, regions: Sequence[Graph]
) -> tuple[Type, ...]:
    return infer_call(*types, regions=regions)


loop_nest = Op("loop_nest", _infer, None, ByRegions(), regions=("body",))


@dataclass(frozen=True, slots=True)
class LoopNestParts:
    """A `loop_nest` node by its parts.

    Attributes:
        body: what is computed of the operands.
        iteration_space: the sizes that are gone over.
        outer_rank: how many of its axes the loops over the others are in; 0 where all are alike.
    """

    body: Graph
    iteration_space: Shape
    outer_rank: int

    @staticmethod
    def of(node: Node) -> LoopNestParts:
        return LoopNestParts(
            node.regions[0], node.attrs["iteration_space"], node.attrs["outer_rank"]
        )


def run_body(node: Node, *operands: Any) -> tuple[Any, ...]:
    """Run the NumPy kernels of a body one by one; what one raises says which.

    So it is found what is wrong where native code has found something to be wrong.
    """
    body = LoopNestParts.of(node).body
    values = dict(zip(body.params, operands, strict=True))
    for inner in body.nodes:
        assert inner.op.kernel is not None
        try:
            found = inner.op.kernel(*(values[v] for v in inner.operands), **inner.attrs)
        except Exception as error:
            error.add_note(f"in {inner.op.name}{at(inner.source)}")
            raise
        values[inner.results[0]] = found
    return tuple(values[v] for v in body.results)
