"""Outlining: a long function is cut into parts, and equal parts are shared.

LLVM's passes and its register allocator take more than linear time in the length of a function. A
part is a range of lines that control enters at the top and leaves at the bottom, or to an exit of
the function. First loops become parts, then what remains, between loops. Cuts depend on the code
near them only, so that repeated code is cut into equal parts, of which one is compiled.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from zlib import crc32

from wend.backends.native.codegen.function_lines import BUFFER, FunctionLines
from wend.backends.native.codegen.outlined_parts import Part, Parts

# A function of up to so many lines stays whole (D25): the values of a part pass through memory.
MAX_WHOLE_LINES = 2500
# Loops of so many lines become parts.
_MIN_LOOP_LINES, _MAX_PART_LINES = 8, 1000
# What remains is cut after as many lines, where a hash of the code is least.
_MIN_CUT_LINES, _MAX_CUT_LINES = 40, 200
_MAX_RESULTS = 64  # what a part computes for later code
_MAX_REGISTER_BYTES = 64

_PREDECESSOR = re.compile(r", (%[\w.]+) \]")
_NUMBER = re.compile(r"\d+")
# Names of values and labels, also where a block begins, and arrays
_NAME = re.compile(r"%[\w.]+|@const\d+|^[\w.]+(?=:$)", re.M)
_LINES_BEFORE = 6  # a position that are near it, as are the two after


def outline(lines: Sequence[str], hoisted: range, tail: str, parts: Parts) -> list[str]:
    """Cut a function into parts, and return the lines of what calls them.

    Args:
        lines: the lines of its body.
        hoisted: the positions of the lines that allocate and set its stack slots.
        tail: the label of the first of its exits, which end its lines.
        parts: where the functions are added.
    """
    calls = 0
    for choose in (_Cuts.loops, _Cuts.between_loops):
        if len(lines) <= MAX_WHOLE_LINES:
            break
        cuts = _Cuts(FunctionLines(lines, hoisted, tail), calls)
        lines, hoisted = cuts.outlined(choose(cuts), parts)
        calls = cuts.calls
    return [*lines]


class _Cuts:
    """Where a function is cut, and the calls in place of what is cut out."""

    def __init__(self, text: FunctionLines, calls: int) -> None:
        self._text, self.calls = text, calls
        self._contexts: list[int] = []

    def loops(self) -> list[tuple[int, int]]:
        """Return the ranges of the outermost loops and branches that a part can hold."""
        ranges = [
            (start, stop)
            for positions in self._text.positions().values()
            for start, stop in pairwise(positions)
            if _MIN_LOOP_LINES <= stop - start <= _MAX_PART_LINES
        ]
        return [*_outermost(ranges)]

    def between_loops(self) -> list[tuple[int, int]]:
        """Return ranges between positions that are chosen by the code near them."""
        ranges: list[tuple[int, int]] = []
        for positions in self._text.positions().values():
            start, k = positions[0], 0
            while k < len(positions):
                first = bisect_left(positions, start + _MIN_CUT_LINES, k)
                stop = bisect_right(positions, start + _MAX_CUT_LINES, first)
                if stop == first:  # what is long and cannot be cut
                    start = positions[min(first, len(positions) - 1)]
                    k = first + 1
                    continue
                k = min(range(first, stop), key=lambda i: self._context(positions[i]))
                ranges.append((start, positions[k]))
                start = positions[k]
        return [*_outermost(ranges)]

    def _context(self, position: int) -> int:
        """Return a hash of the code near a position, whatever numbers are in its names."""
        if not self._contexts:
            text = _NUMBER.sub("", "\n".join(self._text.lines)).encode()
            hashes = [0] * _LINES_BEFORE + [*map(crc32, text.split(b"\n")), 0]
            shifted = (hashes[k:] for k in range(_LINES_BEFORE + 2))
            self._contexts = [*map(hash, zip(*shifted, strict=False))]
        return self._contexts[position]

    def outlined(self, ranges: Iterable[tuple[int, int]], parts: Parts) -> tuple[list[str], range]:
        """Return the lines with calls in place of ranges, and where stack slots are set up."""
        chosen = [part for r in sorted(ranges) if (part := self._part(*r)) is not None]
        lines: list[str] = []
        renamed: dict[str, str] = {}
        at, buffer, bytes = 0, f"{BUFFER}{self.calls}", 0
        for part, (name, numbers) in zip(chosen, parts.add(chosen), strict=True):
            lines += self._text.lines[at : part.start]
            block = renamed.get(self._text.block_at[part.start], self._text.block_at[part.start])
            args = [*part.args, *([f"ptr {buffer}"] if part.stores_results else []), *numbers]
            call = f"call {part.returns} {name}({', '.join(args)})"
            renamed[self._text.block_at[part.stop]] = self._write_call(
                lines, part, call, buffer, block
            )
            bytes = max(bytes, _MAX_REGISTER_BYTES * len(part.results))
            at = part.stop
        lines += self._text.lines[at:]
        moved = {k for part in chosen for k in part.slots}
        slots_left = [self._text.lines[k] for k in self._text.hoisted if k not in moved]
        if bytes:
            slots_left.append(f"  {buffer} = alloca [{bytes} x i8], align {_MAX_REGISTER_BYTES}")
        hoisted = range(self._text.hoisted.start, self._text.hoisted.start + len(slots_left))
        lines[self._text.hoisted.start : self._text.hoisted.stop] = slots_left
        return [_rename_predecessors(line, renamed) for line in lines], hoisted

    def _part(self, start: int, stop: int) -> Part | None:
        """Return a range as a function; None where a type is not evident from the text."""
        slots = self._text.slots_within(start, stop)
        buffers = self._text.buffers_within(start, stop)
        local = {*slots, *buffers}
        names: dict[str, str] = {self._text.block_at[start]: "%enter"}
        params: list[str] = []
        exits: list[str] = []

        def rename(match: re.Match[str]) -> str:
            name = match[0]
            if name[0] not in "%@":
                return renamed(f"%{name}")[1:]
            return names.get(name) or renamed(name)

        def renamed(name: str) -> str:
            if name not in names:
                at = self._text.labels.get(name)
                if at is not None:
                    if not start <= at < stop:
                        exits.append(name)
                else:
                    at = self._text.defined.get(name, -1)
                    if not (start <= at < stop or at in local):
                        params.append(name)
                names[name] = f"%t{len(names)}"
            return names[name]

        chosen = (*(self._text.lines[k] for k in sorted(local)), *self._text.lines[start:stop])
        body = ["enter:", *_NAME.sub(rename, "\n".join(chosen)).split("\n")]
        results = [
            name
            for name in self._text.names_defined(start, stop)
            if (uses := self._text.uses[name])[-1] >= stop or uses[0] < start
        ]
        if len(results) > _MAX_RESULTS:
            return None
        defined = self._text.defined
        types = {
            name: self._text.type_of(name) if name in defined else "ptr"
            for name in (*params, *results)
        }
        if None in types.values():
            return None

        part = range(start, stop)
        own_exits = self._text.own_exits(part, exits)

        def leave(code: int, exit: str | None) -> None:
            for k, name in enumerate(results):
                is_needed = (
                    self._text.is_used_after(part, own_exits, name)
                    if exit is None
                    else self._text.is_used_at(exit, name)
                )
                if is_needed:
                    at = _MAX_REGISTER_BYTES * k
                    body.append(f"  %o{code}.{k} = getelementptr i8, ptr %out, i64 {at}")
                    body.append(f"  store {types[name]} {names[name]}, ptr %o{code}.{k}")
            body.append(f"  ret i32 {code}" if exits else "  ret void")

        if len(results) == 1 and not exits:
            returns = str(types[results[0]])
            body.append(f"  ret {returns} {names[results[0]]}")
        else:
            returns = "i32" if exits else "void"
            leave(0, None)
            for code, exit in enumerate(exits, 1):
                body.append(f"{names[exit][1:]}:")
                leave(code, exit)
        head = [f"{types[name]} {names[name]}" for name in params]
        stores_results = len(results) > 1 or bool(results and exits)
        if stores_results:
            head.append("ptr %out")
        return Part(
            start,
            stop,
            slots,
            returns,
            ", ".join(head),
            body,
            [f"{types[name]} {name}" for name in params],
            [(name, str(types[name])) for name in results],
            exits,
            stores_results,
        )

    def _write_call(self, lines: list[str], part: Part, call: str, buffer: str, block: str) -> str:
        """Append the call of a part, and return the block that control is in after it."""
        number = self.calls
        self.calls += 1
        if part.results and not part.stores_results:
            lines.append(f"  {part.results[0][0]} = {call}")
            return block
        if not part.exits:
            lines.append(f"  {call}")
        else:
            lines.append(f"  %code{number} = {call}")
        for k, (result, type) in enumerate(part.results):
            address = f"%result{number}.{k}"
            at = _MAX_REGISTER_BYTES * k
            lines.append(f"  {address} = getelementptr i8, ptr {buffer}, i64 {at}")
            lines.append(f"  {result} = load {type}, ptr {address}")
        if not part.exits:
            return block
        after = f"%done.part{number}"
        if len(part.exits) == 1:
            lines.append(f"  %is_done{number} = icmp eq i32 %code{number}, 0")
            lines.append(
                f"  br i1 %is_done{number}, label {after}, label {part.exits[0]}, !prof !0"
            )
        else:
            cases = " ".join(f"i32 {k}, label {exit}" for k, exit in enumerate(part.exits, 1))
            lines.append(f"  switch i32 %code{number}, label {after} [ {cases} ]")
        lines.append(f"{after[1:]}:")
        return after


def _outermost(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the ranges that are in no other one."""
    end = -1
    for start, stop in sorted(ranges, key=lambda r: (r[0], -r[1])):
        if start >= end:
            yield start, stop
            end = stop


def _rename_predecessors(line: str, renamed: Mapping[str, str]) -> str:
    if " = phi " not in line:
        return line
    return _PREDECESSOR.sub(lambda m: f", {renamed.get(m[1], m[1])} ]", line)
