"""A tape inside a trace: its gradient is part of the graph that is being recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wend.autodiff.activity import active_values
from wend.autodiff.backward import BackwardBuild
from wend.autodiff.cotangents import Cotangent, Cotangents
from wend.autodiff.transpose import BackwardPass
from wend.autodiff.vjp import _transposer  # with the rules of all operations that hold regions
from wend.base.errors import explain
from wend.base.zero import Zero
from wend.eager.dispatch import Staged
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_nodes
from wend.tape.errors import TapeError
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.recording import Recording, current
from wend.trace.recording.replacements import copy_with_replacements


class TracedTape:
    """Knows which of a recording's nodes were made while it recorded."""

    def __init__(self, watches_variables: bool = True) -> None:
        here = current()
        assert here is not None
        self.recording: Recording = here
        self.watches_variables = watches_variables
        self.watched: dict[int, Any] = {}
        self.first_read: dict[int, tuple[Any, Value]] = {}
        self._arrays: dict[Value, None] = {}
        self._spans: list[tuple[int, int]] = []
        self._since: int | None = None

    # Recording
    def enter(self) -> None:
        self.recording.tapes[id(self)] = self
        self.resume()

    def leave(self) -> None:
        self.pause()
        self.recording.tapes.pop(id(self), None)

    def pause(self) -> None:
        if self._since is not None:
            self._spans.append((self._since, len(self.recording.b.nodes)))
        self._since = None

    def resume(self) -> None:
        self._since = len(self.recording.b.nodes)

    def can_enter(self) -> bool:
        return current() is self.recording

    def check_here(self) -> None:
        """A gradient is part of the recording that the tape was opened in."""
        if current() is not self.recording:
            raise TapeError(
                explain(
                    f"gradient: the tape was opened in {self.recording.role}, not here.",
                    cure="open it and ask for its gradient in one function, loop body or branch.",
                )
            )

    # What it follows
    def watch(self, x: Any, *, weak: bool = False) -> Tracer:
        found: Tracer = x
        if not isinstance(x, Tracer) or x.recording is not self.recording:
            found = self.recording.wrap(self.recording.lift(x), weak=weak)
        self._arrays[found.value] = None
        return found

    def watch_variable(self, variable: Any) -> None:
        self.watched[id(variable)] = variable

    def note(self, variable: Any, value: Value) -> None:
        """A variable has been read."""
        is_watched = self.watches_variables and variable.trainable
        if self._since is not None and (is_watched or id(variable) in self.watched):
            self.first_read.setdefault(id(variable), (variable, value))

    def value_of(self, x: Any) -> Value | None:
        if not isinstance(x, Staged):
            return None
        first = len(self.recording.b.nodes)
        value = self.recording.lift(x)
        if self._since is None:
            # A part whose array has changed is taken again.
            self._spans.append((first, len(self.recording.b.nodes)))
        return value if value in self._reached() else None

    def value_of_variable(self, variable: Any) -> Value | None:
        found = self.first_read.get(id(variable))
        return None if found is None else found[1]

    def _nodes(self) -> list[Node]:
        nodes = self.recording.b.nodes
        spans = list(self._spans)
        if self._since is not None:
            spans.append((self._since, len(nodes)))
        return [node for start, stop in spans for node in nodes[start:stop]]

    def _reached(self) -> set[Value]:
        reached = {*self._arrays, *(value for _, value in self.first_read.values())}

        def visit(node: Node) -> None:
            for stand_in in self.recording.replacements.get(node, ()):
                visit(stand_in)
            if not reached.isdisjoint(node.operands):
                reached.update(node.results)

        for node in self._nodes():
            visit(node)
        return reached

    # Gradients
    def pull_back(
        self, seeds: Sequence[tuple[Value, Any]], sources: Sequence[Value]
    ) -> list[Any | None]:
        """Record the backward operations; nodes that must give residuals get stand-ins."""
        recording = self.recording
        mapping: dict[Value, Value] = {}  # the nodes as they stand now, on values of their own
        nodes = copy_with_replacements(self._nodes(), mapping, recording.replacements)
        copied = [mapping.get(source, source) for source in sources]
        b = BackwardBuild("tape")
        graph = Graph("tape", tuple(copied), tuple(nodes), ())
        bwd = BackwardPass(b, Cotangents(), active_values(graph, copied))
        cts = {}
        for target, ct in seeds:
            param = b.param(target.type)
            cts[param] = recording.b.ones_like(target) if ct is None else recording.lift(ct)
            bwd.seed(mapping.get(target, target), param)
        found = _pull_back(bwd, nodes, copied)
        grads = [
            None if isinstance(ct, Zero) else b.instantiate(ct, source)
            for ct, source in zip(found, copied, strict=True)
        ]
        back = {new: old for old, new in mapping.items() if old.node not in recording.replacements}
        for node, replacements in bwd.replaced.items():
            own = back[node.results[0]].node
            assert own is not None
            recording.replacements[own] = copy_nodes(replacements, back)
        back |= cts
        recording.b.nodes += copy_nodes(b.forward_shape_reads, back)
        recording.b.nodes += copy_nodes(b.nodes, back)
        return [None if ct is None else recording.wrap(back.get(ct, ct)) for ct in grads]

    def release(self, targets: Sequence[Value]) -> None:
        """The graph is the recording's: there is nothing to let go of."""


def _pull_back(
    bwd: BackwardPass, nodes: Sequence[Node], sources: Sequence[Value]
) -> list[Cotangent]:
    wanted, found = set(sources), dict[Value, Cotangent]()
    for node in reversed(nodes):
        found.update((value, bwd.cts.get(value)) for value in node.results if value in wanted)
        _transposer.pull_back(bwd, [node])
    return [found.get(source, bwd.cts.get(source)) for source in sources]
