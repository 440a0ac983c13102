"""`while_loop` and `fori_loop`; signatures as in `jax.lax`.

Each records one node. Outside a trace they are traced as well, then run, so that a mismatch in the
carry is reported before anything runs (D14).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.memory import Memory, memory_text
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged
from wend.ir.dtypes import INT64
from wend.ir.types import TensorType
from wend.numpy import elementwise as ew
from wend.ops.control import DEFAULT_PARALLEL_ITERATIONS
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.loop_types import LoopTypes
from wend.trace.immediate import run_now
from wend.trace.recording.checks import (
    check_functions,
    check_integer,
    check_predicate,
    check_unroll,
)
from wend.trace.recording.recording import Recording, current
from wend.trace.recording.regions import add_mutated_refs, inner_loops_keep, join_loop
from wend.trace.recording.run_errors import refuse_escaping_errors

CondFun = Callable[[Any], Any]
BodyFun = Callable[[Any], Any]
_COUNT = TensorType(INT64, ())


def while_loop(
    cond_fun: CondFun,
    body_fun: BodyFun,
    init: Any,
    *,
    maximum_iterations: Any = None,
    parallel_iterations: int | None = None,
    shape_invariants: Any = None,
    memory: Memory | None = None,
    return_trips: bool = False,
    name: str | None = None,
) -> Any:
    """Repeat `carry = body_fun(carry)` while `cond_fun(carry)` holds; records one node.

    It can be differentiated to any order, however many trips it makes.

    Args:
        cond_fun: carry → a bool scalar.
        body_fun: carry → the next carry, of the same structure, dtypes and shapes. Python
            scalars take the dtype of what they meet (`0` may become an f64 array's sum).
        init: the carry to start from, a pytree of arrays and numbers.
        maximum_iterations: a bound on the number of trips; an integer, plain or traced.
        parallel_iterations: how many trips the dataflow backend may have in flight at once, 10
            by default; never changes the result. Native code runs two stages of a loop on two
            trips where that gains something, unless it is 1; others make one trip after the other.
        shape_invariants: a pytree like `init` of shapes with None for sizes that change from
            trip to trip, or None for a leaf whose shape does not change.
        memory: what the loop keeps for the backward pass; by default what
            `config(memory=…)` says.
        return_trips: also return the number of trips.
        name: a name for the loop in graphs and messages.

    Returns:
        The last carry, or `(carry, trips)`.

    Raises:
        TypeMismatchError: the predicate is not a bool scalar.
        CarryError: the next carry has another dtype or shape.
        StructureError: the next carry has another structure.

    Example:
        >>> import wend
        >>> wend.while_loop(lambda v: v < 8.0, lambda v: v * v, 2.0)
        np.float64(16.0)
        >>> wend.grad(lambda x: wend.while_loop(lambda v: v < 8.0, lambda v: v * v, x))(2.0)
        np.float64(32.0)
    """
    check_functions(cond_fun=cond_fun, body_fun=body_fun)
    if parallel_iterations is not None and (
        not isinstance(parallel_iterations, int) or parallel_iterations < 1
    ):
        raise TypeError(f"parallel_iterations must be a positive int, not {parallel_iterations!r}")
    if memory is not None:
        memory_text(memory)
    where = f"{name or 'while_loop'}{at(user_source())}"
    if maximum_iterations is not None:
        check_integer(maximum_iterations, f"{where}: maximum_iterations")
    recording = current()
    if recording is None:
        return run_now(
            lambda carry, limit: while_loop(
                cond_fun,
                body_fun,
                carry,
                maximum_iterations=limit,
                shape_invariants=shape_invariants,
                memory=memory,
                parallel_iterations=parallel_iterations,
                return_trips=return_trips,
                name=name,
            ),
            init,
            maximum_iterations,
        )
    if parallel_iterations is not None and parallel_iterations > 1:
        hint = f"parallel_iterations={parallel_iterations}"
        limits = "is for the dataflow backend; native code has at most two trips in flight"
        recording.notes[f"{hint} of {where} {limits}"] = None
    types = LoopTypes(where, init, is_resizable=True)
    if shape_invariants is not None:
        types.relax(shape_invariants)
    if parallel_iterations == DEFAULT_PARALLEL_ITERATIONS:
        parallel_iterations = None  # not stored, so that the graphs are equal
    loop = _RecordedLoop(cond_fun, body_fun, types, memory, parallel_iterations)
    return loop.record(maximum_iterations, return_trips)


class _RecordedLoop:
    """A `while_loop` that is being recorded."""

    def __init__(
        self,
        cond_fun: CondFun,
        body_fun: BodyFun,
        types: LoopTypes,
        memory: Memory | None,
        parallel_iterations: int | None = None,
    ) -> None:
        self.parallel_iterations = parallel_iterations
        self.cond_fun, self.body_fun, self.types, self.memory = cond_fun, body_fun, types, memory
        self.refs: list[Tracer] = []

    def record(self, limit: Any, return_trips: bool) -> Any:
        outer = current()
        assert outer is not None
        self.has_trip_count = limit is not None or return_trips
        while True:
            before, predicate = self._trace_cond(outer)
            after, results = self._trace_body(outer)
            if not add_mutated_refs(self.refs, before, after) and not self.types.unify(
                results, after
            ):
                break
        count = len(self.types.types)
        forwarded = [before.wrap(param) for param in before.b.params[: count + self.has_trip_count]]
        with before.active():
            if limit is not None:
                is_below_limit = ew.less(forwarded[-1], limit)
                is_always_true = predicate is True or predicate is np.True_
                predicate = (
                    is_below_limit if is_always_true else ew.logical_and(is_below_limit, predicate)
                )
            test = before.lift(predicate if isinstance(predicate, Staged) else np.bool_(predicate))
        with after.active():
            next_carry = self.types.next_carry(results, after)
            if self.has_trip_count:
                next_carry.append(after.lift(after.wrap(after.b.params[count]) + 1))
        start = self.types.start(outer)
        if self.has_trip_count:
            start.append(outer.b.integer(0))
        before_results = [test, *(tracer.value for tracer in forwarded)]
        node = join_loop(
            outer,
            start,
            before,
            before_results,
            after,
            next_carry,
            self.refs,
            memory=self.memory,
            parallel_iterations=self.parallel_iterations,
        )
        carry = self.types.rebuild(outer, node.results[:count])
        return (carry, outer.wrap(node.results[count])) if return_trips else carry

    def _open(self, name: str, role: str, outer: Recording) -> tuple[Recording, Any]:
        """Open a region with params for the carry, the trip count and arrays changed in place."""
        region_role = f"{role} of {self.types.where}"
        region = Recording(name, outer, is_region=True, role=region_role)
        carry = self.types.params(region)
        if self.has_trip_count:
            region.param(_COUNT)
        region.open_for(self.refs)
        return region, carry

    def _trace_cond(self, outer: Recording) -> tuple[Recording, Any]:
        before, carry = self._open("before", "cond_fun", outer)
        with before.active(), refuse_escaping_errors(self.types.where), inner_loops_keep():
            predicate = self.cond_fun(carry)
            check_predicate(predicate, self.types.where)
        return before, predicate

    def _trace_body(self, outer: Recording) -> tuple[Recording, list[Any]]:
        after, carry = self._open("after", "the body", outer)
        with after.active(), refuse_escaping_errors(self.types.where), inner_loops_keep():
            after.frames.save_for_interrupts()
            return after, self.types.leaves_of(self.body_fun(carry))


def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init: Any,
    *,
    unroll: int | bool | None = None,
    memory: Memory | None = None,
) -> Any:
    """Repeat `carry = body_fun(i, carry)` for i from `lower` to `upper` − 1; records one node.

    Args:
        lower: the first i, an integer, plain or traced.
        upper: the end of the range, exclusive; no trips if it is at most `lower`.
        body_fun: (i, carry) → the next carry.
        init: the carry to start from.
        unroll: trips at once, as in JAX; the backend decides, whatever is asked for.
        memory: what the loop keeps for the backward pass; by default what
            `config(memory=…)` says.

    Returns:
        The last carry.

    Example:
        >>> import wend
        >>> wend.fori_loop(0, 3, lambda i, x: x * (i + 1), 2.0)
        np.float64(12.0)
    """
    check_functions(body_fun=body_fun)
    if unroll is not None:
        check_unroll(unroll, "fori_loop")
    where = f"fori_loop{at(user_source())}"
    check_integer(lower, f"{where}: lower")
    check_integer(upper, f"{where}: upper")
    if memory is not None:
        memory_text(memory)
    if current() is None:
        return run_now(
            lambda a, b, c: fori_loop(a, b, body_fun, c, memory=memory), lower, upper, init
        )
    types = LoopTypes(where, (lower, init), _counted_paths(init))
    loop = _RecordedLoop(
        lambda state: state[0] < upper,
        lambda state: (state[0] + 1, body_fun(state[0], state[1])),
        types,
        memory,
    )
    return loop.record(None, return_trips=False)[1]


def _counted_paths(init: Any) -> list[str]:
    """Return the paths of a carry and its counter, in the user's terms."""
    return ["the counter", *trees.paths(trees.flatten_deep(init)[1], "carry")]
