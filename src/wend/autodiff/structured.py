"""Loops and branches in a builder, with regions that are written as Python functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wend.autodiff.rotate import params_like
from wend.ir.graph import Graph, Value
from wend.ops.build import Build

# (builder, carry, invariants) -> values
Body = Callable[[Build, Sequence[Value], Sequence[Value]], Sequence[Value]]
Test = Callable[[Build, Sequence[Value], Sequence[Value]], Value]


def emit_loop(
    b: Build,
    carry: Sequence[Value],
    invariants: Sequence[Value],
    test: Test,
    body: Body,
    *,
    like: Sequence[Value] | None = None,
    applied: str = "",
) -> Sequence[Value]:
    """Emit a loop that tests first, and return its last carry.

    Args:
        b: the builder.
        carry: the values to start from.
        invariants: what both regions may read besides.
        test: gives the predicate.
        body: gives the next carry.
        like: values of the types that the carry has in the loop, if other than at the start.
        applied: the policy that made it.
    """
    regions = []
    for name in ("before", "after"):
        region = Build(name)
        region.source = b.source
        params = params_like(region, carry if like is None else like)
        outer = params_like(region, invariants)
        is_test = name == "before"
        results = [test(region, params, outer), *params] if is_test else body(region, params, outer)
        regions.append(region.finish(results))
    return b.while_(carry, invariants, *regions, applied=applied).results


def emit_branches(
    b: Build,
    selector: Value,
    operands: Sequence[Value],
    branches: Sequence[Callable[[Build, Sequence[Value]], Sequence[Value]]],
) -> Sequence[Value]:
    """Emit a branch for each function from the operands to the results, and return the results."""
    graphs: list[Graph] = []
    for number, branch in enumerate(branches):
        region = Build(f"branch{number}")
        region.source = b.source
        params = params_like(region, operands)
        graphs.append(region.finish(branch(region, params)))
    return b.if_(selector, operands, graphs).results
