"""How one function is traced: a second time, where the first made variables."""

from __future__ import annotations

import inspect
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import replace
from types import FunctionType, ModuleType, TracebackType
from typing import Any

import numpy as np

from wend.base.errors import NestingError, listed
from wend.base.gc_pause import gc_paused
from wend.capture.convert import capture
from wend.capture.guards.reads import guard_function
from wend.function.concrete import ConcreteFunction
from wend.function.signature.binding import Binding
from wend.function.signature.keys import ByIdentity
from wend.function.signature.signature import Arguments
from wend.trace.state.creation import Creation, Initialiser, described
from wend.trace.state.variable import Variable
from wend.trace.traced import Traced, trace_function


class Tracing:
    """How one function is traced; knows nothing of the traces there are.

    Variables may be made at the first call, and where they belong to an object that is given
    for the first time. They must be made once, so a trace that makes some is dropped, and the
    function traced again, now with what it has made.

    Attributes:
        pending: what gives variables their first values at the next call.
        dropped: how many traces made variables and were dropped.
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
        self.pending: list[Initialiser] = []
        self.dropped = 0
        self._is_first = True
        self._known: list[ByIdentity] = []

    def __call__(self, arguments: Arguments) -> ConcreteFunction:
        new = [] if self._is_first else self._new_objects(arguments)
        creation = Creation(self.name, self.pending)
        if not self._is_first and not new:
            self._refuse_later(creation)
        try:
            with gc_paused():
                traced = self._traced_once_or_twice(arguments, creation, new)
        finally:  # of a trace that failed, too: what Python holds is not made again
            self.pending[:] = [
                one for one in (*self.pending, *creation.new) if not one.place.is_gone
            ]
        self._is_first = False
        alive = [known for known in self._known if known.reference() is not None]
        self._known = [*alive, *map(ByIdentity, _objects(arguments))]
        return ConcreteFunction(self.name, traced, arguments, self.binding, self.backend)

    def _traced_once_or_twice(
        self, arguments: Arguments, creation: Creation, new: list[Any]
    ) -> Traced:
        traced = self._trace(arguments, creation)
        if creation.made:
            if not self._is_first:
                self._check_belongs(creation, new)
            again = Creation(
                self.name,
                self.pending,
                refusal=f"is made again when {self.name} is traced a second time: each call would "
                "make one.",
                cure="make it once: if self.v is None: self.v = wend.Variable(…).",
                new=creation.new,
            )
            self.dropped += 1
            traced = self._trace(arguments, again)
            made = listed(map(described, creation.made))
            note = f"traced twice: the first trace made {made.rstrip(',')}"
            traced = replace(traced, notes=(*traced.notes, note))
        return traced

    def _trace(self, arguments: Arguments, creation: Creation) -> Traced:
        plain = inspect.unwrap(self.fun)
        if isinstance(plain, FunctionType):
            guard_function(plain, **arguments.objects())
        try:
            return trace_function(
                capture(self.fun) if self.capture else self.fun,
                arguments.types,
                arguments.call,
                self.name,
                [f"argument {name}" for name in arguments.names()],
                creation=creation,
                by_value=self.by_value,
            )
        finally:
            creation.end()

    def _refuse_later(self, creation: Creation) -> None:
        creation.refusal = f"is made in a later trace of {self.name}, which may make none."
        creation.cure = (
            "make it when the function is first called, or as a part of an object that is passed."
        )

    def _new_objects(self, arguments: Arguments) -> list[Any]:
        """The objects among the arguments that no trace was made for."""
        return [x for x in _objects(arguments) if ByIdentity(x) not in self._known]

    def _check_belongs(self, creation: Creation, new: list[Any]) -> None:
        """Refuse variables that do not belong to one of some objects.

        Raises:
            VariableError: there is one.
        """
        found = {id(x) for x in _parts(new)}
        for variable in creation.made:
            if id(variable) not in found:
                self._refuse_later(creation)
                creation.check(variable)


def _objects(arguments: Arguments) -> list[Any]:
    """The arguments that are objects of the user's, and can be held weakly."""
    traced = {*arguments.places}
    leaves = [leaf for k, leaf in enumerate(arguments.leaves) if k not in traced]
    return [leaf for leaf in leaves if hasattr(leaf, "__weakref__")]


def _parts(owners: Iterable[Any]) -> Iterator[Any]:
    """What can be reached from objects by attributes and containers."""
    waiting, seen = [*owners], set[int]()
    while waiting:
        x = waiting.pop()
        if id(x) in seen or isinstance(x, _CLOSED):
            continue
        seen.add(id(x))
        yield x
        if isinstance(x, Variable):
            continue
        if isinstance(x, dict):
            waiting += [*x.keys(), *x.values()]
        elif isinstance(x, (list, tuple, set, frozenset, deque)):
            waiting += x
        waiting += getattr(x, "__dict__", {}).values()
        for kind in type(x).__mro__:
            slots = kind.__dict__.get("__slots__", ())
            names = (slots,) if isinstance(slots, str) else slots
            waiting += [getattr(x, name) for name in names if hasattr(x, name)]


# Nothing that belongs to an object is looked for in these.
_CLOSED = (type, ModuleType, FunctionType, str, bytes, int, float, complex, np.ndarray, np.generic)


# Recording a function inside another takes some twenty of Python's frames, more in branches.
_FRAMES = 40
_LEVELS = 100  # so many functions in each other have room; without end none has

_innermost: ContextVar[Nested | None] = ContextVar("wend_nesting", default=None)


class Nested:
    """While in it one more function is being recorded, and Python allows the frames it takes.

    Args:
        function: what is recorded, by identity.

    Raises:
        RecursionError: at the end of the outermost, with advice, if many functions took all frames.
    """

    __slots__ = ("_deepest", "_function", "_level", "_limit", "_outer", "_token")

    def __init__(self, function: object) -> None:
        self._function = function

    def __enter__(self) -> None:
        self._outer = _innermost.get()
        self._token = _innermost.set(self)
        self._level: int = 0 if self._outer is None else self._outer._level + 1
        # What was met at each level, by the first that came there: one list for all in each other
        self._deepest: list[object] = [] if self._outer is None else self._outer._deepest
        if self._level == len(self._deepest):
            self._deepest.append(self._function)
        self._limit = sys.getrecursionlimit()
        if 0 < self._level <= _LEVELS:
            sys.setrecursionlimit(self._limit + _FRAMES)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _innermost.reset(self._token)
        sys.setrecursionlimit(self._limit)
        # Here, since what is raised on the way out may hit the limit again, and so lose lines; and
        # what is done later with a graph of so many in each other may hit it, too.
        if self._outer is None and isinstance(error, RecursionError):
            count, different = len(self._deepest), len({*map(id, self._deepest)})
            if count > _LEVELS and 2 * different > count:
                raise NestingError.of(count) from None
