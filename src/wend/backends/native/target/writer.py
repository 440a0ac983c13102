"""Writes the body of one LLVM function: fresh names, blocks, phis."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

# The body of a fold: an index and the values so far, to the values after it
Fold: TypeAlias = Callable[[str, tuple[str, ...]], Sequence[str]]

IN_LOOP = "each"  # what labels of the insides of loops begin with


_NAME = re.compile(r"%[\w.]+")
_DEFINED = re.compile(r"^  (%[\w.]+) = ", re.M)
_LABEL = re.compile(r"^([\w.]+):$", re.M)
_DEFINITION = re.compile(r"  (%[\w.]+) = (.*)$")
_TYPE = re.compile(r"\b(ptr|double|float|half|i\d+)\b")


@dataclass(eq=False, repr=False, slots=True)
class Writer:
    """The instructions of a function, in order; `block` is the label of the current block."""

    lines: list[str] = field(default_factory=list)
    block: str = "entry"
    count: int = 0
    _entry: int = 0
    _phis: dict[str, str] = field(default_factory=dict)

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
        self._phis[name] = type

        def close(value: str) -> None:
            text = f"phi {type} [ {start}, %{label} ], [ {value}, %{self.block} ]"
            self.lines[place] = f"  {name} = {text}"

        return name, close

    def cut(self, start: int, block: str) -> list[str]:
        """Take back the lines from a number on; the block is what was then."""
        lines, self.lines[start:] = self.lines[start:], []
        self.block = block
        return lines

    def captured(self, lines: Sequence[str], given: Collection[str]) -> dict[str, str] | None:
        """What lines that were cut use of those before, but for what is given, with types.

        They can be a function of their own then. None where a type is not plain to see, and where
        they leave the function, or use its own names or its room on the stack.
        """
        text = "\n".join(lines)
        inside = {*_DEFINED.findall(text), *given}
        inside.update(f"%{label}" for label in _LABEL.findall(text))
        wanted = dict.fromkeys(name for name in _NAME.findall(text) if name not in inside)
        types = {name: self._phis[name] for name in wanted if name in self._phis}
        left = wanted.keys() - types.keys()
        for line in reversed(self.lines):
            if not left:
                break
            found = _DEFINITION.match(line)
            if found and found[1] in left:
                left.remove(found[1])
                type = _type_of(found[2])
                if type is not None:
                    types[found[1]] = type
        return types if types.keys() == wanted.keys() else None

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
        self,
        count: str,
        types: Sequence[str],
        start: Sequence[str],
        body: Fold,
        note: Callable[[], str] = str,
    ) -> tuple[str, ...]:
        """Run a body for each number under `count` on values that it changes; return the last.

        `note`: gives what LLVM is told of the loop, once its body is written.
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
        self.do(f"br label %{head}{note()}")
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


def _type_of(instruction: str) -> str | None:
    """The type of what an instruction gives, if it is plain to see."""
    word = instruction.split(" ", 1)[0]
    if word in ("icmp", "fcmp"):
        return "i1"
    if word == "getelementptr":
        return "ptr"
    if word in ("alloca", "extractvalue") or "{" in instruction or "<" in instruction:
        return None
    if " to " in instruction:
        return instruction.rsplit(" ", 1)[1]
    if word == "select":
        instruction = instruction.split(", ", 1)[1]
    found = _TYPE.search(instruction)
    return found and found[1]
