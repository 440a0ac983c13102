"""Which numbers are among some others, as NumPy has it: NaN is among none.

    void wend.isin.<dtype>(x, n, among, m, room, out)

They are compared as unsigned integers, their keys (`sorts.py`): all with each where there are few.
Where there are many, those that are looked for in are marked in a table, if they are integers not
far apart, as in NumPy; else they are sorted, and each number is looked for by halves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from wend.backends.native.rt import binary_search, sorts
from wend.backends.native.rt.sorts import Keys
from wend.backends.native.target.writer import Writer

DTYPES = sorts.DTYPES
TYPES = "ptr, i64, ptr, i64, ptr, ptr"

_VERY_FEW, _FEW = 4, 32
_BLOCK = 256  # keys that are compared together
_SPREAD = 4  # how many marks there may be for each number


def function(dtype: np.dtype) -> str:
    """The function of a dtype."""
    return f"wend.isin.{dtype.str[1:]}"


def room(dtype: np.dtype) -> tuple[int, int]:
    """The bytes needed for each number, and for each that is looked for in."""
    return _SPREAD, _SPREAD + 4 * dtype.itemsize


def library(dtype: np.dtype) -> str:
    """The module of one dtype."""
    keys = Keys(dtype)
    params = (
        "ptr noalias %x, i64 %n, ptr noalias %among, i64 %m, ptr noalias %room, ptr noalias %out"
    )
    lines = [
        f"declare void @{sorts.sort(_unsigned(keys))}({sorts.TYPES}) nounwind",
        f"define void @{function(dtype)}({params}) nounwind {{",
        *_Isin(Writer(), keys).write(),
        "}",
    ]
    return "\n".join([*lines, ""])


def _unsigned(keys: Keys) -> np.dtype:
    return np.dtype(f"u{keys.bytes}")


@dataclass(eq=False, repr=False, slots=True)
class _Isin:
    """Writes into `w` the body of a function."""

    w: Writer
    keys: Keys

    def write(self) -> list[str]:
        w, type = self.w, self.keys.type
        w.start("entry")
        w.open_entry()
        compare, some, search, done = map(w.new_label, ("compare", "some", "search", "done"))
        least, most = self._fill()
        if not self.keys.is_real:
            mark, other = w.new_label("mark"), w.new_label("other")
            w.branch(w.define(f"icmp sle i64 %m, {_VERY_FEW}"), compare, other)
            w.start(other)
            last = w.define(f"sub {type} {most}, {least}")
            last = last if type == "i64" else w.define(f"zext {type} {last} to i64")
            both = w.define(f"mul i64 {w.define('add i64 %n, %m')}, {_SPREAD}")
            w.branch(w.define(f"icmp ult i64 {last}, {both}"), mark, some)
            w.start(mark)
            self._mark(least, last)
            w.jump(done)
        else:
            w.jump(some)
        w.start(some)
        are_few = w.define(f"icmp sle i64 %m, {_FEW}"), w.define(f"icmp sle i64 %n, {_VERY_FEW}")
        w.branch(w.define(f"or i1 {', '.join(are_few)}"), compare, search)
        w.start(compare)
        self._compare()
        w.jump(done)
        w.start(search)
        self._search()
        w.jump(done)
        w.start(done)
        w.do("ret void")
        return w.lines

    def _fill(self) -> tuple[str, str]:
        """Make the keys of those that are looked for in; return the least and the greatest."""
        w, keys, type = self.w, self.keys, self.keys.type

        def body(k: str, so_far: tuple[str, ...]) -> Sequence[str]:
            key = self._key("%among", k)
            if keys.is_real:
                # NaN's is that of no number, and not what NaNs have that are looked for.
                key = w.define(
                    f"select i1 {w.define(f'icmp eq {type} {key}, -1')}, {type} 0, {type} {key}"
                )
            w.do(f"store {type} {key}, ptr {self._at('%room', k)}")
            flags = [
                w.define(f"icmp {compare} {type} {key}, {found}")
                for compare, found in zip(("ult", "ugt"), so_far, strict=True)
            ]
            return [
                w.define(f"select i1 {flag}, {type} {key}, {type} {found}")
                for flag, found in zip(flags, so_far, strict=True)
            ]

        least, most = w.fold("%m", [type, type], ["-1", "0"], body)
        return least, most

    def _compare(self) -> None:
        """Compare every number with each, in blocks."""
        w, type = self.w, self.keys.type
        block = w.allocate(f"[{_BLOCK} x {type}]")
        blocks = w.define(f"udiv i64 {w.define(f'add i64 %n, {_BLOCK - 1}')}, {_BLOCK}")

        def each(number: str) -> None:
            start = w.define(f"mul i64 {number}, {_BLOCK}")
            left = w.define(f"sub i64 %n, {start}")
            is_whole = w.define(f"icmp sge i64 {left}, {_BLOCK}")
            count = w.define(f"select i1 {is_whole}, i64 {_BLOCK}, i64 {left}")

            def fill(k: str) -> None:
                key = self._key("%x", w.define(f"add i64 {start}, {k}"))
                w.do(f"store {type} {key}, ptr {self._at(block, k)}")
                self._flag(w.define(f"add i64 {start}, {k}"), "false")

            def look(j: str) -> None:
                wanted = self._load("%room", j)

                def one(k: str) -> None:
                    at = w.define(
                        f"getelementptr i8, ptr %out, i64 {w.define(f'add i64 {start}, {k}')}"
                    )
                    same = w.define(f"icmp eq {type} {self._load(block, k)}, {wanted}")
                    before = w.define(f"load i8, ptr {at}")
                    flag = w.define(f"or i8 {before}, {w.define(f'zext i1 {same} to i8')}")
                    w.do(f"store i8 {flag}, ptr {at}")

                w.loop(count, one)

            w.loop(count, fill)
            w.loop("%m", look)

        w.loop(blocks, each)

    def _mark(self, least: str, last: str) -> None:
        """Mark numbers in a table from the least to the last."""
        w, type = self.w, self.keys.type
        table = self._at("%room", "%m")
        size = w.define(f"add i64 {last}, 1")
        w.do(f"call void @llvm.memset.p0.i64(ptr {table}, i8 0, i64 {size}, i1 0)")

        def place(key: str) -> str:
            found = w.define(f"sub {type} {key}, {least}")
            return found if type == "i64" else w.define(f"zext {type} {found} to i64")

        def mark(k: str) -> None:
            at = w.define(f"getelementptr i8, ptr {table}, i64 {place(self._load('%room', k))}")
            w.do(f"store i8 1, ptr {at}")

        def look(k: str) -> None:
            found = place(self._key("%x", k))
            is_in = w.define(f"icmp ule i64 {found}, {last}")
            found = w.define(f"select i1 {is_in}, i64 {found}, i64 0")
            byte = w.define(
                f"load i8, ptr {w.define(f'getelementptr i8, ptr {table}, i64 {found}')}"
            )
            marked = w.define(f"icmp ne i8 {byte}, 0")
            self._flag(k, w.define(f"and i1 {is_in}, {marked}"))

        w.loop("%m", mark)
        w.loop("%n", look)

    def _search(self) -> None:
        """Sort those that are looked for in, and look for each number by halves."""
        w, type = self.w, self.keys.type
        ordered = self._at("%room", "%m")
        rest = self._at(ordered, "%m")
        given = f"ptr %room, ptr {ordered}, i64 1, ptr {rest}, i64 %m"
        w.do(f"call void @{sorts.sort(_unsigned(self.keys))}({given})")

        def search(numbers: Sequence[str]) -> None:
            wanted = [self._key("%x", k) for k in numbers]
            found = binary_search.last(w, "%m", [partial(is_up_to, key) for key in wanted])
            for k, key, place in zip(numbers, wanted, found, strict=True):
                self._flag(k, w.define(f"icmp eq {type} {self._load(ordered, place)}, {key}"))

        def is_up_to(key: str, place: str) -> str:
            return w.define(f"icmp ule {type} {self._load(ordered, place)}, {key}")

        binary_search.loop(w, "%n", search)

    # Memory
    def _at(self, pointer: str, k: str) -> str:
        return self.w.define(f"getelementptr {self.keys.type}, ptr {pointer}, i64 {k}")

    def _load(self, pointer: str, k: str) -> str:
        return self.w.define(f"load {self.keys.type}, ptr {self._at(pointer, k)}")

    def _key(self, pointer: str, k: str) -> str:
        return self.keys.of(self.w, self._load(pointer, k))

    def _flag(self, k: str, flag: str) -> None:
        at = self.w.define(f"getelementptr i8, ptr %out, i64 {k}")
        self.w.do(f"store i8 {self.w.define(f'zext i1 {flag} to i8')}, ptr {at}")
