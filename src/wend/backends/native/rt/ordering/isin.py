"""Membership tests of numbers in a set, with NumPy's semantics: NaN is in no set.

    void wend.isin.<dtype>(x, n, among, m, room, out)

Numbers are compared by their keys, unsigned integers (`sorts.py`). Small sets are compared element
by element. Larger sets of integers in a small range are marked in a table, as in NumPy; all others
are sorted, and each number is looked up by binary search.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from wend.backends.native.rt.ordering import binary_search, sorts
from wend.backends.native.rt.ordering.sorts import Keys
from wend.backends.native.target.writer import Writer
from wend.base.lazy.dataclass import dataclass

DTYPES = sorts.DTYPES
TYPES = "ptr, i64, ptr, i64, ptr, ptr"

# Sets of integers up to the first size are compared before a table is considered, sets up to the
# second before sorting
_MAX_TINY_COUNT, _MAX_COMPARED_COUNT = 4, 32
_BLOCK = 256  # keys that are compared in one vector loop
_MARKS_PER_NUMBER = 4  # the most bytes of the table for each number


def function(dtype: np.dtype) -> str:
    """Return the name of the function of a dtype."""
    return f"wend.isin.{dtype.str[1:]}"


def room(dtype: np.dtype) -> tuple[int, int]:
    """Return the scratch bytes per number, and per element of the set."""
    return _MARKS_PER_NUMBER, _MARKS_PER_NUMBER + 4 * dtype.itemsize


def library(dtype: np.dtype) -> str:
    """Return the module of one dtype."""
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
    """The emitter of the body of one membership function."""

    w: Writer
    keys: Keys

    def write(self) -> list[str]:
        w, type = self.w, self.keys.type
        w.start("entry")
        w.open_entry()
        compare, some, search, done = map(w.new_label, ("compare", "some", "search", "done"))
        lowest, highest = self._make_keys()
        if not self.keys.is_real:
            mark, other = w.new_label("mark"), w.new_label("other")
            w.branch(w.define(f"icmp sle i64 %m, {_MAX_TINY_COUNT}"), compare, other)
            w.start(other)
            last = w.define(f"sub {type} {highest}, {lowest}")
            last = last if type == "i64" else w.define(f"zext {type} {last} to i64")
            both = w.define(f"mul i64 {w.define('add i64 %n, %m')}, {_MARKS_PER_NUMBER}")
            w.branch(w.define(f"icmp ult i64 {last}, {both}"), mark, some)
            w.start(mark)
            self._look_up_in_table(lowest, last)
            w.jump(done)
        else:
            w.jump(some)
        w.start(some)
        are_few = (
            w.define(f"icmp sle i64 %m, {_MAX_COMPARED_COUNT}"),
            w.define(f"icmp sle i64 %n, {_MAX_TINY_COUNT}"),
        )
        w.branch(w.define(f"or i1 {', '.join(are_few)}"), compare, search)
        w.start(compare)
        self._compare_all()
        w.jump(done)
        w.start(search)
        self._search_sorted()
        w.jump(done)
        w.start(done)
        w.do("ret void")
        return w.lines

    def _make_keys(self) -> tuple[str, str]:
        """Make the keys of the set; return the lowest and the highest."""
        w, keys, type = self.w, self.keys, self.keys.type

        def body(k: str, bounds: tuple[str, ...]) -> Sequence[str]:
            key = self._key("%among", k)
            if keys.is_real:
                # NaNs of the set get the key of no number, not that of the NaNs tested.
                key = w.define(
                    f"select i1 {w.define(f'icmp eq {type} {key}, -1')}, {type} 0, {type} {key}"
                )
            w.do(f"store {type} {key}, ptr {self._at('%room', k)}")
            flags = [
                w.define(f"icmp {compare} {type} {key}, {bound}")
                for compare, bound in zip(("ult", "ugt"), bounds, strict=True)
            ]
            return [
                w.define(f"select i1 {flag}, {type} {key}, {type} {bound}")
                for flag, bound in zip(flags, bounds, strict=True)
            ]

        lowest, highest = w.fold("%m", [type, type], ["-1", "0"], body)
        return lowest, highest

    def _compare_all(self) -> None:
        """Compare every number with each element of the set, in blocks."""
        w, type = self.w, self.keys.type
        block = w.allocate(f"[{_BLOCK} x {type}]")
        blocks = w.define(f"udiv i64 {w.define(f'add i64 %n, {_BLOCK - 1}')}, {_BLOCK}")

        def each(number: str) -> None:
            start = w.define(f"mul i64 {number}, {_BLOCK}")
            remaining = w.define(f"sub i64 %n, {start}")
            is_whole = w.define(f"icmp sge i64 {remaining}, {_BLOCK}")
            count = w.define(f"select i1 {is_whole}, i64 {_BLOCK}, i64 {remaining}")

            def fill(k: str) -> None:
                key = self._key("%x", w.define(f"add i64 {start}, {k}"))
                w.do(f"store {type} {key}, ptr {self._at(block, k)}")
                self._flag(w.define(f"add i64 {start}, {k}"), "false")

            def look(j: str) -> None:
                candidate = self._load("%room", j)

                def one(k: str) -> None:
                    at = w.define(
                        f"getelementptr i8, ptr %out, i64 {w.define(f'add i64 {start}, {k}')}"
                    )
                    same = w.define(f"icmp eq {type} {self._load(block, k)}, {candidate}")
                    old_flag = w.define(f"load i8, ptr {at}")
                    flag = w.define(f"or i8 {old_flag}, {w.define(f'zext i1 {same} to i8')}")
                    w.do(f"store i8 {flag}, ptr {at}")

                w.loop(count, one)

            w.loop(count, fill)
            w.loop("%m", look)

        w.loop(blocks, each)

    def _look_up_in_table(self, lowest: str, span: str) -> None:
        """Mark the set in a table of `span` + 1 bytes, and look up each number there."""
        w, type = self.w, self.keys.type
        table = self._at("%room", "%m")
        size = w.define(f"add i64 {span}, 1")
        w.do(f"call void @llvm.memset.p0.i64(ptr {table}, i8 0, i64 {size}, i1 0)")

        def place(key: str) -> str:
            index = w.define(f"sub {type} {key}, {lowest}")
            return index if type == "i64" else w.define(f"zext {type} {index} to i64")

        def mark(k: str) -> None:
            at = w.define(f"getelementptr i8, ptr {table}, i64 {place(self._load('%room', k))}")
            w.do(f"store i8 1, ptr {at}")

        def look(k: str) -> None:
            index = place(self._key("%x", k))
            is_in = w.define(f"icmp ule i64 {index}, {span}")
            index = w.define(f"select i1 {is_in}, i64 {index}, i64 0")
            byte = w.define(
                f"load i8, ptr {w.define(f'getelementptr i8, ptr {table}, i64 {index}')}"
            )
            marked = w.define(f"icmp ne i8 {byte}, 0")
            self._flag(k, w.define(f"and i1 {is_in}, {marked}"))

        w.loop("%m", mark)
        w.loop("%n", look)

    def _search_sorted(self) -> None:
        """Sort the set, and look up each number by binary search."""
        w, type = self.w, self.keys.type
        ordered = self._at("%room", "%m")
        scratch = self._at(ordered, "%m")
        arguments = f"ptr %room, ptr {ordered}, i64 1, ptr {scratch}, i64 %m"
        w.do(f"call void @{sorts.sort(_unsigned(self.keys))}({arguments})")

        def search(numbers: Sequence[str]) -> None:
            keys_of_block = [self._key("%x", k) for k in numbers]
            indices = binary_search.last(w, "%m", [partial(is_up_to, key) for key in keys_of_block])
            for k, key, index in zip(numbers, keys_of_block, indices, strict=True):
                self._flag(k, w.define(f"icmp eq {type} {self._load(ordered, index)}, {key}"))

        def is_up_to(key: str, index: str) -> str:
            return w.define(f"icmp ule {type} {self._load(ordered, index)}, {key}")

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
