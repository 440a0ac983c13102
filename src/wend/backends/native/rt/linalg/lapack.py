"""Linear solves and Cholesky factors of one matrix by LAPACK, as in NumPy.

    i32 wend.solve.<type>(a, y, x, room, n, columns)       room: n·(n + columns + 1) numbers
    i32 wend.cholesky.<type>(a, lower, n)

Arrays are in C order. The functions return 0, or another status if there is no solution; then the
contents of the result are undefined. Small matrices are computed by `elimination.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from wend.backends.native.rt.linalg import blas_functions, elimination
from wend.backends.native.target.kinds import Kind
from wend.backends.native.target.writer import Writer

_INT32_MAX = 2**31 - 1


def solve(kind: Kind) -> str:
    """Return the name of the solve function of a dtype."""
    return f"wend.solve.{kind.suffix}"


def cholesky(kind: Kind) -> str:
    """Return the name of the Cholesky function of a dtype."""
    return f"wend.cholesky.{kind.suffix}"


# Parameter types for the declarations
SOLVE_TYPES, CHOLESKY_TYPES = "ptr, ptr, ptr, ptr, i64, i64", "ptr, ptr, i64"


def solve_library(kind: Kind) -> str:
    """Return the module of one dtype."""
    calls = _LapackCalls(Writer(), kind)
    params = "ptr %a, ptr %y, ptr %x, ptr %room, i64 %n, i64 %columns"
    small = f"declare i32 @{elimination.solve(kind)}({elimination.SOLVE_TYPES}) nounwind"
    return _module(kind, f"i32 @{solve(kind)}({params})", calls.solve(), "gesv", small)


def cholesky_library(kind: Kind) -> str:
    """Return the module of one dtype."""
    calls = _LapackCalls(Writer(), kind)
    small = f"declare i32 @{elimination.cholesky(kind)}({elimination.CHOLESKY_TYPES}) nounwind"
    head = f"i32 @{cholesky(kind)}(ptr %a, ptr %lower, i64 %n)"
    return _module(kind, head, calls.cholesky(), "potrf", small)


def _module(kind: Kind, head: str, lines: list[str], stem: str, small: str) -> str:
    declared = [small, *blas_functions.declarations(kind, [stem])]
    return "\n".join([*declared, f"define {head} nounwind {{", *lines, "}", ""])


@dataclass(eq=False, repr=False, slots=True)
class _LapackCalls:
    """The emitter of calls of LAPACK, whose matrices are column-major."""

    w: Writer
    kind: Kind

    def solve(self) -> list[str]:
        w = self.w
        args = "ptr %a, ptr %y, ptr %x, ptr %room, i64 %n, i64 %columns"
        self._open("%columns", elimination.solve(self.kind), args)
        area = w.define("mul i64 %n, %n")
        right = self._at("%room", area)
        pivots = self._at(right, w.define("mul i64 %n, %columns"))
        self._transpose("%a", "%room", "%n", "%n")
        self._transpose("%y", right, "%n", "%columns")
        n, step, columns = (
            self._spill_integer("%n"),
            self._leading_dimension(),
            self._spill_integer("%columns"),
        )
        status = self._call("gesv", [n, columns, "%room", step, pivots, right, step])
        self._transpose(right, "%x", "%columns", "%n")
        w.do(f"ret i32 {status}")
        return w.lines

    def cholesky(self) -> list[str]:
        w = self.w
        self._open("%n", elimination.cholesky(self.kind), "ptr %a, ptr %lower, i64 %n")
        area = w.define(f"mul i64 {w.define('mul i64 %n, %n')}, {self.kind.dtype.itemsize}")
        w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr %lower, ptr %a, i64 {area}, i1 0)")
        upper = w.allocate("i8")  # LAPACK's upper triangle is the lower one in C order
        w.do(f"store i8 {ord('U')}, ptr {upper}")
        status = self._call(
            "potrf", [upper, self._spill_integer("%n"), "%lower", self._leading_dimension()]
        )

        def clear(i: str) -> None:
            row = self._at("%lower", w.define(f"mul i64 {i}, %n"))
            first = w.define(f"add i64 {i}, 1")
            count = w.define(f"sub i64 %n, {first}")

            def store_zero(k: str) -> None:
                at = self._at(row, w.define(f"add i64 {first}, {k}"))
                w.do(f"store {self.kind.text} {self.kind.literal(0)}, ptr {at}")

            w.loop(count, store_zero)

        w.loop("%n", clear)
        w.do(f"ret i32 {status}")
        return w.lines

    def _open(self, other: str, small: str, arguments: str) -> None:
        """Emit the call for a small matrix, and a return of status 1 if a size exceeds 32 bits.

        Callers then use NumPy.
        """
        w = self.w
        w.start("entry")
        w.open_entry()
        few, many = w.new_label("few"), w.new_label("many")
        w.branch(w.define(f"icmp ule i64 %n, {elimination.MAX_SIZE}"), few, many)
        w.start(few)
        w.do(f"ret i32 {w.define(f'call i32 @{small}({arguments})')}")
        w.start(many)
        too_large, fits = w.new_label("large"), w.new_label("fits")
        largest = w.define(f"or i64 %n, {other}")
        w.branch(w.define(f"icmp ugt i64 {largest}, {_INT32_MAX}"), too_large, fits)
        w.start(too_large)
        w.do("ret i32 1")
        w.start(fits)

    def _transpose(self, source: str, target: str, rows: str, columns: str) -> None:
        """Emit a copy of the transpose of a matrix."""
        w, type = self.w, self.kind.text

        def each(i: str, j: str) -> None:
            from_address = self._at(
                source, w.define(f"add i64 {w.define(f'mul i64 {i}, {columns}')}, {j}")
            )
            to_address = self._at(
                target, w.define(f"add i64 {w.define(f'mul i64 {j}, {rows}')}, {i}")
            )
            w.do(f"store {type} {w.define(f'load {type}, ptr {from_address}')}, ptr {to_address}")

        w.loop(rows, lambda i: w.loop(columns, lambda j: each(i, j)))

    def _call(self, stem: str, pointers: list[str]) -> str:
        """Emit a call of LAPACK; return its status, 0 for success."""
        status = self.w.allocate("i32")
        self.w.do(f"store i32 0, ptr {status}")
        arguments = ", ".join(f"ptr {pointer}" for pointer in (*pointers, status))
        self.w.do(f"call void @{blas_functions.name(self.kind, stem)}({arguments})")
        return self.w.define(f"load i32, ptr {status}")

    def _leading_dimension(self) -> str:
        return self._spill_integer(self.w.define("call i64 @llvm.smax.i64(i64 %n, i64 1)"))

    def _spill_integer(self, x: str) -> str:
        pointer = self.w.allocate("i32")
        self.w.do(f"store i32 {self.w.define(f'trunc i64 {x} to i32')}, ptr {pointer}")
        return pointer

    def _at(self, pointer: str, index: str) -> str:
        return self.w.define(f"getelementptr {self.kind.text}, ptr {pointer}, i64 {index}")
