"""The executor of dataflow graphs: values with tags, and a queue of the nodes that are ready.

A node runs when its inputs have arrived, so iterations of a loop overlap where one does not need
what the one before has not computed yet. All of it happens on the thread of the call, but for long
operations on arrays, which helper threads run; they end with the call.
"""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from wend.backends.dataflow.frames import Frame, Iteration, order_key
from wend.backends.dataflow.helper_threads import HelperThreads
from wend.backends.dataflow.plan import Action, NodePlan, Plan
from wend.backends.dataflow.stages import MIN_TASK
from wend.base.errors import GraphError, listed
from wend.base.source import at
from wend.ops.effects import error_note
from wend.ops.frame_states import chain_of, contents_in, contents_of
from wend.runtime.partial_writes import attach_contents


class _Dead:
    """The value on the ways that a run does not take."""

    def __repr__(self) -> str:
        return "DEAD"


DEAD: Any = _Dead()
# A node that is ready: its inputs, and whether one of them is dead
Ready: TypeAlias = tuple[NodePlan, Iteration, Sequence[Any], bool]
# Takes the next node off the queue; tests take a random one
Take: TypeAlias = Callable[[deque[Any]], Any]


class Executor:
    """One run of a graph.

    Args:
        plan: the plan of the graph.
        take: takes the next node off the queue of those that are ready; None: the first.
        min_task: seconds of estimated work from which on another thread does it.
    """

    def __init__(self, plan: Plan, take: Take | None = None, min_task: float = MIN_TASK) -> None:
        self.plan, self.take, self.min_task = plan, take, min_task
        self.ready: deque[Ready] = deque()
        self.results: list[Any] = [DEAD] * len(plan.graph.results)
        self.error: tuple[tuple[int, ...], Exception] | None = None
        self.done: queue.SimpleQueue[tuple[NodePlan, Iteration, Future[Any]]]
        self.done = queue.SimpleQueue()
        self.running = 0
        self.threads = HelperThreads()
        actions = {
            Action.RUN: self._run,
            Action.STATE: self._hold,
            Action.PASS: self._pass,
            Action.SWITCH: self._switch,
            Action.JOIN: self._pass,
            Action.HEAD: self._pass,
            Action.ENTER: self._enter,
            Action.NEXT: self._next,
            Action.EXIT: self._exit,
        }
        self._actions = tuple(actions[kind] for kind in Action)  # an enumeration is slow to hash

    def run(self, arguments: Sequence[Any]) -> Sequence[Any]:
        """Return the results for arguments.

        Of several errors it raises the one that comes first in the order of the program.
        """
        root = Frame(None, None, 0).iterations[0]
        for k, consumers in enumerate(self.plan.params):
            self._send(consumers, self.plan.param_results[k], arguments[k], root)
        for plan in self.plan.starting:
            self._push(plan, root, ())
        try:
            try:
                with np.errstate(all="ignore"):
                    self._loop()
            finally:
                self.threads.end()
        finally:  # once more, for an interrupt on the way to it
            self.threads.end()
        if self.error is not None:
            raise self.error[1]
        if any(result is DEAD for result in self.results):
            raise GraphError(f"no result: {self._stuck(root)}")
        return self.results

    def _loop(self) -> None:
        take = self.take or deque.popleft
        while self.ready or self.running:
            while self.running and (not self.ready or not self.done.empty()):
                plan, iteration, future = self.done.get()
                self.running -= 1
                self._finish(plan, iteration, future.result)
                self._leave(iteration)
            if self.ready:
                self._process(take(self.ready))

    # Values that arrive
    def _give(self, plan: NodePlan, x: Any, to: Iteration, output: int = 0) -> None:
        """Pass on an output of a node."""
        self._send(plan.consumers[output], plan.results[output], x, to)

    def _send(
        self,
        consumers: Sequence[tuple[NodePlan, int]],
        results: Sequence[int],
        x: Any,
        to: Iteration,
    ) -> None:
        for k in results:
            self.results[k] = x
        for plan, slot in consumers:
            if plan.runs_at_once:
                self._push(plan, to, () if slot < 0 else (x,), x is DEAD)
            else:
                self._deliver(plan, slot, x, to)

    def _deliver(self, plan: NodePlan, slot: int, x: Any, to: Iteration) -> None:
        """Give a node one of several values that it waits for."""
        entry = to.waiting.get(plan)
        if entry is None:
            inputs = [DEAD] * len(plan.node.inputs)
            entry = to.waiting[plan] = [plan.awaited, False, inputs]
        entry[0] -= 1
        if plan.kind is Action.JOIN:  # it gives the value that is alive, as soon as it comes
            if x is not DEAD:
                entry[1] = True
                self._push(plan, to, (x,))
            elif not entry[0] and not entry[1]:
                self._push(plan, to, (x,), True)
        else:
            entry[1] = entry[1] or x is DEAD
            if slot >= 0:
                entry[2][slot] = x
            if not entry[0]:
                self._push(plan, to, entry[2], entry[1])
        if not entry[0]:
            del to.waiting[plan]

    def _push(
        self, plan: NodePlan, to: Iteration, inputs: Sequence[Any], is_dead: bool = False
    ) -> None:
        to.active += 1
        self.ready.append((plan, to, inputs, is_dead))

    # Nodes that are ready
    def _process(self, task: Ready) -> None:
        plan, iteration, inputs, is_dead = task
        if self.error is not None and order_key(plan, iteration) > self.error[0]:
            return  # the program has ended before it
        if is_dead:
            self._pass_dead(plan, iteration)
        else:
            self._actions[plan.kind](plan, iteration, inputs)
        self._leave(iteration)

    def _pass_dead(self, plan: NodePlan, iteration: Iteration) -> None:
        """Pass on that a node did not run."""
        if plan.kind is Action.ENTER:
            self._enter(plan, iteration, (DEAD,))
        elif plan.kind is Action.EXIT:
            iteration.frame.dead_exits[plan] = None
        elif plan.kind is not Action.NEXT:
            for output in range(len(plan.consumers)):
                self._give(plan, DEAD, iteration, output)

    def _pass(self, plan: NodePlan, iteration: Iteration, inputs: Sequence[Any]) -> None:
        self._give(plan, inputs[0], iteration)

    def _switch(self, plan: NodePlan, iteration: Iteration, inputs: Sequence[Any]) -> None:
        x, selector = inputs
        selected = int(selector)
        for output in range(len(plan.consumers)):
            self._give(plan, x if output == selected else DEAD, iteration, output)

    def _hold(self, plan: NodePlan, iteration: Iteration, inputs: Sequence[Any]) -> None:
        iteration.states[plan.node] = list(inputs)
        self._run(plan, iteration, inputs)

    def _run(self, plan: NodePlan, iteration: Iteration, inputs: Sequence[Any]) -> None:
        """Run an operation, on another thread if that takes long."""
        if plan.work is not None and plan.work(inputs) >= self.min_task:
            self._start(plan, iteration, inputs)
        else:
            self._finish(plan, iteration, self.compute, plan, iteration, inputs)

    def _start(self, plan: NodePlan, iteration: Iteration, inputs: Sequence[Any]) -> None:
        """Run an operation on another thread."""
        future = self.threads.submit(partial(self.compute, plan, iteration, inputs))
        self.running += 1
        iteration.active += 1
        future.add_done_callback(lambda future: self.done.put((plan, iteration, future)))

    def compute(self, plan: NodePlan, _: Iteration, inputs: Sequence[Any]) -> Any:
        """Run the kernel of an operation."""
        return plan.kernel(*inputs)  # type: ignore[misc]

    def _finish(
        self, plan: NodePlan, iteration: Iteration, compute: Callable[..., Any], *args: Any
    ) -> None:
        """Pass on what an operation gives, or note its error."""
        try:
            x = compute(*args)
        except Exception as error:  # noqa: BLE001 - raised once what precedes it has run
            iteration.active += 1  # it has not ended, so what waits for it never runs
            self._fail(plan, iteration, error)
            return
        if len(plan.consumers) == 1:
            self._give(plan, x, iteration)
        else:
            for output in range(len(plan.consumers)):
                self._give(plan, x[output], iteration, output)

    def _fail(self, plan: NodePlan, iteration: Iteration, error: Exception) -> None:
        key = order_key(plan, iteration)
        if self.error is not None and self.error[0] < key:
            return
        node = plan.node
        if node.source is not None:
            error.add_note(error_note(node))  # type: ignore[arg-type]
        states = self._states(iteration)
        if node.state in states:
            chain: Iterable[Any] = chain_of(node.state)  # type: ignore[arg-type]
            contents = contents_of(
                (state, states[state][-len(contents_in(state)) :].__getitem__) for state in chain
            )
            attach_contents(error, contents)
        self.error = key, error

    @staticmethod
    def _states(iteration: Iteration) -> dict[Any, list[Any]]:
        states: dict[Any, list[Any]] = {}
        current: Iteration | None = iteration
        while current is not None:
            states = {**current.states, **states}
            current = current.frame.outer
        return states

    # Loops
    def _enter(self, plan: NodePlan, outer: Iteration, inputs: Sequence[Any]) -> None:
        loop, x = plan.frame, inputs[0]
        assert loop is not None
        frame = outer.frames.get(loop.name)
        if frame is None:
            frame = outer.frames[loop.name] = Frame(loop, outer, plan.position)
            outer.active += 1
        frame.awaited -= 1
        if plan.is_constant:
            frame.constants.append((plan, x))
            for iteration in [*frame.iterations.values()]:
                self._give(plan, x, iteration)
        else:
            self._give(plan, x, frame.iterations[0])
        self._retire(frame)

    def _next(self, plan: NodePlan, iteration: Iteration, inputs: Sequence[Any]) -> None:
        frame = iteration.frame
        following = frame.iterations.get(iteration.index + 1)
        if following is not None:
            self._give(plan, inputs[0], following)
            return
        frame.deferred.append((plan, inputs[0]))
        self._advance(frame)

    def _advance(self, frame: Frame) -> None:
        """Start the next iteration, if something waits for it and few enough are in flight."""
        if not frame.deferred or frame.last - frame.first + 1 >= frame.limit:
            return
        frame.last += 1
        iteration = frame.iterations[frame.last] = Iteration(frame, frame.last)
        for plan, x in frame.constants:
            self._give(plan, x, iteration)
        deferred, frame.deferred = frame.deferred, []
        for plan, x in deferred:
            self._give(plan, x, iteration)

    def _exit(self, plan: NodePlan, iteration: Iteration, inputs: Sequence[Any]) -> None:
        frame = iteration.frame
        assert frame.outer is not None
        frame.left.add(plan)
        self._give(plan, inputs[0], frame.outer)

    def _leave(self, iteration: Iteration) -> None:
        """Note that a node of an iteration, or a loop in it, has ended."""
        iteration.active -= 1
        if not iteration.active and iteration.frame.outer is not None:
            self._retire(iteration.frame)

    def _retire(self, frame: Frame) -> None:
        """Forget the iterations that have ended, oldest first, and the loop after its last one."""
        while frame.first in frame.iterations:
            oldest = frame.iterations[frame.first]
            if oldest.active or frame.awaited:
                return
            del frame.iterations[frame.first]
            frame.first += 1
            self._advance(frame)
        outer = frame.outer
        assert outer is not None and frame.plan is not None
        if frame.plan.name in outer.frames:
            del outer.frames[frame.plan.name]
            for plan in frame.dead_exits:
                if plan not in frame.left:
                    self._give(plan, DEAD, outer)
            self._leave(outer)

    def _stuck(self, root: Iteration) -> str:
        waiting = [f"{plan.node.name}{at(plan.node.source)}" for plan in root.waiting]
        return f"{listed(waiting[:3]) or 'nothing'} waits for values that never come"
