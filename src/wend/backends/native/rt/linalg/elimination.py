"""Gaussian elimination and Cholesky factors of matrices too small for LAPACK to pay.

    i64 wend.eliminate.<type>(room, n, width)
    i32 wend.small_solve.<type>(a, y, x, room, n, columns)
    i32 wend.small_cholesky.<type>(a, lower, n)

`wend.eliminate` turns n rows of `width` numbers into the upper triangle of their first n columns,
with row exchanges as in LAPACK: the first of the largest pivots. It returns the sign of the
exchanges, and 0 if a pivot is 0. The others return 0, or 1 where there is no result; `room` has
n·(n + columns) numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from wend.backends.native.target.kinds import Kind
from wend.backends.native.target.platform import platform
from wend.backends.native.target.writer import Writer

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


def cholesky(kind: Kind) -> str:
    """Return the name of the Cholesky function of a dtype."""
    return f"wend.small_cholesky.{kind.suffix}"


FUNCTIONS = (eliminate, solve, cholesky)
# Parameter types for the declarations
ELIMINATE_TYPES = "ptr, i64, i64"
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
            pivot_row = self._largest(k)
            pivot = self._load("%room", pivot_row, "%width", k)
            is_zero = w.define(f"fcmp oeq {type} {pivot}, {self.kind.literal(0)}")
            is_moved = w.define(f"icmp ne i64 {pivot_row}, {k}")
            w.when(("swap", "swapped"), lambda: is_moved, lambda: self._swap(k, pivot_row))
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

    def _largest(self, k: str) -> str:
        """Return the row from k on of which the number in column k is largest."""
        w, type = self.w, self.kind.text

        def absolute(i: str) -> str:
            x = self._load("%room", i, "%width", k)
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

    def _swap(self, i: str, j: str) -> None:
        def column(c: str) -> None:
            x, y = (self._load("%room", row, "%width", c) for row in (i, j))
            self._store("%room", i, "%width", c, y)
            self._store("%room", j, "%width", c, x)

        self.w.loop("%width", column)

    def _subtract(self, i: str, k: str, first: str, factor: str) -> None:
        """Subtract a multiple of row k from row i, from a column on."""
        w, type = self.w, self.kind.text

        def column(offset: str) -> None:
            c = w.define(f"add i64 {first}, {offset}")
            product = w.define(f"fmul {type} {factor}, {self._load('%room', k, '%width', c)}")
            remainder = w.define(f"fsub {type} {self._load('%room', i, '%width', c)}, {product}")
            self._store("%room", i, "%width", c, remainder)

        w.loop(w.define(f"sub i64 %width, {first}"), column)

    def _copy_row(self, i: str, source: str, columns: str, start: str, width: str) -> None:
        def column(c: str) -> None:
            at = self.w.define(f"add i64 {start}, {c}")
            self._store("%room", i, width, at, self._load(source, i, columns, c))

        self.w.loop(columns, column)

    def _load(self, pointer: str, row: str, width: str, column: str) -> str:
        address = self._at(pointer, row, width, column)
        return self.w.define(f"load {self.kind.text}, ptr {address}")

    def _store(self, pointer: str, row: str, width: str, column: str, x: str) -> None:
        self.w.do(f"store {self.kind.text} {x}, ptr {self._at(pointer, row, width, column)}")

    def _at(self, pointer: str, row: str, width: str, column: str) -> str:
        index = self.w.define(f"add i64 {self.w.define(f'mul i64 {row}, {width}')}, {column}")
        return self.w.define(f"getelementptr {self.kind.text}, ptr {pointer}, i64 {index}")
