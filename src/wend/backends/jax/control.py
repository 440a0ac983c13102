"""Regions, loops, branches and calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from wend.backends.jax.checks import may_reduce_nothing
from wend.backends.jax.emit.table import emit
from wend.backends.jax.list_classes import CapacityClass
from wend.backends.jax.lowering import LOOP, GraphLowering, Progress
from wend.backends.jax.maps import lower_map
from wend.backends.jax.offload import SegmentsInFlight
from wend.backends.jax.trips import Trips, find_trips
from wend.backends.jax.values import DeviceList, NewList, TripList, is_static, trip_list
from wend.base.memory import Checkpoints, parsed, without_segments
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.types import ListType
from wend.ops import creating, custom, elementwise, lists, schedules
from wend.ops.control import CallParts, IfParts, WhileParts, call, if_, while_
from wend.ops.frame_states import frame_state, may_fail, operands_by_number
from wend.ops.parallel_map import parallel_map
from wend.passes.lane_maps import backward_counter
from wend.runtime.partial_writes import element_keys


def lower_region(
    ctx: GraphLowering, graph: Graph, arguments: Sequence[Any], only: Collection[Node] | None = None
) -> list[Any]:
    """Lower the nodes of a graph, or only some of them; return its results."""
    values: dict[Value, Any] = {}
    for param, argument in zip(graph.params, arguments, strict=True):
        values[param] = argument
        ctx.bind(param.type, argument)
    elements: tuple[Sequence[Any], Any] | None = None
    for node in graph.nodes:
        if only is not None and node not in only:
            continue
        if node.op is frame_state and (keys := element_keys(node.attrs["written"])):
            operands_of = operands_by_number(node)
            elements = [values[operands_of[k][0]] for k in keys], ctx.progress.code
        results = _lower_node(ctx, node, [values[operand] for operand in node.operands], graph)
        for result, value in zip(node.results, results, strict=True):
            values[result] = value
            ctx.bind(result.type, value)
        if ctx.rows:
            ctx.propagate_row_axes(node)
    if elements is not None:
        ctx.note_elements(*elements)
    if only is not None:
        return [values.get(result) for result in graph.results]
    return [
        ctx.fit(values[result], result.type, ctx.classes.of_use(graph, k))
        if isinstance(values[result], NewList)
        else values[result]
        for k, result in enumerate(graph.results)
    ]


def _lower_node(
    ctx: GraphLowering, node: Node, operands: Sequence[Any], graph: Graph
) -> Sequence[Any]:
    ctx.node = node
    if node.op is lists.list_new:
        return [NewList(node.attrs["element"])]
    if node.op is while_:
        return _lower_while(ctx, node, operands)
    operands = ctx.operands_of(node, operands)
    if node.op is if_:
        return _lower_if(ctx, node, operands)
    if node.op is call:
        return _lower_call(ctx, node, operands)
    if node.op is parallel_map:
        body = node.regions[0]
        is_threaded = may_fail_in(body) or pushes_in(body)
        with ctx.inside("a map"):
            return lower_map(ctx, node, operands, lower_region, is_threaded=is_threaded)
    if node.op in custom.RULED or node.op is schedules.scheduled:
        return lower_region(ctx, node.regions[0], operands)
    is_checked_later = node.op is lists.list_push and _is_kept(node, graph)
    results = emit(ctx, node, operands, is_checked_later=is_checked_later)
    if node.op in (elementwise.add, elementwise.sub):
        _note_common(ctx, node, operands, results[0])
    if node.op is elementwise.minimum:
        known = [most for x in operands if (most := ctx.most_of(x)) is not None]
        ctx.note_most(results[0], min(known, default=None))
    return results


def _note_common(ctx: GraphLowering, node: Node, operands: Sequence[Any], result: Any) -> None:
    """Note that a common integer plus or minus a known one is common."""
    x, y = operands
    common = ctx.common(x)
    if common is not None and is_static(y):
        ctx.note_common(result, common + y if node.op is elementwise.add else common - y)


def _is_kept(push: Node, region: Graph) -> bool:
    """Return whether the list after a push is what the region gives."""
    return any(result is push.results[0] for result in region.results)


# Loops
# What a trip passes on besides the carry: its progress, and the segments in flight
_Threaded: TypeAlias = tuple[Progress | None, Sequence[Any]]


class _Trip(NamedTuple):
    """The state of a loop before a trip.

    Attributes:
        threaded: what is passed on besides the carry.
        carry: the carry.
        row: the number of the record that elements of a map read, from the last one on.
    """

    threaded: _Threaded
    carry: list[Any]
    row: Any = None


def _lower_while(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    w = WhileParts.of(node)
    count = len(w.carry)
    trips = find_trips(w, operands, ctx.most_of)
    bounded = _bound_lists(ctx, node, w, trips, operands)
    invariants = [
        ctx.fit(x, node.operands[count + k].type, ctx.classes.of_use(node, count + k))
        if isinstance(x, NewList)
        else x
        for k, x in enumerate(operands[count:])
    ]
    sizes = _final_sizes(w, trips, operands)
    carry = [
        ctx.fit(x, w.before_carry[k].type, ctx.classes.of_use(node, k), sizes.get(k) or 0)
        for k, x in enumerate(operands[:count])
    ]
    if ctx.active is not None and ctx.copies:
        carry = [
            trip_list(x, ctx.axes) if k in trips.pushes and isinstance(operands[k], NewList) else x
            for k, x in enumerate(carry)
        ]
    for param, x in zip(w.before_carry, carry, strict=True):
        ctx.bind(param.type, x)
    outer = ctx.live_classes, ctx.bounded_classes
    read = _classes_read(ctx, w)
    pushed = {c for value in w.before_carry if (c := ctx.classes.of(value)) is not None}
    ctx.live_classes = outer[0] | (pushed - read)
    unbounded = _unbounded_classes(ctx, w, trips, bounded)
    ctx.bounded_classes = outer[1] | ({*bounded.values()} - unbounded)
    try:
        with ctx.inside(LOOP):
            loop = _LoopLowering(ctx, w, invariants, pushed & read, is_bounded=trips.has_bound)
            results = loop.run(carry)
    finally:
        ctx.live_classes, ctx.bounded_classes = outer
    return [_finished(ctx, node, k, x, trips, sizes, unbounded) for k, x in enumerate(results)]


def _finished(
    ctx: GraphLowering,
    node: Node,
    k: int,
    x: Any,
    trips: Trips,
    sizes: dict[int, int | None],
    unbounded: Collection[CapacityClass | None],
) -> Any:
    """Return a result of a loop, with what is known of it; note the length of a list."""
    w = WhileParts.of(node)
    if k in trips.finals:
        return trips.finals[k]
    if not isinstance(x, (DeviceList, TripList)):
        ctx.note_most(x, trips.most_finals.get(k))
        return x
    sources = [c for c, value in _carry_results(w) if value == k]
    size = sizes.get(sources[0]) if sources else None
    list_class = ctx.classes.of(w.forwarded[k])
    if list_class is not None and size is None and (ctx.grows or list_class in unbounded):
        ctx.note_length(list_class, x.length, node)
    return replace(x, row=None) if isinstance(x, TripList) else replace(x, size=size)


def _carry_results(w: WhileParts) -> Sequence[tuple[int, int]]:
    """Return pairs of a list of the carry and the result of the loop that it becomes."""
    pairs = []
    for k, following in enumerate(w.next_carry):
        if isinstance(following.type, ListType):
            value: Value | None = following
            while value is not None and value.node is not None:
                value = value.node.operands[0] if value.node.op in _RESIZE else None
            if value in w.after_forwarded:
                pairs.append((k, w.after_forwarded.index(value)))
    return pairs


_RESIZE = {lists.list_push, lists.list_pop}


def _final_sizes(w: WhileParts, trips: Trips, operands: Sequence[Any]) -> dict[int, int | None]:
    """Return the lengths of lists of the carry after a loop of known trips."""
    sizes: dict[int, int | None] = {}
    for changes, sign in (trips.pushes, 1), (trips.pops, -1):
        for k, (first, second) in changes.items():
            size = _known_size(operands[k])
            if size is not None and trips.count is not None:
                change = first * (trips.count + 1) + second * trips.count
                sizes[k] = max(size + sign * change, 0)
    return sizes


def _bound_lists(
    ctx: GraphLowering, node: Node, w: WhileParts, trips: Trips, operands: Sequence[Any]
) -> Mapping[int, CapacityClass]:
    """Note how long the lists of a loop get at most that counts its trips.

    Returns:
        the classes of these lists, by position in the carry.
    """
    bounded: dict[int, CapacityClass] = {}
    policy = parsed(without_segments(w.applied)[0])
    if isinstance(policy, Checkpoints):
        for k in range(len(w.carry)):
            if (list_class := ctx.classes.of_use(node, k)) is not None:
                ctx.bound(list_class, policy.slots)
                bounded[k] = list_class
        return bounded
    for k, (first, second) in trips.most_pushes.items():
        start, list_class = operands[k], ctx.classes.of_use(node, k)
        size = _known_size(start)
        if trips.most is not None and size is not None and list_class is not None:
            ctx.bound(list_class, size + first * (trips.most + 1) + second * trips.most)
            bounded[k] = list_class
    return bounded


def _known_size(value: Any) -> int | None:
    """Return how many elements a list has, if that is known while lowering."""
    if isinstance(value, NewList):
        return 0
    return value.size if isinstance(value, DeviceList) else None


def _unbounded_classes(
    ctx: GraphLowering, w: WhileParts, trips: Trips, bounded: Mapping[int, CapacityClass]
) -> set[CapacityClass | None]:
    """Return the classes of which a loop makes a list longer that has no bound."""
    nodes = [node for region in (w.before, w.after) for node in region.walk()]
    pushes = Counter(ctx.classes.of_use(n, 0) for n in nodes if n.op is lists.list_push)
    for k, list_class in bounded.items():
        pushes[list_class] -= trips.push_nodes.get(k, pushes[list_class])
    return {list_class for list_class, count in pushes.items() if count}


def _classes_read(ctx: GraphLowering, w: WhileParts) -> set[Any]:
    """Return the classes of lists that a trip reads, so that their elements must not be lost."""
    return {
        ctx.classes.of_use(node, 0)
        for region in (w.before, w.after)
        for node in region.walk()
        if node.op in _READ_LISTS
    }


_READ_LISTS = {lists.list_pop, lists.list_get, lists.list_set, lists.list_add_at, lists.list_len}


class _LoopLowering:
    """The functions of one `lax.while_loop`."""

    def __init__(
        self,
        ctx: GraphLowering,
        w: WhileParts,
        invariants: Sequence[Any],
        guarded: Collection[Any],
        *,
        is_bounded: bool,
    ) -> None:
        self.ctx, self.w, self.invariants, self.guarded = ctx, w, invariants, guarded
        self.active = ctx.active
        self.in_flight = SegmentsInFlight.of(w, invariants)
        self.stops = may_fail_in(w.before) or may_fail_in(w.after)
        is_pushing = pushes_in(w.before) or pushes_in(w.after)
        self.is_threaded = self.stops or is_pushing
        # After a check that fails values mean nothing, and the loop might never end.
        is_gated = bool(ctx.checks) and not self.stops and not is_bounded
        self.may_run = ctx.progress.code == 0 if is_gated else None
        # A backward loop of a map goes from row to row: each element joins in at its own last one.
        reads_rows = any(isinstance(x, TripList) for x in invariants)
        self.counter = backward_counter(w) if reads_rows and not is_pushing else None

    def run(self, carry: Sequence[Any]) -> list[Any]:
        self.in_flight.start(self.ctx, carry, self.invariants)
        # Elements of a map record in each trip, but not once more, each after its own last one
        is_last_common = self.active is None or not pushes_in(self.w.before)
        slice_ = _separate_predicate(self.w) if is_last_common else None
        results = self.test_first(carry, slice_) if slice_ is not None else self.rotated(carry)
        return [
            self.in_flight.finish(self.ctx, x, self.ctx.classes.of(value))
            for x, value in zip(results, self.w.forwarded, strict=True)
        ]

    def before(self, carry: Sequence[Any]) -> tuple[Any, list[Any]]:
        predicate, *forwarded = lower_region(self.ctx, self.w.before, [*carry, *self.invariants])
        return predicate, [
            self.ctx.fit_result(x, param)
            for x, param in zip(forwarded, self.w.after_forwarded, strict=True)
        ]

    def after(self, forwarded: Sequence[Any]) -> list[Any]:
        following = lower_region(self.ctx, self.w.after, [*forwarded, *self.invariants])
        return [
            self.ctx.fit_result(x, param)
            for x, param in zip(following, self.w.before_carry, strict=True)
        ]

    def goes_on(self, predicate: Any, progress: Progress | None) -> Any:
        goes_on = jnp.asarray(predicate)
        if self.active is not None:
            goes_on = goes_on & self.active
        if self.may_run is not None:
            goes_on = goes_on & self.may_run
        if progress is None:
            return goes_on
        if self.stops:
            goes_on = goes_on & (progress.code == 0)
        # Once an element is lost, what a list decides is wrong: the loop might never end.
        for list_class in self.guarded:
            goes_on = goes_on & self.ctx.has_room(list_class.number, progress)
        return goes_on

    def goes_on_in_any(self, goes_on: Any) -> Any:
        """Return whether any element of the maps around makes a trip."""
        if self.active is None:
            return goes_on
        return jax.lax.pmax(goes_on.astype(jnp.int32), self.ctx.axes) > 0

    def active_after(self, goes_on: Callable[[Any], Any], state: Any) -> Any:
        """Return whether the element of a map makes the trip that begins with a state."""
        return None if self.active is None else goes_on(state)

    def chosen(self, active: Any, new: Any, old: Any) -> Any:
        """Return the state after a trip: the old one where the element of a map makes none."""
        if active is None:
            return new

        def choose(x: Any, y: Any) -> Any:
            if isinstance(x, TripList):
                return replace(x, length=jnp.where(active, x.length, y.length))
            return jax.tree.map(lambda a, b: a if a is b else jnp.where(active, a, b), x, y)

        return jax.tree.map(choose, new, old, is_leaf=_is_trip_list)

    def threaded(self) -> _Threaded:
        """Return what a trip passes on to the next, besides the carry."""
        progress = self.ctx.progress if self.is_threaded else None
        return progress, self.in_flight.state(self.ctx)

    @contextmanager
    def scope(self, threaded: _Threaded) -> Iterator[None]:
        """Lower a trip, or a test, that goes on with what was passed on."""
        progress, in_flight = threaded
        self.in_flight.resume(self.ctx, in_flight)
        with self.ctx.scope(progress):
            yield

    def resume(self, threaded: _Threaded) -> None:
        """Go on after the loop."""
        progress, in_flight = threaded
        self.in_flight.resume(self.ctx, in_flight)
        if progress is not None:
            self.ctx.progress = progress

    def test_first(self, carry: Sequence[Any], predicate_nodes: set[Node]) -> list[Any]:
        """A loop whose predicate is computed apart from what `before` forwards."""
        ctx, w, counter = self.ctx, self.w, self.counter
        others = set(w.before.nodes) - (predicate_nodes - _sources(w.before, w.forwarded))

        def before(state: Sequence[Any]) -> list[Any]:
            forwarded = lower_region(ctx, w.before, [*state, *self.invariants], only=others)[1:]
            return [
                ctx.fit_result(x, param)
                for x, param in zip(forwarded, w.after_forwarded, strict=True)
            ]

        def goes_on(state: _Trip) -> Any:
            with self.scope(state.threaded):
                arguments = [*state.carry, *self.invariants]
                predicate = lower_region(ctx, w.before, arguments, only=predicate_nodes)[0]
                return self.goes_on(predicate, state.threaded[0])

        def test(state: _Trip) -> Any:
            if state.row is not None and not self.stops:
                return state.row > 0
            return self.goes_on_in_any(goes_on(state))

        def body(state: _Trip) -> Any:
            active = self.active_after(goes_on, state)
            row = state.row
            if counter is not None:
                active = active & (state.carry[counter] >= row)
                ctx.note_common(state.carry[counter], row)
            with self.scope(state.threaded), ctx.masked(active):
                forwarded = before(state.carry)
                if counter is not None:
                    ctx.note_common(forwarded[w.forwarded.index(w.before_carry[counter])], row)
                following = self.after(forwarded)
                new = _Trip(self.threaded(), following)
                chosen = self.chosen(active, new, state._replace(row=None))
            return chosen if row is None else chosen._replace(row=row - 1)

        start = _Trip(self.threaded(), list(carry))
        if counter is not None:
            count = jnp.where(goes_on(start), carry[counter], 0)
            start = start._replace(row=jax.lax.pmax(count, ctx.axes))
        threaded, final, _ = jax.lax.while_loop(test, body, start)
        self.resume(threaded)
        return before(final)

    def rotated(self, carry: Sequence[Any]) -> list[Any]:
        """A loop that computes `before` once ahead, and then after each `after`."""
        ctx = self.ctx
        predicate, forwarded = self.before(carry)

        def goes_on(state: tuple[Any, _Threaded, list[Any]]) -> Any:
            return self.goes_on(state[0], state[1][0])

        def test(state: tuple[Any, _Threaded, list[Any]]) -> Any:
            return self.goes_on_in_any(goes_on(state))

        def body(state: tuple[Any, _Threaded, list[Any]]) -> Any:
            active = self.active_after(goes_on, state)
            with self.scope(state[1]), ctx.masked(active):
                predicate, forwarded = self.before(self.after(state[2]))
                new = jnp.asarray(predicate), self.threaded(), forwarded
                return self.chosen(active, new, state)

        start = (jnp.asarray(predicate), self.threaded(), forwarded)
        final: list[Any]
        _, threaded, final = jax.lax.while_loop(test, body, start)
        self.resume(threaded)
        return final


def _is_trip_list(value: Any) -> bool:
    return isinstance(value, TripList)


def may_fail_in(region: Graph) -> bool:
    """Return whether a run of a region may end with an error."""
    if any(may_fail(node) for node in region.nodes):
        return True
    return any(may_reduce_nothing(node) for node in region.walk())


def pushes_in(region: Graph) -> bool:
    """Return whether a region makes lists longer."""
    return any(node.op is lists.list_push for node in region.walk())


def _sources(region: Graph, values: Sequence[Value]) -> set[Node]:
    """Return the nodes that values of a region are computed by."""
    nodes: set[Node] = set()
    pending = [value.node for value in values if value.node is not None]
    while pending:
        node = pending.pop()
        if node not in nodes:
            nodes.add(node)
            pending += [value.node for value in node.operands if value.node is not None]
    return nodes


def _separate_predicate(w: WhileParts) -> set[Node] | None:
    """Return the nodes of the predicate, if it is cheap to compute apart from other values.

    None: it shares work with what is forwarded, or `before` has effects or may fail.
    """
    nodes = _sources(w.before, [w.predicate])
    others = _sources(w.before, w.forwarded)
    has_effects = any(node.op.effect is not Effect.NONE for node in w.before.walk())
    has_effects = has_effects or may_fail_in(w.before)
    shared = {node for node in nodes & others if node.op is not creating.constant}
    has_regions = any(node.regions for node in (*nodes, *others))
    return None if has_effects or shared or has_regions else nodes


# Branches and calls
def _lower_if(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    selector, *arguments = operands
    branches = IfParts.of(node).branches
    if is_static(selector):
        return lower_region(ctx, branches[int(selector)], arguments)
    is_threaded = any(may_fail_in(branch) or pushes_in(branch) for branch in branches)
    most: dict[int, list[int | None]] = {}

    def branch(number: int, region: Graph) -> Callable[[Any], Any]:
        # In a map all branches may run for each element
        active = None if ctx.active is None else ctx.active & (selector == number)

        def run(progress: Progress | None) -> Any:
            with ctx.scope(progress), ctx.masked(active), ctx.inside("a branch"):
                results = lower_region(ctx, region, arguments)
                most[number] = [*map(ctx.most_of, results)]
                fitted = [
                    ctx.fit_result(x, result)
                    for x, result in zip(results, node.results, strict=True)
                ]
                return (ctx.progress if is_threaded else None), fitted

        return run

    functions = [branch(number, region) for number, region in enumerate(branches)]
    threaded = ctx.progress if is_threaded else None
    if any(isinstance(x, TripList) for x in arguments):
        # In a map `lax.cond` runs all branches, too, but copies what they read for each element:
        # the list, which is one for all of them
        number = selector.astype(np.int32)
        chosen = [function(threaded) for function in functions]
        progress, results = jax.tree.map(lambda *xs: jax.lax.select_n(number, *xs), *chosen)
    elif selector.dtype == np.bool_:
        progress, results = jax.lax.cond(selector, functions[1], functions[0], threaded)
    else:
        progress, results = jax.lax.switch(selector.astype(np.int32), functions, threaded)
    if progress is not None:
        ctx.progress = progress
    for result, *known in zip(results, *most.values(), strict=True):
        ctx.note_most(result, None if None in known else max(known))
    return results  # type: ignore[no-any-return]


def _lower_call(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    """Lower a call where it stands (D56)."""
    parts = CallParts.of(node)
    if parts.recompute:
        # Else XLA finds that it has the values already, and keeps them
        operands = [x if is_static(x) else jax.lax.optimization_barrier(x) for x in operands]
    callee = parts.callee
    for param, operand in zip(callee.params, node.operands, strict=True):
        if operand in ctx.rows:
            ctx.rows[param] = ctx.rows[operand]
    return lower_region(ctx, callee, operands)
