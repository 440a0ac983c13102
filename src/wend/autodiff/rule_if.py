"""The adjoint of `If`, and of `Call`, which is an `If` with one branch.

The backward node takes the branch that the forward one took. The residuals of each branch's
adjoint become results of the forward node; branches share a result where their types agree, and
a branch without a value for it gives a `zero` (D2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from wend.autodiff.activity import branch_activity
from wend.autodiff.backward import BackwardBuild, forward_reads, is_shape_read
from wend.autodiff.changes_in_place import origin
from wend.autodiff.cotangents import Cotangent, Cotangents
from wend.autodiff.residuals import min_cut_residuals, rematerialize
from wend.autodiff.transpose import BackwardPass, Transposer
from wend.base.lazy.dataclass import dataclass
from wend.base.zero import ZERO, Zero
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.rewrite import copy_nodes
from wend.ir.traverse import backward_slice
from wend.ir.types import ListType, MaybeType, TensorType, Type, without_maybe
from wend.ops.build import Build
from wend.ops.control import CallParts, IfParts

# The position of an operand, and what reads its shape
_Size: TypeAlias = tuple[int, Op, tuple[tuple[str, Any], ...]]


def pull_back_if(t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]) -> None:
    """Append the backward `If` of a forward one."""
    parts = IfParts.of(node)

    def emit(b: Build, operands: Sequence[Value], branches: Sequence[Graph]) -> Node:
        return b.if_(parts.selector, operands, branches)

    # Branches share the outer dimension symbols, but a result may be wider than theirs.
    types = [result.type for result in node.results]
    _pull_back_branches(t, bwd, node, cts, parts.operands, parts.branches, types, emit)


def pull_back_call(t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]) -> None:
    """Append the backward `Call` of a forward one."""
    parts = CallParts.of(node)

    def emit(b: Build, operands: Sequence[Value], branches: Sequence[Graph]) -> Node:
        return b.call(branches[0], operands)

    types = parts.callee.result_types
    _pull_back_branches(t, bwd, node, cts, parts.operands, (parts.callee,), types, emit)


@dataclass(slots=True)
class _Branch:
    """A branch with its adjoint.

    Attributes:
        graph: the branch.
        bwd: its backward pass.
        cts: the params of the adjoint for the cotangents of the seeded results.
        accumulated: those for the cotangents that operands have already, by position.
        grads: the cotangent of each operand.
        reads: the forward values that the adjoint reads.
        residuals: those that are kept.
        shape_reads: the nodes that read sizes of operands of which nothing else is read.
        slots: for each residual, which of the shared residual results holds it.
    """

    graph: Graph
    bwd: BackwardPass
    cts: list[Value]
    accumulated: dict[int, Value]
    grads: list[Cotangent]
    reads: list[Value]
    residuals: list[Value]
    shape_reads: list[Node]
    slots: list[int]


def _pull_back_branches(
    t: Transposer,
    bwd: BackwardPass,
    node: Node,
    cts: Sequence[Cotangent],
    operands: Sequence[Value],
    branches: Sequence[Graph],
    types: Sequence[Type],
    emit: Callable[[Build, Sequence[Value], Sequence[Graph]], Node],
) -> None:
    b = bwd.b
    flags = [operand in bwd.active for operand in operands]
    nonzero_cts = {i: ct for i, ct in enumerate(cts) if isinstance(ct, Value)}
    seeds = {i: _seed_type(types[i], nonzero_cts[i]) for i in nonzero_cts}
    accumulated = _accumulated(bwd, operands)
    changing = tuple(j for j, x in enumerate(operands) if origin(x) in bwd.changing)
    adjoint = _adjoint_of(t, branches, flags, seeds, tuple(accumulated), changing)
    if not adjoint.connected:
        return
    scratch = Build("")
    scratch.source = node.source
    forward = emit(scratch, operands, adjoint.forward)
    bwd.replaced[node] = [forward]
    residuals = forward.results[len(node.results) :]
    backward_operands = [
        *residuals,
        *(operands[j] for j in adjoint.used),
        *(b.emit(op, operands[j], **dict(attrs)) for j, op, attrs in adjoint.sizes),
        *nonzero_cts.values(),
        *accumulated.values(),
    ]
    backward = emit(
        b, backward_operands, adjoint.backward([residual.type for residual in residuals])
    )
    for j, ct in zip(adjoint.connected, backward.results, strict=True):
        if j in accumulated:
            bwd.cts.take(operands[j])
        bwd.cts.add(b, operands[j], ct)


def _accumulated(bwd: BackwardPass, operands: Sequence[Value]) -> dict[int, Value]:
    """Return the cotangents of arrays and lists to which the branches add, by position.

    A branch that reads one element of an array adds one number to its cotangent, in place. Added
    outside the branch, the contribution would be an array of zeros with that number.
    """
    first_position = {operand: j for j, operand in reversed([*enumerate(operands)])}
    accumulated = {}
    for operand, j in first_position.items():
        ct = bwd.cts.get(operand)
        if isinstance(ct, Value) and operand in bwd.active and _is_large(ct.type):
            accumulated[j] = ct
    return dict(sorted(accumulated.items()))


def _is_large(type: Type) -> bool:
    return isinstance(type, ListType) or (isinstance(type, TensorType) and type.shape != ())


class _IfAdjoint:
    """The adjoint of branches, for some active operands and some seeded results.

    Attributes:
        forward: the branches with their residuals as further results.
        connected: the positions of the operands that get a cotangent.
        used: the positions of the operands that a backward branch reads.
        sizes: what backward branches read of the shapes of other operands, with its type.
    """

    def __init__(self, branches: Sequence[_Branch]) -> None:
        self._branches = branches
        positions = range(len(branches[0].grads))
        self.connected = [j for j in positions if any(_contributes(d, j) for d in branches)]
        self.used = [j for j in positions if any(_param(d, j) in d.reads for d in branches)]
        self.sizes = {_size(d, x): x.results[0].type for d in branches for x in d.shape_reads}
        slots = _share_slots(branches)
        self.forward = [_forward_branch(d, slots) for d in branches]
        self._backward: dict[tuple[Type, ...], list[Graph]] = {}

    def backward(self, residuals: Sequence[Type]) -> list[Graph]:
        """Return the backward branches for residuals of these types."""
        key = tuple(residuals)
        if key not in self._backward:
            self._backward[key] = [
                _backward_branch(d, residuals, self.used, self.sizes, self.connected)
                for d in self._branches
            ]
        return self._backward[key]


def _contributes(branch: _Branch, index: int) -> bool:
    grad = branch.grads[index]
    return grad is not ZERO and grad is not branch.accumulated.get(index)


def _size(branch: _Branch, shape_read: Node) -> _Size:
    (x,) = shape_read.operands
    return branch.graph.params.index(x), shape_read.op, tuple(sorted(shape_read.attrs.items()))


def _adjoint_of(
    t: Transposer,
    branches: Sequence[Graph],
    flags: Sequence[bool],
    seeds: Mapping[int, Type],
    accumulated: tuple[int, ...],
    changing: tuple[int, ...],
) -> _IfAdjoint:
    """Return the adjoint of branches, memoized for graphs that are called repeatedly."""
    key = tuple(branches), tuple(flags), tuple(seeds.items()), accumulated, changing
    memo = {} if t.known is None else t.known
    if key not in memo:
        memo[key] = _IfAdjoint(
            [_transpose_branch(t, x, flags, seeds, accumulated, changing) for x in branches]
        )
    adjoint: _IfAdjoint = memo[key]
    return adjoint


def _seed_type(result: Type, ct: Value) -> Type:
    """Return the type of a result's cotangent inside a branch."""
    inner = without_maybe(result)
    return MaybeType(inner) if isinstance(ct.type, MaybeType) else inner


def _param(branch: _Branch, index: int) -> Value:
    return branch.graph.params[index]


def _transpose_branch(
    t: Transposer,
    branch: Graph,
    flags: Sequence[bool],
    seeds: Mapping[int, Type],
    positions: Sequence[int],
    changing: Sequence[int],
) -> _Branch:
    """Return the branch with its adjoint."""
    b = BackwardBuild(f"{branch.name}_backward")
    changed = {branch.params[j] for j in changing}
    bwd = BackwardPass(b, Cotangents(), branch_activity(branch, flags), changing=changed)
    params = [b.param(type) for type in seeds.values()]
    for i, param in zip(seeds, params, strict=True):
        bwd.seed(branch.results[i], param)
    accumulated = {j: b.param(branch.params[j].type) for j in positions}
    for j, ct in accumulated.items():
        bwd.cts.add(b, branch.params[j], ct)
    t.pull_back(bwd, branch.nodes)
    grads = [
        bwd.cts.get(p) if p in bwd.active or j in accumulated else ZERO
        for j, p in enumerate(branch.params)
    ]
    reads = forward_reads(b, [grad for grad in grads if isinstance(grad, Value)])
    available = set(branch.params)
    # Parts of what changes are kept; its sizes stay.
    sizes = [
        node.results[0]
        for node in (*branch.nodes, *b.forward_shape_reads)
        if is_shape_read(node) and node.operands[0] in changed
    ]
    cut = min_cut_residuals(reads, {*(available - changed), *sizes}, t.read_only)
    residuals = [value for value in cut if value not in available]
    needed = backward_slice(reads, {*residuals, *available})
    others = [node for node in needed if not is_shape_read(node)]
    inputs = dict.fromkeys([*reads, *(operand for node in others for operand in node.operands)])
    shape_reads = [
        node
        for node in needed
        if is_shape_read(node) and node.operands[0] in available.difference(inputs)
    ]
    return _Branch(branch, bwd, params, accumulated, grads, [*inputs], residuals, shape_reads, [])


def _share_slots(branches: Sequence[_Branch]) -> list[Type]:
    """Assign every residual a residual result; branches share those of equal type."""
    types: list[Type] = []
    for branch in branches:
        used_slots: set[int] = set()
        for value in branch.residuals:
            free_slots = [
                k for k, type in enumerate(types) if type == value.type and k not in used_slots
            ]
            slot = free_slots[0] if free_slots else len(types)
            if not free_slots:
                types.append(value.type)
            used_slots.add(slot)
            branch.slots.append(slot)
    return types


def _forward_branch(branch: _Branch, slots: Sequence[Type]) -> Graph:
    """Return the branch with its residuals as further results."""
    b, graph = Build(branch.graph.name), branch.graph
    mapping = {param: b.param(param.type, param.name) for param in graph.params}
    b.nodes += copy_nodes(graph.nodes, mapping, branch.bwd.replaced)
    b.nodes += copy_nodes(branch.bwd.b.forward_shape_reads, mapping)
    residual_in_slot = dict(zip(branch.slots, branch.residuals, strict=True))
    residuals = [
        mapping[residual_in_slot[k]] if k in residual_in_slot else b.zero(without_maybe(type))
        for k, type in enumerate(slots)
    ]
    return b.finish([*(mapping[result] for result in graph.results), *residuals])


def _backward_branch(
    branch: _Branch,
    residuals: Sequence[Type],
    used: Sequence[int],
    sizes: Mapping[_Size, Type],
    connected: Sequence[int],
) -> Graph:
    b = Build(branch.bwd.b.name)
    mapping: dict[Value, Value] = {}
    params = [b.param(type) for type in residuals]
    for j in used:
        mapping[_param(branch, j)] = b.param(_param(branch, j).type)
    size_params = {size: b.param(type) for size, type in sizes.items()}
    mapping.update((x.results[0], size_params[_size(branch, x)]) for x in branch.shape_reads)
    for ct in (*branch.cts, *branch.accumulated.values()):
        mapping[ct] = b.param(ct.type)
    for slot, value in zip(branch.slots, branch.residuals, strict=True):
        residual = params[slot] if isinstance(value.type, MaybeType) else b.present(params[slot])
        mapping[value] = b.refine(residual, value.type)
    b.nodes += rematerialize(backward_slice(branch.reads, set(mapping)), mapping)
    b.nodes += copy_nodes(branch.bwd.b.nodes, mapping)
    grads = [
        b.zero(_param(branch, j).type) if isinstance(grad, Zero) else mapping[grad]
        for j, grad in ((j, branch.grads[j]) for j in connected)
    ]
    return b.finish(grads)
