"""Values that carry their numbers: what an eager recording is made of.

An eager recording keeps no list of its nodes. A recorded value holds the node that made it, and
the node its operands, so what nobody can differentiate any more is gone by itself.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from wend.base.source import Source
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.types import Type, is_differentiable
from wend.trace.arrays import frozen


class RecordedValue(Value):
    """A value of an eager recording.

    Attributes:
        concrete: what it is: an array, a NumPy scalar, a list.
        owner: the recording it belongs to.
        tapes: the tapes that follow it, a bit for each.
    """

    __slots__ = ("__weakref__", "concrete", "owner", "tapes")

    def __init__(
        self,
        type: Type,
        concrete: Any,
        owner: object,
        tapes: int = 0,
        node: Node | None = None,
        index: int = 0,
    ) -> None:
        self.type = type
        self.node = node
        self.index = index
        self.name = None
        self.concrete = concrete
        self.owner = owner
        self.tapes = tapes


class HeldValue(RecordedValue):
    """A user's array in a recording: read-only as long as a node may read it."""

    __slots__ = ()

    def __init__(self, type: Type, concrete: np.ndarray, owner: object) -> None:
        super().__init__(type, concrete, owner)
        frozen.hold(concrete)

    def __del__(self) -> None:
        frozen.release(self.concrete)


class Ran(Node):
    """A node that has run.

    Its results are made when they are asked for and held weakly, so that no cycle keeps them.

    Attributes:
        concretes: what the results are.
        tapes: the tapes that follow it, a bit for each; 0: nobody holds it.
        pullback: how a call is differentiated, made when it ran.
    """

    __slots__ = ("concretes", "owner", "pullback", "refs", "tapes", "types")

    def __init__(
        self,
        op: Op,
        operands: Sequence[Value],
        attrs: Mapping[str, Any],
        regions: Sequence[Graph],
        types: Sequence[Type],
        concretes: Sequence[Any],
        owner: object,
        tapes: int,
        source: Source | None,
    ) -> None:
        self.op = op
        self.operands = tuple(operands) if tapes else ()
        self.attrs = MappingProxyType(dict(attrs))
        self.regions = tuple(regions)
        self.source = source
        self.types = types
        self.concretes = concretes
        self.owner = owner
        self.tapes = tapes
        self.pullback: Any = None
        self.refs: list[weakref.ref[RecordedValue] | None] = [None] * len(types)

    @property
    def results(self) -> tuple[RecordedValue, ...]:  # type: ignore[override]
        return tuple([self.result(k) for k in range(len(self.types))])

    def result(self, k: int) -> RecordedValue:
        """One result: the one that somebody holds, or made again."""
        ref = self.refs[k]
        found = None if ref is None else ref()
        if found is None:
            type = self.types[k]
            follows = self.tapes if self.tapes and is_differentiable(type) else 0
            node = self if follows else None
            found = RecordedValue(type, self.concretes[k], self.owner, follows, node, k)
            if self.tapes:
                self.refs[k] = weakref.ref(found)
        return found

    def shown(self, count: int) -> Node:
        """The node as its caller knows it: with the first results only."""
        results = self.results[:count]
        node = Node(self.op, self.operands, self.attrs, self.regions, (), self.source)
        node.results = results
        return node

    def forget(self, live: int) -> None:
        """Let go of what led to the results that no live tape follows."""
        for ref in self.refs:
            found = None if ref is None else ref()
            if found is not None and not found.tapes & live:
                found.node = None
