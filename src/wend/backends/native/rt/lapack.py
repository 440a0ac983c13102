"""Linear systems and Cholesky factors of one matrix, by LAPACK, as NumPy has them.

    i32 wend.solve.<type>(a, y, x, room, n, columns)       n·(n + columns + 1) numbers of room
    i32 wend.cholesky.<type>(a, lower, n)

Arrays are in C order. They return 0, or that there is none; then what is in the result is nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from wend.backends.native.rt import blas_functions
from wend.backends.native.target.kinds import Kind
from wend.backends.native.target.writer import Writer

_LARGEST = 2**31 - 1


def solve(kind: Kind) -> str:
    """The function of a dtype."""
    return f"wend.solve.{kind.suffix}"


def cholesky(kind: Kind) -> str:
    """The function of a dtype."""
    return f"wend.cholesky.{kind.suffix}"


# What modules say of the functions
SOLVE_TYPES, CHOLESKY_TYPES = "ptr, ptr, ptr, ptr, i64, i64", "ptr, ptr, i64"


def solve_library(kind: Kind) -> str:
    """The module of one dtype."""
    calls = _Calls(Writer(), kind)
    params = "ptr %a, ptr %y, ptr %x, ptr %room, i64 %n, i64 %columns"
    return _module(f"i32 @{solve(kind)}({params})", calls.solve(), "gesv")


def cholesky_library(kind: Kind) -> str:
    """The module of one dtype."""
    calls = _Calls(Writer(), kind)
    return _module(f"i32 @{cholesky(kind)}(ptr %a, ptr %lower, i64 %n)", calls.cholesky(), "potrf")


def _module(head: str, lines: list[str], stem: str) -> str:
    declared = blas_functions.declarations([stem])
    return "\n".join([*declared, f"define {head} nounwind {{", *lines, "}", ""])


@dataclass(eq=False, repr=False, slots=True)
class _Calls:
    """Writes into `w` what calls LAPACK, which has matrices by columns."""

    w: Writer
    kind: Kind

    def solve(self) -> list[str]:
        w = self.w
        self._start("%columns")
        area = w.define("mul i64 %n, %n")
        right = self._at("%room", area)
        pivots = self._at(right, w.define("mul i64 %n, %columns"))
        self._turn("%a", "%room", "%n", "%n")
        self._turn("%y", right, "%n", "%columns")
        n, step, columns = self._integer("%n"), self._step(), self._integer("%columns")
        status = self._call("gesv", [n, columns, "%room", step, pivots, right, step])
        self._turn(right, "%x", "%columns", "%n")
        w.do(f"ret i32 {status}")
        return w.lines

    def cholesky(self) -> list[str]:
        w = self.w
        self._start("%n")
        area = w.define(f"mul i64 {w.define('mul i64 %n, %n')}, {self.kind.dtype.itemsize}")
        w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr %lower, ptr %a, i64 {area}, i1 0)")
        upper = w.allocate("i8")  # what is the lower part in C order
        w.do(f"store i8 {ord('U')}, ptr {upper}")
        status = self._call("potrf", [upper, self._integer("%n"), "%lower", self._step()])

        def clear(i: str) -> None:
            row = self._at("%lower", w.define(f"mul i64 {i}, %n"))
            first = w.define(f"add i64 {i}, 1")
            rest = w.define(f"sub i64 %n, {first}")

            def put(k: str) -> None:
                at = self._at(row, w.define(f"add i64 {first}, {k}"))
                w.do(f"store {self.kind.text} {self.kind.literal(0)}, ptr {at}")

            w.loop(rest, put)

        w.loop("%n", clear)
        w.do(f"ret i32 {status}")
        return w.lines

    def _start(self, other: str) -> None:
        """Leave what LAPACK cannot count to others."""
        w = self.w
        w.start("entry")
        w.open_entry()
        too_large, fits = w.new_label("large"), w.new_label("fits")
        most = w.define(f"or i64 %n, {other}")
        w.branch(w.define(f"icmp ugt i64 {most}, {_LARGEST}"), too_large, fits)
        w.start(too_large)
        w.do("ret i32 1")
        w.start(fits)

    def _turn(self, source: str, target: str, rows: str, columns: str) -> None:
        """Write the transpose of a matrix."""
        w, type = self.w, self.kind.text

        def each(i: str, j: str) -> None:
            there = self._at(
                source, w.define(f"add i64 {w.define(f'mul i64 {i}, {columns}')}, {j}")
            )
            here = self._at(target, w.define(f"add i64 {w.define(f'mul i64 {j}, {rows}')}, {i}"))
            w.do(f"store {type} {w.define(f'load {type}, ptr {there}')}, ptr {here}")

        w.loop(rows, lambda i: w.loop(columns, lambda j: each(i, j)))

    def _call(self, stem: str, given: list[str]) -> str:
        """What LAPACK says: 0 where all is well."""
        status = self.w.allocate("i32")
        self.w.do(f"store i32 0, ptr {status}")
        arguments = ", ".join(f"ptr {place}" for place in (*given, status))
        self.w.do(f"call void @{blas_functions.name(stem)}({arguments})")
        return self.w.define(f"load i32, ptr {status}")

    def _step(self) -> str:
        return self._integer(self.w.define("call i64 @llvm.smax.i64(i64 %n, i64 1)"))

    def _integer(self, x: str) -> str:
        place = self.w.allocate("i32")
        self.w.do(f"store i32 {self.w.define(f'trunc i64 {x} to i32')}, ptr {place}")
        return place

    def _at(self, pointer: str, index: str) -> str:
        return self.w.define(f"getelementptr {self.kind.text}, ptr {pointer}, i64 {index}")
