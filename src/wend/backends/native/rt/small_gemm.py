"""Products of small matrices in vectors: what is over before BLAS has looked at its arguments.

    wend.small_product.<type>(x, x rows, x depth, y, y depth, y columns, z, rows, columns, depth)

`z = x·y`, and of `wend.add_small_product` `z = z + x·y`, with how far neighbours along an axis of x
and y lie apart, in elements; z is in C order. The terms of a sum are added in several partial sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wend.backends.native.target import host_cpu
from wend.backends.native.target.kinds import FLOAT32, Kind
from wend.backends.native.target.writer import Writer
from wend.ir.dtypes import FLOAT64

KINDS = (Kind(FLOAT64), Kind(FLOAT32))
# With whether the product is added to what is in z
VARIANTS = [(kind, adds) for kind in KINDS for adds in (False, True)]
PARAMS = (
    "ptr %x, i64 %x.row, i64 %x.deep, ptr %y, i64 %y.deep, i64 %y.column, ptr %z, "
    "i64 %rows, i64 %columns, i64 %depth"
)
TYPES = "ptr, i64, i64, ptr, i64, i64, ptr, i64, i64, i64"

# Rows, and vectors of columns, that are computed at once: eight sums, as many as a processor has
# under way. What is left over of rows is computed one by one.
_BLOCK, _ROW = (4, 2), (1, 4)
_DOTS = 4  # sums along the depth that are computed at once


def small_product(kind: Kind, adds: bool = False) -> str:
    """The function of a dtype; one that adds the product to what is there."""
    return f"wend.{'add_' * adds}small_product.{kind.suffix}"


def declaration(function: str) -> str:
    """What a module says of a function that it calls, of this file or of `blas.py`."""
    return (
        f"declare void @{function}({TYPES}) nounwind willreturn "
        "memory(argmem: readwrite, inaccessiblemem: readwrite)"
    )


def library(kind: Kind) -> str:
    """The module of a dtype's two functions, which are one inside: LLVM takes 50 ms for it."""
    lanes = _vector_bytes() // kind.dtype.itemsize
    kernels = _Kernels(Writer(), kind, Kind(kind.dtype, lanes))
    return "\n".join(
        [
            *_outer(kind, adds=False),
            *_outer(kind, adds=True),
            f"define internal void @kernels({PARAMS}, i1 %adds) noinline #0 {{",
            *kernels.choose(),
            "}",
            f'attributes #0 = {{ nounwind "min-legal-vector-width"="{8 * _vector_bytes()}" }}',
            "",
        ]
    )


def _outer(kind: Kind, *, adds: bool) -> list[str]:
    turned = Writer()
    given = ", ".join(turn(turned))
    return [
        f"define void @{small_product(kind, adds)}({PARAMS}) nounwind {{",
        *turned.lines,
        f"  tail call void @kernels({given}, i1 {str(adds).lower()})",
        "  ret void",
        "}",
    ]


def turn(w: Writer) -> list[str]:
    """Arguments for the same product, where it is a column that of yᵀ·xᵀ, which is a row."""
    is_column = w.define("icmp eq i64 %columns, 1")
    params = [param.split() for param in PARAMS.split(", ")]
    turned = (
        *("y", "y.column", "y.deep", "x", "x.deep", "x.row"),
        *("z", "columns", "rows", "depth"),
    )
    return [
        f"{type} {w.define(f'select i1 {is_column}, {type} %{other}, {type} {own}')}"
        for (type, own), other in zip(params, turned, strict=True)
    ]


def _vector_bytes() -> int:
    return 64 if host_cpu.features().get("avx512f") else 32


Rows = Callable[[str, int, int], None]  # where they start, how many, and vectors at once


@dataclass(eq=False, repr=False, slots=True)
class _Kernels:
    """Writes them into `w`, for one number and for vectors."""

    w: Writer
    one: Kind
    many: Kind

    def choose(self) -> list[str]:
        """By what lies side by side: columns of y, or the depth of both."""
        w = self.w
        w.start("entry")
        by_columns, other, by_depth, by_one, done = map(
            w.new_label, ("columns", "other", "depth", "one", "done")
        )
        w.branch(w.define("icmp eq i64 %y.column, 1"), by_columns, other)
        w.start(by_columns)
        self._rows()
        w.do("ret void")
        w.start(other)
        x_is_dense = w.define("icmp eq i64 %x.deep, 1")
        y_is_dense = w.define("icmp eq i64 %y.deep, 1")
        w.branch(w.define(f"and i1 {x_is_dense}, {y_is_dense}"), by_depth, by_one)
        w.start(by_depth)
        w.loop("%rows", lambda i: self._split("%columns", _DOTS, lambda j, n: self._dots(i, j, n)))
        w.jump(done)
        w.start(by_one)
        w.loop("%rows", lambda i: w.loop("%columns", lambda j: self._number(i, j)))
        w.jump(done)
        w.start(done)
        w.do("ret void")
        return w.lines

    # Rows of x times vectors of y
    def _rows(self) -> None:
        def columns(i: str, rows: int) -> None:
            vectors = _BLOCK[1] if rows == _BLOCK[0] else _ROW[1]
            self._columns(i, rows, vectors)

        self._split("%rows", _BLOCK[0], columns)

    def _columns(self, i: str, rows: int, vectors: int) -> None:
        w, lanes = self.w, self.many.lanes
        whole = w.define(f"udiv i64 %columns, {vectors * lanes}")

        def block(k: str) -> None:
            self._block(i, w.define(f"mul i64 {k}, {vectors * lanes}"), rows, vectors, None)

        w.loop(whole, block)
        start = w.define(f"mul i64 {whole}, {vectors * lanes}")
        left = w.define(f"sub i64 %columns, {start}")
        rest = w.define(f"udiv i64 {w.define(f'add i64 {left}, {lanes - 1}')}, {lanes}")

        def part(k: str) -> None:
            j = w.define(f"add i64 {start}, {w.define(f'mul i64 {k}, {lanes}')}")
            mask = self._mask(w.define(f"sub i64 %columns, {j}"))
            self._block(i, j, rows, 1, mask)

        w.loop(rest, part)

    def _block(self, i: str, j: str, rows: int, vectors: int, mask: str | None) -> None:
        w, lanes = self.w, self.many.lanes
        xs = [self._at("%x", self._times(self._plus(i, r), "%x.row")) for r in range(rows)]
        y = self._at("%y", j)

        def deeper(k: str, sums: tuple[str, ...]) -> list[str]:
            row = self._at(y, self._times(k, "%y.deep"))
            theirs = [self._load(self._at(row, str(v * lanes)), mask) for v in range(vectors)]
            along = self._times(k, "%x.deep")
            mine = [self._splat(w.define(f"load {self.one.text}, {self._p(x, along)}")) for x in xs]
            pairs = [(a, b) for a in mine for b in theirs]
            return [self._fma(a, b, c) for (a, b), c in zip(pairs, sums, strict=True)]

        count = rows * vectors
        zero = self.many.literal(0)
        sums = w.fold("%depth", [self.many.text] * count, [zero] * count, deeper)
        for r in range(rows):
            row = self._at("%z", self._plus(self._times(self._plus(i, r), "%columns"), j))
            for v in range(vectors):
                self._store(sums[r * vectors + v], self._at(row, str(v * lanes)), mask)

    # Sums along the depth
    def _dots(self, i: str, j: str, count: int) -> None:
        w, lanes = self.w, self.many.lanes
        x = self._at("%x", self._times(i, "%x.row"))
        ys = [self._at("%y", self._times(self._plus(j, c), "%y.column")) for c in range(count)]

        def step(at: str, sums: tuple[str, ...], mask: str | None) -> list[str]:
            mine = self._load(self._at(x, at), mask)
            theirs = [self._load(self._at(y, at), mask) for y in ys]
            return [self._fma(mine, b, c) for b, c in zip(theirs, sums, strict=True)]

        whole = w.define(f"udiv i64 %depth, {lanes}")
        zero = self.many.literal(0)
        sums = w.fold(
            whole,
            [self.many.text] * count,
            [zero] * count,
            lambda k, sums: step(self._times(k, str(lanes)), sums, None),
        )
        start = self._times(whole, str(lanes))
        mask = self._mask(w.define(f"sub i64 %depth, {start}"))
        row = self._at("%z", self._plus(self._times(i, "%columns"), j))
        type, many = self.one.text, self.many
        for c, total in enumerate(step(start, sums, mask)):
            reduce = f"@llvm.vector.reduce.fadd.{many.suffix}"
            start_with = f"{type} {self.one.literal(0)}"
            found = w.define(f"call reassoc {type} {reduce}({start_with}, {many.text} {total})")
            self._put(found, self._at(row, str(c)))

    def _number(self, i: str, j: str) -> None:
        w, type = self.w, self.one.text
        x = self._at("%x", self._times(i, "%x.row"))
        y = self._at("%y", self._times(j, "%y.column"))

        def add(k: str, so_far: tuple[str, ...]) -> list[str]:
            mine = w.define(f"load {type}, {self._p(x, self._times(k, '%x.deep'))}")
            theirs = w.define(f"load {type}, {self._p(y, self._times(k, '%y.deep'))}")
            pair = w.define(f"fmul {type} {mine}, {theirs}")
            return [w.define(f"fadd {type} {so_far[0]}, {pair}")]

        (total,) = w.fold("%depth", [type], [self.one.literal(0)], add)
        self._put(total, self._at("%z", self._plus(self._times(i, "%columns"), j)))

    # Pieces
    def _split(self, count: str, many: int, body: Callable[[str, int], None]) -> None:
        """Run a body on so many at once, and on what is left over one by one."""
        w = self.w
        whole = w.define(f"udiv i64 {count}, {many}")
        w.loop(whole, lambda k: body(w.define(f"mul i64 {k}, {many}"), many))
        start = w.define(f"mul i64 {whole}, {many}")
        rest = w.define(f"sub i64 {count}, {start}")
        w.loop(rest, lambda k: body(w.define(f"add i64 {k}, {start}"), 1))

    def _plus(self, x: str, y: str | int) -> str:
        return x if y == 0 else self.w.define(f"add i64 {x}, {y}")

    def _times(self, x: str, y: str) -> str:
        return self.w.define(f"mul i64 {x}, {y}")

    def _at(self, pointer: str, index: str) -> str:
        return self.w.define(f"getelementptr {self.one.text}, ptr {pointer}, i64 {index}")

    def _p(self, pointer: str, index: str) -> str:
        return f"ptr {self._at(pointer, index)}"

    def _splat(self, x: str) -> str:
        one = f"insertelement {self.many.text} poison, {self.one.text} {x}, i64 0"
        lanes = f"<{self.many.lanes} x i32> zeroinitializer"
        vector = f"{self.many.text} {self.w.define(one)}, {self.many.text} poison"
        return self.w.define(f"shufflevector {vector}, {lanes}")

    def _fma(self, x: str, y: str, z: str) -> str:
        type = self.many.text
        call = f"call {type} @llvm.fmuladd.{self.many.suffix}"
        return self.w.define(f"{call}({type} {x}, {type} {y}, {type} {z})")

    def _mask(self, left: str) -> str:
        """Which lanes are among the first so many."""
        lanes = self.many.lanes
        type = f"<{lanes} x i64>"
        one = self.w.define(f"insertelement {type} poison, i64 {left}, i64 0")
        zeros = f"<{lanes} x i32> zeroinitializer"
        all = self.w.define(f"shufflevector {type} {one}, {type} poison, {zeros}")
        numbers = ", ".join(f"i64 {k}" for k in range(lanes))
        return self.w.define(f"icmp ult {type} <{numbers}>, {all}")

    def _load(self, address: str, mask: str | None) -> str:
        type, bytes = self.many.text, self.one.dtype.itemsize
        if mask is None:
            return self.w.define(f"load {type}, ptr {address}, align {bytes}")
        flags = f"<{self.many.lanes} x i1> {mask}, {type} {self.many.literal(0)}"
        call = f"call {type} @llvm.masked.load.{self.many.suffix}.p0"
        return self.w.define(f"{call}(ptr {address}, i32 {bytes}, {flags})")

    def _put(self, value: str, address: str) -> None:
        """A number of z."""
        type = self.one.text
        value = self._added(type, value, self.w.define(f"load {type}, ptr {address}"))
        self.w.do(f"store {type} {value}, ptr {address}")

    def _store(self, value: str, address: str, mask: str | None) -> None:
        """A vector of z."""
        type, bytes = self.many.text, self.one.dtype.itemsize
        value = self._added(type, value, self._load(address, mask))
        if mask is None:
            self.w.do(f"store {type} {value}, ptr {address}, align {bytes}")
            return
        call = f"call void @llvm.masked.store.{self.many.suffix}.p0"
        flags = f"<{self.many.lanes} x i1> {mask}"
        self.w.do(f"{call}({type} {value}, ptr {address}, i32 {bytes}, {flags})")

    def _added(self, type: str, value: str, before: str) -> str:
        """What is stored: the sum with what is in z, if that is wanted."""
        total = self.w.define(f"fadd {type} {before}, {value}")
        return self.w.define(f"select i1 %adds, {type} {total}, {type} {value}")
