"""Nodes with regions under `specialize_zeros`: each region is specialized to its states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from operator import and_

from wend.base.zero import ZERO, Zero
from wend.ir.dataflow import flow_forward
from wend.ir.graph import Node, Value
from wend.ops import creating, maybe
from wend.ops.build import Build
from wend.ops.control import BlockParts, CallParts, IfParts, WhileParts, if_
from wend.ops.parallel_map import ParallelMapParts, element_type
from wend.passes.zero_interpreter import (
    ParamFacts,
    Region,
    Specializer,
    State,
    is_nonzero,
    type_of,
    values_of,
)


def specialize_block(
    s: Specializer, b: Build, node: Node, states: Sequence[State]
) -> Sequence[State]:
    """Drop a block that only Zero reaches, inline one that something Nonzero does, or keep it."""
    block = BlockParts.of(node)
    count = len(block.cotangents)
    arrived = values_of(states[:count])
    if not arrived:
        return [ZERO] * len(node.results)
    if node is s.opened or any(map(is_nonzero, arrived)):
        return s.splice(b, block.body, states)
    # The body runs only if a cotangent arrived; a single one is therefore Nonzero.
    known = {states.index(arrived[0]): Build.present} if len(arrived) == 1 else {}
    body = s.region(block.body, [type_of(state) for state in states], known=known)
    forwarded = dict(zip(body.params, states, strict=True))
    if all(result in forwarded for result in body.results):
        return [forwarded[result] for result in body.results]  # nothing to guard
    live_results = values_of(body.results)
    forward = values_of(states[count:])
    results = iter(
        b.linear_block(str(node.attrs["of"]), arrived, forward, body.b.finish(live_results)).results
    )
    return [next(results) if isinstance(state, Value) else ZERO for state in body.results]


def specialize_call(
    s: Specializer, b: Build, node: Node, states: Sequence[State]
) -> Sequence[State]:
    """Specialize the callee of a call."""
    region = s.region(CallParts.of(node).callee, [type_of(state) for state in states])
    graph = region.b.finish(values_of(region.results))
    results = iter(b.emit_node(node.op, values_of(states), (graph,), **node.attrs).results)
    return [next(results) if isinstance(state, Value) else ZERO for state in region.results]


def specialize_if(s: Specializer, b: Build, node: Node, states: Sequence[State]) -> Sequence[State]:
    """Specialize branches; a constant selector leaves the branch that it takes."""
    branches = IfParts.of(node).branches
    selector, *operands = states
    assert isinstance(selector, Value)
    if selector.node is not None and selector.node.op is creating.constant:
        return s.splice(b, branches[int(selector.node.attrs["value"])], operands)
    types = [type_of(state) for state in operands]
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
        for i, result in zip(
            live, b.if_(selector, values_of(operands), graphs).results, strict=True
        ):
            result_states[i] = result
            if all(d.zeros[i] and isinstance(d.results[i], Value) for d in regions):
                s.zeros.add(result)
    return result_states


def _facts_from_sibling_if(
    selector: Value, operands: Sequence[State], k: int, count: int
) -> ParamFacts:
    """Return what branch k knows of maybes that another `if` with the same selector gave."""
    facts: dict[int, Callable[[Build, Value], State]] = {}
    for j, state in enumerate(operands):
        sibling = state.node if isinstance(state, Value) else None
        if sibling is None or sibling.op is not if_ or is_nonzero(state):
            continue
        if sibling.operands[0] is selector and len(sibling.regions) == count:
            inner = sibling.regions[k].results[state.index]  # type: ignore[union-attr]
            if inner.node is not None and inner.node.op is maybe.zero:
                facts[j] = lambda b, value: ZERO
            elif is_nonzero(inner):
                facts[j] = Build.present
    return facts


def specialize_while(
    s: Specializer, b: Build, node: Node, states: Sequence[State]
) -> Sequence[State]:
    """Find which carries start as zeros and stay so."""
    w = WhileParts.of(node)
    carry, invariants = values_of(states[: len(w.carry)]), states[len(w.carry) :]
    outer = [type_of(state) for state in invariants]
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
        next_carry[i : i + 1] = values_of(same[:1]) or [next_carry[i]]
    regions = before.b.finish(before.values(w.before)), after.b.finish(next_carry)
    results = b.while_(
        carry,
        values_of(invariants),
        *regions,
        memory=w.memory,
        applied=w.applied,
        limit=w.limit,
        parallel_iterations=w.parallel_iterations,
    ).results
    s.zeros.update(compress(results, flow.node))
    return results


def specialize_map(
    s: Specializer, b: Build, node: Node, states: Sequence[State]
) -> Sequence[State]:
    """Specialize the region of a map to which operands are Nonzero; a Zero is a `zero` node."""
    p = ParallelMapParts.of(node)
    operands = [
        b.zero(old.type) if isinstance(state, Zero) else state
        for state, old in zip(states, node.operands, strict=True)
    ]
    count = len(p.mapped)
    types = [element_type(x.type) for x in operands[:count]]
    types += [x.type for x in operands[count + len(p.starts) :]]
    body = s.region(p.body, types)
    graph = body.b.finish(body.values(p.body))
    return b.emit_node(node.op, operands, (graph,), **node.attrs).results
