"""Loop rotation: a loop that carries its predicate, so that each trip is one call of a graph.

`while before: after` becomes one `before`, and then a loop over (predicate, forwarded values) whose
body is `after`, then `before`. Policies that run trips again are made of that body (D31).
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import inline
from wend.ops.build import Build
from wend.ops.control import PREDICATE, WhileParts


class Rotation:
    """A loop in rotated form.

    Attributes:
        w: the parts of the loop.
        forwarded: values like those that it forwards, with their names.
        invariants: values like its invariants.
    """

    def __init__(self, node: Node) -> None:
        w = self.w = WhileParts.of(node)
        self.forwarded = [
            Value(param.type, name=param.name or value.name)
            for param, value in zip(w.after_forwarded, w.forwarded, strict=True)
        ]
        self.invariants = w.after_invariants

    def graph(self, after: Graph, *, memory: str = "keep") -> Graph:
        """Return a graph with the operands and results of the loop: `before`, then the new loop.

        Args:
            after: the body of the new loop, like `trip`.
            memory: its policy.
        """
        b, w = self.build("rotated"), self.w
        carry, invariants = params_like(b, w.carry), params_like(b, w.invariants)
        first = inline(w.before, [*carry, *invariants], b.nodes)
        before = self._before()
        loop = b.while_(
            first,
            invariants,
            before,
            after,
            memory=memory,
            applied=w.memory,
            limit=w.limit,
            parallel_iterations=w.parallel_iterations,
        )
        return b.finish(loop.results)

    def build(self, name: str) -> Build:
        """Return a builder whose nodes have the line of the loop."""
        b = Build(name)
        b.source = self.w.source
        return b

    def _before(self) -> Graph:
        """(predicate, forwarded…, invariants…) to the predicate and the forwarded values."""
        b = self.build("before")
        predicate, forwarded = b.param(PREDICATE), params_like(b, self.forwarded)
        params_like(b, self.invariants)
        return b.finish([predicate, *forwarded])

    def trip(self, name: str) -> Graph:
        """Return (forwarded…, invariants…) → predicate and forwarded values, one trip later."""
        b = self.build(name)
        forwarded, invariants = params_like(b, self.forwarded), params_like(b, self.invariants)
        return b.finish(self.append_trip(b, forwarded, invariants))

    def append_trip(
        self, b: Build, forwarded: Sequence[Value], invariants: Sequence[Value]
    ) -> Sequence[Value]:
        """Append one trip; return the predicate and the forwarded values after it."""
        carry = inline(self.w.after, [*forwarded, *invariants], b.nodes)
        return inline(self.w.before, [*carry, *invariants], b.nodes)


def rotated(node: Node) -> Graph:
    """Return the rotated form of a loop, with its policy."""
    rotation = Rotation(node)
    return rotation.graph(rotation.trip("after"), memory=rotation.w.memory)


def is_rotated(w: WhileParts) -> bool:
    """Return whether a loop carries its predicate, and forwards the rest of its carry as it is."""
    return (
        len(w.carry) == len(w.forwarded) + 1
        and w.predicate is w.before_carry[0]
        and all(a is b for a, b in zip(w.forwarded, w.before_carry[1:], strict=True))
    )


def params_like(b: Build, values: Sequence[Value]) -> list[Value]:
    """Add a param for each value, of its type and name."""
    return [b.param(value.type, value.name) for value in values]
