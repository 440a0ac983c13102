"""Products of a cotangent in a backward loop: what does not wait for it is multiplied first.

Trips of a backward loop wait for each other by way of the cotangents that they carry. The rules
give `((ct * a) * b) * cos(x)`, three multiplications one after the other; `ct * ((a * b) * cos(x))`
has the same number, and the next trip waits for one.
"""

from __future__ import annotations

from collections.abc import Collection

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_node
from wend.ir.traverse import reached_values
from wend.ir.types import TensorType
from wend.ops import elementwise
from wend.ops.build import Build
from wend.ops.control import if_

# Each taker of a product that is taken apart has a product of factors of its own.
_MOST_TAKERS = 2


def group_factors(region: Graph, cts: Collection[Value]) -> Graph:
    """Regroup the products of scalars in a region, and in branches in it.

    Args:
        region: the body of a backward loop.
        cts: those of its params that are cotangents.
    """
    b = Build(region.name)
    b.params = list(region.params)
    products = _Products(region, cts)
    mapping: dict[Value, Value] = {}
    apart: dict[Value, tuple[Value, Value]] = {}  # cotangent and factor of what is passed on
    for node in region.nodes:
        b.source, found = node.source, products.parts(node)
        if found is None:
            copy = copy_node(
                node, [mapping.get(v, v) for v in node.operands], products.inside(node)
            )
            b.nodes.append(copy)
            mapping.update(zip(node.results, copy.results, strict=True))
            continue
        ct, factor = (mapping.get(v, v) for v in found)
        if found[0] in apart:
            ct, inner = apart[found[0]]
            factor = b.mul(inner, factor)
        if products.is_passed_on(node.results[0]):
            apart[node.results[0]] = ct, factor
        else:
            mapping[node.results[0]] = b.mul(ct, factor)
    return b.finish([mapping.get(value, value) for value in region.results])


class _Products:
    """What of a region depends on cotangents, and how that is multiplied."""

    def __init__(self, region: Graph, cts: Collection[Value]) -> None:
        self.results = frozenset(region.results)
        self.moving = reached_values(region, cts)
        self.takers: dict[Value, list[Node]] = {}
        for node in region.nodes:
            for operand in node.operands:
                self.takers.setdefault(operand, []).append(node)

    def parts(self, node: Node) -> tuple[Value, Value] | None:
        """Of a product of a cotangent and a number: both."""
        if node.op is not elementwise.mul or not _is_real_scalar(node.results[0]):
            return None
        for ct, factor in (node.operands, node.operands[::-1]):
            if ct in self.moving and factor not in self.moving:
                return ct, factor
        return None

    def is_passed_on(self, product: Value) -> bool:
        """Whether it is only multiplied by further numbers."""
        takers = self.takers.get(product, [])
        is_taken_on = all(self.parts(node) is not None for node in takers)
        return product not in self.results and is_taken_on and 0 < len(takers) <= _MOST_TAKERS

    def inside(self, node: Node) -> list[Graph]:
        """The regions of a node, regrouped as well where they are branches."""
        if node.op is not if_:
            return list(node.regions)
        return [
            group_factors(
                branch,
                [
                    p
                    for p, v in zip(branch.params, node.operands[1:], strict=True)
                    if v in self.moving
                ],
            )
            for branch in node.regions
        ]


def _is_real_scalar(value: Value) -> bool:
    type = value.type
    return isinstance(type, TensorType) and type.shape == () and type.dtype.kind == "f"
