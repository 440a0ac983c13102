"""The abstract interpreter of `specialize_zeros`: runs graphs on states, emits residual code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from wend.base.lazy.dataclass import dataclass
from wend.base.zero import ZERO, Zero
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.rewrite import copy_graph, copy_node, rename_dims
from wend.ir.types import (
    Dim,
    ListType,
    MaybeType,
    Symbol,
    Type,
    accepts,
    substitute,
    symbols,
    without_maybe,
)
from wend.ops.build import Build

State: TypeAlias = Value | Zero
ParamFacts: TypeAlias = Mapping[int, Callable[[Build, Value], State]]
Rule: TypeAlias = Callable[["Specializer", Build, Node, Sequence[State]], Sequence[State]]


@dataclass(frozen=True, slots=True)
class Region:
    """A specialized region.

    Attributes:
        b: the builder of its residual code, with params for what is not Zero.
        params: the state of each original param.
        results: the state of each original result.
        zeros: for each result, whether it is Zero or an array that stands for Zero.
    """

    b: Build
    params: Sequence[State]
    results: Sequence[State]
    zeros: Sequence[bool]

    def values(self, old: Graph) -> list[Value]:
        """Return the results, with a `zero` node for each that is Zero."""
        return [
            self.b.zero(original.type) if isinstance(state, Zero) else state
            for state, original in zip(self.results, old.results, strict=True)
        ]


class Specializer:
    """An abstract interpreter that runs graphs on states and emits the residual code."""

    def __init__(self, rules: Mapping[Op, Rule], opened: Node | None = None) -> None:
        """Create an interpreter with these rules; `opened` is a linear block known to run."""
        self._rules, self.opened = rules, opened
        self.zeros: set[Value] = set()  # arrays that stand for a Zero

    def region(
        self,
        graph: Graph,
        types: Sequence[Type | None],
        zeros: Sequence[bool] = (),
        known: ParamFacts | None = None,
    ) -> Region:
        """Specialize a region.

        Args:
            graph: the region.
            types: the types of its arguments; None for Zero.
            zeros: for the first params, whether each is an array that stands for a Zero.
            known: facts about some params that hold inside the region, by position.
        """
        b = Build(graph.name)
        params: list[State] = []
        for k, (param, type) in enumerate(zip(graph.params, types, strict=True)):
            if type is None:
                params.append(ZERO)
                continue
            is_nonzero = not isinstance(type, MaybeType)
            value = b.param(without_maybe(param.type) if is_nonzero else param.type, param.name)
            if k < len(zeros) and zeros[k]:
                self.zeros.add(value)
            params.append(known[k](b, value) if known and k in known else value)
        # An array that stands for a Zero need not be built where a Zero is accepted.
        results = [
            ZERO if state in self.zeros and isinstance(old.type, MaybeType) else state
            for state, old in zip(self.run(b, graph, params), graph.results, strict=True)
        ]
        return Region(b, params, results, [self._is_zero(state) for state in results])

    def run(self, b: Build, graph: Graph, params: Sequence[State]) -> list[State]:
        """Append the residual code of a graph's nodes on these params; return its result states."""
        env: dict[Value, State] = dict(zip(graph.params, params, strict=True))
        dims: dict[Symbol, Dim] = {}
        known = {symbol for param in graph.params for symbol in symbols(param.type)}
        for node in graph.nodes:
            b.source = node.source
            states = self.node(b, node, [env[operand] for operand in node.operands], dims)
            for old, new in zip(node.results, states, strict=True):
                env[old] = new
                if isinstance(new, Value) and new.type is not old.type:
                    old_symbols, new_symbols = [*symbols(old.type)], [*symbols(new.type)]
                    if old_symbols == new_symbols or len(old_symbols) != len(new_symbols):
                        continue
                    if old_symbols and known.issuperset(old_symbols) and not _is_list(old.type):
                        # Other values share these symbols, and the residual type knows less.
                        env[old] = self.refined(b, new, substitute(old.type, dims))
                    else:
                        rename_dims(dims, [old], [new])
            known.update(symbol for old in node.results for symbol in symbols(old.type))
        return [env[result] for result in graph.results]

    def refined(self, b: Build, x: Value, type: Type) -> Value:
        """Return a value under a more precise type; a Nonzero value never becomes a maybe."""
        result = b.refine(x, without_maybe(type) if is_nonzero(x) else type)
        if x in self.zeros:
            self.zeros.add(result)
        return result

    def node(
        self, b: Build, node: Node, states: Sequence[State], dims: Mapping[Symbol, Dim]
    ) -> Sequence[State]:
        """Append the residual code of one node."""
        if node.op in self._rules:
            if dims:
                node = copy_node(node, node.operands, dims=dims)
            return self._rules[node.op](self, b, node, states)
        operands = [
            b.zero(substitute(old.type, dims)) if isinstance(state, Zero) else state
            for state, old in zip(states, node.operands, strict=True)
        ]
        copy = copy_node(node, operands, dims=dims)
        b.nodes.append(copy)
        if self.zeros and _is_linear_in_zeros(copy, self.zeros):
            self.zeros.update(copy.results)
        return copy.results

    def splice(self, b: Build, graph: Graph, states: Sequence[State]) -> list[State]:
        """Inline a region in place of its node."""
        dims: dict[Symbol, Dim] = {}
        for param, state in zip(graph.params, states, strict=True):
            if isinstance(state, Value):
                accepts(param.type, state.type, dims)
        renamed = {symbol: dim for symbol, dim in dims.items() if symbol != dim}
        return self.run(b, copy_graph(graph, renamed) if renamed else graph, states)

    def _is_zero(self, state: State) -> bool:
        return isinstance(state, Zero) or state in self.zeros


def _is_list(type: Type) -> bool:
    return isinstance(without_maybe(type), ListType)


def type_of(state: State) -> Type | None:
    """Return the type of a state; None for Zero."""
    return None if isinstance(state, Zero) else state.type


def is_nonzero(state: State) -> bool:
    """Return whether a state is known to be Nonzero."""
    return isinstance(state, Value) and not isinstance(state.type, MaybeType)


def values_of(states: Iterable[State]) -> list[Value]:
    """Return the states that are no Zero."""
    return [state for state in states if isinstance(state, Value)]


def _is_linear_in_zeros(node: Node, zeros: set[Value]) -> bool:
    """Return whether a node's results are zero because it is linear in operands that are (D28)."""
    marked = [node.operands[k] in zeros for k in node.linear_operands]
    return bool(marked) and (all(marked) if node.op.is_jointly_linear else any(marked))
