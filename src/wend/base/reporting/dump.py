"""The stages of a graph on its way to machine code: written to files, or captured."""

from __future__ import annotations

import itertools
import re
from contextlib import AbstractContextManager
from contextvars import ContextVar
from pathlib import Path
from weakref import WeakKeyDictionary

from wend.base.config import settings
from wend.base.context_values import scoped
from wend.base.lazy.dataclass import dataclass

_MAX_NAME_CHARS = 60  # of a function's name; file systems allow about 250 in a file name


@dataclass(frozen=True, slots=True)
class Stage:
    """The result of a compilation step.

    Attributes:
        step: the step's name.
        suffix: the file name extension.
        text: the content of the file.
        graph: the graph, if the result is one.
    """

    step: str
    suffix: str
    text: str
    graph: object | None


class Dump:
    """The numbered files of one graph and of everything derived from it."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._numbers = itertools.count()
        self._latest = ""

    def write(self, step: str, suffix: str, text: str, graph: object | None = None) -> None:
        """Write a file and log the stage; do nothing if the step has changed nothing."""
        if text == self._latest:
            return
        self._latest = text
        if self.folder is not None:
            path = self.folder / f"{next(self._numbers):02}-{step}.{suffix}"
            path.write_text(text + "\n", encoding="utf-8")
        log = _log.get()
        if log is not None:
            log.add(self, Stage(step, suffix, text, graph))


class StageLog:
    """The stages of every graph compiled while the log is active."""

    def __init__(self) -> None:
        self._stages: dict[Dump, list[Stage]] = {}

    def add(self, dump: Dump, stage: Stage) -> None:
        """Add a stage."""
        self._stages.setdefault(dump, []).append(stage)

    def stages(self, graph: object) -> list[Stage]:
        """Return the stages of everything derived from the same graph as `graph`."""
        dump = _dumps.get(graph)
        return self._stages.get(dump, []) if dump is not None else []


def capture_stages() -> AbstractContextManager[StageLog]:
    """Log the stages of what is compiled in a `with` block."""
    return scoped(_log, StageLog())


def dump_of(source: object, name: str) -> Dump | None:
    """Return the dump of an object's stages; None if nobody asked for one.

    Args:
        source: the object, by identity; a result of an earlier step shares the dump of its input.
        name: the name of a new folder; any characters are allowed.
    """
    if not captures_stages():
        return None
    folder = settings().dump
    dump = _dumps.get(source)
    if dump is None:
        dump = _dumps[source] = Dump(_new_folder(Path(folder), name) if folder else None)
    return dump


def captures_stages() -> bool:
    """Return whether stages are being dumped or logged."""
    return bool(settings().dump) or _log.get() is not None


def continue_dump(dump: Dump, result: object) -> None:
    """Make the stages of a result go to the dump of its input."""
    _dumps[result] = dump


def _new_folder(parent: Path, name: str) -> Path:
    """Create a folder with a unique name, safe against concurrent processes."""
    safe = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:_MAX_NAME_CHARS] or "graph"
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
_log: ContextVar[StageLog | None] = ContextVar("wend_watch", default=None)
