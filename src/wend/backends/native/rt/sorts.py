"""Rows in order, stably, as NumPy has them: NaN last, and 0.0 and −0.0 are equal.

    void wend.sort.<dtype>(x, out, step, room, n)
    void wend.argsort.<dtype>(x, out, step, room, n)

The elements of a row are `step` apart, in `x` and in `out`. Numbers that NumPy sorts by vectors are
sorted by its function (`numpy_sorts.py`), in `out` itself where they are side by side, else in the
room. All others, and those whose positions are asked for, are sorted as unsigned integers,
their keys: few by insertion, many by their digits of eight bits, from the lowest on (radix sort),
which takes as long whatever the numbers are. From the least key on they are counted, so
that digits that all have in common cost nothing: of small integers all but one or two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wend.backends.native.rt import numpy_sorts
from wend.backends.native.target.writer import Writer
from wend.ir.dtypes import ALL

DTYPES = tuple(sorted((dtype for dtype in ALL if dtype.kind != "c"), key=str))
TYPES = "ptr, ptr, i64, ptr, i64"
_FEW = 64  # insertion is as fast
_DIGITS = 256


def sort(dtype: np.dtype) -> str:
    """The function of a dtype."""
    return f"wend.sort.{dtype.str[1:]}"


def argsort(dtype: np.dtype) -> str:
    """The function of a dtype."""
    return f"wend.argsort.{dtype.str[1:]}"


def sort_room(dtype: np.dtype, step: str) -> int:
    """The room for a row, in bytes an element: for two arrays of keys, or for its numbers."""
    if not numpy_sorts.is_there(dtype):
        return 2 * dtype.itemsize
    return 0 if step == "1" else dtype.itemsize


def argsort_room(dtype: np.dtype, step: str) -> int:
    """The room for a row, in bytes an element: for two arrays of keys with positions."""
    return 2 * (8 + 8)


def sort_library(dtype: np.dtype) -> str:
    """The module of one dtype."""
    body = _Sort(Writer(), Keys(dtype), gives_positions=False)
    if not numpy_sorts.is_there(dtype):
        return _module(sort(dtype), body.write())
    declared = numpy_sorts.declaration(dtype)
    return f"{declared}\n{_module(sort(dtype), body.write_by_numpy())}"


def argsort_library(dtype: np.dtype) -> str:
    """The module of one dtype."""
    return _module(argsort(dtype), _Sort(Writer(), Keys(dtype), gives_positions=True).write())


def _module(name: str, lines: Sequence[str]) -> str:
    params = "ptr %x, ptr %out, i64 %step, ptr %room, i64 %n"
    return "\n".join([f"define void @{name}({params}) nounwind {{", *lines, "}", ""])


@dataclass(frozen=True, slots=True)
class Keys:
    """Unsigned integers in the order of the numbers of a dtype."""

    dtype: np.dtype

    @property
    def bytes(self) -> int:
        return self.dtype.itemsize

    @property
    def type(self) -> str:
        """The LLVM type, of keys and of the bits that they are made of."""
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
        """The key of a number. Those of 0.0 and −0.0 differ where zeros are not equal."""
        type = self.type
        if self.dtype.kind in "ub":
            return bits
        if not self.is_real:
            return w.define(f"xor {type} {bits}, {self._sign}")
        if zeros_equal:
            is_zero = w.define(f"icmp eq {type} {bits}, {self._sign}")
            bits = w.define(f"select i1 {is_zero}, {type} 0, {type} {bits}")
        # Of negative numbers all bits turn, of others the sign.
        signs = w.define(f"ashr {type} {bits}, {8 * self.bytes - 1}")
        turned = w.define(f"or {type} {signs}, {self._sign}")
        key = w.define(f"xor {type} {bits}, {turned}")
        return w.define(f"select i1 {self.is_nan(w, bits)}, {type} -1, {type} {key}")

    def is_nan(self, w: Writer, bits: str) -> str:
        """Whether a real is no number: an i1."""
        size = w.define(f"and {self.type} {bits}, {~self._sign}")
        return w.define(f"icmp ugt {self.type} {size}, {self._infinity}")

    def is_odd(self, w: Writer, bits: str) -> str:
        """Whether a real is not what its key tells: −0.0, or one of the many NaNs."""
        is_zero = w.define(f"icmp eq {self.type} {bits}, {self._sign}")
        return w.define(f"or i1 {is_zero}, {self.is_nan(w, bits)}")

    def number(self, w: Writer, key: str) -> str:
        """The bits of the number of a key."""
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
    """Writes into `w` the body of a function."""

    w: Writer
    keys: Keys
    gives_positions: bool

    @property
    def _record(self) -> str:
        return "{ i64, i64 }" if self.gives_positions else self.keys.type

    @property
    def _type(self) -> str:
        """The type of keys in records."""
        return "i64" if self.gives_positions else self.keys.type

    def write(self) -> list[str]:
        w = self.w
        w.start("entry")
        w.open_entry()
        many, few, digits, done = map(w.new_label, ("many", "few", "digits", "done"))
        least, is_sorted, has_odd = self._fill()
        sorted_at = w.block
        w.branch(is_sorted, done, many)
        w.start(many)
        w.branch(w.define(f"icmp sle i64 %n, {_FEW}"), few, digits)
        w.start(few)
        self._insert()
        few_at = w.block
        w.jump(done)
        w.start(digits)
        found = self._by_digits(least)
        digits_at = w.block
        w.jump(done)
        w.start(done)
        found = w.phi("ptr", ("%room", sorted_at), ("%room", few_at), (found, digits_at))
        self._give(found)
        if not self.gives_positions:
            self._correct(has_odd)
        w.do("ret void")
        return w.lines

    def write_by_numpy(self) -> list[str]:
        w = self.w
        w.start("entry")
        whole, apart, done = map(w.new_label, ("whole", "apart", "done"))
        w.branch(w.define("icmp eq i64 %step, 1"), whole, apart)
        w.start(whole)
        whole_odd = self._copied("1", "%out")
        self._call_numpy("%out")
        whole_at = w.block
        w.jump(done)
        w.start(apart)
        apart_odd = self._copied("%step", "%room")
        self._call_numpy("%room")
        w.loop("%n", lambda k: self._put(w.define(f"mul i64 {k}, %step"), self._key("%room", k)))
        apart_at = w.block
        w.jump(done)
        w.start(done)
        # NumPy's function has no order of what is equal, and may make one zero of the other.
        self._correct(w.phi("i1", (whole_odd, whole_at), (apart_odd, apart_at)))
        w.do("ret void")
        return w.lines

    def _copied(self, step: str, target: str) -> str:
        """Put numbers side by side; return whether reals are odd."""
        w, keys = self.w, self.keys

        def body(k: str, so_far: tuple[str, ...]) -> Sequence[str]:
            bits = self._bits(k, step)
            self._put_key(target, k, bits)
            if not keys.is_real:
                return so_far
            return [w.define(f"or i1 {so_far[0]}, {keys.is_odd(w, bits)}")]

        (has_odd,) = w.fold("%n", ["i1"], ["false"], body)
        return has_odd

    def _call_numpy(self, numbers: str) -> None:
        name = numpy_sorts.name(self.keys.dtype)
        self.w.define(f"call i32 @{name}(ptr {numbers}, i64 %n, ptr null)")

    def _correct(self, has_odd: str) -> None:
        """Put in the source's order what is equal and not the same, where there may be any."""
        w = self.w
        if self.keys.is_real:
            odd, end = w.new_label("odd"), w.new_label("end")
            w.branch(has_odd, odd, end)
            w.start(odd)
            self._give_odd()
            w.jump(end)
            w.start(end)

    def _fill(self) -> tuple[str, str, str]:
        """Make the records; return the least key, whether they are in order and reals are odd."""
        w, keys = self.w, self.keys

        def body(k: str, so_far: tuple[str, ...]) -> Sequence[str]:
            before, least, is_sorted, has_odd = so_far
            bits = self._bits(k)
            key = keys.of(w, bits, zeros_equal=self.gives_positions)
            if keys.type != self._type:
                key = w.define(f"zext {keys.type} {key} to i64")
            self._put_key("%room", k, key)
            if self.gives_positions:
                w.do(f"store i64 {k}, ptr {self._position('%room', k)}")
            elif keys.is_real:
                has_odd = w.define(f"or i1 {has_odd}, {keys.is_odd(w, bits)}")
            follows = w.define(f"icmp ule {self._type} {before}, {key}")
            smaller = w.define(f"icmp ult {self._type} {key}, {least}")
            least = w.define(f"select i1 {smaller}, {self._type} {key}, {self._type} {least}")
            return key, least, w.define(f"and i1 {is_sorted}, {follows}"), has_odd

        types, start = [self._type, self._type, "i1", "i1"], ["0", "-1", "true", "false"]
        _, least, is_sorted, has_odd = w.fold("%n", types, start, body)
        return least, is_sorted, has_odd

    def _insert(self) -> None:
        """Move each record before those that are greater."""
        w, type = self.w, self._type

        def each(number: str) -> None:
            k = w.define(f"add i64 {number}, 1")
            record = w.define(f"load {self._record}, ptr {self._at('%room', k)}")
            key = record
            if self.gives_positions:
                key = w.define(f"extractvalue {self._record} {record}, 0")
            before, here = w.block, w.new_label("look")
            compare, move, put = map(w.new_label, ("compare", "move", "put"))
            w.jump(here)
            w.start(here)
            place, close = w.open_phi("i64", k, before)
            w.branch(w.define(f"icmp sgt i64 {place}, 0"), compare, put)
            w.start(compare)
            left = w.define(f"sub i64 {place}, 1")
            is_greater = w.define(f"icmp ugt {type} {self._key('%room', left)}, {key}")
            w.branch(is_greater, move, put)
            w.start(move)
            self._copy("%room", left, "%room", place)
            close(left)
            w.jump(here)
            w.start(put)
            w.do(f"store {self._record} {record}, ptr {self._at('%room', place)}")

        w.loop(w.define("sub i64 %n, 1"), each)

    def _by_digits(self, least: str) -> str:
        """Pass after pass from one half of the room into the other; return where they end."""
        w, digits, type = self.w, self.keys.bytes, self._type
        counts = w.allocate(f"[{digits * _DIGITS} x i64]")
        size = 8 * digits * _DIGITS
        w.do(f"call void @llvm.memset.p0.i64(ptr {counts}, i8 0, i64 {size}, i1 0)")

        def distance(pointer: str, k: str) -> str:
            return w.define(f"sub {type} {self._key(pointer, k)}, {least}")

        def count(k: str) -> None:
            key = distance("%room", k)
            for number in range(digits):
                shifted = w.define(f"lshr {type} {key}, {8 * number}")
                self._add_one(self._count(counts, str(number * _DIGITS), shifted))

        w.loop("%n", count)
        other = self._at("%room", "%n")

        def step(number: str, places: tuple[str, ...]) -> Sequence[str]:
            source, target = places
            offset = w.define(f"mul i64 {number}, {_DIGITS}")
            bits = w.define(f"shl i64 {number}, 3")
            shift = bits if type == "i64" else w.define(f"trunc i64 {bits} to {type}")

            def place(key: str) -> str:
                return self._count(counts, offset, w.define(f"lshr {type} {key}, {shift}"))

            first = w.define(f"load i64, ptr {place(distance(source, '0'))}")
            differ, done, here = w.new_label("differ"), w.new_label("done"), w.block
            w.branch(w.define(f"icmp eq i64 {first}, %n"), done, differ)
            w.start(differ)

            def start(digit: str, so_far: tuple[str, ...]) -> Sequence[str]:
                at = self._word(counts, w.define(f"add i64 {offset}, {digit}"))
                found = w.define(f"load i64, ptr {at}")
                w.do(f"store i64 {so_far[0]}, ptr {at}")
                return [w.define(f"add i64 {so_far[0]}, {found}")]

            w.fold(str(_DIGITS), ["i64"], ["0"], start)
            w.loop(
                "%n",
                lambda k: self._copy(source, k, target, self._add_one(place(distance(source, k)))),
            )
            there = w.block
            w.jump(done)
            w.start(done)
            sources = [(places, here), ((target, source), there)]
            return w.merge(["ptr", "ptr"], sources)

        return w.fold(str(digits), ["ptr", "ptr"], ["%room", other], step)[0]

    def _give(self, found: str) -> None:
        """Put the numbers, or the positions, in order."""
        w = self.w

        def each(k: str) -> None:
            at = w.define(f"mul i64 {k}, %step")
            if self.gives_positions:
                position = w.define(f"load i64, ptr {self._position(found, k)}")
                w.do(f"store i64 {position}, ptr {self._word('%out', at)}")
            else:
                self._put(at, self.keys.number(w, self._key(found, k)))

        w.loop("%n", each)

    def _give_odd(self) -> None:
        """Put zeros and NaNs as they follow each other: of each there are many that are equal."""
        w, keys, type = self.w, self.keys, self.keys.type

        def kinds(k: str) -> tuple[str, str, str]:
            bits = self._bits(k)
            size = w.define(f"shl {type} {bits}, 1")
            return bits, w.define(f"icmp eq {type} {size}, 0"), keys.is_nan(w, bits)

        def count(k: str, so_far: tuple[str, ...]) -> Sequence[str]:
            bits, is_zero, is_nan = kinds(k)
            negative = w.define(f"icmp slt {type} {bits}, 0")
            others = w.define(f"or i1 {is_zero}, {is_nan}")
            below = w.define(f"select i1 {others}, i1 false, i1 {negative}")
            return [
                w.define(f"add i64 {total}, {w.define(f'zext i1 {flag} to i64')}")
                for total, flag in zip(so_far, (below, is_nan), strict=True)
            ]

        zeros, nans = w.fold("%n", ["i64", "i64"], ["0", "0"], count)
        nans = w.define(f"sub i64 %n, {nans}")

        def each(k: str, places: tuple[str, ...]) -> Sequence[str]:
            bits, *flags = kinds(k)
            following = []
            for place, flag in zip(places, flags, strict=True):
                put, on, here = w.new_label("put"), w.new_label("on"), w.block
                w.branch(flag, put, on)
                w.start(put)
                self._put(w.define(f"mul i64 {place}, %step"), bits)
                moved = w.define(f"add i64 {place}, 1")
                w.jump(on)
                w.start(on)
                following.append(w.phi("i64", (place, here), (moved, put)))
            return following

        w.fold("%n", ["i64", "i64"], [zeros, nans], each)

    # Memory
    def _bits(self, k: str, step: str = "%step") -> str:
        w, type = self.w, self.keys.type
        at = k if step == "1" else w.define(f"mul i64 {k}, {step}")
        return w.define(f"load {type}, ptr {w.define(f'getelementptr {type}, ptr %x, i64 {at}')}")

    def _put(self, at: str, bits: str) -> None:
        type = self.keys.type
        place = self.w.define(f"getelementptr {type}, ptr %out, i64 {at}")
        self.w.do(f"store {type} {bits}, ptr {place}")

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

    def _count(self, counts: str, offset: str, shifted: str) -> str:
        """Where the keys of a digit are counted, the last that is left of a shifted one."""
        w, type = self.w, self._type
        digit = w.define(f"and {type} {shifted}, 255")
        if type != "i64":
            digit = w.define(f"zext {type} {digit} to i64")
        return self._word(counts, w.define(f"add i64 {offset}, {digit}"))

    def _add_one(self, place: str) -> str:
        """Count one more; return how many there were."""
        found = self.w.define(f"load i64, ptr {place}")
        self.w.do(f"store i64 {self.w.define(f'add i64 {found}, 1')}, ptr {place}")
        return found
