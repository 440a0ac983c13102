"""The `loop_nest` op: array operations fused into one nest of loops.

Its body is an ordinary graph. Every array in it has the sizes of the *iteration space*, or is read
through layout operations. *Row values* span the first `outer_rank` axes of the space and come from
reductions over the other axes. Values of the body that are not results are never stored in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node
from wend.ir.op import ByRegions, Op
from wend.ir.types import Shape, Type
from wend.ops.control import infer_call
from wend.ops.effects import error_note


def _infer(
    *types: Type, iteration_space: Shape, outer_rank: int, regions: Sequence[Graph]
) -> tuple[Type, ...]:
    return infer_call(*types, regions=regions)


loop_nest = Op("loop_nest", _infer, None, ByRegions(), regions=("body",))


@dataclass(frozen=True, slots=True)
class LoopNestParts:
    """The parts of a `loop_nest` node.

    Attributes:
        body: the graph that is evaluated for each element.
        iteration_space: the sizes of the loops.
        outer_rank: the number of outer axes that loop over rows; 0 where there are no rows.
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
    """Run the NumPy kernels of a body one by one.

    Native code that detects an error calls this, so that the kernel which fails raises its own
    exception, annotated with the operation.
    """
    body = LoopNestParts.of(node).body
    values = dict(zip(body.params, operands, strict=True))
    for inner in body.nodes:
        assert inner.op.kernel is not None
        try:
            result = inner.op.kernel(*(values[v] for v in inner.operands), **inner.attrs)
        except Exception as error:
            error.add_note(error_note(inner))
            raise
        values[inner.results[0]] = result
    return tuple(values[v] for v in body.results)
