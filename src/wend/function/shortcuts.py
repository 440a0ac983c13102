"""Calls of a function that go straight into compiled code, once a trace has served some."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wend.backends.direct import MISS, Bound, Direct, Form, Given, Guard, Taken
from wend.base import trees
from wend.base.config import Settings, where_settings_are
from wend.eager.dispatch import recorder
from wend.runtime.place import Place

if TYPE_CHECKING:
    from wend.function.cache import Trace

_MOST = 8  # traces that are tried
_NOT_RECORDED = Guard(recorder, None, None)


@dataclass(slots=True)
class Shortcut:
    """A trace with what calls its code; `call` gives `MISS` where the trace does not serve."""

    trace: Trace
    direct: Direct
    call: Callable[..., Any]


class Shortcuts:
    """Those of one function.

    Attributes:
        first: the one that served last.
    """

    def __init__(self) -> None:
        self.first: Shortcut | None = None
        self._all: dict[int, tuple[Trace, Shortcut | None]] = {}  # by the trace's id

    def clear(self) -> None:
        """Let none serve any more: a trace was dropped."""
        self.first = None
        self._all = {}

    def call(self, args: Sequence[Any]) -> Any:
        """Call with the first that serves, which is tried first from now on; or `MISS`."""
        for _, shortcut in (*self._all.values(),):
            if shortcut is None:
                continue
            try:
                result = shortcut.call(*args)
            except ValueError:
                self.first = shortcut
                raise
            if result is not MISS:
                self.first = shortcut
                return result
        return MISS

    def renew(self, trace: Trace, first: int, backend: str, here: Settings) -> int:
        """A trace was found to be in order: let its code serve calls, as many as need no look.

        Args:
            trace: the trace.
            first: the argument from which on they are traced.
            backend: what runs it.
            here: the settings in force.

        Returns:
            How many calls more its code may serve than before.
        """
        number = id(trace)
        if number not in self._all:
            if len(self._all) >= _MOST:
                self.clear()
            self._all[number] = trace, _made(trace, first, backend, here)
        _, found = self._all[number]
        if found is None:
            return 0
        self.first = found
        found.direct.expect(1, here)
        count = trace.watch.grant()
        return count - found.direct.grant(count)


def _made(trace: Trace, first: int, backend: str, here: Settings) -> Shortcut | None:
    """None where Python has something to do in each call."""
    concrete = trace.concrete
    traced = concrete.traced
    is_more = traced.passed or traced.written or traced.stored or traced.pending
    if is_more or traced.has_world or not traced.is_closed():
        return None
    takes: list[Taken] = [
        Given(first + k, type.weak, trace.special) for k, type in enumerate(concrete.input_types)
    ]
    count = first + len(takes)
    places = [x for x in traced.captured if isinstance(x, Place)]
    of_variables = iter(range(count, count + len(places)))
    takes += [
        Given(next(of_variables)) if isinstance(x, Place) else Bound(x) for x in traced.captured
    ]
    tree = traced.result_tree
    guards = (_NOT_RECORDED, Guard(*where_settings_are(), here))
    form = Form(tuple(takes), count + len(places), len(traced.result_types), tree.is_leaf(), guards)
    direct = concrete.executable(backend).direct(form)
    if direct is None:
        return None
    direct.grant(0)
    call = direct.call
    if places:
        call = _with_variables(call, places)
    if not tree.is_leaf() and tree != trees.flatten((0,) * tree.num_leaves)[1]:
        call = _with_structure(call, tree)
    return Shortcut(trace, direct, call)


def _with_variables(call: Callable[..., Any], places: Sequence[Place]) -> Callable[..., Any]:
    def call_with_variables(*args: Any) -> Any:
        return call(*args, *[place.owner.concrete for place in places])

    return call_with_variables


def _with_structure(call: Callable[..., Any], tree: trees.TreeDef) -> Callable[..., Any]:
    def call_with_structure(*args: Any) -> Any:
        leaves = call(*args)
        return leaves if leaves is MISS else tree.unflatten(leaves)

    return call_with_structure
