"""Tapes inside a trace: the gradient becomes a part of the graph that is being recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wend.autodiff.activity import active_values
from wend.autodiff.backward import BackwardBuild
from wend.autodiff.cotangents import Cotangent, Cotangents
from wend.autodiff.transpose import BackwardPass
from wend.autodiff.vjp import _transposer  # with the rules of all operations that hold regions
from wend.base.errors import TapeError, explain
from wend.base.zero import Zero
from wend.eager.dispatch import Staged
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_nodes
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.recording import Recording, current
from wend.trace.recording.replacements import copy_with_replacements


class TracedTape:
    """A tape that knows which nodes of a recording were added while it recorded."""

    def __init__(self, watches_variables: bool = True) -> None:
        recording = current()
        assert recording is not None
        self.recording: Recording = recording
        self.watches_variables = watches_variables
        self.watched: dict[int, Any] = {}
        self.first_read: dict[int, tuple[Any, Value]] = {}
        self._watched_values: dict[Value, None] = {}
        self._spans: list[tuple[int, int]] = []
        self._open_since: int | None = None

    # Recording
    def enter(self) -> None:
        self.recording.tapes[id(self)] = self
        self.resume()

    def leave(self) -> None:
        self.pause()
        self.recording.tapes.pop(id(self), None)

    def pause(self) -> None:
        if self._open_since is not None:
            self._spans.append((self._open_since, len(self.recording.b.nodes)))
        self._open_since = None

    def resume(self) -> None:
        self._open_since = len(self.recording.b.nodes)

    def can_enter(self) -> bool:
        return current() is self.recording

    def check_recording(self) -> None:
        """Refuse a gradient outside the recording that the tape was opened in."""
        if current() is not self.recording:
            raise TapeError(
                explain(
                    f"gradient: the tape was opened in {self.recording.role}, not here.",
                    cure="open it and ask for its gradient in one function, loop body or branch.",
                )
            )

    # Watching
    def watch(self, x: Any, *, weak: bool = False) -> Tracer:
        tracer: Tracer = x
        if not isinstance(x, Tracer) or x.recording is not self.recording:
            tracer = self.recording.wrap(self.recording.lift(x), weak=weak)
        self._watched_values[tracer.value] = None
        return tracer

    def watch_variable(self, variable: Any) -> None:
        self.watched[id(variable)] = variable

    def on_variable_read(self, variable: Any, value: Value) -> None:
        """Note that a variable has been read."""
        is_watched = self.watches_variables and variable.trainable
        if self._open_since is not None and (is_watched or id(variable) in self.watched):
            self.first_read.setdefault(id(variable), (variable, value))

    def value_of(self, x: Any) -> Value | None:
        if not isinstance(x, Staged):
            return None
        first = len(self.recording.b.nodes)
        value = self.recording.lift(x)
        if self._open_since is None:
            # Lifting may have taken a part again whose array has changed.
            self._spans.append((first, len(self.recording.b.nodes)))
        return value if value in self._followed_values() else None

    def value_of_variable(self, variable: Any) -> Value | None:
        entry = self.first_read.get(id(variable))
        return None if entry is None else entry[1]

    def _nodes(self) -> list[Node]:
        nodes = self.recording.b.nodes
        spans = list(self._spans)
        if self._open_since is not None:
            spans.append((self._open_since, len(nodes)))
        return [node for start, stop in spans for node in nodes[start:stop]]

    def _followed_values(self) -> set[Value]:
        followed = {*self._watched_values, *(value for _, value in self.first_read.values())}

        def visit(node: Node) -> None:
            for replacement in self.recording.replacements.get(node, ()):
                visit(replacement)
            if not followed.isdisjoint(node.operands):
                followed.update(node.results)

        for node in self._nodes():
            visit(node)
        return followed

    # Gradients
    def pull_back(
        self, seeds: Sequence[tuple[Value, Any]], sources: Sequence[Value]
    ) -> list[Any | None]:
        """Record the backward operations; nodes that must return residuals are replaced."""
        recording = self.recording
        mapping: dict[Value, Value] = {}  # of the present nodes to copies of them
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
        source_cts = _pull_back(bwd, nodes, copied)
        grads = [
            None if isinstance(ct, Zero) else b.instantiate(ct, source)
            for ct, source in zip(source_cts, copied, strict=True)
        ]
        originals = {
            new: old for old, new in mapping.items() if old.node not in recording.replacements
        }
        for node, replacements in bwd.replaced.items():
            original = originals[node.results[0]].node
            assert original is not None
            recording.replacements[original] = copy_nodes(replacements, originals)
        originals |= cts
        recording.b.nodes += copy_nodes(b.forward_shape_reads, originals)
        recording.b.nodes += copy_nodes(b.nodes, originals)
        return [None if ct is None else recording.wrap(originals.get(ct, ct)) for ct in grads]

    def release(self, targets: Sequence[Value]) -> None:
        """Do nothing: the graph belongs to the recording."""


def _pull_back(
    bwd: BackwardPass, nodes: Sequence[Node], sources: Sequence[Value]
) -> list[Cotangent]:
    pending, cts = set(sources), dict[Value, Cotangent]()
    for node in reversed(nodes):
        cts.update((value, bwd.cts.get(value)) for value in node.results if value in pending)
        _transposer.pull_back(bwd, [node])
    return [cts.get(source, bwd.cts.get(source)) for source in sources]
