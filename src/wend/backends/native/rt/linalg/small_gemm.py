"""Vectorized products of small matrices: faster than a call of BLAS alone.

    wend.small_product.<type>(x, x rows, x depth, y, y depth, y columns, z, rows, columns, depth)

`z = x·y`, and `z = z + x·y` in `wend.add_small_product`, with the strides of x and y in elements; z
is in C order. Sums along the depth are split into several partial sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wend.backends.native.target.kinds import FLOAT32, Kind
from wend.backends.native.target.platform import platform
from wend.backends.native.target.writer import Writer
from wend.base.lazy.dataclass import dataclass
from wend.ir.dtypes import FLOAT64

KINDS = (Kind(FLOAT64), Kind(FLOAT32))
# Each dtype, with and without accumulation into z
VARIANTS = [(kind, adds) for kind in KINDS for adds in (False, True)]
PARAMS = (
    "ptr %x, i64 %x.row, i64 %x.deep, ptr %y, i64 %y.deep, i64 %y.column, ptr %z, "
    "i64 %rows, i64 %columns, i64 %depth"
)
TYPES = "ptr, i64, i64, ptr, i64, i64, ptr, i64, i64, i64"

# The register block in rows and vectors of columns: twelve sums, as many as there are registers for
# beside their operands. The last columns are computed two vectors at a time, where that leaves
# fewer.
_ROW_BLOCK = (4, 3)
# Leftover rows are computed one at a time, by so many vectors while there are as many
_SINGLE_ROW_VECTORS = (8, 4)
# Likewise of dot products, in rows and columns, and the others of a row
_DOT_BLOCK, _DOTS_OF_ROW = (4, 3), 4
# The sums that a single dot product is split into, since each addition waits for the one before it
_PARTIAL_SUMS = 4


def small_product(kind: Kind, adds: bool = False) -> str:
    """Return the name of the function of a dtype; `adds` selects z += x·y."""
    return f"wend.{'add_' * adds}small_product.{kind.suffix}"


def dot(kind: Kind) -> str:
    """Return the name of the function that gives the product of two vectors without gaps."""
    return f"wend.dot.{kind.suffix}"


def declaration(function: str) -> str:
    """Return the declaration of a function of this file or of `blas.py`."""
    for kind in KINDS:
        if function == dot(kind):
            return (
                f"declare {kind.text} @{function}(ptr, ptr, i64) nounwind willreturn "
                "memory(argmem: read)"
            )
    return (
        f"declare void @{function}({TYPES}) nounwind willreturn "
        "memory(argmem: readwrite, inaccessiblemem: readwrite)"
    )


def rows(kind: Kind) -> str:
    """Return the name of the kernel of y with contiguous columns; it takes whether to add."""
    return f"wend.product_of_rows.{kind.suffix}"


def dots(kind: Kind) -> str:
    """Return the name of the kernel of other matrices y; it takes whether to add."""
    return f"wend.product_of_dots.{kind.suffix}"


def library(kind: Kind) -> str:
    """Return the module of a dtype: what chooses a kernel."""
    return "\n".join(
        [
            *(f"declare void @{name(kind)}({TYPES}, i1) nounwind" for name in (rows, dots)),
            *_entry_point(kind, adds=False),
            *_entry_point(kind, adds=True),
            "",
        ]
    )


def rows_library(kind: Kind) -> str:
    """Return the module of one kernel, which takes LLVM longer than most programs."""
    return _kernel(kind, rows(kind), _Kernels.rows)


def dots_library(kind: Kind) -> str:
    """Return the module of the other kernel."""
    return _kernel(kind, dots(kind), _Kernels.dots)


def dot_library(kind: Kind) -> str:
    """Return the module of the product of two vectors, in the same parts as `dots_library`."""
    kernels = _Kernels.of(kind)
    (result,) = kernels.dot_products(["%x"], ["%y"])
    kernels.w.do(f"ret {kind.text} {result}")
    return kernels.module(f"{kind.text} @{dot(kind)}(ptr %x, ptr %y, i64 %depth)")


def _kernel(kind: Kind, name: str, emit: Callable[[_Kernels], None]) -> str:
    kernels = _Kernels.of(kind)
    emit(kernels)
    kernels.w.do("ret void")
    return kernels.module(f"void @{name}({PARAMS}, i1 %adds)")


def _entry_point(kind: Kind, *, adds: bool) -> list[str]:
    w = Writer()
    w.start("entry")
    arguments = column_as_row(w)
    (y_column, columns) = (arguments[k].split()[-1] for k in (5, 8))
    # A single column is a dot product, along the depths; its stride means nothing
    y_is_plain = w.define(f"icmp eq i64 {y_column}, 1")
    is_wide = w.define(f"icmp ne i64 {columns}, 1")
    by_rows, by_dots = w.new_label("rows"), w.new_label("dots")
    w.branch(w.define(f"and i1 {y_is_plain}, {is_wide}"), by_rows, by_dots)
    passed = f"{', '.join(arguments)}, i1 {str(adds).lower()}"
    for label, name in ((by_rows, rows), (by_dots, dots)):
        w.start(label)
        w.do(f"tail call void @{name(kind)}({passed})")
        w.do("ret void")
    return [f"define void @{small_product(kind, adds)}({PARAMS}) nounwind {{", *w.lines, "}"]


def column_as_row(w: Writer) -> list[str]:
    """Emit arguments that compute a column z as the row zᵀ = yᵀ·xᵀ; return them with types."""
    is_column = w.define("icmp eq i64 %columns, 1")
    params = [param.split() for param in PARAMS.split(", ")]
    transposed = (
        *("y", "y.column", "y.deep", "x", "x.deep", "x.row"),
        *("z", "columns", "rows", "depth"),
    )
    return [
        f"{type} {w.define(f'select i1 {is_column}, {type} %{swapped}, {type} {original}')}"
        for (type, original), swapped in zip(params, transposed, strict=True)
    ]


def _vector_bytes() -> int:
    return 64 if platform().has("avx512f") else 32


@dataclass(eq=False, repr=False, slots=True)
class _Kernels:
    """The emitter of the kernels, which compute with vectors and with single numbers."""

    w: Writer
    scalar: Kind
    vector: Kind

    @staticmethod
    def of(kind: Kind) -> _Kernels:
        lanes = _vector_bytes() // kind.dtype.itemsize
        kernels = _Kernels(Writer(), kind, Kind(kind.dtype, lanes))
        kernels.w.start("entry")
        return kernels

    def module(self, head: str) -> str:
        """Return the module of a function."""
        width = f'"min-legal-vector-width"="{8 * _vector_bytes()}"'
        attributes = f"attributes #0 = {{ nounwind {width} }}"
        return "\n".join([f"define {head} #0 {{", *self.w.lines, "}", attributes, ""])

    # Rows of x times vectors of y
    def rows(self) -> None:
        """Emit blocks of rows for each block of columns, which stays in the cache meanwhile."""
        w, lanes, (rows, vectors) = self.w, self.vector.lanes, _ROW_BLOCK
        in_blocks = self._whole("%rows", rows)

        def blocks(j: str, vectors: int, mask: str | None) -> None:
            self._each("0", in_blocks, rows, lambda i: self._block(i, j, rows, vectors, mask))

        whole = w.define(f"udiv i64 %columns, {lanes}")
        # Blocks of three vectors and then of two, without a single one where that can be: of v
        # vectors, 2 v mod 3 pairs leave a multiple of three.
        pairs = w.define(f"urem i64 {self._times(whole, '2')}, {vectors}")
        most_pairs = w.define(f"udiv i64 {whole}, 2")
        pairs = w.define(f"call i64 @llvm.umin.i64(i64 {pairs}, i64 {most_pairs})")
        in_pairs = self._times(pairs, str(2 * lanes))
        start = self._whole(w.define(f"sub i64 %columns, {in_pairs}"), vectors * lanes)
        end = w.define(f"add i64 {start}, {in_pairs}")
        self._columns([(vectors, start), (2, end)], blocks)
        ends = [(width, self._whole("%columns", width * lanes)) for width in _SINGLE_ROW_VECTORS]

        def single(i: str) -> None:
            self._columns(ends, lambda j, n, mask: self._block(i, j, 1, n, mask))

        self._each(in_blocks, "%rows", 1, single)

    def _columns(
        self, ends: Sequence[tuple[int, str]], body: Callable[[str, int, str | None], None]
    ) -> None:
        """Emit loops that run `body` on so many vectors up to each end, then on masked ones."""
        w, lanes, start = self.w, self.vector.lanes, "0"

        def unmasked(vectors: int) -> Callable[[str], None]:
            return lambda j: body(j, vectors, None)

        def masked(j: str) -> None:
            body(j, 1, self._mask(w.define(f"sub i64 %columns, {j}")))

        for vectors, end in ends:
            self._each(start, end, vectors * lanes, unmasked(vectors))
            start = end
        self._each(start, "%columns", lanes, masked)

    def _block(self, i: str, j: str, rows: int, vectors: int, mask: str | None) -> None:
        w, lanes = self.w, self.vector.lanes
        xs = [self._at("%x", self._times(self._plus(i, r), "%x.row")) for r in range(rows)]
        y = self._at("%y", j)

        def step(k: str, sums: tuple[str, ...]) -> list[str]:
            row = self._at(y, self._times(k, "%y.deep"))
            y_vectors = [self._load(self._at(row, str(v * lanes)), mask) for v in range(vectors)]
            offset = self._times(k, "%x.deep")
            x_splats = [
                self._splat(w.define(f"load {self.scalar.text}, {self._pointer(x, offset)}"))
                for x in xs
            ]
            pairs = [(a, b) for a in x_splats for b in y_vectors]
            return [self._fma(a, b, c) for (a, b), c in zip(pairs, sums, strict=True)]

        count = rows * vectors
        zero = self.vector.literal(0)
        sums = w.fold("%depth", [self.vector.text] * count, [zero] * count, step)
        for r in range(rows):
            row = self._at("%z", self._plus(self._times(self._plus(i, r), "%columns"), j))
            for v in range(vectors):
                self._store_vector(sums[r * vectors + v], self._at(row, str(v * lanes)), mask)

    # Dot products along the depth
    def dots(self) -> None:
        """Emit dot products, of vectors where both depths are contiguous."""
        w = self.w
        by_depth, by_one, done = map(w.new_label, ("depth", "one", "done"))
        x_is_dense = w.define("icmp eq i64 %x.deep, 1")
        y_is_dense = w.define("icmp eq i64 %y.deep, 1")
        w.branch(w.define(f"and i1 {x_is_dense}, {y_is_dense}"), by_depth, by_one)
        w.start(by_depth)
        self._rows_of_dots()
        w.jump(done)
        w.start(by_one)
        w.loop("%rows", lambda i: w.loop("%columns", lambda j: self._strided_dot(i, j)))
        w.jump(done)
        w.start(done)

    def _rows_of_dots(self) -> None:
        rows, columns = _DOT_BLOCK
        in_rows, in_columns = self._whole("%rows", rows), self._whole("%columns", columns)
        self._each(
            "0",
            in_columns,
            columns,
            lambda j: self._each("0", in_rows, rows, lambda i: self._dots(i, j, rows, columns)),
        )

        def others(i: str) -> None:
            is_in_block = self.w.define(f"icmp ult i64 {i}, {in_rows}")
            start = self.w.define(f"select i1 {is_in_block}, i64 {in_columns}, i64 0")
            self._split(start, "%columns", _DOTS_OF_ROW, lambda j, n: self._dots(i, j, 1, n))

        self.w.loop("%rows", others)

    def _dots(self, i: str, j: str, rows: int, columns: int) -> None:
        xs = [self._at("%x", self._times(self._plus(i, r), "%x.row")) for r in range(rows)]
        ys = [self._at("%y", self._times(self._plus(j, c), "%y.column")) for c in range(columns)]
        for k, dot in enumerate(self.dot_products(xs, ys)):
            row = self._times(self._plus(i, k // columns), "%columns")
            self._store_number(dot, self._at("%z", self._plus(self._plus(row, j), k % columns)))

    def dot_products(self, xs: Sequence[str], ys: Sequence[str]) -> list[str]:
        """Emit the products of each vector x with each y, from their addresses."""
        w = self.w

        def step(offset: str, sums: tuple[str, ...], mask: str | None) -> list[str]:
            y_vectors = [self._load(self._at(y, offset), mask) for y in ys]
            x_vectors = [self._load(self._at(x, offset), mask) for x in xs]
            pairs = [(a, b) for a in x_vectors for b in y_vectors]
            return [self._fma(a, b, c) for (a, b), c in zip(pairs, sums, strict=True)]

        start, sums = "0", (self.vector.literal(0),) * (len(xs) * len(ys))
        if len(sums) == 1:
            start, total = self._dot_in_parts(xs[0], ys[0])
            sums = (total,)
        start, sums = self._fold_blocks(
            self.vector, start, 1, sums, lambda offset, sums: step(offset, sums, None)
        )
        mask = self._mask(w.define(f"sub i64 %depth, {start}"))
        type, vector = self.scalar.text, self.vector
        reduce = f"@llvm.vector.reduce.fadd.{vector.suffix}({type} {self.scalar.literal(0)}"
        return [
            w.define(f"call reassoc {type} {reduce}, {vector.text} {total})")
            for total in step(start, sums, mask)
        ]

    def _dot_in_parts(self, x: str, y: str) -> tuple[str, str]:
        """Emit the dot product of whole blocks of vectors, in partial sums.

        Returns:
            The offset where the blocks end, and the sum, a vector.
        """
        lanes = self.vector.lanes

        def step(offset: str, sums: tuple[str, ...]) -> list[str]:
            offsets = [self._plus(offset, part * lanes) for part in range(_PARTIAL_SUMS)]
            pairs = [tuple(self._load(self._at(v, k), None) for v in (x, y)) for k in offsets]
            return [self._fma(a, b, c) for (a, b), c in zip(pairs, sums, strict=True)]

        zeros = (self.vector.literal(0),) * _PARTIAL_SUMS
        end, sums = self._fold_blocks(self.vector, "0", _PARTIAL_SUMS, zeros, step)
        return end, self._add_up(self.vector, sums)

    def _strided_dot(self, i: str, j: str) -> None:
        x = self._at("%x", self._times(i, "%x.row"))
        y = self._at("%y", self._times(j, "%y.column"))

        def add(k: str, total: str) -> str:
            type = self.scalar.text
            x_number = self.w.define(f"load {type}, {self._pointer(x, self._times(k, '%x.deep'))}")
            y_number = self.w.define(f"load {type}, {self._pointer(y, self._times(k, '%y.deep'))}")
            term = self.w.define(f"fmul {type} {x_number}, {y_number}")
            return self.w.define(f"fadd {type} {total}, {term}")

        def step(k: str, sums: tuple[str, ...]) -> list[str]:
            return [add(self._plus(k, part), total) for part, total in enumerate(sums)]

        zeros = (self.scalar.literal(0),) * _PARTIAL_SUMS
        end, sums = self._fold_blocks(self.scalar, "0", _PARTIAL_SUMS, zeros, step)
        _, (total,) = self._fold_blocks(
            self.scalar, end, 1, (self._add_up(self.scalar, sums),), step
        )
        self._store_number(total, self._at("%z", self._plus(self._times(i, "%columns"), j)))

    def _fold_blocks(
        self,
        kind: Kind,
        start: str,
        block_size: int,
        sums: tuple[str, ...],
        step: Callable[[str, tuple[str, ...]], Sequence[str]],
    ) -> tuple[str, tuple[str, ...]]:
        """Emit a loop over the whole blocks of the depth, from an offset on.

        Returns:
            The offset where they end, and the sums.
        """
        w, numbers = self.w, block_size * kind.lanes
        blocks = w.define(f"udiv i64 {w.define(f'sub i64 %depth, {start}')}, {numbers}")

        def body(k: str, sums: tuple[str, ...]) -> Sequence[str]:
            return step(w.define(f"add i64 {start}, {self._times(k, str(numbers))}"), sums)

        totals = tuple(w.fold(blocks, [kind.text] * len(sums), list(sums), body))
        return w.define(f"add i64 {start}, {self._times(blocks, str(numbers))}"), totals

    def _add_up(self, kind: Kind, sums: tuple[str, ...]) -> str:
        """Emit the sum of a power of two of values, in a tree."""
        while len(sums) > 1:
            pairs = zip(sums[::2], sums[1::2], strict=True)
            sums = tuple(self.w.define(f"fadd {kind.text} {a}, {b}") for a, b in pairs)
        return sums[0]

    # Helpers
    def _split(
        self, start: str, end: str, block_size: int, body: Callable[[str, int], None]
    ) -> None:
        """Emit loops that run `body` on blocks of indices, then on single ones."""
        count = self._whole(self.w.define(f"sub i64 {end}, {start}"), block_size)
        whole = self.w.define(f"add i64 {start}, {count}")
        self._each(start, whole, block_size, lambda k: body(k, block_size))
        self._each(whole, end, 1, lambda k: body(k, 1))

    def _whole(self, count: str, block_size: int) -> str:
        """Return where the last whole block ends."""
        return self._times(self.w.define(f"udiv i64 {count}, {block_size}"), str(block_size))

    def _each(self, start: str, end: str, step: int, body: Callable[[str], None]) -> None:
        """Emit a loop over `range(start, end, step)`."""
        w = self.w
        distance = w.define(f"sub i64 {end}, {start}")
        blocks = w.define(f"udiv i64 {w.define(f'add i64 {distance}, {step - 1}')}, {step}")
        w.loop(blocks, lambda k: body(w.define(f"add i64 {start}, {self._times(k, str(step))}")))

    def _plus(self, x: str, y: str | int) -> str:
        return x if y == 0 else self.w.define(f"add i64 {x}, {y}")

    def _times(self, x: str, y: str) -> str:
        return self.w.define(f"mul i64 {x}, {y}")

    def _at(self, pointer: str, index: str) -> str:
        return self.w.define(f"getelementptr {self.scalar.text}, ptr {pointer}, i64 {index}")

    def _pointer(self, pointer: str, index: str) -> str:
        return f"ptr {self._at(pointer, index)}"

    def _splat(self, x: str) -> str:
        scalar = f"insertelement {self.vector.text} poison, {self.scalar.text} {x}, i64 0"
        lanes = f"<{self.vector.lanes} x i32> zeroinitializer"
        vector = f"{self.vector.text} {self.w.define(scalar)}, {self.vector.text} poison"
        return self.w.define(f"shufflevector {vector}, {lanes}")

    def _fma(self, x: str, y: str, z: str) -> str:
        type = self.vector.text
        call = f"call {type} @llvm.fmuladd.{self.vector.suffix}"
        return self.w.define(f"{call}({type} {x}, {type} {y}, {type} {z})")

    def _mask(self, count: str) -> str:
        """Emit the mask of the first `count` lanes."""
        lanes = self.vector.lanes
        type = f"<{lanes} x i64>"
        scalar = self.w.define(f"insertelement {type} poison, i64 {count}, i64 0")
        zeros = f"<{lanes} x i32> zeroinitializer"
        counts = self.w.define(f"shufflevector {type} {scalar}, {type} poison, {zeros}")
        numbers = ", ".join(f"i64 {k}" for k in range(lanes))
        return self.w.define(f"icmp ult {type} <{numbers}>, {counts}")

    def _load(self, address: str, mask: str | None) -> str:
        type, bytes = self.vector.text, self.scalar.dtype.itemsize
        if mask is None:
            return self.w.define(f"load {type}, ptr {address}, align {bytes}")
        flags = f"<{self.vector.lanes} x i1> {mask}, {type} {self.vector.literal(0)}"
        call = f"call {type} @llvm.masked.load.{self.vector.suffix}.p0"
        return self.w.define(f"{call}(ptr {address}, i32 {bytes}, {flags})")

    def _store_number(self, value: str, address: str) -> None:
        """Store a number into z."""
        type = self.scalar.text
        value = self._accumulated(type, value, self.w.define(f"load {type}, ptr {address}"))
        self.w.do(f"store {type} {value}, ptr {address}")

    def _store_vector(self, value: str, address: str, mask: str | None) -> None:
        """Store a vector into z."""
        type, bytes = self.vector.text, self.scalar.dtype.itemsize
        value = self._accumulated(type, value, self._load(address, mask))
        if mask is None:
            self.w.do(f"store {type} {value}, ptr {address}, align {bytes}")
            return
        call = f"call void @llvm.masked.store.{self.vector.suffix}.p0"
        flags = f"<{self.vector.lanes} x i1> {mask}"
        self.w.do(f"{call}({type} {value}, ptr {address}, i32 {bytes}, {flags})")

    def _accumulated(self, type: str, value: str, old: str) -> str:
        """Emit the value to store: the sum with the old one if `%adds` holds."""
        total = self.w.define(f"fadd {type} {old}, {value}")
        return self.w.define(f"select i1 %adds, {type} {total}, {type} {value}")
