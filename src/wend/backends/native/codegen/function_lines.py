"""The lines of a long function: where names are defined and used, and where it can be cut."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import pairwise

from wend.backends.native.target.instruction_types import result_type

# Names of values and labels, and arrays that the code refers to in place
_TOKEN = re.compile(r"\n|%[\w.]+|@const\d+")
BUFFER = "%outlined"  # begins the names of the buffers for the results of parts
_BUFFERS = re.compile(rf"{BUFFER}\d+")
_DEFINITION = re.compile(r"  (%[\w.]+) = (.*)$")
_TARGET = re.compile(r"label (%[\w.]+)")
_EXIT = re.compile(r"(?:exit\d+|save\d+|fail|leave):$")
_SAVE = re.compile(r"label %(save\d+)$")  # ends an exit or another such block
_TERMINATORS = ("  br ", "  ret ", "  switch ", "  unreachable")
# How the lines begin that belong to the call of a part
_IN_CALL = ("  %code", "  %result", "  %is_done")
_AFTER_CALL = ("  %result", "  %is_done", "  switch")


class FunctionLines:
    """The lines of a function.

    Attributes:
        lines: the lines.
        hoisted: the positions of the lines that allocate and set its stack slots.
        labels: the position of each label, with its percent sign.
        defined: the position of the definition of each value.
        uses: the positions at which each name is defined or used.
        block_at: the label of the block at each position.
        depth: for each position a number for the set of the jumps that pass over it, zero if none.
    """

    def __init__(self, lines: Sequence[str], hoisted: range, tail: str) -> None:
        self.lines, self.hoisted = lines, hoisted
        self.labels: dict[str, int] = {}
        self._types: dict[str, str | None] = {}
        self.defined: dict[str, int] = {}
        self.uses: dict[str, list[int]] = defaultdict(list)
        self.block_at: list[str] = []
        self._end = lines.index(f"{tail}:")
        exits = (k for k, line in enumerate(lines) if k >= self._end and _EXIT.match(line))
        self._exit_stops = [*exits, len(lines)]
        self._read()
        self._saves = _Saves(lines, self._exit_stops)
        self.depth = self._enclosing_jumps()
        self._slots = self._movable_slots()

    def _read(self) -> None:
        block = ""
        for k, line in enumerate(self.lines):
            if line.endswith(":"):
                block = f"%{line[:-1]}"
                self.labels[block] = k
            elif line.startswith("  %"):
                self.defined[line[2 : line.index(" ", 2)]] = k
            self.block_at.append(block)
        self.block_at.append(block)
        k = 0
        for name in _TOKEN.findall("\n".join(self.lines)):
            if name == "\n":
                k += 1
            else:
                self.uses[name].append(k)

    def type_of(self, name: str) -> str | None:
        """Return the type of a value; None where it is not evident from the text."""
        if name not in self._types:
            definition = _DEFINITION.match(self.lines[self.defined[name]])
            assert definition is not None
            self._types[name] = result_type(definition[2])
        return self._types[name]

    def _enclosing_jumps(self) -> list[int]:
        """Return for each position a number for the set of the jumps that pass over it."""
        change = [0] * (len(self.lines) + 2)
        for k, line in enumerate(self.lines[: self._end]):
            for target in _TARGET.findall(line) if "label" in line else ():
                at = self.labels[target]
                if at < self._end:
                    first, last = (k + 1, at + 1) if at > k else (at, k + 1)
                    number = int.from_bytes(blake2b(f"{k} {at}".encode(), digest_size=16).digest())
                    change[first] ^= number
                    change[last] ^= number
        numbers, number = [], 0
        for k in range(len(self.lines) + 1):
            number ^= change[k]
            numbers.append(number)
        return numbers

    def _movable_slots(self) -> list[tuple[int, int, list[int]]]:
        """Return the stack slots: the range of lines that use each, and those that set it up.

        A slot whose address is kept in memory stays where it is.
        """
        slots = []
        for k in self.hoisted:
            name = _DEFINITION.match(self.lines[k])
            if name is None or not name[2].startswith("alloca"):
                continue
            addresses = self._addresses(name[1])
            uses = {use for address in addresses for use in self.uses[address]}
            setup = sorted(use for use in uses if use in self.hoisted)
            used = uses - {*setup}
            needed = {token for use in setup for token in _TOKEN.findall(self.lines[use])}
            if used and needed <= addresses:
                slots.append((min(used), max(used), setup))
        return sorted(slots)

    def _addresses(self, slot: str) -> set[str]:
        """Return a slot and the addresses in it; nothing if one of them is kept in memory."""
        addresses, pending = {slot}, [slot]
        while pending:
            address = pending.pop()
            for k in self.uses[address]:
                line = self.lines[k]
                definition = _DEFINITION.match(line)
                if line.startswith(f"  store ptr {address}, ") or "ptrtoint" in line:
                    return set()
                if definition is None or definition[2].startswith("load "):
                    continue
                result = definition[1]
                if self.type_of(result) in ("ptr", None) and result not in addresses:
                    addresses.add(result)
                    pending.append(result)
        return addresses

    def positions(self) -> dict[int, list[int]]:
        """Return the positions that can begin or end a part, by the jumps that pass over them."""
        positions = defaultdict(list)
        for k in range(self.hoisted.stop, self._end):
            line = self.lines[k]
            if " = phi " in line or line.endswith(":"):
                continue
            before = self.lines[k - 1]
            is_in_call = before.startswith(_IN_CALL) or line.startswith(_AFTER_CALL)
            if not is_in_call and not before.startswith(_TERMINATORS):
                positions[self.depth[k]].append(k)
        return positions

    def slots_within(self, start: int, stop: int) -> list[int]:
        """Return the lines that set up stack slots that only a range uses."""
        if self.depth[start]:  # in a loop the slot would be set up again in each trip
            return []
        slots = []
        for k in range(bisect_left(self._slots, (start,)), len(self._slots)):
            first, last, setup = self._slots[k]
            if first >= stop:
                break
            if last < stop:
                slots += setup
        return sorted(slots)

    def buffers_within(self, start: int, stop: int) -> list[int]:
        """Return the lines that allocate the buffers for the results of calls in a range."""
        names = {*_BUFFERS.findall("\n".join(self.lines[start:stop]))}
        return sorted(self.defined[name] for name in names)

    def names_defined(self, start: int, stop: int) -> Iterator[str]:
        """Yield the values that a range defines."""
        for line in self.lines[start:stop]:
            definition = _DEFINITION.match(line)
            if definition:
                yield definition[1]

    def own_exits(self, part: range, exits: Iterable[str]) -> list[int]:
        """Return where those of some exits begin that only a part leaves to."""
        return [self.labels[exit] for exit in exits if all(k in part for k in self._jumps_to(exit))]

    def is_used_after(self, part: range, own_exits: Sequence[int], name: str) -> bool:
        """Return whether code uses a value of a part, besides exits that only the part leaves to.

        Such an exit may use a value that the part computes on the way to it only.
        """
        return any(
            use not in part and not self._saves.is_reached_only(self._block_of(use), own_exits)
            for use in self.uses[name]
        )

    def _block_of(self, position: int) -> int:
        """Return where the block of an exit begins; 0 for code before the exits."""
        k = bisect_right(self._exit_stops, position)
        return self._exit_stops[k - 1] if k else 0

    def _jumps_to(self, exit: str) -> Iterator[int]:
        return (k for k in self.uses[exit] if k < self._end)

    def is_used_at(self, exit: str, name: str) -> bool:
        """Return whether the code of an exit, or the frame states that it saves, use a value."""
        uses, first = self.uses[name], self.labels[exit]
        later = (uses[k] for k in range(bisect_left(uses, self._end), len(uses)))
        return any(self._saves.is_reached(self._block_of(use), first) for use in later)


class _Saves:
    """The blocks of exits: each may jump to one that saves a frame state, which may to another.

    The blocks are given by the positions at which they begin.
    """

    def __init__(self, lines: Sequence[str], stops: Sequence[int]) -> None:
        at = {lines[k][:-1]: k for k in stops[:-1]}
        users: dict[int, list[int]] = {k: [] for k in at.values()}
        roots: list[int] = []
        for block, stop in pairwise(stops):
            saved = _SAVE.search(lines[stop - 1])
            (users[at[saved[1]]] if saved else roots).append(block)
        # The blocks from which one is reached are a range of `order`.
        self._order: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._exits: list[int] = []
        stack = [(block, False) for block in roots]
        while stack:
            block, is_done = stack.pop()
            if is_done:
                self._ends[block] = len(self._order)
                continue
            self._order[block] = len(self._order)
            if lines[block].startswith("exit"):
                self._exits.append(self._order[block])
            stack.append((block, True))
            stack += [(user, False) for user in users[block]]

    def is_reached(self, block: int, start: int) -> bool:
        """Return whether a block is reached from another, or is that one."""
        return block in self._order and (
            self._order[block] <= self._order[start] < self._ends[block]
        )

    def is_reached_only(self, block: int, exits: Sequence[int]) -> bool:
        """Return whether a block is reached from some exits, and no others."""
        if block not in self._order:
            return False
        first, end = self._order[block], self._ends[block]
        count = bisect_left(self._exits, end) - bisect_left(self._exits, first)
        return count > 0 and count == sum(first <= self._order[exit] < end for exit in exits)
