"""The adjoint of `If`, and of `Call`, which is an `If` of one branch.

The backward node takes the branch that the forward one took. What each branch's adjoint reads
becomes results of the forward node; branches share a result where their types agree, and one that
has nothing for a result gives a `zero` (D2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from wend.autodiff.activity import branch_activity
from wend.autodiff.backward import BackwardBuild, forward_reads
from wend.autodiff.cotangents import Cotangent, Cotangents
from wend.autodiff.residuals import min_cut_residuals, rematerialize
from wend.autodiff.transpose import BackwardPass, Transposer
from wend.base.zero import ZERO, Zero
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_nodes
from wend.ir.traverse import backward_slice
from wend.ir.types import MaybeType, Type, without_maybe
from wend.ops.build import Build
from wend.ops.control import CallParts, IfParts


def pull_back_if(t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]) -> None:
    """Append the backward `If` of a forward one."""
    parts = IfParts.of(node)

    def make(b: Build, operands: Sequence[Value], branches: Sequence[Graph]) -> Node:
        return b.if_(parts.selector, operands, branches)

    # Sizes are called the same inside branches as outside, but a result may be wider than theirs.
    types = [result.type for result in node.results]
    _pull_back_branches(t, bwd, node, cts, parts.operands, parts.branches, types, make)


def pull_back_call(t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]) -> None:
    """Append the backward `Call` of a forward one."""
    parts = CallParts.of(node)

    def make(b: Build, operands: Sequence[Value], branches: Sequence[Graph]) -> Node:
        return b.call(branches[0], operands)

    types = parts.callee.result_types
    _pull_back_branches(t, bwd, node, cts, parts.operands, (parts.callee,), types, make)


@dataclass(slots=True)
class _Branch:
    """One branch with its adjoint: what it reads, and where its residuals go."""

    graph: Graph
    bwd: BackwardPass
    cts: list[Value]  # params of the adjoint: cotangents of the results that have one
    grads: list[Cotangent]  # per operand
    reads: list[Value]
    kept: list[Value]
    slots: list[int]  # per kept value: which of the shared residual results holds it


def _pull_back_branches(
    t: Transposer,
    bwd: BackwardPass,
    node: Node,
    cts: Sequence[Cotangent],
    operands: Sequence[Value],
    branches: Sequence[Graph],
    types: Sequence[Type],
    make: Callable[[Build, Sequence[Value], Sequence[Graph]], Node],
) -> None:
    b = bwd.b
    flags = [operand in bwd.active for operand in operands]
    ready = {i: ct for i, ct in enumerate(cts) if isinstance(ct, Value)}
    seeds = {i: _seed_type(types[i], ready[i]) for i in ready}
    adjoint = _adjoint_of(t, branches, flags, seeds)
    if not adjoint.wanted:
        return
    scratch = Build("")
    scratch.source = node.source
    forward = make(scratch, operands, adjoint.forward)
    bwd.replaced[node] = [forward]
    residuals = forward.results[len(node.results) :]
    given = [*residuals, *(operands[j] for j in adjoint.used), *ready.values()]
    backward = make(b, given, adjoint.backward([residual.type for residual in residuals]))
    for j, ct in zip(adjoint.wanted, backward.results, strict=True):
        bwd.cts.add(b, operands[j], ct)


class _Adjoint:
    """What branches become, where some operands are active and some results have cotangents.

    Attributes:
        forward: the branches with their residuals as further results.
        wanted: the operands, by position, that are given a cotangent.
        used: those that a backward branch reads.
    """

    def __init__(self, done: Sequence[_Branch]) -> None:
        self._done = done
        places = range(len(done[0].grads))
        self.wanted = [j for j in places if any(d.grads[j] is not ZERO for d in done)]
        self.used = [j for j in places if any(_param(d, j) in d.reads for d in done)]
        slots = _share_slots(done)
        self.forward = [_forward_branch(d, slots) for d in done]
        self._backward: dict[tuple[Type, ...], list[Graph]] = {}

    def backward(self, residuals: Sequence[Type]) -> list[Graph]:
        """The backward branches, for residuals whose sizes are called so."""
        key = tuple(residuals)
        if key not in self._backward:
            self._backward[key] = [
                _backward_branch(d, residuals, self.used, self.wanted) for d in self._done
            ]
        return self._backward[key]


def _adjoint_of(
    t: Transposer, branches: Sequence[Graph], flags: Sequence[bool], seeds: Mapping[int, Type]
) -> _Adjoint:
    """The adjoint of branches; of a graph that is called again the one that there is."""
    key = tuple(branches), tuple(flags), tuple(seeds.items())
    known = {} if t.known is None else t.known
    if key not in known:
        known[key] = _Adjoint([_transpose_branch(t, branch, flags, seeds) for branch in branches])
    found: _Adjoint = known[key]
    return found


def _seed_type(result: Type, ct: Value) -> Type:
    """The type under which a branch is given the cotangent of a result."""
    inner = without_maybe(result)
    return MaybeType(inner) if isinstance(ct.type, MaybeType) else inner


def _param(done: _Branch, index: int) -> Value:
    return done.graph.params[index]


def _transpose_branch(
    t: Transposer, branch: Graph, flags: Sequence[bool], seeds: Mapping[int, Type]
) -> _Branch:
    b = BackwardBuild(f"{branch.name}_backward")
    bwd = BackwardPass(b, Cotangents(), branch_activity(branch, flags))
    params = [b.param(type) for type in seeds.values()]
    for i, param in zip(seeds, params, strict=True):
        bwd.seed(branch.results[i], param)
    t.pull_back(bwd, branch.nodes)
    grads = [bwd.cts.get(p) if p in bwd.active else ZERO for p in branch.params]
    reads = forward_reads(b, [grad for grad in grads if isinstance(grad, Value)])
    free = set(branch.params)
    kept = min_cut_residuals(reads, free)
    needed = backward_slice(reads, {*kept, *free})
    inputs = [operand for node in needed for operand in node.operands]
    reads = list(dict.fromkeys([*reads, *inputs]))
    return _Branch(branch, bwd, params, grads, reads, kept, [])


def _share_slots(done: Sequence[_Branch]) -> list[Type]:
    """Give every kept value a residual result; branches share those of equal type."""
    types: list[Type] = []
    for branch in done:
        taken: set[int] = set()
        for value in branch.kept:
            fitting = [k for k, type in enumerate(types) if type == value.type and k not in taken]
            slot = fitting[0] if fitting else len(types)
            if not fitting:
                types.append(value.type)
            taken.add(slot)
            branch.slots.append(slot)
    return types


def _forward_branch(done: _Branch, slots: Sequence[Type]) -> Graph:
    """The branch with its residuals as further results."""
    b, graph = Build(done.graph.name), done.graph
    mapping = {param: b.param(param.type, param.name) for param in graph.params}
    b.nodes += copy_nodes(graph.nodes, mapping, done.bwd.replaced)
    b.nodes += copy_nodes(done.bwd.b.forward_shape_reads, mapping)
    held = dict(zip(done.slots, done.kept, strict=True))
    residuals = [
        mapping[held[k]] if k in held else b.zero(without_maybe(type))
        for k, type in enumerate(slots)
    ]
    return b.finish([*(mapping[result] for result in graph.results), *residuals])


def _backward_branch(
    done: _Branch, residuals: Sequence[Type], used: Sequence[int], wanted: Sequence[int]
) -> Graph:
    b = Build(done.bwd.b.name)
    mapping: dict[Value, Value] = {}
    params = [b.param(type) for type in residuals]
    for j in used:
        mapping[_param(done, j)] = b.param(_param(done, j).type)
    for ct in done.cts:
        mapping[ct] = b.param(ct.type)
    for slot, value in zip(done.slots, done.kept, strict=True):
        held = params[slot] if isinstance(value.type, MaybeType) else b.present(params[slot])
        mapping[value] = b.refine(held, value.type)
    b.nodes += rematerialize(backward_slice(done.reads, set(mapping)), mapping)
    b.nodes += copy_nodes(done.bwd.b.nodes, mapping)
    grads = [
        b.zero(_param(done, j).type) if isinstance(grad, Zero) else mapping[grad]
        for j, grad in ((j, done.grads[j]) for j in wanted)
    ]
    return b.finish(grads)
