"""Gaussian elimination and Cholesky factors of matrices too small for LAPACK to pay.

    i64 wend.eliminate.<type>(room, n, width)
    i32 wend.small_solve.<type>(a, y, x, room, n, columns)
    i32 wend.small_lu_factor.<type>(a, factors, exchanges, n)
    void wend.small_lu_solve.<type>(factors, exchanges, y, x, n, columns, transposed)
    i32 wend.small_cholesky.<type>(a, lower, n)

`wend.eliminate` turns n rows of `width` numbers into the upper triangle of their first n columns,
with row exchanges as in LAPACK: the first of the largest pivots. It returns the sign of the
exchanges, and 0 if a pivot is 0. The others return 0, or 1 where there is no result; `room` has
n·(n + columns) numbers. Factors and exchanges are those of `ops.linalg.lu_factor`, in column-major
order; a first exchange of 0 marks a lower triangle that was not factored, one of -1 an upper one.
"""

from __future__ import annotations

from collections.abc import Callable

from wend.backends.native.target.kinds import Kind
from wend.backends.native.target.platform import platform
from wend.backends.native.target.writer import Writer
from wend.base.lazy.dataclass import dataclass

# Up to this size, elimination takes less time than a call of LAPACK, which copies its arguments.
MAX_SIZE = 8
# An object file computes larger ones, too, so that fewer programs need LAPACK.
_MAX_SIZE_ALONE = 64


def max_size() -> int:
    """Return the size up to which matrices are computed without LAPACK."""
    return MAX_SIZE if platform().is_process else _MAX_SIZE_ALONE


def eliminate(kind: Kind) -> str:
    """Return the name of the elimination of a dtype."""
    return f"wend.eliminate.{kind.suffix}"


def solve(kind: Kind) -> str:
    """Return the name of the solve function of a dtype."""
    return f"wend.small_solve.{kind.suffix}"


def lu_factor(kind: Kind) -> str:
    """Return the name of the factorization of a dtype."""
    return f"wend.small_lu_factor.{kind.suffix}"


def lu_solve(kind: Kind) -> str:
    """Return the name of the solve with factors of a dtype."""
    return f"wend.small_lu_solve.{kind.suffix}"


def cholesky(kind: Kind) -> str:
    """Return the name of the Cholesky function of a dtype."""
    return f"wend.small_cholesky.{kind.suffix}"


FUNCTIONS = (eliminate, solve, cholesky)
FACTOR_FUNCTIONS = (lu_factor, lu_solve)
# Parameter types for the declarations
ELIMINATE_TYPES = "ptr, i64, i64"
LU_FACTOR_TYPES, LU_SOLVE_TYPES = "ptr, ptr, ptr, i64", "ptr, ptr, ptr, ptr, i64, i64, i1"
SOLVE_TYPES, CHOLESKY_TYPES = "ptr, ptr, ptr, ptr, i64, i64", "ptr, ptr, i64"


def library(kind: Kind) -> str:
    """Return the module of one dtype."""
    matrices = "ptr noalias %a, ptr noalias %y, ptr noalias %x, ptr noalias %room"
    return "\n".join(
        [
            f"define i64 @{eliminate(kind)}(ptr noalias %room, i64 %n, i64 %width) nounwind {{",
            *_Elimination(Writer(), kind).eliminate(),
            "}",
            f"define i32 @{solve(kind)}({matrices}, i64 %n, i64 %columns) nounwind {{",
            *_Elimination(Writer(), kind).solve(),
            "}",
            f"define i32 @{cholesky(kind)}(ptr noalias %a, ptr noalias %lower, i64 %n) nounwind {{",
            *_Elimination(Writer(), kind).cholesky(),
            "}",
            "",
        ]
    )


def factors_library(kind: Kind) -> str:
    """Return the module of the factorization, and of solves with its factors, of one dtype."""
    triangle = "ptr noalias %factors, ptr noalias %x, i64 %n, i64 %columns"
    flags = "i64 %down, i64 %across, i1 %backward, i1 %unit"
    factored = "ptr noalias %factors, ptr noalias %exchanges"
    sides = "ptr noalias %y, ptr noalias %x, i64 %n, i64 %columns, i1 %transposed"
    return "\n".join(
        [
            f"define i32 @{lu_factor(kind)}(ptr noalias %a, {factored}, i64 %n) nounwind {{",
            *_Elimination(Writer(), kind).lu_factor(),
            "}",
            f"define internal void @substitute({triangle}, {flags}) nounwind {{",
            *_Elimination(Writer(), kind).substitute(),
            "}",
            f"define void @{lu_solve(kind)}({factored}, {sides}) nounwind {{",
            *_Elimination(Writer(), kind).lu_solve(),
            "}",
            "",
        ]
    )


@dataclass(eq=False, repr=False, slots=True)
class _Elimination:
    """The emitter of elimination."""

    w: Writer
    kind: Kind

    def eliminate(self) -> list[str]:
        w, type = self.w, self.kind.text
        self._open()

        def column(k: str, carried: tuple[str, ...]) -> list[str]:
            (sign,) = carried
            pivot_row = self._largest(k, lambda i: self._load("%room", i, "%width", k))
            pivot = self._load("%room", pivot_row, "%width", k)
            is_zero = w.define(f"fcmp oeq {type} {pivot}, {self.kind.literal(0)}")
            is_moved = w.define(f"icmp ne i64 {pivot_row}, {k}")
            starts = (self._at("%room", i, width="%width") for i in (k, pivot_row))
            self._swap_if(is_moved, *starts, step="1", count="%width")
            following = w.define(f"add i64 {k}, 1")
            count = w.define(
                f"select i1 {is_zero}, i64 0, i64 {w.define(f'sub i64 %n, {following}')}"
            )

            def row(offset: str) -> None:
                i = w.define(f"add i64 {following}, {offset}")
                factor = w.define(f"fdiv {type} {self._load('%room', i, '%width', k)}, {pivot}")
                self._subtract(i, k, following, factor)

            w.loop(count, row)
            negated = w.define(f"sub i64 0, {sign}")
            turned = w.define(f"select i1 {is_moved}, i64 {negated}, i64 {sign}")
            return [w.define(f"select i1 {is_zero}, i64 0, i64 {turned}")]

        (sign,) = w.fold("%n", ["i64"], ["1"], column)
        w.do(f"ret i64 {sign}")
        return w.lines

    def solve(self) -> list[str]:
        w, type = self.w, self.kind.text
        self._open()
        width = w.define("add i64 %n, %columns")

        def copy(i: str) -> None:
            for source, columns, start in (("%a", "%n", "0"), ("%y", "%columns", "%n")):
                self._copy_row(i, source, columns, start, width)

        w.loop("%n", copy)
        args = f"ptr %room, i64 %n, i64 {width}"
        sign = w.define(f"call i64 @{eliminate(self.kind)}({args})")
        singular, regular = w.new_label("singular"), w.new_label("regular")
        w.branch(w.define(f"icmp eq i64 {sign}, 0"), singular, regular)
        w.start(singular)
        w.do("ret i32 1")
        w.start(regular)

        def row(number: str) -> None:
            i = w.define(f"sub i64 {w.define('sub i64 %n, 1')}, {number}")
            pivot = self._load("%room", i, width, i)

            def column(c: str) -> None:
                def known(j: str, so_far: tuple[str, ...]) -> list[str]:
                    other = w.define(f"sub i64 {w.define('sub i64 %n, 1')}, {j}")
                    factor = self._load("%room", i, width, other)
                    x = self._load("%x", other, "%columns", c)
                    product = w.define(f"fmul {type} {factor}, {x}")
                    return [w.define(f"fsub {type} {so_far[0]}, {product}")]

                start = self._load("%room", i, width, w.define(f"add i64 %n, {c}"))
                (remainder,) = w.fold(number, [type], [start], known)
                self._store("%x", i, "%columns", c, w.define(f"fdiv {type} {remainder}, {pivot}"))

            w.loop("%columns", column)

        w.loop("%n", row)
        w.do("ret i32 0")
        return w.lines

    def lu_factor(self) -> list[str]:
        w, type = self.w, self.kind.text
        self._open()

        def at(i: str, j: str) -> str:
            return self._at("%factors", j, i, width="%n")

        def copy(i: str) -> None:
            def entry(j: str) -> None:
                w.do(f"store {type} {self._load('%a', i, '%n', j)}, ptr {at(i, j)}")

            w.loop("%n", entry)

        w.loop("%n", copy)

        def column(k: str, carried: tuple[str, ...]) -> list[str]:
            pivot_row = self._largest(k, lambda i: self._load("%factors", k, "%n", i))
            following = w.define(f"add i64 {k}, 1")
            number = w.define(f"trunc i64 {w.define(f'add i64 {pivot_row}, 1')} to i32")
            w.do(f"store i32 {number}, ptr {self._exchange(k)}")
            is_moved = w.define(f"icmp ne i64 {pivot_row}, {k}")
            rows = (at(i, "0") for i in (k, pivot_row))
            self._swap_if(is_moved, *rows, step="%n", count="%n")
            pivot = self._load("%factors", k, "%n", k)
            is_zero = w.define(f"fcmp oeq {type} {pivot}, {self.kind.literal(0)}")
            left = w.define(f"sub i64 %n, {following}")
            count = w.define(f"select i1 {is_zero}, i64 0, i64 {left}")

            def divide(offset: str) -> None:
                place = at(w.define(f"add i64 {following}, {offset}"), k)
                x = w.define(f"load {type}, ptr {place}")
                w.do(f"store {type} {w.define(f'fdiv {type} {x}, {pivot}')}, ptr {place}")

            def subtract(offset: str) -> None:
                c = w.define(f"add i64 {following}, {offset}")
                y = w.define(f"load {type}, ptr {at(k, c)}")
                first, second = at(following, k), at(following, c)
                self._subtract_multiple(second, first, y, count)

            w.loop(count, divide)
            w.loop(count, subtract)
            return [w.define(f"select i1 {is_zero}, i32 1, i32 {carried[0]}")]

        (status,) = w.fold("%n", ["i32"], ["0"], column)
        w.do(f"ret i32 {status}")
        return w.lines

    def substitute(self) -> list[str]:
        """Substitute in rows of x: forward, or backward from the last."""
        w, type = self.w, self.kind.text
        self._open()
        last = w.define("sub i64 %n, 1")
        diagonal = w.define("add i64 %down, %across")

        def at(pointer: str, offset: str) -> str:
            return w.define(f"getelementptr {type}, ptr {pointer}, i64 {offset}")

        def pivot_row(number: str) -> None:
            others = w.define(f"sub i64 {last}, {number}")
            k = w.define(f"select i1 %backward, i64 {others}, i64 {number}")
            first = w.define(f"add i64 {k}, 1")
            start = w.define(f"select i1 %backward, i64 0, i64 {first}")
            x = at("%x", w.define(f"mul i64 {k}, %columns"))

            def divide() -> None:
                place = at("%factors", w.define(f"mul i64 {k}, {diagonal}"))
                pivot = w.define(f"load {type}, ptr {place}")

                def column(c: str) -> None:
                    place = at(x, c)
                    number = w.define(f"load {type}, ptr {place}")
                    quotient = w.define(f"fdiv {type} {number}, {pivot}")
                    w.do(f"store {type} {quotient}, ptr {place}")

                w.loop("%columns", column)

            w.when(("divide", "divided"), lambda: "%unit", divide, unless=True)
            column = at("%factors", w.define(f"mul i64 {k}, %across"))

            def row(offset: str) -> None:
                r = w.define(f"add i64 {start}, {offset}")
                factor = w.define(f"load {type}, ptr {at(column, w.define(f'mul i64 {r}, %down'))}")
                other = at("%x", w.define(f"mul i64 {r}, %columns"))
                self._subtract_multiple(other, x, factor, "%columns")

            w.loop(others, row)

        w.loop("%n", pivot_row)
        w.do("ret void")
        return w.lines

    def lu_solve(self) -> list[str]:
        w, kind = self.w, self.kind
        self._open()
        numbers = w.define("mul i64 %n, %columns")
        size = w.define(f"mul i64 {numbers}, {kind.dtype.itemsize}")
        w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr %x, ptr %y, i64 {size}, i1 0)")
        code = w.define("load i32, ptr %exchanges")
        is_lu = w.define(f"icmp sgt i32 {code}, 0")
        is_lower = w.define(f"icmp eq i32 {code}, 0")
        is_forward = w.define(f"xor i1 {is_lower}, %transposed")
        is_plain = w.define(f"and i1 {is_lu}, {w.define('xor i1 %transposed, true')}")
        is_turned = w.define(f"and i1 {is_lu}, %transposed")
        down = w.define("select i1 %transposed, i64 %n, i64 1")
        across = w.define("select i1 %transposed, i64 1, i64 %n")

        def exchange(k: str) -> None:
            row = w.define(f"sext i32 {w.define(f'load i32, ptr {self._exchange(k)}')} to i64")
            other = w.define(f"sub i64 {row}, 1")
            is_moved = w.define(f"icmp ne i64 {other}, {k}")
            rows = (self._at("%x", i, width="%columns") for i in (k, other))
            self._swap_if(is_moved, *rows, step="1", count="%columns")

        def exchange_back(number: str) -> None:
            exchange(w.define(f"sub i64 {w.define('sub i64 %n, 1')}, {number}"))

        def substitute(backward: str, unit: str) -> None:
            sizes = f"i64 %n, i64 %columns, i64 {down}, i64 {across}"
            flags = f"i1 {backward}, i1 {unit}"
            w.do(f"call void @substitute(ptr %factors, ptr %x, {sizes}, {flags})")

        def when(condition: str, emit: Callable[[], None]) -> None:
            w.when(("do", "done"), lambda: condition, emit)

        when(is_plain, lambda: w.loop("%n", exchange))
        first = w.define(f"or i1 {is_lu}, {is_forward}")
        when(first, lambda: substitute("false", is_plain))
        second = w.define(f"or i1 {is_lu}, {w.define(f'xor i1 {is_forward}, true')}")
        when(second, lambda: substitute("true", is_turned))
        when(is_turned, lambda: w.loop("%n", exchange_back))
        w.do("ret void")
        return w.lines

    def cholesky(self) -> list[str]:
        w, type = self.w, self.kind.text
        self._open()

        def entry(i: str, j: str) -> str:
            def term(k: str, so_far: tuple[str, ...]) -> list[str]:
                factors = (self._load("%lower", row, "%n", k) for row in (i, j))
                product = w.define(f"fmul {type} {', '.join(factors)}")
                return [w.define(f"fsub {type} {so_far[0]}, {product}")]

            return w.fold(j, [type], [self._load("%a", i, "%n", j)], term)[0]

        def row(i: str, carried: tuple[str, ...]) -> list[str]:
            def column(j: str) -> None:
                divisor = self._load("%lower", j, "%n", j)
                self._store("%lower", i, "%n", j, w.define(f"fdiv {type} {entry(i, j)}, {divisor}"))

            w.loop(i, column)
            square = entry(i, i)
            root = w.define(f"call {type} @llvm.sqrt.{self.kind.suffix}({type} {square})")
            self._store("%lower", i, "%n", i, root)
            following = w.define(f"add i64 {i}, 1")

            def clear(offset: str) -> None:
                j = w.define(f"add i64 {following}, {offset}")
                self._store("%lower", i, "%n", j, self.kind.literal(0))

            w.loop(w.define(f"sub i64 %n, {following}"), clear)
            is_positive = w.define(f"fcmp ogt {type} {square}, {self.kind.literal(0)}")
            return [w.define(f"select i1 {is_positive}, i32 {carried[0]}, i32 1")]

        (status,) = w.fold("%n", ["i32"], ["0"], row)
        w.do(f"ret i32 {status}")
        return w.lines

    def _open(self) -> None:
        self.w.start("entry")
        self.w.open_entry()

    def _largest(self, k: str, load: Callable[[str], str]) -> str:
        """Return the row from k on whose number is largest."""
        w, type = self.w, self.kind.text

        def absolute(i: str) -> str:
            x = load(i)
            return w.define(f"call {type} @llvm.fabs.{self.kind.suffix}({type} {x})")

        first = absolute(k)

        def body(offset: str, carried: tuple[str, ...]) -> list[str]:
            i = w.define(f"add i64 {k}, {offset}")
            size = absolute(i)
            is_larger = w.define(f"fcmp ogt {type} {size}, {carried[1]}")
            return [
                w.define(f"select i1 {is_larger}, i64 {i}, i64 {carried[0]}"),
                w.define(f"select i1 {is_larger}, {type} {size}, {type} {carried[1]}"),
            ]

        return w.fold(w.define(f"sub i64 %n, {k}"), ["i64", type], [k, first], body)[0]

    def _swap_if(self, condition: str, i: str, j: str, *, step: str, count: str) -> None:
        """Swap numbers from two addresses on, each a step after the one before."""
        w, type = self.w, self.kind.text

        def number(k: str) -> None:
            offset = w.define(f"mul i64 {k}, {step}")
            places = [w.define(f"getelementptr {type}, ptr {p}, i64 {offset}") for p in (i, j)]
            x, y = (w.define(f"load {type}, ptr {place}") for place in places)
            w.do(f"store {type} {y}, ptr {places[0]}")
            w.do(f"store {type} {x}, ptr {places[1]}")

        w.when(("swap", "swapped"), lambda: condition, lambda: w.loop(count, number))

    def _subtract(self, i: str, k: str, first: str, factor: str) -> None:
        """Subtract a multiple of row k from row i, from a column on."""
        target, source = (self._at("%room", row, first, width="%width") for row in (i, k))
        count = self.w.define(f"sub i64 %width, {first}")
        self._subtract_multiple(target, source, factor, count)

    def _subtract_multiple(self, target: str, source: str, factor: str, count: str) -> None:
        """Subtract a multiple of numbers at one address from those at another."""
        w, type = self.w, self.kind.text

        def number(k: str) -> None:
            places = [w.define(f"getelementptr {type}, ptr {p}, i64 {k}") for p in (target, source)]
            x, y = (w.define(f"load {type}, ptr {place}") for place in places)
            product = w.define(f"fmul {type} {factor}, {y}")
            w.do(f"store {type} {w.define(f'fsub {type} {x}, {product}')}, ptr {places[0]}")

        w.loop(count, number)

    def _copy_row(self, i: str, source: str, columns: str, start: str, width: str) -> None:
        def column(c: str) -> None:
            at = self.w.define(f"add i64 {start}, {c}")
            self._store("%room", i, width, at, self._load(source, i, columns, c))

        self.w.loop(columns, column)

    def _load(self, pointer: str, row: str, width: str, column: str) -> str:
        address = self._at(pointer, row, column, width=width)
        return self.w.define(f"load {self.kind.text}, ptr {address}")

    def _store(self, pointer: str, row: str, width: str, column: str, x: str) -> None:
        address = self._at(pointer, row, column, width=width)
        self.w.do(f"store {self.kind.text} {x}, ptr {address}")

    def _exchange(self, k: str) -> str:
        return self.w.define(f"getelementptr i32, ptr %exchanges, i64 {k}")

    def _at(self, pointer: str, row: str, column: str = "0", *, width: str) -> str:
        index = self.w.define(f"add i64 {self.w.define(f'mul i64 {row}, {width}')}, {column}")
        return self.w.define(f"getelementptr {self.kind.text}, ptr {pointer}, i64 {index}")
