"""The adjoint of `parallel_map` is one (D32): the region's transpose, for each element by itself.

The values that it reads of an element become further results of the forward node, stacked where
their size is known outside, in a list otherwise. Cotangents of invariants are sums over the
elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.autodiff.activity import branch_activity
from wend.autodiff.cotangents import Cotangent, instantiate_or_zeros
from wend.autodiff.region_transpose import RegionTranspose, transpose_region
from wend.autodiff.transpose import BackwardPass, Transposer
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import ListType
from wend.ops.build import Build
from wend.ops.control import outer_symbols
from wend.ops.parallel_map import LIST, STACK, SUM, ParallelMapParts, is_stackable


def pull_back_parallel_map(
    t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]
) -> None:
    """Append the backward node of a forward one."""
    p = ParallelMapParts.of(node)
    for k, (form, ct) in enumerate(zip(p.forms, cts, strict=True)):
        if form == SUM and p.start_of(k) in bwd.active:
            bwd.cts.add(bwd.b, p.start_of(k), ct)
    flags = tuple(x in bwd.active for x in (*p.mapped, *p.invariants))
    arrived = tuple(k for k, ct in enumerate(cts) if isinstance(ct, Value))
    # The body of an enclosing loop is pulled back more than once.
    memo = {} if t.known is None else t.known
    key = node, flags, arrived
    if key not in memo:
        memo[key] = _adjoint(t, node, p, flags, arrived)
    adjoint: _MapAdjoint | None = memo[key]
    if adjoint is not None:
        bwd.replaced[node] = [adjoint.forward]
        _append_backward(bwd, node, p, cts, adjoint)


@dataclass(frozen=True, slots=True)
class _MapAdjoint:
    """The adjoint for some active operands and seeded results.

    Attributes:
        forward: the node that also gives the residuals.
        residuals: those, as results of that node.
        body: (residuals, elements, cotangents of elements, invariants, cotangents of sums) → the
            cotangents of elements, then those of invariants.
        mapped: the mapped operands that the body reads.
        invariants: the invariants that it reads.
        seeded: the results whose cotangents it takes.
        reached: the positions of the operands, without the starts, that get a cotangent.
    """

    forward: Node
    residuals: Sequence[Value]
    body: Graph
    mapped: Sequence[int]
    invariants: Sequence[int]
    seeded: Sequence[int]
    reached: Sequence[int]


def _adjoint(
    t: Transposer, node: Node, p: ParallelMapParts, flags: Sequence[bool], arrived: Sequence[int]
) -> _MapAdjoint | None:
    active = branch_activity(p.body, flags)
    seeded = [k for k in arrived if p.body.results[k] in active]
    seeds = {k: p.body.results[k].type for k in seeded}
    wrt = [j for j, flag in enumerate(flags) if flag]
    transposed = transpose_region(t, p.body, wrt, seeds)
    if not transposed.grads:
        return None
    transposed.grads = {
        j: transposed.bwd.b.instantiate(ct, p.body.params[j]) for j, ct in transposed.grads.items()
    }
    params, count = {x: j for j, x in enumerate(p.body.params)}, len(p.mapped)
    reads = transposed.residuals(p.body.params)
    recorded = [x for x in reads if x not in params]
    read = [params[x] for x in reads if x in params]
    mapped, invariants = [j for j in read if j < count], [j for j in read if j >= count]
    forward = _with_residuals(node, p, transposed, recorded)
    residuals = forward.results[len(p.forms) :]
    sums = [k for k in seeded if p.forms[k] == SUM]
    stacks = [k for k in seeded if p.forms[k] != SUM]
    if not residuals and not mapped and not stacks:
        mapped = [0]  # which tells how many elements there are
    b = Build(f"{p.body.name}_backward")
    mapping: dict[Value, Value] = {}
    for x in (
        *recorded,
        *(p.body.params[j] for j in mapped),
        *(transposed.seeds[k] for k in stacks),
        *(p.body.params[j] for j in invariants),
        *(transposed.seeds[k] for k in sums),
    ):
        mapping[x] = b.param(x.type)
    grads = transposed.append_backward(b, mapping)
    body = b.finish([b.refine(ct, p.body.params[j].type) for j, ct in grads.items()])
    return _MapAdjoint(forward, residuals, body, mapped, invariants, [*stacks, *sums], [*grads])


def _with_residuals(
    node: Node, p: ParallelMapParts, transposed: RegionTranspose, recorded: Sequence[Value]
) -> Node:
    """Return the forward node with the values to keep as further results."""
    outer = {*outer_symbols(x.type for x in node.operands)}
    forms = [STACK if is_stackable(value.type, outer) else LIST for value in recorded]
    scratch = Build("")
    scratch.source = node.source
    body = transposed.with_residuals(p.body.name, recorded)
    forms = [*p.forms, *forms]
    return scratch.parallel_map(p.mapped, p.starts, p.invariants, body, forms, **p.options)


def _append_backward(
    bwd: BackwardPass,
    node: Node,
    p: ParallelMapParts,
    cts: Sequence[Cotangent],
    adjoint: _MapAdjoint,
) -> None:
    b, operands, count = bwd.b, (*p.mapped, *p.invariants), len(p.mapped)
    seeds = {k: instantiate_or_zeros(b, cts[k], node.results[k]) for k in adjoint.seeded}
    elements = [j for j in adjoint.reached if j < count]
    fixed = [j for j in adjoint.reached if j >= count]
    starts = [instantiate_or_zeros(b, bwd.cts.take(operands[j]), operands[j]) for j in fixed]
    backward = b.parallel_map(
        [
            *adjoint.residuals,
            *(operands[j] for j in adjoint.mapped),
            *(seed for k, seed in seeds.items() if p.forms[k] != SUM),
        ],
        starts,
        [
            *(operands[j] for j in adjoint.invariants),
            *(seed for k, seed in seeds.items() if p.forms[k] == SUM),
        ],
        adjoint.body,
        [
            *(LIST if isinstance(operands[j].type, ListType) else STACK for j in elements),
            *(SUM for _ in fixed),
        ],
        **p.options,
    )
    for j, ct in zip([*elements, *fixed], backward.results, strict=True):
        bwd.cts.add(b, operands[j], ct)
