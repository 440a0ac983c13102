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

from collections.abc import Iterable, Mapping, Sequence

from wend.base.zero import ZERO, Zero
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.types import Type, without_maybe
from wend.ops import elementwise, lists, maybe, shaping
from wend.ops.build import Build
from wend.ops.control import PREDICATE, call, if_, linear_block, while_
from wend.ops.parallel_map import parallel_map
from wend.passes.zero_interpreter import Rule, Specializer, State, is_nonzero, values_of
from wend.passes.zero_regions import (
    specialize_block,
    specialize_call,
    specialize_if,
    specialize_map,
    specialize_while,
)
from wend.passes.zero_sums import specialize_add, specialize_autograd_add

_ZERO_OPS = {linear_block, maybe.zero, maybe.autograd_add}


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
    if not zero_params and not nonzero_params and graph.ops.isdisjoint(_ZERO_OPS):
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
    region = specializer().region(graph, types)
    return region.b.finish(region.values(graph), sum(type is not None for type in captures))


def specializer(opened: Node | None = None) -> Specializer:
    """Return an interpreter with all rules; `opened` is a linear block that is known to run."""
    return Specializer(_RULES, opened)


def _zero(s: Specializer, b: Build, node: Node, states: Sequence[State]) -> Sequence[State]:
    return [ZERO]


def _instantiate(s: Specializer, b: Build, node: Node, states: Sequence[State]) -> Sequence[State]:
    x, zeros = states
    assert isinstance(zeros, Value)
    if isinstance(x, Value):
        return [x] if is_nonzero(x) else [b.emit(maybe.instantiate, x, zeros)]
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
    if isinstance(x, Zero) or is_nonzero(x):
        return [b.constant(isinstance(x, Zero))]
    return [b.emit(maybe.is_zero, x)]


def _any_nonzero(s: Specializer, b: Build, node: Node, states: Sequence[State]) -> Sequence[State]:
    unknown = values_of(states)
    if not unknown or any(map(is_nonzero, unknown)):
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
    return node.operands[0] if is_bool and is_absent and is_nonzero(then) else None


def _refine(s: Specializer, b: Build, node: Node, states: Sequence[State]) -> Sequence[State]:
    (x,) = states
    if isinstance(x, Zero):
        return [ZERO]
    return [s.refined(b, x, node.attrs["type"])]


_RULES: Mapping[Op, Rule] = {
    maybe.zero: _zero,
    linear_block: specialize_block,
    maybe.autograd_add: specialize_autograd_add,
    elementwise.add: specialize_add,
    lists.list_add: specialize_add,
    maybe.instantiate: _instantiate,
    maybe.present: _present,
    maybe.is_zero: _is_zero,
    maybe.any_nonzero: _any_nonzero,
    shaping.refine: _refine,
    call: specialize_call,
    if_: specialize_if,
    while_: specialize_while,
    parallel_map: specialize_map,
}
