"""Reassociation of products in a backward loop: the factors of a cotangent are multiplied first.

The cotangent carries are the loop-carried dependence of a backward loop. The rules give
`ct + ((ct * a) * b) * cos(x)`, four dependent operations; reassociated to
`ct * (1 + (a * b) * cos(x))`, which has no more operations, only one is on the critical path.
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

# Each user of a deferred product multiplies the factors again, so more users cost more operations.
_MAX_USERS = 2
_SCALING_OPS = (elementwise.mul, elementwise.add, elementwise.sub, elementwise.neg)


class Product(NamedTuple):
    """A cotangent times a factor."""

    ct: Value
    factor: Value


def reassociate(region: Graph, cts: Collection[Value]) -> Graph:
    """Reassociate the products of scalars in a region, and in branches in it.

    The region is the body of a backward loop; `cts` are the params that are cotangents.
    """
    return _Reassociation(region, cts).run()


class _Reassociation:
    """A region under rewriting.

    Attributes:
        active: the values that depend on cotangents.
        origins: the cotangent that each product, or sum of products, is a multiple of.
        deferred: products not computed yet, because their users only scale them further.
        mapping: the new values.
    """

    def __init__(self, region: Graph, cts: Collection[Value]) -> None:
        self.region = region
        self.b = Build(region.name)
        self.b.params = list(region.params)
        self.active = reached_values(region, cts)
        self.users: dict[Value, list[Node]] = {}
        for node in region.nodes:
            for operand in node.operands:
                self.users.setdefault(operand, []).append(node)
        self.origins: dict[Value, Value] = {}
        for node in region.nodes:
            if (origin := self._origin(node)) is not None:
                self.origins[node.results[0]] = origin
        self.deferred: dict[Value, Product] = {}
        self.mapping: dict[Value, Value] = {}

    def run(self) -> Graph:
        for node in self.region.nodes:
            self.b.source = node.source
            product = self._product(node) if self._is_multiple(node) else None
            if product is None:
                operands = [self._value(operand) for operand in node.operands]
                copy = copy_node(node, operands, self._regions(node))
                self.b.nodes.append(copy)
                self.mapping.update(zip(node.results, copy.results, strict=True))
                continue
            (result,) = node.results
            self.deferred[result] = product
            if not self._is_deferrable(result):
                self._value(result)
                del self.deferred[result]
        return self.b.finish([self._value(value) for value in self.region.results])

    def _is_multiple(self, node: Node) -> bool:
        return len(node.results) == 1 and node.results[0] in self.origins

    def _value(self, value: Value) -> Value:
        """Return the new value; a deferred product is computed now."""
        if value in self.deferred and value not in self.mapping:
            self.mapping[value] = self.b.mul(*self.deferred[value])
        return self.mapping.get(value, value)

    def _origin(self, node: Node) -> Value | None:
        """Return the cotangent that a node's result is a multiple of, if there is exactly one."""
        if node.op not in _SCALING_OPS or not _is_real_scalar(node.results[0]):
            return None
        active = [value for value in node.operands if value in self.active]
        origins = {self.origins.get(value, value) for value in active}
        expected = 1 if node.op is elementwise.mul else len(node.operands)
        return origins.pop() if len(origins) == 1 and len(active) == expected else None

    def _product(self, node: Node) -> Product | None:
        """Return a node's result as a product; None where deferring gains nothing."""
        if node.op is elementwise.mul:
            x, y = node.operands
            ct, factor = (x, self._value(y)) if x in self.active else (y, self._value(x))
            if ct not in self.deferred:
                return Product(self._value(ct), factor)
            return Product(self.deferred[ct].ct, self.b.mul(self.deferred[ct].factor, factor))
        if self.deferred.keys().isdisjoint(node.operands):
            return None
        first, *others = (self._ct(operand) for operand in node.operands)
        if any(ct is not first for ct in others):
            return None
        return Product(first, self.b.emit(node.op, *map(self._factor, node.operands)))

    def _ct(self, value: Value) -> Value:
        return self.deferred[value].ct if value in self.deferred else self._value(value)

    def _factor(self, value: Value) -> Value:
        return (
            self.deferred[value].factor
            if value in self.deferred
            else self.b.constant(1, value.tensor.dtype)
        )

    def _is_deferrable(self, product: Value) -> bool:
        """Return whether a product is only used in further products of the same cotangent."""
        users = self.users.get(product, [])
        origin = self.origins[product]
        same_origin = [
            node.results and self.origins.get(node.results[0]) is origin for node in users
        ]
        has_few_users = 0 < len(users) <= _MAX_USERS
        return has_few_users and all(same_origin) and product not in self.region.results

    def _regions(self, node: Node) -> list[Graph]:
        """Return the regions of a node; those of an `if` are reassociated as well."""
        if node.op is not if_:
            return list(node.regions)
        is_active = [value in self.active for value in node.operands[1:]]
        return [
            reassociate(
                branch, [p for p, is_ct in zip(branch.params, is_active, strict=True) if is_ct]
            )
            for branch in node.regions
        ]


def _is_real_scalar(value: Value) -> bool:
    type = value.type
    return isinstance(type, TensorType) and type.shape == () and type.dtype.kind == "f"
