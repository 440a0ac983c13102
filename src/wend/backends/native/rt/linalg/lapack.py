"""Linear solves and Cholesky factors of one matrix by LAPACK, as in NumPy.

    i32 wend.solve.<type>(a, y, x, room, n, columns)       room: n·(n + columns + 1) numbers
    i32 wend.lu_factor.<type>(a, factors, exchanges, n)
    i32 wend.lu_solve.<type>(factors, exchanges, y, x, room, n, columns, transposed)
                                                           room: n·columns numbers
    i32 wend.cholesky.<type>(a, lower, n)

Arrays are in C order. The functions return 0, or another status if there is no solution; then the
contents of the result are undefined. Systems whose matrix is triangular are solved by substitution,
which needs no factors: `elimination.py` says how they are marked. It computes small matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wend.backends.native.rt.linalg import blas_functions, elimination
from wend.backends.native.target.kinds import Kind
from wend.backends.native.target.writer import Writer
from wend.base.lazy.dataclass import dataclass

_INT32_MAX = 2**31 - 1


def solve(kind: Kind) -> str:
    """Return the name of the solve function of a dtype."""
    return f"wend.solve.{kind.suffix}"


def lu_factor(kind: Kind) -> str:
    """Return the name of the factorization of a dtype."""
    return f"wend.lu_factor.{kind.suffix}"


def lu_solve(kind: Kind) -> str:
    """Return the name of the solve with factors of a dtype."""
    return f"wend.lu_solve.{kind.suffix}"


def cholesky(kind: Kind) -> str:
    """Return the name of the Cholesky function of a dtype."""
    return f"wend.cholesky.{kind.suffix}"


# Parameter types for the declarations
SOLVE_TYPES, CHOLESKY_TYPES = "ptr, ptr, ptr, ptr, i64, i64", "ptr, ptr, i64"
LU_FACTOR_TYPES, LU_SOLVE_TYPES = "ptr, ptr, ptr, i64", "ptr, ptr, ptr, ptr, ptr, i64, i64, i1"


def solve_library(kind: Kind) -> str:
    """Return the module of one dtype."""
    calls = _LapackCalls(Writer(), kind)
    params = "ptr %a, ptr %y, ptr %x, ptr %room, i64 %n, i64 %columns"
    small = f"declare i32 @{elimination.solve(kind)}({elimination.SOLVE_TYPES}) nounwind"
    return _module(kind, f"i32 @{solve(kind)}({params})", calls.solve(), ["gesv", "trtrs"], small)


def lu_factor_library(kind: Kind) -> str:
    """Return the module of one dtype."""
    small = f"declare i32 @{elimination.lu_factor(kind)}({LU_FACTOR_TYPES}) nounwind"
    head = f"i32 @{lu_factor(kind)}(ptr %a, ptr %factors, ptr %exchanges, i64 %n)"
    return _module(kind, head, _LapackCalls(Writer(), kind).lu_factor(), ["getrf"], small)


def lu_solve_library(kind: Kind) -> str:
    """Return the module of one dtype."""
    small = f"declare void @{elimination.lu_solve(kind)}({elimination.LU_SOLVE_TYPES}) nounwind"
    params = "ptr %factors, ptr %exchanges, ptr %y, ptr %x, ptr %room, i64 %n, i64 %columns"
    head = f"i32 @{lu_solve(kind)}({params}, i1 %transposed)"
    lines = _LapackCalls(Writer(), kind).lu_solve()
    return _module(kind, head, lines, ["getrs", "trtrs"], small)


def cholesky_library(kind: Kind) -> str:
    """Return the module of one dtype."""
    calls = _LapackCalls(Writer(), kind)
    small = f"declare i32 @{elimination.cholesky(kind)}({elimination.CHOLESKY_TYPES}) nounwind"
    head = f"i32 @{cholesky(kind)}(ptr %a, ptr %lower, i64 %n)"
    return _module(kind, head, calls.cholesky(), ["potrf"], small)


def _module(kind: Kind, head: str, lines: list[str], stems: Sequence[str], small: str) -> str:
    declared = [small, *blas_functions.declarations(kind, stems)]
    return "\n".join([*declared, f"define {head} nounwind {{", *lines, "}", ""])


@dataclass(eq=False, repr=False, slots=True)
class _LapackCalls:
    """The emitter of calls of LAPACK, whose matrices are column-major."""

    w: Writer
    kind: Kind

    def solve(self) -> list[str]:
        w = self.w
        args = "ptr %a, ptr %y, ptr %x, ptr %room, i64 %n, i64 %columns"
        self._open("%columns", f"i32 @{elimination.solve(self.kind)}({args})")
        area = w.define("mul i64 %n, %n")
        right = self._at("%room", area)
        pivots = self._at(right, w.define("mul i64 %n, %columns"))
        self._transpose("%y", right, "%n", "%columns")
        n, step, columns = (
            self._spill_integer("%n"),
            self._leading_dimension(),
            self._spill_integer("%columns"),
        )
        # What is below the diagonal in C order LAPACK has above it.
        for letter, other in (("L", self._is_zero_below), ("U", self._is_zero_above)):
            solve, go = w.new_label("triangular"), w.new_label("go")
            w.branch(other(), solve, go)
            w.start(solve)
            flags = [self._spill_letter(x) for x in (letter, "T", "N")]
            status = self._call("trtrs", [*flags, n, columns, "%a", step, right, step])
            self._transpose(right, "%x", "%columns", "%n")
            w.do(f"ret i32 {status}")
            w.start(go)
        self._transpose("%a", "%room", "%n", "%n")
        status = self._call("gesv", [n, columns, "%room", step, pivots, right, step])
        self._transpose(right, "%x", "%columns", "%n")
        w.do(f"ret i32 {status}")
        return w.lines

    def lu_factor(self) -> list[str]:
        w = self.w
        args = "ptr %a, ptr %factors, ptr %exchanges, i64 %n"
        self._open("%n", f"i32 @{elimination.lu_factor(self.kind)}({args})")
        self._transpose("%a", "%factors", "%n", "%n")
        for code, is_triangular in ((-1, self._is_zero_below), (0, self._is_zero_above)):
            marks, go = w.new_label("triangular"), w.new_label("go")
            w.branch(is_triangular(), marks, go)
            w.start(marks)

            def mark(i: str, code: int = code) -> None:
                place = w.define(f"getelementptr i32, ptr %exchanges, i64 {i}")
                w.do(f"store i32 {code}, ptr {place}")

            w.loop("%n", mark)
            w.do(f"ret i32 {self._has_zero_on_diagonal()}")
            w.start(go)
        n, step = self._spill_integer("%n"), self._leading_dimension()
        w.do(f"ret i32 {self._call('getrf', [n, n, '%factors', step, '%exchanges'])}")
        return w.lines

    def lu_solve(self) -> list[str]:
        w = self.w
        pointers = "ptr %factors, ptr %exchanges, ptr %y, ptr %x"
        args = f"{pointers}, i64 %n, i64 %columns, i1 %transposed"
        self._open("%columns", f"void @{elimination.lu_solve(self.kind)}({args})")
        self._transpose("%y", "%room", "%n", "%columns")
        n, step = self._spill_integer("%n"), self._leading_dimension()
        columns = self._spill_integer("%columns")
        letter = w.define("select i1 %transposed, i8 84, i8 78")  # T or N
        trans = w.allocate("i8")
        w.do(f"store i8 {letter}, ptr {trans}")
        code = w.define("load i32, ptr %exchanges")
        triangular, general = w.new_label("triangular"), w.new_label("general")
        w.branch(w.define(f"icmp slt i32 {code}, 1"), triangular, general)
        w.start(triangular)
        part = w.define(
            f"select i1 {w.define(f'icmp eq i32 {code}, 0')}, i8 {ord('L')}, i8 {ord('U')}"
        )
        side = w.allocate("i8")
        w.do(f"store i8 {part}, ptr {side}")
        flags = [side, trans, self._spill_letter("N")]
        status = self._call("trtrs", [*flags, n, columns, "%factors", step, "%room", step])
        self._transpose("%room", "%x", "%columns", "%n")
        w.do(f"ret i32 {status}")
        w.start(general)
        arguments = [trans, n, columns, "%factors", step, "%exchanges", "%room", step]
        status = self._call("getrs", arguments)
        self._transpose("%room", "%x", "%columns", "%n")
        w.do(f"ret i32 {status}")
        return w.lines

    def _has_zero_on_diagonal(self) -> str:
        w, kind = self.w, self.kind

        def body(i: str, so_far: tuple[str, ...]) -> Sequence[str]:
            place = self._at("%a", w.define(f"mul i64 {i}, {w.define('add i64 %n, 1')}"))
            x = w.define(f"load {kind.text}, ptr {place}")
            is_zero = w.define(f"fcmp oeq {kind.text} {x}, {kind.literal(0)}")
            return [w.define(f"select i1 {is_zero}, i32 1, i32 {so_far[0]}")]

        return w.fold("%n", ["i32"], ["0"], body)[0]

    def cholesky(self) -> list[str]:
        w = self.w
        small = f"i32 @{elimination.cholesky(self.kind)}(ptr %a, ptr %lower, i64 %n)"
        self._open("%n", small)
        area = w.define(f"mul i64 {w.define('mul i64 %n, %n')}, {self.kind.dtype.itemsize}")
        w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr %lower, ptr %a, i64 {area}, i1 0)")
        upper = self._spill_letter("U")  # LAPACK's upper triangle is the lower one in C order
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

    def _open(self, other: str, small: str) -> None:
        """Emit the call for a small matrix, and a return of status 1 if a size exceeds 32 bits.

        Callers then use NumPy.
        """
        w = self.w
        w.start("entry")
        w.open_entry()
        few, many = w.new_label("few"), w.new_label("many")
        w.branch(w.define(f"icmp ule i64 %n, {elimination.MAX_SIZE}"), few, many)
        w.start(few)
        if small.startswith("void"):
            w.do(f"call {small}")
            w.do("ret i32 0")
        else:
            w.do(f"ret i32 {w.define(f'call {small}')}")
        w.start(many)
        too_large, fits = w.new_label("large"), w.new_label("fits")
        largest = w.define(f"or i64 %n, {other}")
        w.branch(w.define(f"icmp ugt i64 {largest}, {_INT32_MAX}"), too_large, fits)
        w.start(too_large)
        w.do("ret i32 1")
        w.start(fits)

    def _is_zero_below(self) -> str:
        """Emit whether a matrix has only zeros below its diagonal."""
        return self._is_zero("%n", lambda i: ("0", i))

    def _is_zero_above(self) -> str:
        """Emit whether a matrix has only zeros above its diagonal."""

        def columns(i: str) -> tuple[str, str]:
            first = self.w.define(f"add i64 {i}, 1")
            return first, self.w.define(f"sub i64 %n, {first}")

        return self._is_zero("1", columns)

    def _is_zero(self, first: str, columns: Callable[[str], tuple[str, str]]) -> str:
        """Emit whether a part of the matrix is zero and all of it finite.

        Few parts are zero where one element is, so that is looked at first. Factors spread NaN and
        infinities further than substitution does.

        Args:
            first: the position of that element.
            columns: returns the first column of the part, and their number, in a row.
        """
        w, kind = self.w, self.kind

        def load(position: str) -> str:
            return w.define(f"load {kind.text}, ptr {self._at('%a', position)}")

        def equals_zero(x: str) -> str:
            return w.define(f"fcmp oeq {kind.text} {x}, {kind.literal(0)}")

        def is_finite(position: str, so_far: tuple[str, ...]) -> Sequence[str]:
            x = load(position)
            flag = equals_zero(w.define(f"fsub {kind.text} {x}, {x}"))
            return [w.define(f"and i1 {so_far[0]}, {flag}")]

        def row(i: str, so_far: tuple[str, ...]) -> Sequence[str]:
            column, count = columns(i)
            start = w.define(f"add i64 {w.define(f'mul i64 {i}, %n')}, {column}")

            def element(k: str, so_far: tuple[str, ...]) -> Sequence[str]:
                flag = equals_zero(load(w.define(f"add i64 {start}, {k}")))
                return [w.define(f"and i1 {so_far[0]}, {flag}")]

            return w.fold(count, ["i1"], so_far, element)

        def scan() -> tuple[str, ...]:
            is_zero = w.fold("%n", ["i1"], ["true"], row)
            return w.fold(w.define("mul i64 %n, %n"), ["i1"], is_zero, is_finite)

        (whole,), before, last = w.when(("scan", "scanned"), lambda: equals_zero(load(first)), scan)
        return w.phi("i1", ("false", before), (whole, last))

    def _spill_letter(self, letter: str) -> str:
        pointer = self.w.allocate("i8")
        self.w.do(f"store i8 {ord(letter)}, ptr {pointer}")
        return pointer

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
