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
        self.done: queue.SimpleQueue[tuple[Ready, Future[Any]]] = queue.SimpleQueue()
        self.running = 0
        self.threads = HelperThreads()

    def run(self, arguments: Sequence[Any]) -> Sequence[Any]:
        """Return the results for arguments.

        Of several errors it raises the one that comes first in the order of the program.
        """
        root = Frame(None, None, 0).iterations[0]
        for k, param in enumerate(self.plan.graph.params):
            self._result(param, arguments[k])
            self._send(self.plan.params[k], arguments[k], root)
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
                task, future = self.done.get()
                self.running -= 1
                self._finish(task, future.result)
            if self.ready:
                self._process(take(self.ready))

    # Values that arrive
    def _send(self, consumers: Sequence[tuple[NodePlan, int]], x: Any, to: Iteration) -> None:
        for plan, slot in consumers:
            self._deliver(plan, slot, x, to)

    def _deliver(self, plan: NodePlan, slot: int, x: Any, to: Iteration) -> None:
        kind = plan.kind
        if kind is Action.HEAD or (plan.awaited == 1 and kind is not Action.JOIN):
            self._push(plan, to, () if slot < 0 else (x,), x is DEAD)
            return
        entry = to.waiting.get(plan)
        if entry is None:
            inputs = [DEAD] * len(plan.node.inputs)
            entry = to.waiting[plan] = [plan.awaited, False, inputs]
        entry[0] -= 1
        if kind is Action.JOIN:  # it gives the value that is alive, as soon as it comes
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
        match plan.kind:
            case Action.RUN | Action.STATE if not is_dead:
                if self._is_long(plan, inputs):
                    self._start(task)
                    return
                if plan.kind is Action.STATE:
                    iteration.states[plan.node] = list(inputs)
                self._finish(task, partial(self.compute, task))
                return
            case Action.SWITCH if not is_dead:
                x, selector = inputs
                chosen = int(selector)
                for k, consumers in enumerate(plan.consumers):
                    self._send(consumers, x if k == chosen else DEAD, iteration)
            case Action.PASS | Action.JOIN | Action.HEAD:
                self._result(plan.node.outputs[0], DEAD if is_dead else inputs[0])
                self._send(plan.consumers[0], DEAD if is_dead else inputs[0], iteration)
            case Action.ENTER:
                self._enter(plan, iteration, DEAD if is_dead else inputs[0])
            case Action.NEXT:
                if not is_dead:
                    self._next(plan, iteration, inputs[0])
            case Action.EXIT:
                self._exit(plan, iteration, DEAD if is_dead else inputs[0])
            case _:
                for consumers in plan.consumers:
                    self._send(consumers, DEAD, iteration)
        self._leave(iteration)

    def compute(self, task: Ready) -> Any:
        """Run the kernel of an operation."""
        plan, _, inputs, _ = task
        assert plan.kernel is not None
        return plan.kernel(*inputs)

    def _finish(self, task: Ready, result: Callable[[], Any]) -> None:
        """Pass on what an operation gives, or note its error."""
        plan, iteration = task[:2]
        try:
            x = result()
        except Exception as error:  # noqa: BLE001 - raised once what precedes it has run
            self._fail(plan, iteration, error)
            return
        outputs = plan.node.outputs
        values = (x,) if len(outputs) == 1 else x
        for output, consumers, value in zip(outputs, plan.consumers, values, strict=True):
            if output in self.plan.results:
                self._result(output, value)
            self._send(consumers, value, iteration)
        self._leave(iteration)

    def _result(self, output: Any, x: Any) -> None:
        for k in self.plan.results.get(output, ()):
            self.results[k] = x

    def _is_long(self, plan: NodePlan, inputs: Sequence[Any]) -> bool:
        return plan.work is not None and plan.work(inputs) >= self.min_task

    def _start(self, task: Ready) -> None:
        """Run an operation on another thread."""
        future = self.threads.submit(self.compute, task)
        self.running += 1
        future.add_done_callback(lambda future: self.done.put((task, future)))

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
    def _enter(self, plan: NodePlan, outer: Iteration, x: Any) -> None:
        loop = plan.frame
        assert loop is not None
        frame = outer.frames.get(loop.name)
        if frame is None:
            frame = outer.frames[loop.name] = Frame(loop, outer, plan.position)
            outer.active += 1
        frame.awaited -= 1
        consumers = plan.consumers[0]
        if plan.is_constant:
            frame.constants.append((plan, x))
            for iteration in [*frame.iterations.values()]:
                self._send(consumers, x, iteration)
        else:
            self._send(consumers, x, frame.iterations[0])
        self._retire(frame)

    def _next(self, plan: NodePlan, iteration: Iteration, x: Any) -> None:
        frame = iteration.frame
        following = frame.iterations.get(iteration.index + 1)
        if following is not None:
            self._send(plan.consumers[0], x, following)
            return
        frame.deferred.append((plan, x))
        self._advance(frame)

    def _advance(self, frame: Frame) -> None:
        """Start the next iteration, if something waits for it and few enough are in flight."""
        if not frame.deferred or frame.last - frame.first + 1 >= frame.limit:
            return
        frame.last += 1
        iteration = frame.iterations[frame.last] = Iteration(frame, frame.last)
        for plan, x in frame.constants:
            self._send(plan.consumers[0], x, iteration)
        deferred, frame.deferred = frame.deferred, []
        for plan, x in deferred:
            self._send(plan.consumers[0], x, iteration)

    def _exit(self, plan: NodePlan, iteration: Iteration, x: Any) -> None:
        frame = iteration.frame
        if x is DEAD:
            frame.dead_exits[plan] = None
            return
        assert frame.outer is not None
        frame.left.add(plan)
        self._result(plan.node.outputs[0], x)
        self._send(plan.consumers[0], x, frame.outer)

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
                    self._send(plan.consumers[0], DEAD, outer)
            self._leave(outer)

    def _stuck(self, root: Iteration) -> str:
        waiting = [f"{plan.node.name}{at(plan.node.source)}" for plan in root.waiting]
        return f"{listed(waiting[:3]) or 'nothing'} waits for values that never come"
