"""Effects of a `finally` or `__exit__`, which an error of the run would skip (D45)."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from wend.base.context_values import scoped
from wend.base.errors import StagedRaiseError, explain
from wend.base.source import at, user_source
from wend.ir.graph import Node
from wend.ir.op import Effect
from wend.ops import effects
from wend.trace.recording.frames import changed_arguments
from wend.trace.recording.recording import current


class Cleanup:
    """A block that is being recorded, and what Python does when it is left.

    Args:
        what: how the user wrote it: `finally`, or `with`.
    """

    def __init__(self, what: str) -> None:
        self.what, self.source, self.recording = what, user_source(), current()
        self.start = self.middle = self._count()

    def _count(self) -> int:
        return 0 if self.recording is None else len(self.recording.b.nodes)

    def begin(self) -> None:
        """Note that the block is left, and that what follows is done in any case."""
        self.middle = self._count()
        self.contents = self._contents()

    def _contents(self) -> list[Any]:
        if self.recording is None:
            return []
        arrays: list[Any] = [
            self.recording.lift(ref) for ref in changed_arguments(self.recording).values()
        ]
        containers = self.recording.function().containers
        return arrays if containers is None else [*arrays, *containers.held()]

    def _changes(self) -> bool:
        """Return whether what follows the block has changed arguments."""
        now = self._contents()
        return len(now) != len(self.contents) or not all(map(operator.is_, now, self.contents))

    def check(self) -> None:
        """Check that the error of a run would skip nothing.

        Raises:
            StagedRaiseError: the block may raise one, and what follows has effects.
        """
        if self.recording is None or self.recording.runs_now():
            return
        changes = self._changes()
        if self._count() == self.middle and not changes:
            return
        nodes = self.recording.b.nodes
        tried = _all_nodes(nodes[self.start : self.middle])
        risk = next((node for node in tried if node.op.errors_of(node)), None)
        acts = any(n.op.effect in _ACTS for n in _all_nodes(nodes[self.middle :]))
        if risk is not None and (acts or changes):
            raise StagedRaiseError(
                explain(
                    f"`{self.what}`{at(self.source)} prints, writes or assigns when its block is "
                    f"left, but a run would skip that if {effects.risk(risk)}{at(risk.source)} "
                    "raises an error: such a handler is not recorded.",
                    cure="do it after the block; or put the block around the call of "
                    "the traced function.",
                )
            )


_ACTS = (Effect.WORLD, Effect.STATE)


def _all_nodes(nodes: Iterable[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        for region in node.regions:
            yield from region.walk()


_innermost: ContextVar[Cleanup | None] = ContextVar("wend_cleanup", default=None)


@contextmanager
def watch_finally() -> Iterator[None]:
    """Check a `try` with a `finally`, which starts with `begin_finally`."""
    cleanup = Cleanup("finally")
    with scoped(_innermost, cleanup):
        yield
    cleanup.check()


def begin_finally() -> None:
    """Note that a `finally` begins."""
    cleanup = _innermost.get()
    assert cleanup is not None
    cleanup.source = user_source()
    cleanup.begin()
