"""Lists and dicts of which only the run tells which one they are: what branches and loops give.

`if test: a = [3, 4]` leaves in `a` the list that it held, or another. What is in it is part of
the graph, so it may be read; and it may be changed where nobody else holds a list that it may be,
for then nobody can tell. Arrays have the same rule (`trace/choices.py`).
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from wend.base import trees
from wend.base.context_values import scoped
from wend.base.errors import AliasError, explain
from wend.base.source import at, user_source
from wend.capture.heap.aliases import holder
from wend.capture.heap.containers import KINDS, Parts, replaced
from wend.trace.aliasing.may_alias import may_be_one
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.recording import Recording

Row = Sequence[Any]
Held = Sequence[tuple[Any, Parts]]


class _Choices:
    """What is known in one trace; containers by identity."""

    def __init__(self) -> None:
        self.things: dict[int, Any] = {}  # held, so that their ids stay theirs
        self.options: dict[int, list[int]] = {}  # what each may be
        self.may_be_it: dict[int, list[int]] = {}
        self.copies: dict[int, int] = {}  # what stands for a container in a region, by the copy
        self.event: dict[int, int] = {}  # which branch or loop gave it
        self.twins: dict[int, set[int]] = {}  # those of one event that may be one container
        self.changed: set[int] = set()
        self.events = itertools.count()

    def link(self, new: Any, old: Any, event: int) -> None:
        """Note that one may be another."""
        if new is old:
            return
        self.things[id(new)], self.things[id(old)] = new, old
        self.options.setdefault(id(new), []).append(id(old))
        self.may_be_it.setdefault(id(old), []).append(id(new))
        self.event[id(new)] = event

    def resolved(self, x: Any) -> int:
        """Which container a copy stands for."""
        found = id(x)
        while found in self.copies:
            found = self.copies[found]
        return found

    def affected(self, x: Any) -> Iterator[Any]:
        """The containers that may be the same as one."""
        found: dict[int, None] = {}
        self._up(id(x), None, found)
        self._down(id(x), found)
        for twin in self.twins.get(id(x), ()):
            found[twin] = None
            self._up(twin, None, found)
        return (self.things[k] for k in found if k != id(x))

    def _down(self, k: int, found: dict[int, None]) -> None:
        for option in self.options.get(k, ()):
            if option not in found:
                found[option] = None
                self._up(option, k, found)
                self._down(option, found)

    def _up(self, k: int, come_from: int | None, found: dict[int, None]) -> None:
        for other in self.may_be_it.get(k, ()):
            if other == come_from or other in found:
                continue
            if come_from is not None and self.event[other] == self.event[come_from]:
                continue  # of one branch or loop: its twins are known
            found[other] = None
            self._up(other, None, found)


_choices: ContextVar[_Choices | None] = ContextVar("wend_container_choices", default=None)


def traced() -> AbstractContextManager[Any]:
    """Keep what is found out in this block, the trace of a function."""
    return scoped(_choices, _Choices())


def are_there() -> bool:
    """Whether there are containers of which only the run tells which one they are."""
    choices = _choices.get()
    return choices is not None and bool(choices.things)


def entered(originals: Row, copies: Row) -> None:
    """Note what a region's variables hold in place of what they held before."""
    choices = _choices.get()
    if choices is None:
        return
    for original, copy in zip(originals, copies, strict=False):
        for new, old in _alongside(copy, original):
            if new is not old:
                choices.link(new, old, next(choices.events))
                choices.copies[id(new)] = id(old)


def merged(results: Row, options: Sequence[Row], outer: Recording) -> None:
    """Note what the containers may be that a branch or loop leaves.

    Args:
        results: what it leaves in each place.
        options: what each path leaves there.
        outer: the recording of the results.
    """
    choices = _choices.get()
    if choices is None:
        return
    event = next(choices.events)
    found: list[tuple[Any, list[int | None]]] = []
    for k, result in enumerate(results):
        own: dict[int, tuple[Any, list[int | None]]] = {}
        for number, row in enumerate(options):
            for new, old in _alongside(result, row[k]):
                entry = own.setdefault(id(new), (new, [None] * len(options)))
                meant = choices.resolved(old)
                entry[1][number] = meant
                if not _is_made_inside(old, outer):
                    choices.link(new, choices.things.get(meant, old), event)
        found += own.values()
    for (one, mine), (other, theirs) in itertools.combinations(found, 2):
        if one is not other and any(
            a == b and a is not None for a, b in zip(mine, theirs, strict=True)
        ):
            choices.things[id(one)], choices.things[id(other)] = one, other
            choices.twins.setdefault(id(one), set()).add(id(other))
            choices.twins.setdefault(id(other), set()).add(id(one))


def check_replaced(before: Held, now: Held, where: str, outer: Recording) -> None:
    """Refuse that a container holds others in some runs, where somebody else holds them too.

    Args:
        before: containers by place, with those that each holds before a loop or branch.
        now: the same after it.
        where: the loop or branch.
        outer: the recording around it.
    """
    for (place, then), (_, here) in zip(before, now, strict=True):
        for old, new in replaced(then, here):
            _check_part(place, old, where)
            if not _is_made_inside(new, outer):
                _check_part(place, new, where)


def _check_part(place: Any, part: Any, where: str) -> None:
    held = None if part is None else holder(_is(part), place.container)
    if held is not None:
        kind = type(part).__name__
        raise AliasError(
            explain(
                f"{where}: whether `{place.label}` holds the {kind} that {held} holds, only the "
                "run tells: changes of one would show in the other.",
                cure=f"put a .copy() into `{place.label}`, or take one out of it.",
            )
        )


def have_changed(*values: Any) -> bool:
    """Whether containers among some values that stand for others have changed."""
    choices = _choices.get()
    if choices is None:
        return False
    parts = [part for value in values for part, _ in _alongside(value, value)]
    return any(id(part) in choices.changed for part in parts)


def check_change(value: Any, label: str = "") -> None:
    """Say that a container changes, or one that it holds.

    Args:
        value: the container.
        label: the variable by which it is reached, if it is one.

    Raises:
        AliasError: it may be one that somebody else holds.
    """
    choices = _choices.get()
    if choices is None or not choices.things:
        return
    for part, _ in _alongside(value, value):
        if id(part) not in choices.things:
            continue
        choices.changed.add(id(part))
        for other in choices.affected(part):
            if held := holder(_is(other)):
                kind = type(part).__name__
                subject, one = (f"`{label}`", label) if label else (f"a {kind}", "x")
                raise AliasError(
                    explain(
                        f"{subject} is changed{at(user_source())}, and may be the {kind} that "
                        f"{held} holds, which only the run tells: in Python both would change.",
                        cure=f"let it be a {kind} of its own: {one} = {one}.copy() before.",
                    )
                )


def are_one(a: Any, b: Any) -> bool:
    """`a is b`.

    Raises:
        AliasError: one may be the other, which only the run tells.
    """
    if a is b:
        return True
    choices = _choices.get()
    if choices is None:
        return False
    if isinstance(a, KINDS) and isinstance(b, KINDS) and choices.things:
        if choices.resolved(a) == choices.resolved(b):
            return True
        may_be = any(other is b for other in choices.affected(a))
    else:
        may_be = isinstance(a, Tracer) and isinstance(b, Tracer) and may_be_one(a, b)
    if may_be:
        raise AliasError(
            explain(
                f"`is`{at(user_source())}: whether the two are one, only the run tells.",
                cure="keep a flag that says which it is, and ask for that.",
            )
        )
    return False


def _is(meant: Any) -> Callable[[Any], bool]:
    return lambda value: value is meant


def _is_made_inside(container: Any, outer: Recording) -> bool:
    leaves = trees.flatten(container)[0]
    return any(isinstance(x, Tracer) and not outer.can_lift(x) for x in leaves)


def _alongside(new: Any, old: Any) -> Iterator[tuple[Any, Any]]:
    """The containers in a value, with those in their places in another."""
    if type(new) in KINDS and type(old) in KINDS:
        yield new, old
    if type(new) is not type(old):
        return
    if type(new) in (list, tuple, deque):
        for mine, theirs in zip(new, old, strict=False):
            yield from _alongside(mine, theirs)
    elif type(new) is dict:
        for key in new.keys() & old.keys():
            yield from _alongside(new[key], old[key])
