"""Safepoints: iteration counters of loops, so that signals can interrupt them.

Each loop has its own counter, since its iterations take about equally long; it keeps counting when
the loop is entered again. The counter is a stack slot that LLVM promotes to a register. The
callback is in `python_callbacks.py`.
"""

from __future__ import annotations

from wend.backends.native.codegen.traps import HOST, Traps
from wend.backends.native.target.platform import platform
from wend.backends.native.target.writer import Writer
from wend.base.lazy.dataclass import dataclass


@dataclass(eq=False, repr=False, slots=True)
class Safepoints:
    """Emits safepoints into `w`.

    Attributes:
        count: the number of loops.
    """

    w: Writer
    traps: Traps
    count: int = 0

    def new_counter(self, first: int) -> int:
        """Allocate a counter that reaches its first safepoint after `first` iterations."""
        if not platform().is_process:
            return 0  # other programs have no signal handlers of Python's
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
        """Emit the end of an iteration; traps if a signal handler raises."""
        if not platform().is_process:
            return
        w = self.w
        pause, go = w.new_label("pause"), w.new_label("goes.on")
        remaining = w.define(f"load i64, ptr %trips{counter}")
        updated = w.define(f"sub i64 {remaining}, 1")
        w.do(f"store i64 {updated}, ptr %trips{counter}")
        w.do(
            f"br i1 {w.define(f'icmp ne i64 {updated}, 0')}, label %{go}, label %{pause}, !prof !0"
        )
        w.start(pause)
        next_count = w.define(f"call i64 @wend.safepoint(ptr %python, ptr %counter{counter})")
        w.do(f"store i64 {next_count}, ptr %trips{counter}")
        self.traps.check(w.define(f"icmp ne i64 {next_count}, 0"), HOST)
        w.jump(go)
        w.start(go)
