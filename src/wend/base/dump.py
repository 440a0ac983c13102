"""Files that show what a graph becomes on its way to machine code: `config(dump="folder")`."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from weakref import WeakKeyDictionary

from wend.base.config import settings

_MOST_LETTERS = 60  # of a function's name: file systems take some 250 in all


class Dump:
    """The files of one graph and of what is made of it, numbered as they are written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = itertools.count()
        self._latest = ""

    def write(self, step: str, suffix: str, text: str) -> None:
        """Write a file; none where a step has changed nothing."""
        if text == self._latest:
            return
        self._latest = text
        path = self.folder / f"{next(self._numbers):02}-{step}.{suffix}"
        path.write_text(text + "\n", encoding="utf-8")


def dump_of(made_from: object, name: str) -> Dump | None:
    """Where to write what becomes of something; None if that is not wanted.

    Args:
        made_from: what it is, by identity. What another step has made is written with that step.
        name: what to call a new folder; it may have any letters.
    """
    if not settings().dump:
        return None
    found = _dumps.get(made_from)
    if found is None:
        found = _dumps[made_from] = Dump(_new_folder(Path(settings().dump), name))
    return found


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
