"""The adjoint of `While` is again a `While`, counted down by the forward trip count (D1).

Its `before` is the transpose of the forward `before`, its `after` that of `after`: so the former
runs T + 1 times, the first time for the exit pass, and the latter T times. Neither evaluates the
forward predicate again. Record t of the forward `before` and record t − 1 of `after` are read by
position (D11), and the cotangents of invariants accumulate in carries. A loop with a tape policy
other than `"keep"` is rewritten first (D31).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial

from wend.autodiff.activity import region_activity
from wend.autodiff.changes_in_place import origin, updates_of_carries
from wend.autodiff.checkpoints import CheckpointSchedule
from wend.autodiff.copied_carries import check_copies, copied_bytes, pushed_types, trips_of_copy
from wend.autodiff.cotangents import Cotangent
from wend.autodiff.keep_all import DifferentiatedLoop, LoopAdjoint, keep_all
from wend.autodiff.loop_transpose import LoopCotangentActivity, Memo, cotangent_activity
from wend.autodiff.rotate import is_rotated, params_like, rotated
from wend.autodiff.rule_if import pull_back_call
from wend.autodiff.rule_schedule import loop_steps, pull_back_by_schedule
from wend.autodiff.rule_spill import pull_back_spilled
from wend.autodiff.strip_mine import strip_mined
from wend.autodiff.thin import ThinSchedule
from wend.autodiff.transpose import BackwardPass, Transposer
from wend.base.memory import Checkpoints, Every, Memory, parsed
from wend.base.zero import ZERO, Zero
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.types import TensorType
from wend.ops.build import Build
from wend.ops.control import WhileParts
from wend.ops.loop_counters import trip_count

# A tape as large as n copies of what a loop changes in place is 2 n segments for `"thin"`, which
# keeps √(4 n) copies, and as many tapes of half their size: less than n if n is more than 9.
_MIN_COPIES_OF_THIN = 9

_nonzero: Memo[LoopCotangentActivity] = Memo()
_rewritten: Memo[Graph] = Memo()


def pull_back_while(t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]) -> None:
    """Append the backward `While` of a forward one, as its policy wants it."""
    w = WhileParts.of(node)
    policy = parsed(w.memory)
    match policy:
        case Checkpoints() | "thin" if is_rotated(w):
            _pull_back_scheduled(t, bwd, node, cts, policy)
        case Checkpoints() | "thin":
            _pull_back_as(t, bwd, node, cts, rotated)
        case Every(trips=trips):
            _pull_back_mined(t, bwd, node, cts, trips)
        case "offload" | "spill":
            _pull_back_spilled(t, bwd, node, cts)
        case "recompute":
            _pull_back_mined(t, bwd, node, cts, 1)
        case _ if _exceeds_limit(t, bwd, node, cts):
            _pull_back_as(t, bwd, node, cts, _as_thin)
        case _:
            _pull_back_kept(t, bwd, node, cts)


def _exceeds_limit(t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]) -> bool:
    """Return whether a loop is known to record more than its limit, and `"thin"` can keep less."""
    w = WhileParts.of(node)
    trips = trip_count(w) if w.limit and not w.applied else None
    if not isinstance(trips, int) or _has_effects(node):
        return False
    adjoint = _kept_adjoint(t, bwd, node, cts)
    if adjoint is None:
        return False
    types = pushed_types(adjoint.forward_nodes[-1])
    sizes = [type.nbytes for type in types if isinstance(type, TensorType)]
    known = [size for size in sizes if size is not None]
    most = max(w.limit, _MIN_COPIES_OF_THIN * copied_bytes(node))
    return len(known) == len(types) and trips * sum(known) > most


def _has_effects(node: Node) -> bool:
    """Return whether trips that run again would repeat more than checks."""
    effects = {inner.op.effect for region in node.regions for inner in region.walk()}
    return not effects.isdisjoint({Effect.WORLD, Effect.STATE})


def _as_thin(node: Node) -> Graph:
    """Return a graph of a loop with the policy `"thin"`."""
    w, b = WhileParts.of(node), Build("thin")
    b.source = node.source
    params = params_like(b, node.operands)
    count = len(w.carry)
    carry, invariants = params[:count], params[count:]
    loop = b.while_(
        carry,
        invariants,
        w.before,
        w.after,
        memory="thin",
        parallel_iterations=w.parallel_iterations,
    )
    return b.finish(loop.results)


def _pull_back_as(
    t: Transposer,
    bwd: BackwardPass,
    node: Node,
    cts: Sequence[Cotangent],
    rewrite: Callable[[Node], Graph],
    key: Hashable = None,
) -> None:
    """Differentiate a graph of the operands and results of a loop in its place.

    Args:
        t: the transposer.
        bwd: the backward pass.
        node: the loop.
        cts: the cotangents of its results.
        rewrite: returns the graph.
        key: tells apart the graphs of a loop.
    """
    b = Build("")
    b.source = node.source
    call = b.call(_rewritten(node, key, lambda: rewrite(node)), node.operands)
    pull_back_call(t, bwd, call, cts)
    if call in bwd.replaced:
        bwd.replaced[node] = bwd.replaced.pop(call)


def _pull_back_mined(
    t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent], trips: int
) -> None:
    """Differentiate the strip-mined loop, unless its records are larger than those of `"keep"`."""
    _pull_back_as(t, bwd, node, cts, lambda node: strip_mined(node, trips))
    kept_nodes = _compared(t, bwd, node, cts)
    if kept_nodes:
        check_copies(node, trips, bwd.replaced[node], kept_nodes)


def _pull_back_scheduled(
    t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent], policy: Memory
) -> None:
    """Keep states of a rotated loop by a schedule.

    Where a state has arrays that the loop changes in place, a state is kept for many trips: copies
    of it, and restoring them, then cost no more than the records of `"keep"`.
    """
    trips = 0 if bwd.is_trial else _trips_of_copy(t, bwd, node, cts)
    match policy:
        case Checkpoints(slots=slots) if trips > 1 and slots > 1:
            # The records of a segment, which take less than the arrays, have one slot's place.
            memory = str(Checkpoints(slots - 1))
        case "thin" if trips > 1:
            memory = "thin"
        case Checkpoints(slots=slots):
            return pull_back_by_schedule(t, bwd, node, cts, CheckpointSchedule(slots))
        case _:
            return pull_back_by_schedule(t, bwd, node, cts, ThinSchedule())
    rewrite = partial(strip_mined, trips=trips, recompute=False, memory=memory)
    return _pull_back_as(t, bwd, node, cts, rewrite, key=trips)


def _trips_of_copy(t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]) -> int:
    """Return for how many trips `"keep"` records half of what a copy takes; 0: there is no copy.

    A copy is one of the arrays that the loop changes in place and that its backward pass needs.
    """
    if not updates_of_carries(node):
        return 0
    adjoint = _kept_adjoint(t, bwd, node, cts)
    steps = loop_steps(t, bwd, node, cts)
    if adjoint is None or steps is None:
        return 0
    return trips_of_copy(node, steps.state, adjoint.forward_nodes[-1])


def _pull_back_spilled(
    t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]
) -> None:
    """Write what `"keep"` records to segments; where it records nothing, there is no need."""
    adjoint = _kept_adjoint(t, bwd, node, cts)
    if adjoint is None or not pushed_types(adjoint.forward_nodes[-1]):
        _pull_back_kept(t, bwd, node, cts)
    else:
        pull_back_spilled(t, bwd, node, cts, adjoint.forward_nodes)


def _compared(
    t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]
) -> Sequence[Node]:
    """Return the nodes of `"keep"` for a loop that changes a carry in place; none for others."""
    if bwd.is_trial or node not in bwd.replaced or not updates_of_carries(node):
        return []
    active_operands = tuple(operand in bwd.active for operand in node.operands)
    arrived = frozenset(i for i, ct in enumerate(cts) if ct is not ZERO)
    adjoint = _adjoint(t, node, active_operands, arrived, _changing(bwd, node))
    return [] if adjoint is None else adjoint.forward_nodes


def _kept_adjoint(
    t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]
) -> LoopAdjoint | None:
    """Return the backward loop that reads the records of every trip, if there is any."""
    active_operands = tuple(operand in bwd.active for operand in node.operands)
    arrived = frozenset(i for i, ct in enumerate(cts) if ct is not ZERO)
    # The body of an enclosing loop is pulled back more than once.
    adjoints = {} if t.known is None else t.known
    key = node, active_operands, arrived, _changing(bwd, node)
    if key not in adjoints:
        adjoints[key] = _adjoint(t, *key)
    adjoint: LoopAdjoint | None = adjoints[key]
    return adjoint


def _pull_back_kept(t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]) -> None:
    """Keep the records of every trip."""
    adjoint = _kept_adjoint(t, bwd, node, cts)
    if adjoint is not None:
        bwd.replaced[node] = adjoint.forward_nodes
        _append_backward(bwd, node, cts, adjoint)


def _changing(bwd: BackwardPass, node: Node) -> frozenset[int]:
    """Return the positions of the invariants of a loop that a loop around it changes in place."""
    invariants = enumerate(WhileParts.of(node).invariants)
    return frozenset(k for k, x in invariants if origin(x) in bwd.changing)


def _adjoint(
    t: Transposer,
    node: Node,
    active_operands: tuple[bool, ...],
    arrived: frozenset[int],
    changing: frozenset[int],
) -> LoopAdjoint | None:
    """Return the backward loop; None where every cotangent is zero."""
    w = WhileParts.of(node)
    activity = region_activity(node, active_operands)
    seeded = frozenset(i for i in arrived if w.forwarded[i] in activity.regions[0])
    key = active_operands, seeded
    nonzero = _nonzero(node, key, lambda: cotangent_activity(t, node, activity, seeded))
    if not nonzero.forwarded:
        return None
    loop = DifferentiatedLoop(node, active_operands, activity, nonzero, changing)
    return keep_all(t, loop)


def _append_backward(
    bwd: BackwardPass, node: Node, cts: Sequence[Cotangent], adjoint: LoopAdjoint
) -> None:
    b, w, nonzero = bwd.b, WhileParts.of(node), adjoint.nonzero
    seeds = [_instantiated(b, cts[i], node.results[i]) for i in nonzero.forwarded]
    sums = [
        _instantiated(b, bwd.cts.take(w.invariants[j]), w.invariants[j]) for j in nonzero.invariants
    ]
    # The count of a loop that stops at its limit of memory holds the test of that
    known = None if w.limit else trip_count(w)
    carry = [b.integer(known) if isinstance(known, int) else adjoint.trips, *seeds, *sums]
    backward = b.while_(
        carry,
        adjoint.outer,
        adjoint.before,
        adjoint.after,
        applied=w.applied,
        limit=w.limit,
        parallel_iterations=w.parallel_iterations,
    )
    _, *results = backward.results
    carry_cts, sum_cts = results[: len(nonzero.carry)], results[len(nonzero.carry) :]
    for i, ct in zip(nonzero.carry, carry_cts, strict=True):
        if w.carry[i] in bwd.active:
            bwd.cts.add(b, w.carry[i], ct)
    for j, ct in zip(nonzero.invariants, sum_cts, strict=True):
        bwd.cts.add(b, w.invariants[j], ct)


def _instantiated(b: Build, ct: Cotangent, like: Value) -> Value:
    """Return the cotangent as an array: where none arrived, the zeros that a sum starts from."""
    return b.instantiate(b.zero(like.type) if isinstance(ct, Zero) else ct, like)
