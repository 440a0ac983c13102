"""Traces one function: a second time if the first trace created variables."""

from __future__ import annotations

import inspect
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar, copy_context
from dataclasses import replace
from types import FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np

from wend.backends.compiled_graph import CompiledGraph
from wend.base.errors import NestingError, StructureError, WendError, explain, listed
from wend.base.gc_pause import gc_paused
from wend.base.keys import ByIdentity
from wend.base.lazy.dataclass import dataclass
from wend.base.refusals import refusal
from wend.base.source import SCOPE
from wend.capture.convert import capture
from wend.capture.guards.guards import (
    guard_argument,
    guard_restored,
    guard_uncaptured,
    is_of_outside,
    restart_guards,
)
from wend.capture.heap.trace_log import trace_log
from wend.capture.heap.user_operators import note_operands
from wend.capture.state.paths import TracedPath, traced_path
from wend.function.concrete import ConcreteFunction
from wend.function.signature.binding import Binding
from wend.function.signature.signature import Arguments
from wend.trace.state.creation import Creation, Initializer, described
from wend.trace.state.variable import Variable
from wend.trace.trace_function import trace_function
from wend.trace.traced import Traced

T = TypeVar("T")


class Tracing:
    """The tracing of one function; knows nothing of its other traces.

    Variables may be created at the first call, and as parts of an object that is passed for the
    first time. They must be created once, so a trace that creates some is dropped, and the function
    is traced again, now with the variables it has created.

    Attributes:
        pending: initializers of variables, to run at the next call.
        dropped: the number of dropped traces, which created variables.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        name: str,
        capture: bool,
        by_value: bool,
        binding: Binding,
        backend: str | None,
    ) -> None:
        self.fun, self.name, self.capture, self.by_value = fun, name, capture, by_value
        self.binding, self.backend = binding, backend
        self.pending: list[Initializer] = []
        self.dropped = 0
        self._is_first = True
        self._traced_objects: list[ByIdentity] = []

    def __call__(self, arguments: Arguments) -> ConcreteFunction:
        new_objects = [] if self._is_first else self._new_objects(arguments)
        creation = Creation(self.name, self.pending)
        if not self._is_first and not new_objects:
            self._forbid_creation(creation)
        try:
            with gc_paused():
                traced, first = self._trace_twice_if_needed(arguments, creation, new_objects)
        finally:  # after a failure, too: Python may still hold the created variables
            self.pending[:] = [
                initializer
                for initializer in (*self.pending, *creation.deferred)
                if not initializer.storage.is_gone
            ]
        self._is_first = False
        alive = [
            object_key for object_key in self._traced_objects if object_key.reference() is not None
        ]
        self._traced_objects = [*alive, *map(ByIdentity, _objects(arguments))]
        concrete = self.concrete(traced, arguments)
        if first is not None:
            concrete.first_call = self.concrete(first, arguments)
        return concrete

    def concrete(
        self, traced: Traced, arguments: Arguments, compiled: CompiledGraph | None = None
    ) -> ConcreteFunction:
        """Return the concrete function of a trace; `compiled`: what another one has compiled."""
        return ConcreteFunction(self.name, traced, arguments, self.binding, self.backend, compiled)

    def _trace_twice_if_needed(
        self, arguments: Arguments, creation: Creation, new_objects: list[Any]
    ) -> tuple[Traced, Traced | None]:
        """Trace, and trace again if that has created variables or initialized objects.

        Returns:
            the trace, and the first one if this call is to use that.

        Raises:
            SideEffectError: the second trace changes what outlives it once more.
        """
        with trace_log() as writes:
            try:
                first = self._trace(arguments, creation)
            except WendError:
                raise
            except Exception:
                writes.refuse_lost(self.name, is_of_outside)
                raise
            initializes = writes.settle(self.name, first.captured)
            if not creation.created and not initializes:
                guard_restored(writes.restored(self.name, first.graph))
                return first, None
            if arguments.path:
                raise refusal(StructureError(explain(_ONE_PATH.format(self.name), cure=_BEFORE)))
            if creation.created and not self._is_first:
                self._check_owners(creation, new_objects)
            retrace_creation = Creation(
                self.name,
                self.pending,
                refusal=f"is made again when {self.name} is traced a second time: each call would "
                "make one.",
                cure="make it once: if self.v is None: self.v = wend.Variable(…).",
                deferred=creation.deferred,
            )
            restart_guards()
            with trace_log() as later_writes, writes.explaining_failure(self.name):
                traced = self._trace(arguments, retrace_creation)
                later_writes.refuse_any(self.name, traced.captured)
                guard_restored(later_writes.restored(self.name, traced.graph))
        if creation.created:
            self.dropped += 1
            created = listed(map(described, creation.created))
            note = f"traced twice: the first trace made {created.rstrip(',')}"
            first_call = None
        else:
            note, first_call = f"traced twice: the first trace changed {writes.described()}", first
        return replace(traced, notes=(*traced.notes, note)), first_call

    def _trace(self, arguments: Arguments, creation: Creation) -> Traced:
        unwrapped = inspect.unwrap(self.fun)
        if isinstance(unwrapped, FunctionType):
            note_operands(unwrapped, dict(arguments.static_values()))
        guard_argument(getattr(unwrapped, "__self__", unwrapped), "self")
        for name, value in arguments.static_values():
            guard_argument(value, name)
        if not self.capture:
            guard_uncaptured(unwrapped)
        level = _innermost.get()
        path = TracedPath(dict(arguments.path)) if level is None or not level.depth else None
        try:
            with traced_path(path):
                return trace_function(
                    self._captured() if self.capture else self.fun,
                    arguments.types,
                    arguments.call_for_caller,
                    self.name,
                    [f"argument {name}" for name in arguments.names()],
                    creation=creation,
                    by_value=self.by_value,
                )
        finally:
            creation.end()

    def _captured(self) -> Callable[..., Any]:
        """Return the captured form of the function, made when it is called: in the trace."""
        capture(self.fun)  # what it refuses, it refuses before

        def run(*args: Any, **kwargs: Any) -> Any:
            return capture(self.fun)(*args, **kwargs)

        return run

    def _forbid_creation(self, creation: Creation) -> None:
        """Refuse any variable that the trace creates."""
        creation.refusal = f"is made in a later trace of {self.name}, which may make none."
        creation.cure = (
            "make it when the function is first called, or as a part of an object that is passed."
        )

    def _new_objects(self, arguments: Arguments) -> list[Any]:
        """Return the objects among the arguments that have not been passed before."""
        return [x for x in _objects(arguments) if ByIdentity(x) not in self._traced_objects]

    def _check_owners(self, creation: Creation, new_objects: list[Any]) -> None:
        """Check that the created variables belong to new objects."""
        owned = {id(x) for x in _reachable(new_objects)}
        for variable in creation.created:
            if id(variable) not in owned:
                self._forbid_creation(creation)
                creation.check(variable)


def _objects(arguments: Arguments) -> list[Any]:
    """Return the arguments that are the user's objects, if they are weakly referenceable."""
    traced = {*arguments.traced_positions}
    return [
        leaf
        for k, leaf in enumerate(arguments.leaves)
        if k not in traced and hasattr(leaf, "__weakref__")
    ]


def _reachable(owners: Iterable[Any]) -> Iterator[Any]:
    """Yield what objects reach by attributes and containers."""
    stack, seen = [*owners], set[int]()
    while stack:
        x = stack.pop()
        if id(x) in seen or isinstance(x, _OPAQUE_TYPES):
            continue
        seen.add(id(x))
        yield x
        if isinstance(x, Variable):
            continue
        if isinstance(x, dict):
            stack += [*x.keys(), *x.values()]
        elif isinstance(x, (list, tuple, set, frozenset, deque)):
            stack += x
        stack += getattr(x, "__dict__", {}).values()
        for cls in type(x).__mro__:
            slots = cls.__dict__.get("__slots__", ())
            names = (slots,) if isinstance(slots, str) else slots
            stack += [getattr(x, name) for name in names if hasattr(x, name)]


# Not searched for variables.
_OPAQUE_TYPES = (
    type,
    ModuleType,
    FunctionType,
    str,
    bytes,
    int,
    float,
    complex,
    np.ndarray,
    np.generic,
)


_ONE_PATH = "{} makes variables or initializes objects, on a path that needs a trace of its own."
_BEFORE = "do it before the first test; or return one structure on all paths."
# Tracing a function inside another takes some twenty Python frames, more in branches.
_FRAMES_PER_LEVEL = 40
# The recursion limit is raised for this many nested functions only, so that endless recursion ends.
_MAX_EXTENDED_LEVELS = 100

_innermost: ContextVar[_Level | None] = ContextVar("wend_nesting", default=None)


@dataclass(frozen=True, slots=True)
class _Level:
    """How deeply the traces of functions are nested in each other.

    Attributes:
        depth: 0 outermost.
        functions: the first function met at each depth; one list shared by all levels.
    """

    depth: int
    functions: list[object]


def trace_nested(function: object, trace: Callable[[], T]) -> T:
    """Trace one more function, with room for its Python frames.

    It runs in a context of its own: an interrupt may come before an `__exit__` has begun, and must
    not leave the values of context variables behind.

    Raises:
        RecursionError: from the outermost level, with advice, if nested functions used up all
            frames.
    """
    outer = _innermost.get()
    level = _Level(0, []) if outer is None else _Level(outer.depth + 1, outer.functions)
    if level.depth == len(level.functions):
        level.functions.append(function)
    limit = sys.getrecursionlimit()

    def run() -> T:
        _innermost.set(level)
        SCOPE.set("")  # the trace is kept, for callers in other scopes, too
        if 0 < level.depth <= _MAX_EXTENDED_LEVELS:
            sys.setrecursionlimit(limit + _FRAMES_PER_LEVEL)
        return trace()

    try:
        return copy_context().run(run)
    except RecursionError:
        # Raised by the outermost level only: an error raised on the way out may hit the limit
        # again and lose lines, and so may later work on a graph nested this deeply.
        depth, distinct = len(level.functions), len({*map(id, level.functions)})
        if outer is None and depth > _MAX_EXTENDED_LEVELS and 2 * distinct > depth:
            raise NestingError.of(depth) from None
        raise
    finally:
        sys.setrecursionlimit(limit)
