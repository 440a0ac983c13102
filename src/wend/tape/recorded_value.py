"""Values with concrete contents, of which eager recordings consist.

An eager recording has no list of nodes. A value refers to the node that computed it, and the node
to its operands, so whatever can no longer be differentiated is garbage-collected.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
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
        concrete: its contents: an array, a NumPy scalar, or a list.
        owner: the recording it belongs to.
        tapes: the tapes that follow it, as a bit mask.
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
    """A user's array in a recording; it is read-only while a node may read it."""

    __slots__ = ()

    def __init__(self, type: Type, concrete: np.ndarray, owner: object) -> None:
        super().__init__(type, concrete, owner)
        frozen.hold(concrete)

    def __del__(self, _is_over: Callable[[], bool] = sys.is_finalizing) -> None:
        if not _is_over():
            frozen.release(self.concrete)


class ExecutedNode(Node):
    """A node that has been executed.

    Its results are created on demand and held weakly, which avoids reference cycles.

    Attributes:
        concretes: the contents of the results.
        tapes: the tapes that follow it, as a bit mask; if 0, it has dropped its operands.
        pullback: of a call: how it is differentiated.
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
        """Return one result, which is created again if it is no longer alive."""
        ref = self.refs[k]
        value = None if ref is None else ref()
        if value is None:
            type = self.types[k]
            followers = self.tapes if self.tapes and is_differentiable(type) else 0
            node = self if followers else None
            value = RecordedValue(type, self.concretes[k], self.owner, followers, node, k)
            if self.tapes:
                self.refs[k] = weakref.ref(value)
        return value

    def with_results(self, count: int) -> Node:
        """Return the node as its caller sees it, with the first results only."""
        results = self.results[:count]
        node = Node(self.op, self.operands, self.attrs, self.regions, (), self.source)
        node.results = results
        return node

    def forget(self, live_tapes: int) -> None:
        """Drop the history of the results that no live tape follows."""
        for ref in self.refs:
            value = None if ref is None else ref()
            if value is not None and not value.tapes & live_tapes:
                value.node = None
