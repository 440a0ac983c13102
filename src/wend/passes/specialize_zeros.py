"""Partial evaluation of cotangent arithmetic over a lattice of zeros.

Each value of a graph is Zero, Nonzero (its type is no maybe) or Unknown (its type is a maybe).
A linear block fed by Zero alone is removed, along with everything only it needs; one fed by
something Nonzero is spliced in place of its node; one that only the run can decide stays. The
lattice is that of PyTorch's autodiff for TorchScript, extended through loops, branches and calls.

The pass also tracks arrays that are zero because they stand for a Zero (a loop's sum that nothing
was added to): an operation that is linear in such operands alone gives such an array (D28).
Arrays that the user made are never taken for zero, so 0 * inf is still NaN in the user's code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import and_
from typing import TypeAlias

import numpy as np

from wend.base.zero import ZERO, Zero
from wend.ir.dataflow import flow_forward
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.rewrite import copy_graph, copy_node, rename_dims
from wend.ir.types import (
    Dim,
    ListType,
    MaybeType,
    Symbol,
    TensorType,
    Type,
    accepts,
    substitute,
    symbols,
    without_maybe,
)
from wend.ops import creating, elementwise, lists, maybe, shaping
from wend.ops.build import Build
from wend.ops.control import (
    PREDICATE,
    BlockParts,
    CallParts,
    IfParts,
    WhileParts,
    call,
    if_,
    linear_block,
    while_,
)
from wend.ops.parallel_map import ParallelMapParts, element_type, parallel_map

State: TypeAlias = Value | Zero
_ZERO_OPS = {linear_block, maybe.zero, maybe.autograd_add}
_ParamFacts: TypeAlias = Mapping[int, Callable[[Build, Value], State]]


def specialize_zeros(graph: Graph, zero: Iterable[int] = (), nonzero: Iterable[int] = ()) -> Graph:
    """Resolve what is statically known about cotangents.

    Args:
        graph: a backward graph, with linear blocks or without.
        zero: positions of params that are known to be Zero; the result does not take them.
        nonzero: positions of maybe params that are known to be Nonzero.

    Returns:
        The graph without the blocks and sums that are decided. A result that is Zero is the result
        of a `zero` node.
    """
    zero_params, nonzero_params = {*zero}, {*nonzero}
    if (
        not zero_params
        and not nonzero_params
        and not any(node.op in _ZERO_OPS for node in graph.walk())
    ):
        return graph
    types = [
        None
        if k in zero_params
        else without_maybe(param.type)
        if k in nonzero_params
        else param.type
        for k, param in enumerate(graph.params)
    ]
    return _specialize_types(graph, types)


def reinfer_types(graph: Graph) -> Graph:
    """Infer the types of maybes anew, where some have become plain values."""
    return _specialize_types(graph, graph.param_types)


def _specialize_types(graph: Graph, types: Sequence[Type | None]) -> Graph:
    captures = types[len(types) - len(graph.captures) :]
    region = Specializer().region(graph, types)
    return region.b.finish(region.values(graph), sum(type is not None for type in captures))


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

    def __init__(self, opened: Node | None = None) -> None:
        """Create an interpreter; `opened` is a linear block that is known to run."""
        self.opened = opened
        self.zeros: set[Value] = set()  # arrays that stand for a Zero

    def region(
        self,
        graph: Graph,
        types: Sequence[Type | None],
        zeros: Sequence[bool] = (),
        known: _ParamFacts | None = None,
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
        result = b.refine(x, without_maybe(type) if _is_nonzero(x) else type)
        if x in self.zeros:
            self.zeros.add(result)
        return result

    def node(
        self, b: Build, node: Node, states: Sequence[State], dims: Mapping[Symbol, Dim]
    ) -> Sequence[State]:
        """Append the residual code of one node."""
        if node.op in _RULES:
            if dims:
                node = copy_node(node, node.operands, dims=dims)
            return _RULES[node.op](self, b, node, states)
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


def _type(state: State) -> Type | None:
    return None if isinstance(state, Zero) else state.type


def _is_nonzero(state: State) -> bool:
    return isinstance(state, Value) and not isinstance(state.type, MaybeType)


def _values(states: Iterable[State]) -> list[Value]:
    return [state for state in states if isinstance(state, Value)]


def _is_linear_in_zeros(node: Node, zeros: set[Value]) -> bool:
    """Return whether a node's results are zero because it is linear in operands that are (D28)."""
    marked = [node.operands[k] in zeros for k in node.linear_operands]
    return bool(marked) and (all(marked) if node.op.is_jointly_linear else any(marked))


def _zero(s: Specializer, b: Build, node: Node, states: Sequence[State]) -> Sequence[State]:
    return [ZERO]


def _block(s: Specializer, b: Build, node: Node, states: Sequence[State]) -> Sequence[State]:
    block = BlockParts.of(node)
    count = len(block.cotangents)
    arrived = _values(states[:count])
    if not arrived:
        return [ZERO] * len(node.results)
    if node is s.opened or any(map(_is_nonzero, arrived)):
        return s.splice(b, block.body, states)
    # The body runs only if a cotangent arrived; a single one is therefore Nonzero.
    known = {states.index(arrived[0]): Build.present} if len(arrived) == 1 else {}
    body = s.region(block.body, [_type(state) for state in states], known=known)
    forwarded = dict(zip(body.params, states, strict=True))
    if all(result in forwarded for result in body.results):
        return [forwarded[result] for result in body.results]  # nothing to guard
    live_results = _values(body.results)
    forward = _values(states[count:])
    results = iter(
        b.linear_block(block_op(node), arrived, forward, body.b.finish(live_results)).results
    )
    return [next(results) if isinstance(state, Value) else ZERO for state in body.results]


def block_op(node: Node) -> str:
    """Return the name of the operation whose derivative a block is."""
    return str(node.attrs["of"])


def _autograd_add(s: Specializer, b: Build, node: Node, states: Sequence[State]) -> Sequence[State]:
    x, y = states
    if isinstance(x, Zero) or isinstance(y, Zero):
        return [y if isinstance(x, Zero) else x]
    for into, part in ((x, y), (y, x)):
        if isinstance(into.type, TensorType) and into.type.shape != () and _is_sum(part):
            assert part.node is not None
            for summand in part.node.operands:
                is_maybe = isinstance(summand.type, MaybeType)
                refined = b.refine(summand, MaybeType(into.type) if is_maybe else into.type)
                (into,) = _values(_autograd_add(s, b, node, [into, refined]))
            return [into]
    return _simplify_sum(s, b, node, [x, y]) or [b.autograd_add(x, y)]


def _is_sum(value: Value) -> bool:
    """Return whether a value is a sum of arrays that may be Zero.

    Added to an array one after the other, each can be added in place where it arises.
    """
    return value.node is not None and value.node.op is maybe.autograd_add


def _add(s: Specializer, b: Build, node: Node, states: Sequence[State]) -> Sequence[State]:
    """Simplify an addition: an array that stands for a Zero is the identity of sums, too."""
    operands = _values(states)
    simplified = _simplify_sum(s, b, node, operands)
    if simplified:
        return simplified
    sum_node = b.emit_node(node.op, operands)
    sum_node.remark = node.remark
    return sum_node.results


def _simplify_sum(
    s: Specializer, b: Build, node: Node, operands: Sequence[Value]
) -> Sequence[State]:
    """Return a sum without an addition of its own; empty where it needs one."""
    x, y = operands
    if x.type != y.type:
        return []
    if x in s.zeros:
        return [y]
    if y in s.zeros:
        return [x]
    if node.op is not elementwise.add:
        for into, part in ((x, y), (y, x)):
            updates = _updates_of_zeros(part)
            for update in updates:
                b.nodes.append(copy_node(update, [into, *update.operands[1:]]))
                (into,) = b.nodes[-1].results
            if updates:
                return [into]
    return []


def _updates_of_zeros(value: Value) -> list[Node]:
    """Return the additions into parts of zeros that make a value, in order; none if others do.

    x + add_at(zeros, v) is add_at(x, v): a loop that reads one item a trip must not touch all.
    """
    updates: list[Node] = []
    while (node := value.node) is not None:
        is_addition = node.op.updates == 0 and node.op.addends == (0,)
        if is_addition:
            updates.append(node)
        elif node.op is not shaping.refine:  # the result has the type of what is added to
            break
        value = node.operands[0]
    return updates[::-1] if _is_zeros(value) else []


def _is_zeros(value: Value) -> bool:
    """Return whether every element is zero in every run."""
    node = value.node
    if node is None:
        return False
    if node.op is shaping.broadcast_to:
        return _is_zeros(node.operands[0])
    is_constant = node.op is creating.constant and not np.any(node.attrs["value"])
    return is_constant or node.op is lists.list_zeros


def _instantiate(s: Specializer, b: Build, node: Node, states: Sequence[State]) -> Sequence[State]:
    x, zeros = states
    assert isinstance(zeros, Value)
    if isinstance(x, Value):
        return [x] if _is_nonzero(x) else [b.emit(maybe.instantiate, x, zeros)]
    zeros = b.refine(zeros, node.results[0].type)
    s.zeros.add(zeros)
    return [zeros]


def _present(s: Specializer, b: Build, node: Node, states: Sequence[State]) -> Sequence[State]:
    (x,) = states
    if isinstance(x, Zero):  # `present` claims that it is Nonzero: this code never runs
        x = b.zero(node.operands[0].type)
    return [b.present(x)]


def _is_zero(s: Specializer, b: Build, node: Node, states: Sequence[State]) -> Sequence[State]:
    (x,) = states
    if isinstance(x, Zero) or _is_nonzero(x):
        return [b.constant(isinstance(x, Zero))]
    return [b.emit(maybe.is_zero, x)]


def _any_nonzero(s: Specializer, b: Build, node: Node, states: Sequence[State]) -> Sequence[State]:
    unknown = _values(states)
    if not unknown or any(map(_is_nonzero, unknown)):
        return [b.constant(bool(unknown))]
    return [_selector_of(unknown) or b.any_nonzero(*unknown)]


def _selector_of(unknown: Sequence[Value]) -> Value | None:
    """Return the predicate of the `if` that gives a maybe exactly where the predicate holds."""
    node = unknown[0].node
    if len(unknown) > 1 or node is None or node.op is not if_ or len(node.regions) != 2:
        return None
    otherwise, then = (branch.results[unknown[0].index] for branch in node.regions)
    is_absent = otherwise.node is not None and otherwise.node.op is maybe.zero
    is_bool = node.operands[0].type == PREDICATE
    return node.operands[0] if is_bool and is_absent and _is_nonzero(then) else None


def _refine(s: Specializer, b: Build, node: Node, states: Sequence[State]) -> Sequence[State]:
    (x,) = states
    if isinstance(x, Zero):
        return [ZERO]
    return [s.refined(b, x, node.attrs["type"])]


def _call(s: Specializer, b: Build, node: Node, states: Sequence[State]) -> Sequence[State]:
    region = s.region(CallParts.of(node).callee, [_type(state) for state in states])
    graph = region.b.finish(_values(region.results))
    results = iter(b.emit_node(node.op, _values(states), (graph,), **node.attrs).results)
    return [next(results) if isinstance(state, Value) else ZERO for state in region.results]


def _if(s: Specializer, b: Build, node: Node, states: Sequence[State]) -> Sequence[State]:
    branches = IfParts.of(node).branches
    selector, *operands = states
    assert isinstance(selector, Value)
    if selector.node is not None and selector.node.op is creating.constant:
        return s.splice(b, branches[int(selector.node.attrs["value"])], operands)
    types = [_type(state) for state in operands]
    flags = [state in s.zeros for state in operands]
    regions = [
        s.region(branch, types, flags, _facts_from_sibling_if(selector, operands, k, len(branches)))
        for k, branch in enumerate(branches)
    ]
    live = [i for i in range(len(node.results)) if any(d.results[i] is not ZERO for d in regions)]
    graphs = []
    for region, branch in zip(regions, branches, strict=True):
        values = region.values(branch)
        graphs.append(region.b.finish([values[i] for i in live]))
    result_states: list[State] = [ZERO] * len(node.results)
    if live:
        for i, result in zip(live, b.if_(selector, _values(operands), graphs).results, strict=True):
            result_states[i] = result
            if all(d.zeros[i] and isinstance(d.results[i], Value) for d in regions):
                s.zeros.add(result)
    return result_states


def _facts_from_sibling_if(
    selector: Value, operands: Sequence[State], k: int, count: int
) -> _ParamFacts:
    """Return what branch k knows of maybes that another `if` with the same selector gave."""
    facts: dict[int, Callable[[Build, Value], State]] = {}
    for j, state in enumerate(operands):
        sibling = state.node if isinstance(state, Value) else None
        if sibling is None or sibling.op is not if_ or _is_nonzero(state):
            continue
        if sibling.operands[0] is selector and len(sibling.regions) == count:
            inner = sibling.regions[k].results[state.index]  # type: ignore[union-attr]
            if inner.node is not None and inner.node.op is maybe.zero:
                facts[j] = lambda b, value: ZERO
            elif _is_nonzero(inner):
                facts[j] = Build.present
    return facts


def _while(s: Specializer, b: Build, node: Node, states: Sequence[State]) -> Sequence[State]:
    """Find which carries start as zeros and stay so."""
    w = WhileParts.of(node)
    carry, invariants = _values(states[: len(w.carry)]), states[len(w.carry) :]
    outer = [_type(state) for state in invariants]
    specialized: dict[int, Region] = {}

    def transfer(k: int, zeros: Sequence[bool]) -> Sequence[bool]:
        graph = node.regions[k]
        varying = graph.param_types[: len(graph.params) - len(outer)]
        specialized[k] = s.region(graph, [*varying, *outer], zeros)
        return specialized[k].zeros

    flow = flow_forward(node, [state in s.zeros for state in states], and_, transfer)
    before, after = specialized[0], specialized[1]
    next_carry = after.values(w.after)
    for i in (i for i, zero in enumerate(flow.entered[0][: len(carry)]) if zero):
        # Forward it unchanged: it then becomes an invariant, and its update is dead code.
        positions = [k for k, v in enumerate(before.results[1:]) if v is before.params[i]]
        same = [
            after.params[k] for k in positions if w.after_forwarded[k].type == next_carry[i].type
        ]
        next_carry[i : i + 1] = _values(same[:1]) or [next_carry[i]]
    regions = before.b.finish(before.values(w.before)), after.b.finish(next_carry)
    results = b.while_(
        carry, _values(invariants), *regions, memory=w.memory, applied=w.applied, limit=w.limit
    ).results
    s.zeros.update(compress(results, flow.node))
    return results


def _map(s: Specializer, b: Build, node: Node, states: Sequence[State]) -> Sequence[State]:
    p = ParallelMapParts.of(node)
    operands, count = _values(states), len(p.mapped)
    types = [element_type(x.type) for x in operands[:count]]
    types += [x.type for x in operands[count + len(p.starts) :]]
    body = s.region(p.body, types)
    graph = body.b.finish(body.values(p.body))
    return b.emit_node(node.op, operands, (graph,), **node.attrs).results


_RULES: Mapping[Op, Callable[[Specializer, Build, Node, Sequence[State]], Sequence[State]]] = {
    maybe.zero: _zero,
    linear_block: _block,
    maybe.autograd_add: _autograd_add,
    elementwise.add: _add,
    lists.list_add: _add,
    maybe.instantiate: _instantiate,
    maybe.present: _present,
    maybe.is_zero: _is_zero,
    maybe.any_nonzero: _any_nonzero,
    shaping.refine: _refine,
    call: _call,
    if_: _if,
    while_: _while,
    parallel_map: _map,
}
