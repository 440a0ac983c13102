"""Segments of a loop whose trips run again, with the tape of `"keep"`, and are gone back over."""

from __future__ import annotations

from collections.abc import Sequence

from wend.autodiff.cotangents import Cotangent, instantiate_or_zeros
from wend.autodiff.rotate import params_like
from wend.autodiff.rule_checkpoint import recompute_and_transpose
from wend.autodiff.schedule import LoopSteps
from wend.autodiff.structured import emit_loop
from wend.autodiff.transpose import Transposer
from wend.base.zero import ZERO
from wend.ir.dtypes import INT64
from wend.ir.graph import Graph, Value
from wend.ir.rewrite import inline
from wend.ops.build import Build
from wend.ops.control import AGAIN, WhileParts


def went_back(
    b: Build,
    loop: LoopSteps,
    segment: Graph,
    state: Sequence[Value],
    invariants: Sequence[Value],
    trips: Value,
    cts: Sequence[Value],
) -> list[Value]:
    """Go back over so many trips from a state; return the cotangents before them, and the sums.

    Args:
        b: the builder.
        loop: the loop.
        segment: what `segment_back` gives.
        state: the state before the trips.
        invariants: the invariants of the loop.
        trips: how many.
        cts: the cotangents after the trips, and the sums so far.
    """
    count = len(loop.nonzero.forwarded)
    grads = inline(segment, [*state, *invariants, trips, *cts[:count]], b.nodes)
    pairs = zip(cts[count:], grads[count:], strict=True)
    return [*grads[:count], *(b.autograd_add(old, new) for old, new in pairs)]


def segment_back(t: Transposer, loop: LoopSteps) -> Graph:
    """Return (state…, invariants…, trips, cotangents…) → cotangents at the start, and sums."""
    w, nonzero = loop.w, loop.nonzero
    segment = _segment(w)
    forwarded = len(w.forwarded)
    positions = [*nonzero.forwarded, *(forwarded + j for j in nonzero.invariants)]
    b = Build("segment_back")
    b.source = w.source
    state, invariants = params_like(b, loop.state), params_like(b, w.after_invariants)
    trips = b.param(segment.params[-1].type)
    cts = params_like(b, loop.cts[: len(nonzero.forwarded)])
    values = dict(zip(loop.state_positions, state, strict=True))
    values |= {forwarded + j: value for j, value in enumerate(invariants)}
    values[len(segment.params) - 1] = trips
    seeds: list[Cotangent] = [ZERO] * forwarded
    for i, ct in zip(nonzero.forwarded, cts, strict=True):
        seeds[i] = ct
    transposed = recompute_and_transpose(t, segment, positions, seeds)
    assert transposed is not None
    graph, connected, used = transposed
    first_ct = len(segment.params)
    values |= {first_ct + k: ct for k, ct in enumerate(cts)}
    results = inline(graph, [values[k] for k in used], b.nodes)
    grads = dict(zip(connected, results, strict=True))
    likes = [*cts, *(invariants[j] for j in nonzero.invariants)]
    pairs = zip(positions, likes, strict=True)
    return b.finish([instantiate_or_zeros(b, grads.get(k, ZERO), like) for k, like in pairs])


def _segment(w: WhileParts) -> Graph:
    """Return (forwarded…, invariants…, trips) → what is forwarded so many trips later."""
    b = Build("segment")
    b.source = w.source
    forwarded = params_like(b, w.after_forwarded)
    invariants = params_like(b, w.after_invariants)
    trips = b.param(w.predicate.tensor.with_dtype(INT64))

    def body(b: Build, carry: Sequence[Value], invariants: Sequence[Value]) -> Sequence[Value]:
        remaining, *forwarded = carry
        _, *results = inline(w.after, [*forwarded, *invariants], b.nodes)
        return [b.sub(remaining, b.integer(1)), *results]

    def test(b: Build, carry: Sequence[Value], _: Sequence[Value]) -> Value:
        return b.gt(carry[0], b.integer(0))

    carry = [trips, *forwarded]
    return b.finish(emit_loop(b, carry, invariants, test, body, applied=AGAIN)[1:])
