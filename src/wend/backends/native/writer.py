"""Writes the body of one LLVM function: fresh names, blocks, phis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

# The body of a fold: an index and the values so far, to the values after it
Fold: TypeAlias = Callable[[str, tuple[str, ...]], Sequence[str]]

IN_LOOP = "each"  # what labels of the insides of loops begin with


@dataclass(eq=False, repr=False, slots=True)
class Writer:
    """The instructions of a function, in order; `block` is the label of the current block."""

    lines: list[str] = field(default_factory=list)
    block: str = "entry"
    count: int = 0
    _entry: int = 0

    def define(self, instruction: str) -> str:
        """Append an instruction and return the name of its result."""
        self.count += 1
        self.lines.append(f"  %v{self.count} = {instruction}")
        return f"%v{self.count}"

    def open_entry(self) -> None:
        """Let `allocate` and `at_entry` write here, in the function's first block."""
        self._entry = len(self.lines)
        self.lines.append("")

    def allocate(self, type: str) -> str:
        """Room on the stack, for as long as the function runs; return its address."""
        self.count += 1
        self.at_entry(f"%v{self.count} = alloca {type}")
        return f"%v{self.count}"

    def at_entry(self, instruction: str) -> None:
        """Add an instruction to the first block."""
        self.lines[self._entry] += f"\n  {instruction}"

    def do(self, instruction: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {instruction}")

    def new_label(self, hint: str) -> str:
        """A label to be placed later."""
        self.count += 1
        return f"{hint}{self.count}"

    def start(self, label: str) -> None:
        """Start a block. The one before must have ended."""
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        """End the block by going to another."""
        self.do(f"br label %{label}")

    def branch(self, flag: str, yes: str, no: str) -> None:
        """End the block by going to one of two others."""
        self.do(f"br i1 {flag}, label %{yes}, label %{no}")

    def unless(self, flag: str, rare: str) -> None:
        """Go on where the flag holds, which it nearly always does; else go to `rare`."""
        here = self.new_label("go")
        self.do(f"br i1 {flag}, label %{here}, label %{rare}, !prof !0")
        self.start(here)

    def phi(self, type: str, *sources: tuple[str, str]) -> str:
        """Append the value that depends on the block one comes from."""
        pairs = ", ".join(f"[ {value}, %{label} ]" for value, label in sources)
        return self.define(f"phi {type} {pairs}")

    def open_phi(self, type: str, start: str, label: str) -> tuple[str, Callable[[str], None]]:
        """A phi at the head of a loop, and what fills in the value of the next round."""
        name = self.define("")
        place = len(self.lines) - 1

        def close(value: str) -> None:
            text = f"phi {type} [ {start}, %{label} ], [ {value}, %{self.block} ]"
            self.lines[place] = f"  {name} = {text}"

        return name, close

    def loop(self, count: str, body: Callable[[str], None]) -> None:
        """Run a body for each number under `count`, an i64."""
        head, inside, done = (self.new_label(hint) for hint in ("head", IN_LOOP, "done"))
        before = self.block
        self.jump(head)
        self.start(head)
        index, close = self.open_phi("i64", "0", before)
        self.branch(self.define(f"icmp slt i64 {index}, {count}"), inside, done)
        self.start(inside)
        body(index)
        close(self.define(f"add i64 {index}, 1"))
        self.jump(head)
        self.start(done)

    def fold(
        self, count: str, types: Sequence[str], start: Sequence[str], body: Fold, note: str = ""
    ) -> tuple[str, ...]:
        """Run a body for each number under `count` on values that it changes; return the last.

        `note`: what LLVM is told of the loop.
        """
        head, inside, done = (self.new_label(hint) for hint in ("head", IN_LOOP, "done"))
        before = self.block
        self.jump(head)
        self.start(head)
        index, close = self.open_phi("i64", "0", before)
        phis = [self.open_phi(t, s, before) for t, s in zip(types, start, strict=True)]
        values = tuple(name for name, _ in phis)
        self.branch(self.define(f"icmp slt i64 {index}, {count}"), inside, done)
        self.start(inside)
        for (_, fill_in), value in zip(phis, body(index, values), strict=True):
            fill_in(value)
        close(self.define(f"add i64 {index}, 1"))
        self.do(f"br label %{head}{note}")
        self.start(done)
        return values

    def merge(
        self, types: Sequence[str], sources: Sequence[tuple[Sequence[str], str]]
    ) -> tuple[str, ...]:
        """Phis of several values, each given by every one of the blocks one may come from."""
        return tuple(
            self.phi(type, *((values[k], label) for values, label in sources))
            for k, type in enumerate(types)
        )
