"""What the families of statements write with: a random source, lines of text, and names in scope.

Every name has a kind, and is *known* where Python knows its value while wend traces the function.
Numbers keep small, and are whole numbers or halves of them: no sum depends on its order, no
product leaves 64 bits, and what rounds stays out of tests and texts.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Source:
    """A text that reads a value.

    Attributes:
        text: the expression.
        kind: "int", "float", "bool", "num" (any of these), "array", "str" or a container's kind.
        known: Python knows its value during tracing.
        scalar: it may be an element of an array, so that its repr is NumPy's.
        assigned: it is a variable of `f`, which statements may give another value of its kind.
    """

    text: str
    kind: str
    known: bool = False
    scalar: bool = False
    assigned: bool = False


@dataclass
class Writer:
    """The program under construction.

    Attributes:
        head: the lines before `f`.
        lines: the lines of `f`.
        changes: steps that change the world; each may be run at any time.
        features: what the program has.
        staged: the current block may be recorded once for several runs.
        risky: something that wend refuses by design may be written now and then.
        has_scalar: the current statement reads what may be NumPy's scalar.
    """

    random: random.Random
    head: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    features: set[str] = field(default_factory=set)
    sources: list[Source] = field(default_factory=list)
    arguments: dict[str, list[str]] = field(default_factory=dict)
    indent: int = 1
    staged: bool = False
    risky: bool = False
    only: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    has_scalar: bool = False

    def choose(self, *options: Any) -> Any:
        return self.random.choice(options)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def number(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def name(self, prefix: str) -> str:
        self.counts[prefix] = self.counts.get(prefix, 0) + 1
        return f"{prefix}{self.counts[prefix]}"

    def note(self, feature: str) -> None:
        self.features.add(feature)

    def write(self, *lines: str) -> None:
        self.lines.extend("    " * self.indent + line for line in lines)

    def outside(self, text: str, *changes: str) -> None:
        """Write lines before `f`, and the steps that change what they make."""
        self.head.extend(text.strip("\n").splitlines())
        self.changes.extend(changes)

    @contextmanager
    def block(self, opening: str, staged: bool = False) -> Iterator[None]:
        """Write a compound statement, whose names go out of scope after it."""
        self.write(opening)
        sources, was_staged, length = list(self.sources), self.staged, len(self.lines)
        self.indent += 1
        self.staged = was_staged or staged
        yield
        if len(self.lines) == length:
            self.write("pass")
        self.indent -= 1
        self.staged = was_staged
        self.sources = [s for s in self.sources if any(s.text == t.text for t in sources)]

    def add(self, text: str, kind: str, **facts: bool) -> None:
        """Let expressions read `text`."""
        self.sources = [s for s in self.sources if s.text != text]
        scalar = facts.pop("scalar", False) or (kind == "float" and self.has_scalar)
        self.sources.append(Source(text, kind, scalar=scalar, **facts))

    def of_kind(self, *kinds: str, **facts: bool) -> list[Source]:
        """Return the sources that the current restriction lets through."""
        facts = {**self.only, **facts}
        return [
            s
            for s in self.sources
            if s.kind in kinds and all(getattr(s, fact) == is_so for fact, is_so in facts.items())
        ]

    def has(self, name: str) -> bool:
        """Return whether a variable is in scope."""
        return any(re.search(rf"\b{name}\b", source.text) for source in self.sources)

    def pick(self, kinds: Sequence[str], **facts: bool) -> Source | None:
        options = self.of_kind(*kinds, **facts)
        if not options:
            return None
        traced = [s for s in options if not s.known]
        source = self.random.choice(traced if traced and self.chance(0.4) else options)
        self.has_scalar |= source.scalar
        return source

    @contextmanager
    def restricted(self, **facts: bool) -> Iterator[None]:
        """Expressions read only sources with these facts."""
        before = self.only
        self.only = {**before, **facts}
        yield
        self.only = before

    def assign(self, kind: str, text: str, prefix: str = "v", **facts: bool) -> str:
        """Write an assignment to a new variable."""
        name = self.name(prefix)
        self.write(f"{name} = {text}")
        self.add(name, kind, assigned=True, **facts)
        return name


Family = Callable[[Writer], None]
