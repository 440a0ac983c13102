"""A builder for the body of one LLVM function: fresh names, blocks and phis."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import field
from typing import TypeAlias, TypeVar

from wend.backends.native.target.instruction_types import result_type
from wend.backends.native.target.kinds import memory_type
from wend.base.lazy.dataclass import dataclass

T = TypeVar("T")

# The body of a fold: maps an index and the current values to the next values
Fold: TypeAlias = Callable[[str, tuple[str, ...]], Sequence[str]]

IN_LOOP = "each"  # the label prefix of loop bodies


_NAME = re.compile(r"%[\w.]+")
_DEFINED = re.compile(r"^  (%[\w.]+) = ", re.M)
_LABEL = re.compile(r"^([\w.]+):$", re.M)
_DEFINITION = re.compile(r"  (%[\w.]+) = (.*)$")
_SCALAR_TYPE = re.compile(r"ptr|double|float|half|i\d+")


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
        """Mark this position, in the function's first block, as where `at_entry` inserts."""
        self._entry = len(self.lines)
        self.lines.append("")

    def allocate(self, type: str) -> str:
        """Allocate a stack slot for the whole call and return its address."""
        self.count += 1
        self.at_entry(f"%v{self.count} = alloca {type}")
        return f"%v{self.count}"

    def at_entry(self, instruction: str) -> None:
        """Append an instruction to the first block."""
        self.lines[self._entry] += f"\n  {instruction}"

    def flat_lines(self) -> tuple[list[str], range]:
        """Return the lines one by one, and which of them are those of `at_entry`."""
        at_entry = self.lines[self._entry].split("\n")[1:]
        lines = [*self.lines[: self._entry], *at_entry, *self.lines[self._entry + 1 :]]
        return lines, range(self._entry, self._entry + len(at_entry))

    def do(self, instruction: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {instruction}")

    def load(self, register: str, address: str, suffix: str = "") -> str:
        """Load a value of a register type; bools are bytes in memory."""
        value = self.define(f"load {memory_type(register)}, ptr {address}{suffix}")
        return self.define(f"icmp ne i8 {value}, 0") if register == "i1" else value

    def store(self, register: str, value: str, address: str, suffix: str = "") -> None:
        """Store a value of a register type; bools are bytes in memory."""
        if register == "i1":
            value = self.define(f"zext i1 {value} to i8")
        self.do(f"store {memory_type(register)} {value}, ptr {address}{suffix}")

    def new_label(self, hint: str) -> str:
        """Return a fresh label to be placed later."""
        self.count += 1
        return f"{hint}{self.count}"

    def start(self, label: str) -> None:
        """Start a block; the previous one must have ended."""
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        """End the block with an unconditional branch."""
        self.do(f"br label %{label}")

    def branch(self, condition: str, if_true: str, if_false: str) -> None:
        """End the block with a conditional branch."""
        self.do(f"br i1 {condition}, label %{if_true}, label %{if_false}")

    def branch_unless(self, condition: str, rare: str) -> None:
        """Branch to `rare` unless the condition holds, which it nearly always does."""
        next_block = self.new_label("go")
        self.do(f"br i1 {condition}, label %{next_block}, label %{rare}, !prof !0")
        self.start(next_block)

    def when(
        self,
        hints: tuple[str, str],
        condition: Callable[[], str],
        body: Callable[[], T],
        *,
        unless: bool = False,
    ) -> tuple[T, str, str]:
        """Emit a body that runs where a condition holds, or `unless` it does.

        `hints` name the block of the body and the one after it. Returns the result of the body, and
        the blocks that precede the latter: the one before the branch and the last of the body.
        """
        inside, done, before = self.new_label(hints[0]), self.new_label(hints[1]), self.block
        self.branch(condition(), *((done, inside) if unless else (inside, done)))
        self.start(inside)
        result = body()
        last = self.block
        self.jump(done)
        self.start(done)
        return result, before, last

    def phi(self, type: str, *sources: tuple[str, str]) -> str:
        """Append a phi of values by predecessor block."""
        pairs = ", ".join(f"[ {value}, %{label} ]" for value, label in sources)
        return self.define(f"phi {type} {pairs}")

    def open_phi(self, type: str, start: str, label: str) -> tuple[str, Callable[[str], None]]:
        """Append a loop phi and return it with a callback that sets its back-edge value."""
        name = self.define("")
        position = len(self.lines) - 1
        self._phis[name] = type

        def close(value: str) -> None:
            text = f"phi {type} [ {start}, %{label} ], [ {value}, %{self.block} ]"
            self.lines[position] = f"  {name} = {text}"

        return name, close

    def extract_lines(self, start: int, block: str) -> list[str]:
        """Remove and return the lines from a position on; `block` was current there."""
        lines, self.lines[start:] = self.lines[start:], []
        self.block = block
        return lines

    def live_ins(self, lines: Sequence[str], defined: Collection[str]) -> dict[str, str] | None:
        """Return the values that extracted lines use from earlier lines, with their types.

        The lines can then be outlined into a function of their own. Returns None where a type is
        not evident from the text, and where the lines leave the function or use its labels or stack
        slots.

        Args:
            lines: the lines that were extracted.
            defined: values that the outlined function defines itself.
        """
        text = "\n".join(lines)
        local_names = {*_DEFINED.findall(text), *defined}
        local_names.update(f"%{label}" for label in _LABEL.findall(text))
        live_in = dict.fromkeys(name for name in _NAME.findall(text) if name not in local_names)
        types = {name: self._phis[name] for name in live_in if name in self._phis}
        untyped = live_in.keys() - types.keys()
        for line in reversed(self.lines):
            if not untyped:
                break
            definition = _DEFINITION.match(line)
            if definition and definition[1] in untyped:
                untyped.remove(definition[1])
                type = _type_of(definition[2])
                if type is not None:
                    types[definition[1]] = type
        return types if types.keys() == live_in.keys() else None

    def loop(self, count: str, body: Callable[[str], None]) -> None:
        """Emit a loop that runs a body for each index in `range(count)`, an i64."""
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
        metadata: Callable[[], str] = str,
    ) -> tuple[str, ...]:
        """Emit a loop that folds a body over `range(count)` and return the final values.

        Args:
            count: the trip count, an i64.
            types: the LLVM types of the carried values.
            start: their initial values.
            body: computes the next values from an index and the current ones.
            metadata: returns the loop's metadata, once its body is emitted.
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
        self.do(f"br label %{head}{metadata()}")
        self.start(done)
        return values

    def merge(
        self, types: Sequence[str], sources: Sequence[tuple[Sequence[str], str]]
    ) -> tuple[str, ...]:
        """Append a phi for each of several values, given by predecessor block."""
        return tuple(
            self.phi(type, *((values[k], label) for values, label in sources))
            for k, type in enumerate(types)
        )


def _type_of(instruction: str) -> str | None:
    """Return the type of a scalar or address; None for others, and for stack slots."""
    type = result_type(instruction)
    is_slot = instruction.startswith("alloca")
    return type if type and not is_slot and _SCALAR_TYPE.fullmatch(type) else None
