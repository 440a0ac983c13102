"""Products of a cotangent in a backward loop: what does not wait for it is computed first.

Trips of a backward loop wait for each other by way of the cotangents that they carry. The rules
give `ct + ((ct * a) * b) * cos(x)`, four operations one after the other; of
`ct * (1 + (a * b) * cos(x))`, which has no more of them, the next trip waits for one.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_node
from wend.ir.traverse import reached_values
from wend.ir.types import TensorType
from wend.ops import elementwise
from wend.ops.build import Build
from wend.ops.control import if_

# Each taker of a product that is taken apart has a product of factors of its own.
_MOST_TAKERS = 2
_SCALED = (elementwise.mul, elementwise.add, elementwise.sub, elementwise.neg)


class Product(NamedTuple):
    """A cotangent times a factor."""

    ct: Value
    factor: Value


def reassociate(region: Graph, cts: Collection[Value]) -> Graph:
    """Regroup the products of scalars in a region, and in branches in it.

    Args:
        region: the body of a backward loop.
        cts: those of its params that are cotangents.
    """
    return _Regrouping(region, cts).run()


class _Regrouping:
    """A region being written anew.

    Attributes:
        moving: what depends on cotangents.
        origins: for each product, and each sum of products, of one cotangent which one that is.
        apart: the products that others are made of, which are made themselves where they must.
        mapping: what stands for the region's values.
    """

    def __init__(self, region: Graph, cts: Collection[Value]) -> None:
        self.region = region
        self.b = Build(region.name)
        self.b.params = list(region.params)
        self.moving = reached_values(region, cts)
        self.takers: dict[Value, list[Node]] = {}
        for node in region.nodes:
            for operand in node.operands:
                self.takers.setdefault(operand, []).append(node)
        self.origins: dict[Value, Value] = {}
        for node in region.nodes:
            if (origin := self._origin(node)) is not None:
                self.origins[node.results[0]] = origin
        self.apart: dict[Value, Product] = {}
        self.mapping: dict[Value, Value] = {}

    def run(self) -> Graph:
        for node in self.region.nodes:
            self.b.source = node.source
            product = self._product(node) if self._is_multiple(node) else None
            if product is None:
                operands = [self._value(operand) for operand in node.operands]
                copy = copy_node(node, operands, self._inside(node))
                self.b.nodes.append(copy)
                self.mapping.update(zip(node.results, copy.results, strict=True))
                continue
            (result,) = node.results
            self.apart[result] = product
            if not self._is_passed_on(result):
                self._value(result)
                del self.apart[result]
        return self.b.finish([self._value(value) for value in self.region.results])

    def _is_multiple(self, node: Node) -> bool:
        return len(node.results) == 1 and node.results[0] in self.origins

    def _value(self, value: Value) -> Value:
        """What stands for a value; a product that is not there yet is made."""
        if value in self.apart and value not in self.mapping:
            self.mapping[value] = self.b.mul(*self.apart[value])
        return self.mapping.get(value, value)

    def _origin(self, node: Node) -> Value | None:
        """The cotangent that a node gives a multiple of, if it is of one."""
        if node.op not in _SCALED or not _is_real_scalar(node.results[0]):
            return None
        moving = [value for value in node.operands if value in self.moving]
        found = {self.origins.get(value, value) for value in moving}
        expected = 1 if node.op is elementwise.mul else len(node.operands)
        return found.pop() if len(found) == 1 and len(moving) == expected else None

    def _product(self, node: Node) -> Product | None:
        """What a node gives as a product; None: nothing is gained by that."""
        if node.op is elementwise.mul:
            x, y = node.operands
            ct, factor = (x, self._value(y)) if x in self.moving else (y, self._value(x))
            if ct not in self.apart:
                return Product(self._value(ct), factor)
            return Product(self.apart[ct].ct, self.b.mul(self.apart[ct].factor, factor))
        if self.apart.keys().isdisjoint(node.operands):
            return None
        first, *others = (self._ct(operand) for operand in node.operands)
        if any(ct is not first for ct in others):
            return None
        return Product(first, self.b.emit(node.op, *map(self._factor, node.operands)))

    def _ct(self, value: Value) -> Value:
        return self.apart[value].ct if value in self.apart else self._value(value)

    def _factor(self, value: Value) -> Value:
        return (
            self.apart[value].factor
            if value in self.apart
            else self.b.constant(1, value.tensor.dtype)
        )

    def _is_passed_on(self, product: Value) -> bool:
        """Whether a product is only made part of further ones."""
        takers = self.takers.get(product, [])
        origin = self.origins[product]
        alike = [node.results and self.origins.get(node.results[0]) is origin for node in takers]
        few = 0 < len(takers) <= _MOST_TAKERS
        return few and all(alike) and product not in self.region.results

    def _inside(self, node: Node) -> list[Graph]:
        """The regions of a node, regrouped as well where they are branches."""
        if node.op is not if_:
            return list(node.regions)
        given = [value in self.moving for value in node.operands[1:]]
        return [
            reassociate(branch, [p for p, is_ct in zip(branch.params, given, strict=True) if is_ct])
            for branch in node.regions
        ]


def _is_real_scalar(value: Value) -> bool:
    type = value.type
    return isinstance(type, TensorType) and type.shape == () and type.dtype.kind == "f"
