"""Calls of a function that go straight into compiled code, once a trace has served some."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wend.backends.fastcall import (
    FALLBACK,
    CallArgument,
    CallConstant,
    CallOperand,
    CallSignature,
    FastCall,
    Guard,
)
from wend.backends.protocol import FastCallable
from wend.base import trees
from wend.base.config import Settings, settings_storage
from wend.base.pytree_codegen import (
    Flatten,
    Unflatten,
    compile_flatten,
    compile_unflatten,
)
from wend.eager.dispatch import recorder
from wend.runtime.storage import Storage

if TYPE_CHECKING:
    from wend.function.cache import Trace
    from wend.trace.traced import Traced

_MOST = 8  # traces that are tried
_NOT_RECORDED = Guard(recorder, None, None)


@dataclass(frozen=True, slots=True)
class LeafPlan:
    """What a trace takes of a call.

    Attributes:
        places: for each array that is traced, which argument it is, or which leaf.
        count: how many there are.
        tree: the structure of (args, kwargs); None where the arguments are the leaves.
    """

    places: Sequence[int]
    count: int
    tree: trees.TreeDef | None = None


@dataclass(slots=True)
class FastPath:
    """A trace with what calls its code.

    Attributes:
        call: takes leaves; gives `FALLBACK` where the trace does not serve.
        take: gives the leaves of (args, kwargs); None where the arguments are the leaves.
        is_bare: whether nothing is done by Python, also where the code fails.
    """

    trace: Trace
    fast_call: FastCall
    call: Callable[..., Any]
    take: Flatten | None = None
    is_bare: bool = False
    bare: Callable[..., Any] | None = None

    def allow_calls(self, more: int = 0) -> int:
        """Let it serve as many calls as need no look, and more; returns how many more than now."""
        count = self.trace.watch.allow_calls() + more
        return count - self.fast_call.allow_calls(count)

    def or_else(self, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        """What a call is done by: bare code where it can be, which calls `otherwise` if need be."""
        if not self.is_bare:
            return otherwise
        if self.bare is None:
            self.bare = self.fast_call.call_or(otherwise)
        return self.bare


class FastPaths:
    """Those of one function.

    Attributes:
        first: the one that served last, of those that take the arguments as they are.
        failed: the trace whose run failed last.
    """

    def __init__(self) -> None:
        self.first: FastPath | None = None
        self.failed: Trace | None = None
        self._all: dict[tuple[int, str, trees.TreeDef | None], FastPath] = {}

    def __len__(self) -> int:
        return len(self._all)

    def clear(self) -> None:
        """Let none serve any more: a trace was dropped."""
        self.first = None
        for shortcut in self._all.values():
            shortcut.fast_call.allow_calls(0)
        self._all = {}

    def call(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call with the first that serves; or `FALLBACK`.

        Raises:
            ValueError: what `failed` runs has raised it.
        """
        first = self.first
        if first is not None and not kwargs:
            result = self._call(first, args)
            if result is not FALLBACK:
                return result
        if recorder.get() is not None:
            return FALLBACK
        for shortcut in (*self._all.values(),):
            leaves: Sequence[Any] | None = None
            if shortcut.take is not None:
                leaves = shortcut.take((args, kwargs))
            elif not kwargs and shortcut is not first:
                leaves = args
            result = FALLBACK if leaves is None else self._call(shortcut, leaves)
            if result is not FALLBACK:
                self.first = shortcut if shortcut.take is None else self.first
                return result
        return FALLBACK

    def _call(self, shortcut: FastPath, leaves: Sequence[Any]) -> Any:
        try:
            return shortcut.call(*leaves)
        except ValueError:
            self.failed = shortcut.trace
            raise

    def spent(self) -> list[FastPath]:
        """Those that have served as many calls as they may."""
        return [shortcut for shortcut in self._all.copy().values() if not shortcut.fast_call.left]

    def renew(self, trace: Trace, taken: LeafPlan, backend: str, here: Settings) -> int:
        """A trace was found to be in order: let its code serve calls, as many as need no look.

        Args:
            trace: the trace.
            taken: what it takes of a call.
            backend: what runs it.
            here: the settings in force.

        Returns:
            How many calls more its code may serve than before.
        """
        key = id(trace), backend, taken.tree
        found = self._all.get(key)
        if found is None:
            found = _made(trace, taken, backend, here)
            if found is None:
                trace.needs_python.add(backend)
                return 0
            if len(self._all) >= _MOST:
                self.clear()
            self._all[key] = found
        if taken.tree is None:
            self.first = found
        found.fast_call.set_guard(1, here)
        return found.allow_calls()


def _made(trace: Trace, taken: LeafPlan, backend: str, here: Settings) -> FastPath | None:
    """None where Python has something to do in each call."""
    concrete = trace.concrete
    traced = concrete.traced
    is_more = traced.passed or traced.stored or traced.pending
    if is_more or traced.has_world or not traced.is_closed():
        return None
    takes: list[CallOperand] = [
        CallArgument(place, type.weak, trace.special)
        for place, type in zip(taken.places, concrete.input_types, strict=True)
    ]
    count = taken.count
    variables = [x for x in traced.captured if isinstance(x, Storage)]
    of_variables = iter(range(count, count + len(variables)))
    takes += [
        CallArgument(next(of_variables)) if isinstance(x, Storage) else CallConstant(x)
        for x in traced.captured
    ]
    tree = traced.result_tree
    guards = (_NOT_RECORDED, Guard(*settings_storage(), here))
    is_single = tree.is_leaf() and not traced.written
    gives = len(traced.result_types) + len(traced.written)
    form = CallSignature(tuple(takes), count + len(variables), gives, is_single, guards)
    execute = concrete.compiled.executable(backend)
    fast_call = execute.fast_call(form) if isinstance(execute, FastCallable) else None
    if fast_call is None:
        return None
    fast_call.allow_calls(0)
    call = fast_call.call
    if variables:
        call = _with_variables(call, variables)
    if traced.written:
        call = _with_writes(call, traced, taken.places)
    if tree.is_leaf() and traced.written:
        call = _with_structure(call, operator.itemgetter(0))
    elif not tree.is_leaf() and tree != trees.flatten((0,) * tree.num_leaves)[1]:
        call = _with_structure(call, compile_unflatten(trees.numbered(tree)) or tree.unflatten)
    if taken.tree is None:
        return FastPath(trace, fast_call, call, is_bare=call is fast_call.call and trace.special)
    take = compile_flatten(trees.numbered(taken.tree))
    return None if take is None else FastPath(trace, fast_call, call, take)


def _with_variables(call: Callable[..., Any], places: Sequence[Storage]) -> Callable[..., Any]:
    def call_with_variables(*args: Any) -> Any:
        return call(*args, *[place.owner.concrete for place in places])

    return call_with_variables


def _with_writes(
    call: Callable[..., Any], traced: Traced, places: Sequence[int]
) -> Callable[..., Any]:
    """What also writes into the arguments that the function changes."""

    def call_with_writes(*args: Any) -> Any:
        found = call(*args)
        if found is FALLBACK:
            return FALLBACK
        leaves = [args[place] for place in places]
        traced.check_apart(leaves)
        return traced.put(leaves, found)

    return call_with_writes


def _with_structure(call: Callable[..., Any], build: Unflatten) -> Callable[..., Any]:
    def call_with_structure(*args: Any) -> Any:
        leaves = call(*args)
        return leaves if leaves is FALLBACK else build(leaves)

    return call_with_structure
