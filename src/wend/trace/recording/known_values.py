"""Values that depend on outside arrays and constants alone: Python may know them (D44).

Operations on arrays of outside are recorded, so that they see the contents at each call. Where
Python itself needs a number of theirs (`if w[0] > 2`, `range(n[0])`), the number is computed now,
and the contents that it depends on are guarded.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from wend.backends.numpy.backend import NumpyBackend
from wend.base.context_values import scoped
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.rewrite import with_operands
from wend.ir.traverse import operands_first
from wend.ir.types import TensorType
from wend.runtime.array_boundary import foreign_boundary, to_host
from wend.trace.arrays.tracer import Tracer

if TYPE_CHECKING:
    from wend.trace.recording.recording import Recording

# Called with each array whose contents Python reads during the trace.
_on_contents_read: ContextVar[Callable[[Any], None] | None] = ContextVar(
    "wend_on_contents_read", default=None
)


def contents_read_by(note: Callable[[Any], None]) -> AbstractContextManager[Any]:
    """Report to `note`, in this block, each array whose contents Python reads."""
    return scoped(_on_contents_read, note)


def known_value(
    value: Value, recording: Recording, *, of_outside: bool = False
) -> np.ndarray | None:
    """Return the elements of a value that depends on nothing that a call gives, or None.

    Args:
        value: a value of the recording.
        recording: where it is computed.
        of_outside: whether it must depend on an array of outside, not on constants alone.
    """
    if not _is_known(value, recording):
        return None
    values = _Evaluation()
    result: np.ndarray = values.of(value, recording)
    if of_outside and not values.arrays:
        return None
    note = _on_contents_read.get()
    if note is not None:
        for array in values.arrays:
            note(array)
    return result


def _is_known(value: Value, recording: Recording) -> bool:
    """Return whether a value depends on outside arrays and constants alone.

    Each value of a recording is looked at once.
    """
    worklist = [(value, recording)]
    while worklist:
        part, scope = worklist[-1]
        sources = _sources(part, scope)
        flags = [source_scope.known.get(source) for source, source_scope in sources or ()]
        if sources is None or False in flags:
            scope.known[part] = False
        elif None in flags:
            worklist += [sources[k] for k, flag in enumerate(flags) if flag is None]
            continue
        else:
            scope.known[part] = True
        worklist.pop()
    return recording.known[value]


def _sources(value: Value, scope: Recording) -> list[tuple[Value, Recording]] | None:
    """Return what a value is computed from; None if only a run can tell."""
    if value.node is not None:
        if value.node.op.effect is not Effect.NONE or not _has_elements(value.node):
            return None
        return [(operand, scope) for operand in value.node.operands]
    if scope.is_region:
        outer = scope.outer_value(value)
        return None if outer is None or scope.parent is None else [(outer, scope.parent)]
    binding = scope.captures.binding_of(value)
    if isinstance(binding, Tracer):
        outer_scope: Any = binding.recording
        return None if outer_scope.runs_now() else [(binding.value, outer_scope)]
    return [] if _is_array(binding) else None


def _has_elements(node: Node) -> bool:
    """Return whether the operands and results of a node are arrays, not lists or tokens."""
    return all(isinstance(value.type, TensorType) for value in (*node.operands, *node.results))


def _is_array(binding: Any) -> bool:
    return isinstance(binding, np.ndarray) or foreign_boundary(binding) is not None


class _Evaluation:
    """Computes known values, and collects the outside arrays that they depend on."""

    def __init__(self) -> None:
        self.scopes: dict[Value, Recording] = {}
        self.results: dict[Value, Any] = {}
        self.arrays: list[Any] = []

    def of(self, value: Value, scope: Recording) -> Any:
        """Return the elements of a value."""
        self.scopes[value] = scope
        for part in operands_first([value], self._operands):
            if part not in self.results:
                self._compute(part)
        return self.results[value]

    def _operands(self, value: Value) -> list[Value]:
        sources = _sources(value, self.scopes[value]) or []
        self.scopes.update(sources)
        return [source for source, _ in sources]

    def _compute(self, value: Value) -> None:
        if value.node is not None:
            self.results.update(zip(value.node.results, self._run(value.node), strict=True))
            return
        scope = self.scopes[value]
        operands = self._operands(value)
        if operands:
            self.results[value] = self.results[operands[0]]
            return
        binding = scope.captures.binding_of(value)
        if scope.captures.is_of_outside(value):
            self.arrays.append(binding)
            scope.contents_read[value] = len(scope.b.nodes)
        self.results[value] = to_host(binding)

    def _run(self, node: Node) -> tuple[Any, ...]:
        params = {x: Value(x.type) for x in node.operands}  # of a graph of its own
        with np.errstate(all="ignore"):
            if node.op.kernel is None:
                copy = with_operands(node, [params[x] for x in node.operands], node.regions)
                graph = Graph("known", tuple(params.values()), (copy,), copy.results)
                return tuple(NumpyBackend().compile(graph)([self.results[x] for x in params]))
            results = node.op.kernel(*[self.results[x] for x in node.operands], **node.attrs)
        return results if isinstance(results, tuple) else (results,)
