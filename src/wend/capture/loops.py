"""`while` and `for` on what may be traced: one `While` node, or a Python loop (D6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import CarryError, ConcreteValueError, StructureError, WendError, explain
from wend.base.source import at, user_source
from wend.capture.branches import if_, placeholder
from wend.capture.exits import RETURN_VALUE
from wend.capture.iterables import Stepped, stepped
from wend.capture.operators import and_, not_, truth
from wend.capture.state import UNBOUND, State, holds_staged, is_carried, is_same
from wend.eager.dispatch import Staged
from wend.eager.promotion import as_array, cast
from wend.trace.arguments import LeafType, leaf_type
from wend.trace.control import LoopTypes, join_loop
from wend.trace.recording import Recording, current
from wend.trace.tracer import Tracer

UNROLLED_AT_MOST = 64

Setter = Callable[[Sequence[Any]], None]
Reads = Sequence[Callable[[], Any]]


def while_(
    test: Callable[[], Any],
    body: Callable[[], Any],
    names: Sequence[str],
    reads: Reads,
    setter: Setter,
    always: bool,
) -> None:
    """`while test(): body()`; `always`: the test only fails once the body has run, or in `test`."""
    state = State(names, reads, setter)
    start = state.get()
    failure = _try_staged(state, test, body, "while", always)
    if failure is _DONE:
        return
    state.restore(start)
    while True:
        found = test()
        if isinstance(found, Staged):
            if isinstance(failure, WendError):
                raise failure
            raise truth_error(found)
        if not found:
            return
        body()


def truth_error(found: Any) -> Exception:
    """The error for a traced test of a loop that could not be staged."""
    try:
        bool(found)
    except ConcreteValueError as error:
        return error
    raise AssertionError


def for_(
    iterable: Iterable[Any],
    body: Callable[[Any], Any],
    names: Sequence[str],
    reads: Reads,
    setter: Setter,
    targets: Sequence[str],
    broken: Callable[[], Any] | None,
) -> None:
    """`for target in iterable: body(target)`; `broken` tells whether a `break` has happened."""
    state = State(names, reads, setter)
    steps = stepped(iterable) if current() is not None else None
    if steps is None:
        _python_for(iterable, body, state, broken)
        return
    start = state.get()
    position = _Position(steps)

    def test() -> Any:
        going = position.now < steps.count
        return going if broken is None else and_(going, lambda: not_(broken()))

    def step() -> None:
        item = steps.item(position.now)
        position.now = position.now + 1
        body(item)

    inner = State(
        [*names, "the position of the loop"],
        [*reads, lambda: position.now],
        lambda values: (setter(values[:-1]), position.move(values[-1]))[0],
    )
    known = isinstance(steps.count, int)
    always = known and steps.count > 0
    failure = _try_staged(inner, test, step, "for", bool(always), must=steps.is_staged)
    if failure is _DONE:
        return
    state.restore(start)
    if isinstance(failure, WendError) and (not known or steps.count > UNROLLED_AT_MOST):
        if known:
            failure.add_note(
                f"the loop has {steps.count} trips; wend.unroll(...) around what it iterates "
                "over runs it in Python"
            )
        raise failure
    _python_for(iterable, body, state, broken)


class _Position:
    """Where a staged `for` is: how many items it has taken."""

    def __init__(self, steps: Stepped) -> None:
        self.steps = steps
        self.now: Any = 0

    def move(self, now: Any) -> None:
        self.now = now


def _python_for(
    iterable: Iterable[Any],
    body: Callable[[Any], Any],
    state: State,
    broken: Callable[[], Any] | None,
) -> None:
    for item in iterable:
        if broken is not None:
            stop = broken()
            if isinstance(stop, Staged):
                # Whether an item is still taken is only known when it runs.
                taken = item
                if_(
                    not_(stop),
                    lambda taken=taken: body(taken),
                    lambda: None,
                    state.names,
                    state.names,
                    state.reads,
                    state.setter,
                )
                continue
            if stop:
                return
        body(item)


_DONE = object()


def _try_staged(
    state: State,
    test: Callable[[], Any],
    body: Callable[[], Any],
    kind: str,
    always: bool,
    *,
    must: bool = False,
) -> object:
    """Record the loop as one node; `_DONE`, or why it was not: an error, or None (no need)."""
    outer = current()
    if outer is None:
        return None
    start = state.get()
    loop = _StagedLoop(outer, state, start, f"{kind}{at(user_source())}", always)
    try:
        needed = loop.trace(test, body) or must
    except WendError as error:
        error.__traceback__ = None
        return error
    finally:
        state.restore(start)
    if not needed:
        return None
    loop.finish()
    return _DONE


class _StagedLoop:
    """A loop that is being recorded: `test` runs in `before`, `body` in `after`."""

    def __init__(
        self, outer: Recording, state: State, start: Sequence[Any], where: str, always: bool
    ) -> None:
        self.outer, self.state, self.start = outer, state, list(start)
        self.where, self.always = where, always
        self.carried = [k for k, value in enumerate(start) if is_carried(value)]

    def trace(self, test: Callable[[], Any], body: Callable[[], Any]) -> bool:
        """Trace both regions until the carry's types are settled; say whether staging is needed."""
        self._take_types()
        while True:
            predicate = self._trace_before(test)
            ends = self._trace_after(body)
            if self._fill_unbound(ends):
                continue
            if not self.types.settle(self._next_leaves(ends)):
                break
        self.predicate = predicate
        self.ends = ends
        touched = any(holds_staged(self.start[k]) for k in self.carried)
        entered = [*self.before.captured, *self.after.captured]
        return touched or any(not self._is_plain(value) for value in entered)

    def _is_plain(self, value: Any) -> bool:
        """Whether an outer value stands for an array that Python knows."""
        top = self.outer
        while top.is_region:
            assert top.parent is not None
            top = top.parent
        return any(
            capture is value and isinstance(binding, np.ndarray)
            for capture, binding in zip(top.captures, top.bindings, strict=True)
        )

    def _take_types(self) -> None:
        init = {self.state.names[k]: self.start[k] for k in self.carried}
        self.types = LoopTypes(self.where, init)

    def _trace_before(self, test: Callable[[], Any]) -> Any:
        self.before = Recording("before", self.outer, is_region=True)
        self._enter(self.types.params(self.before))
        with self.before.active():
            found = test()
            predicate = truth(found) if isinstance(found, Staged) else np.bool_(bool(found))
        self.known = self.state.get()
        self.forwarded = [k for k, value in enumerate(self.known) if is_carried(value)]
        self._check_plain(self.known)
        return predicate

    def _enter(self, variables: Any) -> None:
        values = list(self.start)
        for k in self.carried:
            values[k] = variables[self.state.names[k]]
        self.state.set(values)

    def _trace_after(self, body: Callable[[], Any]) -> list[Any]:
        self.after = Recording("after", self.outer, is_region=True)
        leaves, self.forward_tree = trees.flatten([self.known[k] for k in self.forwarded])
        self.forward_leaves = [as_array(leaf) for leaf in leaves]
        self.forward_types: list[LeafType] = [leaf_type(leaf) for leaf in self.forward_leaves]
        params = [self.after.param(t.type, weak=t.weak) for t in self.forward_types]
        values = list(self.known)
        for k, value in zip(
            self.forwarded, trees.unflatten(self.forward_tree, params), strict=True
        ):
            values[k] = value
        self.state.set(values)
        with self.after.active():
            body()
        ends = self.state.get()
        self._check_plain(ends)
        return ends

    def _fill_unbound(self, ends: Sequence[Any]) -> bool:
        """Carry what is first bound in the loop and surely bound after it; say whether any was."""
        new = [
            k
            for k, value in enumerate(ends)
            if k not in self.carried
            and k not in self.forwarded
            and is_carried(value)
            and (self.start[k] is UNBOUND or self.start[k] is None)
            and (self.always or self.state.names[k] == RETURN_VALUE)
        ]
        for k in new:
            self.start[k] = trees.tree_map(placeholder, ends[k])
            self.carried.append(k)
        self.carried.sort()
        if new:
            self._take_types()
        return bool(new)

    def _check_plain(self, values: Sequence[Any]) -> None:
        """What is no array must stay what it is."""
        for k, (old, new) in enumerate(zip(self.start, values, strict=True)):
            if k in self.carried or old is UNBOUND or is_same(old, new):
                continue
            raise StructureError(
                explain(
                    f"{self.where}: `{self.state.names[k]}` changes in the loop from "
                    f"{old!r:.40} to {new!r:.40}.",
                    cure="only arrays and numbers can change in a staged loop; start it as one.",
                )
            )

    def _next_leaves(self, ends: Sequence[Any]) -> list[Any]:
        following = {self.state.names[k]: ends[k] for k in self.carried}
        for k in self.carried:
            if ends[k] is UNBOUND:
                raise CarryError(f"{self.where}: `{self.state.names[k]}` is deleted in the loop")
        return self.types.leaves_of(following)

    def finish(self) -> None:
        """Record the node, and leave the state as the loop will leave it."""
        outer, before, after = self.outer, self.before, self.after
        with before.active():
            test = before.lift(self.predicate)
            forwarded = [
                before.lift(cast(leaf, t.type.dtype))
                for leaf, t in zip(self.forward_leaves, self.forward_types, strict=True)
            ]
        results = self._next_leaves(self.ends)
        with after.active():
            pairs = zip(results, self.types.types, strict=True)
            following = [after.lift(cast(result, t.type.dtype)) for result, t in pairs]
        start = self.types.start(outer)
        node = join_loop(outer, start, before, [test, *forwarded], after, following)
        tracers = [
            Tracer(value, outer, weak=t.weak)
            for value, t in zip(node.results, self.forward_types, strict=False)
        ]
        values = list(self.start)
        for k in range(len(values)):
            if k not in self.forwarded and not is_same(values[k], self.ends[k]):
                values[k] = UNBOUND
        for k, value in zip(
            self.forwarded, trees.unflatten(self.forward_tree, tracers), strict=True
        ):
            values[k] = value
        self.state.restore(values)
