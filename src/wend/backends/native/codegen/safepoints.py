"""Counts the trips of loops, so that a signal can interrupt them (`interpreter.py`).

Each loop has a counter of its own, since its trips take about equally long; it counts on when the
loop is entered again. It lies in a stack slot that LLVM turns into a register.
"""

from __future__ import annotations

from dataclasses import dataclass

from wend.backends.native.codegen.traps import HOST, Traps
from wend.backends.native.target.writer import Writer


@dataclass(eq=False, repr=False, slots=True)
class Safepoints:
    """Writes into `w`.

    Attributes:
        count: how many loops there are.
    """

    w: Writer
    traps: Traps
    count: int = 0

    def new_counter(self, first: int) -> int:
        """A counter that comes to its first pause after so many trips."""
        counter = self.count
        self.count += 1
        for line in (
            f"%trips{counter} = alloca i64",
            f"%counter{counter} = alloca [2 x i64]",
            f"%given{counter} = getelementptr i64, ptr %counter{counter}, i64 1",
            f"store i64 {first}, ptr %trips{counter}",
            f"store i64 0, ptr %counter{counter}",
            f"store i64 {first}, ptr %given{counter}",
        ):
            self.w.at_entry(line)
        return counter

    def count_trip(self, counter: int) -> None:
        """Write the end of a trip; leaves the function where a signal's handler raises."""
        w = self.w
        pause, go = w.new_label("pause"), w.new_label("goes.on")
        left = w.define(f"load i64, ptr %trips{counter}")
        less = w.define(f"sub i64 {left}, 1")
        w.do(f"store i64 {less}, ptr %trips{counter}")
        w.do(f"br i1 {w.define(f'icmp ne i64 {less}, 0')}, label %{go}, label %{pause}, !prof !0")
        w.start(pause)
        more = w.define(f"call i64 @wend.safepoint(ptr %python, ptr %counter{counter})")
        w.do(f"store i64 {more}, ptr %trips{counter}")
        self.traps.check(w.define(f"icmp ne i64 {more}, 0"), HOST)
        w.jump(go)
        w.start(go)
