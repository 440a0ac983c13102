"""Which arrays nodes change in place.

`origin` says what a value is a changed version of, whatever the run does; `MayChange`, what some
run may change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from wend.ir.graph import Graph, Node, Value
from wend.ir.types import TensorType
from wend.ops.control import CallParts, IfParts, WhileParts, call, if_, while_


def updates_of_carries(node: Node) -> list[Node]:
    """Return the nodes by which a trip changes arrays among the carries of a loop in place."""
    return [update for _, update in updated_carries(WhileParts.of(node))]


def changed_carries(w: WhileParts) -> set[Value]:
    """Return what `after` takes and changes in place."""
    return {source for source, _ in updated_carries(w)}


def changed_in_either(w: WhileParts) -> set[Value]:
    """Return what `before` takes, and it or `after` changes in place."""
    changed, carries = changed_carries(w), set[Value]()
    for value, param in zip(w.forwarded, w.after_forwarded, strict=True):
        source, update = _origin(value)
        if update is not None or param in changed:
            carries.add(source)
    return carries.intersection(w.before_carry)


def origin(value: Value) -> Value:
    """Return what a value is a changed version of, in every branch; itself where it is none."""
    return _origin(value)[0]


def updated_carries(w: WhileParts) -> list[tuple[Value, Node]]:
    """Return what `after` takes and changes in place, each with a node that does."""
    updated = []
    for value in w.next_carry:
        source, update = _origin(value)
        is_array = isinstance(source.type, TensorType) and source.type.shape != ()
        if update is not None and is_array and source in w.after_forwarded:
            updated.append((source, update))
    return updated


def _origin(value: Value) -> tuple[Value, Node | None]:
    """Return what a value is a changed version of, in every branch, and a node that changes it."""
    update = None
    while (node := value.node) is not None:
        if node.op.updates is not None:
            value, update = node.operands[node.op.updates], node
            continue
        operand, inner_update = _operand_changed_in_regions(node, value.index)
        if operand is None:
            break
        value, update = operand, update or inner_update
    return value, update


def _operand_changed_in_regions(node: Node, k: int) -> tuple[Value | None, Node | None]:
    """Return the operand that a result of a branch, call or loop is a changed version of."""
    if node.op is while_:
        return _operand_changed_in_loop(WhileParts.of(node), k)
    if node.op not in (if_, call):
        return None, None
    operands, updates = set[Value | None](), []
    for region, operand_of in constant_params(node):
        source, update = _origin(region.results[k])
        operands.add(operand_of.get(source))
        updates += [] if update is None else [update]
    operand = operands.pop()
    return (None, None) if operands else (operand, next(iter(updates), None))


def _operand_changed_in_loop(w: WhileParts, k: int) -> tuple[Value | None, Node | None]:
    """Follow a forwarded value to the carry that it is, and that carry once around the loop."""
    source, update = _origin(w.forwarded[k])
    if source not in w.before_carry:
        return None, None
    position = w.before_carry.index(source)
    following, next_update = _origin(w.next_carry[position])
    if following is not w.after_forwarded[k]:
        return None, None
    return w.carry[position], update or next_update


class MayChange:
    """The values that nodes may change in place, computed once for each graph."""

    def __init__(self) -> None:
        self._values: dict[Graph, set[Value]] = {}

    def values(self, graph: Graph) -> set[Value]:
        """Return the values of a graph that its nodes may change in place, or pass on."""
        if graph not in self._values:
            changed: set[Value] = set()
            for node in graph.nodes:
                if node.op.updates is not None:
                    changed.add(node.operands[node.op.updates])
                changed |= self._in_regions(node)
            self._values[graph] = changed
        return self._values[graph]

    def _in_regions(self, node: Node) -> set[Value]:
        if not node.regions:
            return set()
        constant, changed = set[Value](), set[Value]()
        for region, operands in constant_params(node):
            constant.update(operands.values())
            passed_on = self.values(region).union(region.results)
            changed.update(x for param, x in operands.items() if param in passed_on)
        carried = WhileParts.of(node).carry if node.op is while_ else ()
        return changed.union(carried, (x for x in node.operands if x not in constant))


def constant_params(node: Node) -> Iterator[tuple[Graph, Mapping[Value, Value]]]:
    """Yield the regions of a node, with the params that hold an operand in each run of them."""
    if node.op is while_:
        w = WhileParts.of(node)
        yield w.before, dict(zip(w.before_invariants, w.invariants, strict=True))
        yield w.after, dict(zip(w.after_invariants, w.invariants, strict=True))
    elif node.op is if_ or node.op is call:
        operands = (IfParts if node.op is if_ else CallParts).of(node).operands
        for region in node.regions:
            yield region, dict(zip(region.params, operands, strict=True))
