"""Stable sorts of rows with NumPy's order: NaN last, 0.0 and −0.0 equal.

    void wend.sort.<dtype>(x, out, step, room, n)
    void wend.argsort.<dtype>(x, out, step, room, n)

The elements of a row have stride `step`, in `x` and in `out`; `room` is scratch memory. Dtypes with
a vectorized sort in NumPy use it (`numpy_sorts.py`), in `out` itself if that is contiguous, else
in the room; on some processors for short rows only. All others, and every argsort, sort unsigned
integer keys: short rows by insertion, long ones by an LSD radix sort with digits of eight bits,
whose time does not depend on their order. Digits are taken of the distance to the least key, and a
digit that all keys share is skipped: for small integers all but one or two.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wend.backends.native.rt.ordering import numpy_sorts
from wend.backends.native.target.writer import Writer
from wend.base.lazy.dataclass import dataclass
from wend.ir.dtypes import ALL

DTYPES = tuple(sorted((dtype for dtype in ALL if dtype.kind != "c"), key=str))
TYPES = "ptr, ptr, i64, ptr, i64"
_ARGUMENTS = "ptr %x, ptr %out, i64 %step, ptr %room, i64 %n"
_MAX_INSERTION_SORT = 64  # elements: up to here insertion is as fast as radix sort
_RADIX = 256


def sort(dtype: np.dtype) -> str:
    """Return the name of the sort function of a dtype."""
    return f"wend.sort.{dtype.str[1:]}"


def argsort(dtype: np.dtype) -> str:
    """Return the name of the argsort function of a dtype."""
    return f"wend.argsort.{dtype.str[1:]}"


def sort_room(dtype: np.dtype, step: str) -> int:
    """Return the scratch bytes per element: for two arrays of keys, or a copy of the numbers."""
    if not numpy_sorts.is_available(dtype) or numpy_sorts.max_count() is not None:
        return 2 * dtype.itemsize
    return 0 if step == "1" else dtype.itemsize


def argsort_room(dtype: np.dtype, step: str) -> int:
    """Return the scratch bytes per element: for two arrays of keys with positions."""
    return 2 * (8 + 8)


def sort_library(dtype: np.dtype) -> str:
    """Return the module with the sort function of a dtype."""
    name, limit = sort(dtype), numpy_sorts.max_count()
    ours, numpys = (_Sort(Writer(), Keys(dtype), returns_positions=False) for _ in range(2))
    if not numpy_sorts.is_available(dtype):
        return _module(name, ours.write())
    declared = numpy_sorts.declaration(dtype)
    if limit is None:
        return f"{declared}\n{_module(name, numpys.write_by_numpy())}"
    short, long = f"{name}.short", f"{name}.long"
    choice = [
        f"  %is.short = icmp sle i64 %n, {limit}",
        "  br i1 %is.short, label %short, label %long",
        *("short:", f"  call void @{short}({_ARGUMENTS})", "  ret void"),
        *("long:", f"  call void @{long}({_ARGUMENTS})", "  ret void"),
    ]
    by_length = (_module(short, numpys.write_by_numpy()), _module(long, ours.write()))
    return "\n".join([declared, *by_length, _module(name, choice)])


def argsort_library(dtype: np.dtype) -> str:
    """Return the module with the argsort function of a dtype."""
    return _module(argsort(dtype), _Sort(Writer(), Keys(dtype), returns_positions=True).write())


def _module(name: str, lines: Sequence[str]) -> str:
    return "\n".join([f"define void @{name}({_ARGUMENTS}) nounwind {{", *lines, "}", ""])


@dataclass(frozen=True, slots=True)
class Keys:
    """Unsigned integer keys that sort like the numbers of a dtype."""

    dtype: np.dtype

    @property
    def bytes(self) -> int:
        return self.dtype.itemsize

    @property
    def type(self) -> str:
        """The LLVM type of the keys, and of the bits of the numbers."""
        return f"i{8 * self.bytes}"

    @property
    def is_real(self) -> bool:
        return self.dtype.kind == "f"

    @property
    def _sign(self) -> int:
        return -(1 << (8 * self.bytes - 1))

    @property
    def _infinity(self) -> int:
        return int(np.array(np.inf, self.dtype).view(f"i{self.bytes}"))

    def of(self, w: Writer, bits: str, *, zeros_equal: bool = True) -> str:
        """Emit the key of a number; 0.0 and −0.0 have one key if `zeros_equal`."""
        type = self.type
        if self.dtype.kind in "ub":
            return bits
        if not self.is_real:
            return w.define(f"xor {type} {bits}, {self._sign}")
        if zeros_equal:
            is_zero = w.define(f"icmp eq {type} {bits}, {self._sign}")
            bits = w.define(f"select i1 {is_zero}, {type} 0, {type} {bits}")
        # Flip all bits of negative numbers, the sign bit of others.
        signs = w.define(f"ashr {type} {bits}, {8 * self.bytes - 1}")
        turned = w.define(f"or {type} {signs}, {self._sign}")
        key = w.define(f"xor {type} {bits}, {turned}")
        return w.define(f"select i1 {self.is_nan(w, bits)}, {type} -1, {type} {key}")

    def is_nan(self, w: Writer, bits: str) -> str:
        """Emit the i1 that says whether a real is NaN."""
        size = w.define(f"and {self.type} {bits}, {~self._sign}")
        return w.define(f"icmp ugt {self.type} {size}, {self._infinity}")

    def is_lossy(self, w: Writer, bits: str) -> str:
        """Emit whether the key of a real loses its bits: −0.0, or one of the many NaNs."""
        is_zero = w.define(f"icmp eq {self.type} {bits}, {self._sign}")
        return w.define(f"or i1 {is_zero}, {self.is_nan(w, bits)}")

    def number(self, w: Writer, key: str) -> str:
        """Emit the bits of the number with this key."""
        type = self.type
        if self.dtype.kind in "ub":
            return key
        if not self.is_real:
            return w.define(f"xor {type} {key}, {self._sign}")
        signs = w.define(f"ashr {type} {key}, {8 * self.bytes - 1}")
        turned = w.define(f"or {type} {w.define(f'xor {type} {signs}, -1')}, {self._sign}")
        return w.define(f"xor {type} {key}, {turned}")


@dataclass(eq=False, repr=False, slots=True)
class _Sort:
    """The emitter of the body of one sort function."""

    w: Writer
    keys: Keys
    returns_positions: bool

    @property
    def _record(self) -> str:
        return "{ i64, i64 }" if self.returns_positions else self.keys.type

    @property
    def _type(self) -> str:
        """The LLVM type of the keys in records."""
        return "i64" if self.returns_positions else self.keys.type

    def write(self) -> list[str]:
        w = self.w
        w.start("entry")
        w.open_entry()
        unsorted, insertion, radix, done = map(w.new_label, ("many", "few", "digits", "done"))
        least, is_sorted, has_lossy = self._make_records()
        filled_block = w.block
        w.branch(is_sorted, done, unsorted)
        w.start(unsorted)
        w.branch(w.define(f"icmp sle i64 %n, {_MAX_INSERTION_SORT}"), insertion, radix)
        w.start(insertion)
        self._insertion_sort()
        insertion_block = w.block
        w.jump(done)
        w.start(radix)
        sorted_records = self._radix_sort(least)
        radix_block = w.block
        w.jump(done)
        w.start(done)
        sorted_records = w.phi(
            "ptr",
            ("%room", filled_block),
            ("%room", insertion_block),
            (sorted_records, radix_block),
        )
        self._write_sorted(sorted_records)
        if not self.returns_positions:
            self._restore_lossy(has_lossy)
        w.do("ret void")
        return w.lines

    def write_by_numpy(self) -> list[str]:
        w = self.w
        w.start("entry")
        contiguous, strided, done = map(w.new_label, ("whole", "apart", "done"))
        w.branch(w.define("icmp eq i64 %step, 1"), contiguous, strided)
        w.start(contiguous)
        contiguous_lossy = self._copy_contiguous("1", "%out")
        self._call_numpy("%out")
        contiguous_block = w.block
        w.jump(done)
        w.start(strided)
        strided_lossy = self._copy_contiguous("%step", "%room")
        self._call_numpy("%room")
        w.loop("%n", lambda k: self._put(w.define(f"mul i64 {k}, %step"), self._key("%room", k)))
        strided_block = w.block
        w.jump(done)
        w.start(done)
        # NumPy's function is not stable, and may replace one zero by the other.
        self._restore_lossy(
            w.phi("i1", (contiguous_lossy, contiguous_block), (strided_lossy, strided_block))
        )
        w.do("ret void")
        return w.lines

    def _copy_contiguous(self, step: str, target: str) -> str:
        """Copy the numbers contiguously to `target`; return whether any of them is lossy."""
        w, keys = self.w, self.keys

        def body(k: str, flags: tuple[str, ...]) -> Sequence[str]:
            bits = self._bits(k, step)
            self._put_key(target, k, bits)
            if not keys.is_real:
                return flags
            return [w.define(f"or i1 {flags[0]}, {keys.is_lossy(w, bits)}")]

        (has_lossy,) = w.fold("%n", ["i1"], ["false"], body)
        return has_lossy

    def _call_numpy(self, numbers: str) -> None:
        name = numpy_sorts.name(self.keys.dtype)
        self.w.define(f"call i32 @{name}(ptr {numbers}, i64 %n, ptr null)")

    def _restore_lossy(self, has_lossy: str) -> None:
        """Rewrite zeros and NaNs in their original order, if some of them are lossy."""
        if self.keys.is_real:
            self.w.when(("odd", "end"), lambda: has_lossy, self._write_lossy)

    def _make_records(self) -> tuple[str, str, str]:
        """Make the records; return the least key, whether they are sorted, whether any is lossy."""
        w, keys = self.w, self.keys

        def body(k: str, carry: tuple[str, ...]) -> Sequence[str]:
            before, least, is_sorted, has_lossy = carry
            bits = self._bits(k)
            key = keys.of(w, bits, zeros_equal=self.returns_positions)
            if keys.type != self._type:
                key = w.define(f"zext {keys.type} {key} to i64")
            self._put_key("%room", k, key)
            if self.returns_positions:
                w.do(f"store i64 {k}, ptr {self._position('%room', k)}")
            elif keys.is_real:
                has_lossy = w.define(f"or i1 {has_lossy}, {keys.is_lossy(w, bits)}")
            follows = w.define(f"icmp ule {self._type} {before}, {key}")
            smaller = w.define(f"icmp ult {self._type} {key}, {least}")
            least = w.define(f"select i1 {smaller}, {self._type} {key}, {self._type} {least}")
            return key, least, w.define(f"and i1 {is_sorted}, {follows}"), has_lossy

        types, start = [self._type, self._type, "i1", "i1"], ["0", "-1", "true", "false"]
        _, least, is_sorted, has_lossy = w.fold("%n", types, start, body)
        return least, is_sorted, has_lossy

    def _insertion_sort(self) -> None:
        """Sort the records by insertion."""
        w, type = self.w, self._type

        def each(number: str) -> None:
            k = w.define(f"add i64 {number}, 1")
            record = w.define(f"load {self._record}, ptr {self._at('%room', k)}")
            key = record
            if self.returns_positions:
                key = w.define(f"extractvalue {self._record} {record}, 0")
            before, look = w.block, w.new_label("look")
            compare, move, put = map(w.new_label, ("compare", "move", "put"))
            w.jump(look)
            w.start(look)
            position, close = w.open_phi("i64", k, before)
            w.branch(w.define(f"icmp sgt i64 {position}, 0"), compare, put)
            w.start(compare)
            previous = w.define(f"sub i64 {position}, 1")
            is_greater = w.define(f"icmp ugt {type} {self._key('%room', previous)}, {key}")
            w.branch(is_greater, move, put)
            w.start(move)
            self._copy("%room", previous, "%room", position)
            close(previous)
            w.jump(look)
            w.start(put)
            w.do(f"store {self._record} {record}, ptr {self._at('%room', position)}")

        w.loop(w.define("sub i64 %n, 1"), each)

    def _radix_sort(self, least: str) -> str:
        """Radix sort between the halves of the room; return the half with the sorted records."""
        w, digits, type = self.w, self.keys.bytes, self._type
        counts = w.allocate(f"[{digits * _RADIX} x i64]")
        size = 8 * digits * _RADIX
        w.do(f"call void @llvm.memset.p0.i64(ptr {counts}, i8 0, i64 {size}, i1 0)")

        def distance(pointer: str, k: str) -> str:
            return w.define(f"sub {type} {self._key(pointer, k)}, {least}")

        def count(k: str) -> None:
            key = distance("%room", k)
            for number in range(digits):
                shifted = w.define(f"lshr {type} {key}, {8 * number}")
                self._increment(self._counter(counts, str(number * _RADIX), shifted))

        w.loop("%n", count)
        other = self._at("%room", "%n")

        def step(number: str, buffers: tuple[str, ...]) -> Sequence[str]:
            source, target = buffers
            offset = w.define(f"mul i64 {number}, {_RADIX}")
            bits = w.define(f"shl i64 {number}, 3")
            shift = bits if type == "i64" else w.define(f"trunc i64 {bits} to {type}")

            def slot_of(key: str) -> str:
                return self._counter(counts, offset, w.define(f"lshr {type} {key}, {shift}"))

            first_count = w.define(f"load i64, ptr {slot_of(distance(source, '0'))}")

            def start(digit: str, offsets: tuple[str, ...]) -> Sequence[str]:
                slot = self._word(counts, w.define(f"add i64 {offset}, {digit}"))
                digit_count = w.define(f"load i64, ptr {slot}")
                w.do(f"store i64 {offsets[0]}, ptr {slot}")
                return [w.define(f"add i64 {offsets[0]}, {digit_count}")]

            def move(k: str) -> None:
                self._copy(source, k, target, self._increment(slot_of(distance(source, k))))

            def distribute() -> None:
                w.fold(str(_RADIX), ["i64"], ["0"], start)
                w.loop("%n", move)

            _, unchanged_block, moved_block = w.when(
                ("differ", "done"),
                lambda: w.define(f"icmp eq i64 {first_count}, %n"),
                distribute,
                unless=True,
            )
            sources = [(buffers, unchanged_block), ((target, source), moved_block)]
            return w.merge(["ptr", "ptr"], sources)

        return w.fold(str(digits), ["ptr", "ptr"], ["%room", other], step)[0]

    def _write_sorted(self, records: str) -> None:
        """Write the sorted numbers, or their positions, to `out`."""
        w = self.w

        def each(k: str) -> None:
            at = w.define(f"mul i64 {k}, %step")
            if self.returns_positions:
                position = w.define(f"load i64, ptr {self._position(records, k)}")
                w.do(f"store i64 {position}, ptr {self._word('%out', at)}")
            else:
                self._put(at, self.keys.number(w, self._key(records, k)))

        w.loop("%n", each)

    def _write_lossy(self) -> None:
        """Write zeros and NaNs in their original order, where the sorted ones are."""
        w, keys, type = self.w, self.keys, self.keys.type

        def kinds(k: str) -> tuple[str, str, str]:
            bits = self._bits(k)
            size = w.define(f"shl {type} {bits}, 1")
            return bits, w.define(f"icmp eq {type} {size}, 0"), keys.is_nan(w, bits)

        def count(k: str, totals: tuple[str, ...]) -> Sequence[str]:
            bits, is_zero, is_nan = kinds(k)
            negative = w.define(f"icmp slt {type} {bits}, 0")
            others = w.define(f"or i1 {is_zero}, {is_nan}")
            below = w.define(f"select i1 {others}, i1 false, i1 {negative}")
            return [
                w.define(f"add i64 {total}, {w.define(f'zext i1 {flag} to i64')}")
                for total, flag in zip(totals, (below, is_nan), strict=True)
            ]

        zeros, nans = w.fold("%n", ["i64", "i64"], ["0", "0"], count)
        nans = w.define(f"sub i64 %n, {nans}")

        def each(k: str, positions: tuple[str, ...]) -> Sequence[str]:
            bits, *flags = kinds(k)
            next_positions = []
            for position, flag in zip(positions, flags, strict=True):
                put, on, skipped_block = w.new_label("put"), w.new_label("on"), w.block
                w.branch(flag, put, on)
                w.start(put)
                self._put(w.define(f"mul i64 {position}, %step"), bits)
                advanced = w.define(f"add i64 {position}, 1")
                w.jump(on)
                w.start(on)
                next_positions.append(w.phi("i64", (position, skipped_block), (advanced, put)))
            return next_positions

        w.fold("%n", ["i64", "i64"], [zeros, nans], each)

    # Memory
    def _bits(self, k: str, step: str = "%step") -> str:
        w, type = self.w, self.keys.type
        at = k if step == "1" else w.define(f"mul i64 {k}, {step}")
        return w.define(f"load {type}, ptr {w.define(f'getelementptr {type}, ptr %x, i64 {at}')}")

    def _put(self, index: str, bits: str) -> None:
        type = self.keys.type
        address = self.w.define(f"getelementptr {type}, ptr %out, i64 {index}")
        self.w.do(f"store {type} {bits}, ptr {address}")

    def _at(self, pointer: str, k: str) -> str:
        return self.w.define(f"getelementptr {self._record}, ptr {pointer}, i64 {k}")

    def _key(self, pointer: str, k: str) -> str:
        return self.w.define(f"load {self._type}, ptr {self._at(pointer, k)}")

    def _put_key(self, pointer: str, k: str, key: str) -> None:
        self.w.do(f"store {self._type} {key}, ptr {self._at(pointer, k)}")

    def _position(self, pointer: str, k: str) -> str:
        return self.w.define(f"getelementptr {self._record}, ptr {pointer}, i64 {k}, i32 1")

    def _copy(self, source: str, k: str, target: str, to: str) -> None:
        record = self.w.define(f"load {self._record}, ptr {self._at(source, k)}")
        self.w.do(f"store {self._record} {record}, ptr {self._at(target, to)}")

    def _word(self, pointer: str, k: str) -> str:
        return self.w.define(f"getelementptr i64, ptr {pointer}, i64 {k}")

    def _counter(self, counts: str, offset: str, shifted: str) -> str:
        """Return the address of the counter of the lowest digit of a shifted key."""
        w, type = self.w, self._type
        digit = w.define(f"and {type} {shifted}, 255")
        if type != "i64":
            digit = w.define(f"zext {type} {digit} to i64")
        return self._word(counts, w.define(f"add i64 {offset}, {digit}"))

    def _increment(self, address: str) -> str:
        """Increment a counter; return its old value."""
        old_count = self.w.define(f"load i64, ptr {address}")
        self.w.do(f"store i64 {self.w.define(f'add i64 {old_count}, 1')}, ptr {address}")
        return old_count
