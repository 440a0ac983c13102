"""What is known while a random program is written, and the choices that are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.kinds import Kind


@cache
def _up_to(most: int) -> st.SearchStrategy[int]:
    return st.integers(0, most)


class Unfit(Exception):
    """A step for which there is nothing."""


class Writer:
    """Writes the lines of a function; `env` is what its names hold."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.env: dict[str, Kind] = {}
        self.fixed: set[str] = set()  # names that are only read
        self.counters: list[str] = ["k", "n"]
        self.narrow = ["h", "np.uint8(k)", "np.int16(n)"]  # small whole numbers of narrow dtypes
        self.lists: dict[str, Kind] = {}
        self.variables: dict[str, Kind] = {}
        self.functions: dict[str, tuple[list[Kind], Kind]] = {}
        self.results: list[str] = []
        self.indent, self.made, self.loops = 1, 0, 0
        self.ends_early = self.has_objects = False

    def number(self, most: int) -> int:
        return self.draw(_up_to(most))

    def choose(self, options: Sequence[Any]) -> Any:
        if not options:
            raise Unfit
        return options[self.number(len(options) - 1)]

    def name(self, fits: Callable[[Kind], bool] = lambda kind: True) -> str:
        return self.choose([name for name, kind in self.env.items() if fits(kind)][::-1][:8])

    def new_name(self, letter: str = "v") -> str:
        self.made += 1
        return f"{letter}{self.made}"

    def write(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """What is written inside goes under `head`; names made there are not known after."""
        kept = dict(self.env), dict(self.lists), len(self.counters)
        start = len(self.lines)
        self.write(head)
        self.indent += 1
        try:
            yield
        finally:
            self.indent -= 1
            self.env, self.lists = kept[0], kept[1]
            del self.counters[kept[2] :]
        if len(self.lines) == start + 1:
            self.lines.append("    " * (self.indent + 1) + "pass")
