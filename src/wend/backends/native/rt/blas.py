"""Products by BLAS, of any sizes.

    wend.product.<type>(…)

takes what `wend.small_product` of `products.py` does, and calls that where BLAS is not faster, or
cannot count so far.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wend.backends.native.rt import blas_functions, small_gemm
from wend.backends.native.target.host_cpu import processors
from wend.backends.native.target.kinds import Kind
from wend.backends.native.target.sizes import known
from wend.backends.native.target.writer import Writer

# So many pairs of numbers are multiplied as fast without it: where the columns of y lie side by
# side, and elsewhere.
MOST_PAIRS, MOST_SCATTERED = 32**3, 8**3
# So is a vector with a matrix of so many numbers, which a processor's own cache holds.
MOST_NUMBERS = 1 << 18
# OpenBLAS computes up to so many pairs in the thread that calls it. What it gives to others takes
# as long as they take to wake up: some microseconds, or milliseconds where others want the
# processor. So what is little more is given to it in parts.
ALONE, PARTED = 64**3, 256**3
_DEPTH, _SIDE = 256, 32  # of a part, at most, where there is more
_LARGEST = 2**31 - 1


def product(kind: Kind, adds: bool = False) -> str:
    """The function of a dtype; one that adds the product to what is there."""
    return f"wend.{'add_' * adds}product.{kind.suffix}"


NAMES = frozenset(product(kind, adds) for kind, adds in small_gemm.VARIANTS)


def is_small(rows: int, columns: int, depth: int, *, y_is_plain: bool) -> bool:
    """Whether a product is not for BLAS, as far as sizes tell before the run."""
    pairs = rows * columns * depth
    if pairs <= (MOST_PAIRS if y_is_plain else MOST_SCATTERED) or depth == 1:
        return True
    return 1 in (rows, columns) and pairs <= MOST_NUMBERS


def _is_alone() -> bool:
    """Whether BLAS has no threads but the caller's, as far as one can tell."""
    given = [os.environ.get(f"{name}_NUM_THREADS") for name in ("OPENBLAS", "OMP")]
    return processors() == 1 or "1" in given


def library(kind: Kind, adds: bool) -> str:
    """The module of one function."""
    outer, calls = Writer(), _Calls(Writer(), kind, adds)
    given = ", ".join(small_gemm.turn(outer))
    return "\n".join(
        [
            *blas_functions.declarations(blas_functions.BLAS),
            f"declare void @{small_gemm.small_product(kind, adds)}({small_gemm.TYPES}) nounwind",
            f"define void @{product(kind, adds)}({small_gemm.PARAMS}) nounwind {{",
            *outer.lines,
            f"  tail call void @choose({given})",
            "  ret void",
            "}",
            f"define internal void @choose({small_gemm.PARAMS}) noinline nounwind {{",
            *calls.choose(),
            "}",
            "",
        ]
    )


@dataclass(eq=False, repr=False, slots=True)
class _Calls:
    """Writes into `w` what calls BLAS, to which a matrix in C order is a transposed one."""

    w: Writer
    kind: Kind
    adds: bool

    def choose(self) -> list[str]:
        w = self.w
        w.start("entry")
        w.open_entry()
        small, large, row, matrix = map(w.new_label, ("small", "large", "row", "matrix"))
        y_is_plain = w.define("icmp eq i64 %y.column, 1")
        x_is_plain = w.define("icmp eq i64 %x.deep, 1")
        # How far apart rows lie. Where there is but one, BLAS still wants it to be long enough.
        x_step = w.define(f"select i1 {x_is_plain}, i64 %x.row, i64 %x.deep")
        x_row = w.define(f"select i1 {x_is_plain}, i64 %depth, i64 %rows")
        y_step = w.define(f"select i1 {y_is_plain}, i64 %y.deep, i64 %y.column")
        y_row = w.define(f"select i1 {y_is_plain}, i64 %columns, i64 %depth")
        x_step, y_step = self._most(x_step, x_row), self._most(y_step, y_row)
        w.branch(self._is_small(y_is_plain, x_is_plain, x_step, y_step), small, large)
        w.start(small)
        function = small_gemm.small_product(self.kind, self.adds)
        w.do(f"tail call void @{function}({small_gemm.PARAMS})")
        w.do("ret void")
        w.start(large)
        one = self._number(1.0)
        x_how, y_how = self._letter(x_is_plain), self._letter(y_is_plain)
        y_given = ["%y", self._integer(y_step)]
        w.branch(w.define("icmp eq i64 %rows, 1"), row, matrix)
        w.start(row)
        if not self.adds:
            # Added to zeros: some versions of BLAS multiply what is there by 0 instead.
            bytes = w.define(f"mul i64 %columns, {self.kind.dtype.itemsize}")
            w.do(f"call void @llvm.memset.p0.i64(ptr %z, i8 0, i64 {bytes}, i1 0)")
        outer = self._integer(w.define(f"select i1 {y_is_plain}, i64 %columns, i64 %depth"))
        inner = self._integer(w.define(f"select i1 {y_is_plain}, i64 %depth, i64 %columns"))
        x_given = ["%x", self._integer("%x.deep")]
        ones = self._integer("1")
        self._call("gemv", [y_how, outer, inner, one, *y_given, *x_given, one, "%z", ones])
        w.do("ret void")
        w.start(matrix)
        self._parts(
            lambda x, y, z, sizes, before: self._call(
                "gemm",
                [
                    *(y_how, x_how, sizes[1], sizes[0], sizes[2], one),
                    *(y, self._integer(y_step), x, self._integer(x_step)),
                    *(before, z, self._integer("%columns")),
                ],
            )
        )
        w.do("ret void")
        return w.lines

    def _parts(self, multiply: Callable[[str, str, str, list[str], str], None]) -> None:
        """Split the sides so that no part is for other threads."""
        w = self.w
        area = w.define("mul i64 %rows, %columns")
        pairs = w.define(f"mul i64 {area}, %depth")
        most = 0 if _is_alone() else PARTED
        is_parted = w.define(f"icmp ule i64 {pairs}, {most}")
        depth = self._least("%depth", str(_DEPTH))
        room = w.define(f"udiv i64 {ALONE}, {depth}")
        columns = self._fit(room, self._least("%rows", str(_SIDE)), "%columns")
        rows = self._fit(room, columns, "%rows")
        whole = ("%rows", "%columns", "%depth")
        sizes = [
            self._choice(is_parted, part, all)
            for part, all in zip((rows, columns, depth), whole, strict=True)
        ]
        begun = self._number(float(self.adds)), self._number(1.0)

        def along(axis: int, body: Callable[[str, str], None]) -> None:
            def part(k: str) -> None:
                start = w.define(f"mul i64 {k}, {sizes[axis]}")
                left = w.define(f"sub i64 {whole[axis]}, {start}")
                body(start, self._least(left, sizes[axis]))

            over = w.define(f"sub i64 {w.define(f'add i64 {whole[axis]}, {sizes[axis]}')}, 1")
            w.loop(w.define(f"udiv i64 {over}, {sizes[axis]}"), part)

        def at(array: str, *places: tuple[str, str]) -> str:
            for start, step in places:
                array = self._at(array, w.define(f"mul i64 {start}, {step}"))
            return array

        def block(i: str, m: str, j: str, n: str, k: str, d: str) -> None:
            is_first = w.define(f"icmp eq i64 {k}, 0")
            before = w.define(f"select i1 {is_first}, ptr {begun[0]}, ptr {begun[1]}")
            multiply(
                at("%x", (i, "%x.row"), (k, "%x.deep")),
                at("%y", (j, "%y.column"), (k, "%y.deep")),
                at("%z", (i, "%columns"), (j, "1")),
                [self._integer(size) for size in (m, n, d)],
                before,
            )

        along(0, lambda i, m: along(1, lambda j, n: along(2, lambda k, d: block(i, m, j, n, k, d))))

    def _fit(self, room: str, side: str, most: str) -> str:
        """The other side of a part."""
        return self._least(self._most(self.w.define(f"udiv i64 {room}, {side}"), "1"), most)

    def _at(self, array: str, index: str) -> str:
        return self.w.define(f"getelementptr {self.kind.text}, ptr {array}, i64 {index}")

    def _choice(self, flag: str, x: str, y: str) -> str:
        return self.w.define(f"select i1 {flag}, i64 {x}, i64 {y}")

    def _is_small(self, y_is_plain: str, x_is_plain: str, x_step: str, y_step: str) -> str:
        """Whether it is not for BLAS."""
        w = self.w
        x_is_turned = w.define("icmp eq i64 %x.row, 1")
        y_is_turned = w.define("icmp eq i64 %y.deep, 1")
        area = w.define("mul i64 %rows, %columns")
        pairs = w.define(f"mul i64 {area}, %depth")
        most = w.define(f"select i1 {y_is_plain}, i64 {MOST_PAIRS}, i64 {MOST_SCATTERED}")
        found = w.define(f"icmp ule i64 {pairs}, {most}")
        found = w.define(f"or i1 {found}, {w.define('icmp eq i64 %depth, 1')}")
        dense = w.define(f"and i1 {x_is_plain}, {y_is_turned}")
        is_row = w.define("icmp eq i64 %rows, 1")
        is_dense = w.define(f"and i1 {is_row}, {w.define(f'or i1 {dense}, {y_is_plain}')}")
        fits = w.define(f"icmp ule i64 {pairs}, {MOST_NUMBERS}")
        found = w.define(f"or i1 {found}, {w.define(f'and i1 {is_dense}, {fits}')}")
        # What BLAS cannot do
        bits = "%rows"
        for size in ("%columns", "%depth", x_step, y_step, "%x.deep"):
            bits = w.define(f"or i64 {bits}, {size}")
        found = w.define(f"or i1 {found}, {w.define(f'icmp ugt i64 {bits}, {_LARGEST}')}")
        for plain, turned in ((x_is_plain, x_is_turned), (y_is_plain, y_is_turned)):
            is_any = w.define(f"or i1 {plain}, {turned}")
            found = w.define(f"or i1 {found}, {w.define(f'xor i1 {is_any}, true')}")
        return found

    def _most(self, x: str, y: str) -> str:
        return self.w.define(f"call i64 @llvm.smax.i64(i64 {x}, i64 {y})")

    def _least(self, x: str, y: str) -> str:
        return self.w.define(f"call i64 @llvm.smin.i64(i64 {x}, i64 {y})")

    def _call(self, stem: str, given: Sequence[str]) -> None:
        arguments = ", ".join(f"ptr {place}" for place in given)
        self.w.do(f"call void @{blas_functions.name(stem)}({arguments})")

    # BLAS takes places of everything.
    def _place(self, type: str, value: str) -> str:
        place = self.w.allocate(type)
        self.w.do(f"store {type} {value}, ptr {place}")
        return place

    def _integer(self, x: str) -> str:
        short = x if known(x) else self.w.define(f"trunc i64 {x} to i32")
        return self._place("i32", short)

    def _number(self, x: float) -> str:
        return self._place(self.kind.text, self.kind.literal(x))

    def _letter(self, is_plain: str) -> str:
        letters = f"i8 {ord('N')}, i8 {ord('T')}"
        return self._place("i8", self.w.define(f"select i1 {is_plain}, {letters}"))
