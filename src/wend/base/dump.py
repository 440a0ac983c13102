"""What a graph becomes on its way to machine code: in files (`config(dump=…)`), or watched."""

from __future__ import annotations

import itertools
import re
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

from wend.base.config import settings
from wend.base.context_values import scoped

_MOST_LETTERS = 60  # of a function's name: file systems take some 250 in all


@dataclass(frozen=True, slots=True)
class Stage:
    """What a step has made.

    Attributes:
        step: the step's name.
        suffix: what a file of this kind ends in.
        text: what it holds.
        graph: the graph itself, where it is one.
    """

    step: str
    suffix: str
    text: str
    graph: object | None


class Dump:
    """The files of one graph and of what is made of it, numbered as they are written."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._numbers = itertools.count()
        self._latest = ""

    def write(self, step: str, suffix: str, text: str, graph: object | None = None) -> None:
        """Write a file, or tell who watches; nothing where a step has changed nothing."""
        if text == self._latest:
            return
        self._latest = text
        if self.folder is not None:
            path = self.folder / f"{next(self._numbers):02}-{step}.{suffix}"
            path.write_text(text + "\n", encoding="utf-8")
        watch = _watch.get()
        if watch is not None:
            watch.see(self, Stage(step, suffix, text, graph))


class StageLog:
    """The stages of every graph that is made while somebody watches."""

    def __init__(self) -> None:
        self._stages: dict[Dump, list[Stage]] = {}

    def see(self, dump: Dump, stage: Stage) -> None:
        """Keep a stage."""
        self._stages.setdefault(dump, []).append(stage)

    def stages(self, made: object) -> list[Stage]:
        """What a graph has been before, and what became of it."""
        dump = _dumps.get(made)
        return self._stages.get(dump, []) if dump is not None else []


def watching() -> AbstractContextManager[StageLog]:
    """Keep the stages of what is made in a `with` block."""
    return scoped(_watch, StageLog())


def dump_of(made_from: object, name: str) -> Dump | None:
    """Where to write what becomes of something; None if that is not wanted.

    Args:
        made_from: what it is, by identity. What another step has made is written with that step.
        name: what to call a new folder; it may have any letters.
    """
    if not is_watched():
        return None
    folder = settings().dump
    found = _dumps.get(made_from)
    if found is None:
        found = _dumps[made_from] = Dump(_new_folder(Path(folder), name) if folder else None)
    return found


def is_watched() -> bool:
    """Whether anybody wants to know what becomes of graphs."""
    return bool(settings().dump) or _watch.get() is not None


def goes_on(dump: Dump, made: object) -> None:
    """Let what a step has made be written where the step was."""
    _dumps[made] = dump


def _new_folder(parent: Path, name: str) -> Path:
    """A folder that nobody else has, of this process or another."""
    safe = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:_MOST_LETTERS] or "graph"
    parent.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(sum(1 for _ in parent.iterdir()) + 1):
        folder = parent / f"{number:03}-{safe}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise AssertionError("there is always another number")


_dumps: WeakKeyDictionary[object, Dump] = WeakKeyDictionary()
_watch: ContextVar[StageLog | None] = ContextVar("wend_watch", default=None)
