"""Matrix products of any sizes, by BLAS.

    wend.product.<type>(…)

has the parameters of `wend.small_product` (`small_gemm.py`), and calls that where BLAS is not
faster or its integers are too short.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence

from wend.backends.native.rt.linalg import blas_functions, small_gemm
from wend.backends.native.target.host_cpu import processors
from wend.backends.native.target.kinds import Kind
from wend.backends.native.target.platform import platform
from wend.backends.native.target.sizes import is_literal
from wend.backends.native.target.writer import Writer
from wend.base.lazy.dataclass import dataclass

# Products with up to so many multiply-adds are as fast without BLAS: where the columns of y are
# contiguous, and elsewhere.
MAX_SMALL_FMAS, MAX_SMALL_STRIDED_FMAS = 32**3, 8**3
# So are larger ones of the first kind where OpenBLAS has no kernels for AVX-512: 1.4 times as fast
# at 33 to 71 rows, columns and depth, 1.2 at 128 × 64 × 64 (f64; f32 1.5), equal at 2²⁰ (AMD EPYC,
# OpenBLAS 0.3.31 with its kernels for Haswell). Sums of more than MAX_DEPTH pairs go to BLAS.
MAX_SMALL_FMAS_OF_AVX2 = 1 << 19
# So is the product of a vector and a matrix of up to so many numbers, which fits into the cache of
# one core.
MAX_CACHED_MATRIX = 1 << 17
# OpenBLAS computes up to so many multiply-adds in the calling thread. Beyond that it waits for its
# other threads to wake up: some microseconds, or milliseconds on a busy machine. So products up to
# the second size are split into tiles that it computes serially.
MAX_SERIAL_FMAS, MAX_TILED_FMAS = 64**3, 256**3
_MAX_TILE_DEPTH, _MAX_TILE_ROWS = 256, 32
# BLAS copies y into blocks first, which a few rows do not repay: 8 rows by 1024 × 256 numbers run
# at 55 to 70 GF/s without it and at 19 with it, 32 rows at 58 and 47 (f32, Zen 4 with AVX2). These
# are the rows, and those in bytes; sums along more than so many pairs lose digits in one part.
_MIN_FEW_ROWS, _MAX_FEW_ROWS_BYTES, MAX_DEPTH = 4, 128, 1024
_INT32_MAX = 2**31 - 1


def product(kind: Kind, adds: bool = False) -> str:
    """Return the name of the function of a dtype; `adds` selects z += x·y."""
    return f"wend.{'add_' * adds}product.{kind.suffix}"


NAMES = frozenset(product(kind, adds) for kind, adds in small_gemm.VARIANTS)


def is_small(rows: int, columns: int, depth: int, *, y_is_plain: bool) -> bool:
    """Return whether a product is computed without BLAS, judging by static sizes."""
    pairs = rows * columns * depth
    plain, strided = _max_small_fmas(is_deep=depth > MAX_DEPTH)
    if pairs <= (plain if y_is_plain else strided) or depth == 1:
        return True
    return 1 in (rows, columns) and pairs <= MAX_CACHED_MATRIX


def _max_small_fmas(*, is_deep: bool) -> tuple[int, int]:
    """Return up to how many multiply-adds are computed without BLAS; see MAX_SMALL_FMAS.

    An object file computes more of them itself, so that fewer need a BLAS beside it.
    """
    if platform().is_process:
        is_more = not is_deep and not platform().has("avx512f")
        return MAX_SMALL_FMAS_OF_AVX2 if is_more else MAX_SMALL_FMAS, MAX_SMALL_STRIDED_FMAS
    return MAX_SERIAL_FMAS, MAX_SERIAL_FMAS


def is_single_threaded() -> bool:
    """Return whether BLAS runs in the calling thread only, as far as can be told."""
    if not platform().is_process:
        return True
    thread_counts = [os.environ.get(f"{name}_NUM_THREADS") for name in ("OPENBLAS", "OMP")]
    return processors() == 1 or "1" in thread_counts


def library(kind: Kind, adds: bool) -> str:
    """Return the module of one function."""
    outer, calls = Writer(), _BlasCalls(Writer(), kind, adds)
    arguments = ", ".join(small_gemm.column_as_row(outer))
    return "\n".join(
        [
            *blas_functions.declarations(kind, blas_functions.BLAS),
            f"declare void @{small_gemm.small_product(kind, adds)}({small_gemm.TYPES}) nounwind",
            f"define void @{product(kind, adds)}({small_gemm.PARAMS}) nounwind {{",
            *outer.lines,
            f"  tail call void @choose({arguments})",
            "  ret void",
            "}",
            f"define internal void @choose({small_gemm.PARAMS}) noinline nounwind {{",
            *calls.choose(),
            "}",
            "",
        ]
    )


@dataclass(eq=False, repr=False, slots=True)
class _BlasCalls:
    """The emitter of calls of BLAS, to which a matrix in C order is a transposed one."""

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
        # Leading dimensions. BLAS wants them to be at least a row long even for a single row.
        x_step = w.define(f"select i1 {x_is_plain}, i64 %x.row, i64 %x.deep")
        x_row = w.define(f"select i1 {x_is_plain}, i64 %depth, i64 %rows")
        y_step = w.define(f"select i1 {y_is_plain}, i64 %y.deep, i64 %y.column")
        y_row = w.define(f"select i1 {y_is_plain}, i64 %columns, i64 %depth")
        x_count = w.define(f"select i1 {x_is_plain}, i64 %rows, i64 %depth")
        y_count = w.define(f"select i1 {y_is_plain}, i64 %depth, i64 %columns")
        overlaps = self._overlaps(x_step, x_row, x_count), self._overlaps(y_step, y_row, y_count)
        x_step, y_step = self._max(x_step, x_row), self._max(y_step, y_row)
        is_small = self._is_small(y_is_plain, x_is_plain, x_step, y_step)
        for rows_overlap in overlaps:
            is_small = w.define(f"or i1 {is_small}, {rows_overlap}")
        w.branch(is_small, small, large)
        w.start(small)
        function = small_gemm.small_product(self.kind, self.adds)
        w.do(f"tail call void @{function}({small_gemm.PARAMS})")
        w.do("ret void")
        w.start(large)
        one = self._spill_number(1.0)
        x_transposed, y_transposed = (
            self._spill_transpose(x_is_plain),
            self._spill_transpose(y_is_plain),
        )
        y_arguments = ["%y", self._spill_integer(y_step)]
        w.branch(w.define("icmp eq i64 %rows, 1"), row, matrix)
        w.start(row)
        if not self.adds:
            # beta = 1 on zeros: with beta = 0 some versions of BLAS multiply garbage by 0.
            bytes = w.define(f"mul i64 %columns, {self.kind.dtype.itemsize}")
            w.do(f"call void @llvm.memset.p0.i64(ptr %z, i8 0, i64 {bytes}, i1 0)")
        outer = self._spill_integer(w.define(f"select i1 {y_is_plain}, i64 %columns, i64 %depth"))
        inner = self._spill_integer(w.define(f"select i1 {y_is_plain}, i64 %depth, i64 %columns"))
        x_arguments = ["%x", self._spill_integer("%x.deep")]
        ones = self._spill_integer("1")
        self._call(
            "gemv", [y_transposed, outer, inner, one, *y_arguments, *x_arguments, one, "%z", ones]
        )
        w.do("ret void")
        w.start(matrix)
        self._tiles(
            lambda x, y, z, sizes, before: self._call(
                "gemm",
                [
                    *(y_transposed, x_transposed, sizes[1], sizes[0], sizes[2], one),
                    *(y, self._spill_integer(y_step), x, self._spill_integer(x_step)),
                    *(before, z, self._spill_integer("%columns")),
                ],
            )
        )
        w.do("ret void")
        return w.lines

    def _tiles(self, multiply: Callable[[str, str, str, list[str], str], None]) -> None:
        """Emit loops over tiles so small that BLAS computes each in the calling thread."""
        w = self.w
        area = w.define("mul i64 %rows, %columns")
        pairs = w.define(f"mul i64 {area}, %depth")
        max_tiled = 0 if is_single_threaded() else MAX_TILED_FMAS
        is_tiled = w.define(f"icmp ule i64 {pairs}, {max_tiled}")
        depth = self._min("%depth", str(_MAX_TILE_DEPTH))
        area_limit = w.define(f"udiv i64 {MAX_SERIAL_FMAS}, {depth}")
        columns = self._fit(area_limit, self._min("%rows", str(_MAX_TILE_ROWS)), "%columns")
        rows = self._fit(area_limit, columns, "%rows")
        whole = ("%rows", "%columns", "%depth")
        sizes = [
            self._choice(is_tiled, tile, full)
            for tile, full in zip((rows, columns, depth), whole, strict=True)
        ]
        betas = self._spill_number(float(self.adds)), self._spill_number(1.0)

        def along(axis: int, body: Callable[[str, str], None]) -> None:
            def tile(k: str) -> None:
                start = w.define(f"mul i64 {k}, {sizes[axis]}")
                remaining = w.define(f"sub i64 {whole[axis]}, {start}")
                body(start, self._min(remaining, sizes[axis]))

            rounded_up = w.define(f"sub i64 {w.define(f'add i64 {whole[axis]}, {sizes[axis]}')}, 1")
            w.loop(w.define(f"udiv i64 {rounded_up}, {sizes[axis]}"), tile)

        def at(array: str, *offsets: tuple[str, str]) -> str:
            for start, step in offsets:
                array = self._at(array, w.define(f"mul i64 {start}, {step}"))
            return array

        def block(i: str, m: str, j: str, n: str, k: str, d: str) -> None:
            is_first = w.define(f"icmp eq i64 {k}, 0")
            beta = w.define(f"select i1 {is_first}, ptr {betas[0]}, ptr {betas[1]}")
            multiply(
                at("%x", (i, "%x.row"), (k, "%x.deep")),
                at("%y", (j, "%y.column"), (k, "%y.deep")),
                at("%z", (i, "%columns"), (j, "1")),
                [self._spill_integer(size) for size in (m, n, d)],
                beta,
            )

        along(0, lambda i, m: along(1, lambda j, n: along(2, lambda k, d: block(i, m, j, n, k, d))))

    def _fit(self, area_limit: str, side: str, limit: str) -> str:
        """Return the other side of a tile with one side given."""
        return self._min(self._max(self.w.define(f"udiv i64 {area_limit}, {side}"), "1"), limit)

    def _at(self, array: str, index: str) -> str:
        return self.w.define(f"getelementptr {self.kind.text}, ptr {array}, i64 {index}")

    def _choice(self, flag: str, x: str, y: str) -> str:
        return self.w.define(f"select i1 {flag}, i64 {x}, i64 {y}")

    def _is_small(self, y_is_plain: str, x_is_plain: str, x_step: str, y_step: str) -> str:
        """Emit whether the product is computed without BLAS."""
        w = self.w
        x_is_turned = w.define("icmp eq i64 %x.row, 1")
        y_is_turned = w.define("icmp eq i64 %y.deep, 1")
        area = w.define("mul i64 %rows, %columns")
        pairs = w.define(f"mul i64 {area}, %depth")
        (deep, strided), (flat, _) = (_max_small_fmas(is_deep=is_deep) for is_deep in (True, False))
        is_deep = w.define(f"icmp ugt i64 %depth, {MAX_DEPTH}")
        plain = self._choice(is_deep, str(deep), str(flat))
        max_fmas = self._choice(y_is_plain, plain, str(strided))
        is_small = w.define(f"icmp ule i64 {pairs}, {max_fmas}")
        is_small = w.define(f"or i1 {is_small}, {w.define('icmp eq i64 %depth, 1')}")
        dense = w.define(f"and i1 {x_is_plain}, {y_is_turned}")
        is_row = w.define("icmp eq i64 %rows, 1")
        is_dense = w.define(f"and i1 {is_row}, {w.define(f'or i1 {dense}, {y_is_plain}')}")
        fits = w.define(f"icmp ule i64 {pairs}, {MAX_CACHED_MATRIX}")
        is_small = w.define(f"or i1 {is_small}, {w.define(f'and i1 {is_dense}, {fits}')}")
        has_vectors = w.define(f"or i1 {dense}, {y_is_plain}")
        has_few_rows = w.define(f"and i1 {has_vectors}, {self._has_few_rows(pairs)}")
        is_small = w.define(f"or i1 {is_small}, {has_few_rows}")
        # Beyond BLAS: sizes above 32 bits, and operands without an axis of unit stride
        bits = "%rows"
        for size in ("%columns", "%depth", x_step, y_step, "%x.deep"):
            bits = w.define(f"or i64 {bits}, {size}")
        is_small = w.define(f"or i1 {is_small}, {w.define(f'icmp ugt i64 {bits}, {_INT32_MAX}')}")
        for plain, turned in ((x_is_plain, x_is_turned), (y_is_plain, y_is_turned)):
            is_unit_stride = w.define(f"or i1 {plain}, {turned}")
            is_small = w.define(f"or i1 {is_small}, {w.define(f'xor i1 {is_unit_stride}, true')}")
        return is_small

    def _has_few_rows(self, pairs: str) -> str:
        """Emit whether the rows are so few that BLAS would take long to copy y for them."""
        w = self.w
        conditions = [
            w.define(f"icmp {comparison}")
            for comparison in (
                f"uge i64 %rows, {_MIN_FEW_ROWS}",
                f"ule i64 %rows, {_MAX_FEW_ROWS_BYTES // self.kind.dtype.itemsize}",
                f"ule i64 %depth, {MAX_DEPTH}",
                f"ule i64 {pairs}, {MAX_TILED_FMAS}",
            )
        ]
        return functools.reduce(lambda x, y: w.define(f"and i1 {x}, {y}"), conditions)

    def _overlaps(self, step: str, row: str, count: str) -> str:
        """Emit whether rows overlap, or go backwards: BLAS takes no such matrix."""
        w = self.w
        is_short = w.define(f"icmp slt i64 {step}, {row}")
        return w.define(f"and i1 {is_short}, {w.define(f'icmp sgt i64 {count}, 1')}")

    def _max(self, x: str, y: str) -> str:
        return self.w.define(f"call i64 @llvm.smax.i64(i64 {x}, i64 {y})")

    def _min(self, x: str, y: str) -> str:
        return self.w.define(f"call i64 @llvm.smin.i64(i64 {x}, i64 {y})")

    def _call(self, stem: str, pointers: Sequence[str]) -> None:
        arguments = ", ".join(f"ptr {pointer}" for pointer in pointers)
        self.w.do(f"call void @{blas_functions.name(self.kind, stem)}({arguments})")

    # BLAS takes a pointer to each argument.
    def _spill(self, type: str, value: str) -> str:
        pointer = self.w.allocate(type)
        self.w.do(f"store {type} {value}, ptr {pointer}")
        return pointer

    def _spill_integer(self, x: str) -> str:
        short = x if is_literal(x) else self.w.define(f"trunc i64 {x} to i32")
        return self._spill("i32", short)

    def _spill_number(self, x: float) -> str:
        return self._spill(self.kind.text, self.kind.literal(x))

    def _spill_transpose(self, is_plain: str) -> str:
        letters = f"i8 {ord('N')}, i8 {ord('T')}"
        return self._spill("i8", self.w.define(f"select i1 {is_plain}, {letters}"))
