"""Tables of checks on Python objects, as `wend.guards.hold` reads them."""

from __future__ import annotations

import ctypes
import types
import weakref
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np

from wend.backends.fastcall import MISSING, GuardCheck
from wend.backends.native.fastcall.descriptor import CHECK_WORDS, TYPE_AT, VALUE_AT, RecordKind
from wend.backends.native.jit.llvm import engine
from wend.backends.native.run.attribute_words import DictItem, Word, words_of_attribute

GuardTable = tuple[Any, ...]  # the array of the records, and what keeps their objects

_MAX_COMPARED_BYTES = 1024  # of an array; more are compared by their checksum
_BYTES_AT = bytes.__basicsize__ - 1  # the first byte of a bytes object
_LENGTH_AT: dict[type, int] = {list: VALUE_AT, tuple: VALUE_AT, dict: VALUE_AT, set: VALUE_AT + 8}
_KINDS = {
    "dict": RecordKind.DICT,
    "attribute": RecordKind.ATTRIBUTE,
    "item": RecordKind.ITEM,
    "items": RecordKind.ITEMS,
    "entries": RecordKind.ENTRIES,
    "call": RecordKind.CALL,
}


def _part_offsets() -> dict[str, int]:
    """Return the byte offsets of the parts of a function."""

    def sample(x: int = 1, *, y: int = 2) -> None:
        pass

    count = types.FunctionType.__basicsize__ // 8
    words = [*(ctypes.c_size_t * count).from_address(id(sample))]
    names = "__code__", "__defaults__", "__kwdefaults__"
    return {name: 8 * words.index(id(getattr(sample, name))) for name in names}


_PART_AT = _part_offsets()


def guard_table(checks: Iterable[GuardCheck], *, by_words: bool = False) -> GuardTable:
    """Return the table of checks, which hold now.

    `by_words`: whether attributes may be told by words of objects. That takes less time, and fails
    at any change of a class that has them.

    It refers weakly to what can be referred to weakly, but for arrays and callables: it keeps
    nobody's objects alive, and once one is gone, it fails.
    """
    builder = _TableBuilder(by_words)
    for check in checks:
        builder.add(check)
    return builder.table()


class _TableBuilder:
    def __init__(self, by_words: bool) -> None:
        self._by_words = by_words
        self._known: set[tuple[int, int]] = set()  # the words that records compare
        self._records: list[tuple[int, ...]] = []
        self._strong: list[Any] = []
        self._weak: dict[int, Any] = {}

    def table(self) -> GuardTable:
        array = np.zeros((len(self._records), CHECK_WORDS), np.int64)
        for row, record in zip(array, self._records, strict=True):
            row[: len(record)] = record

        never = int(RecordKind.NEVER)  # globals are gone when the last objects of a process are

        def fail(_: Any) -> None:
            # All records, since a later one may be the next to be read.
            array[:, 0] = never

        references = [weakref.ref(x, fail) for x in self._weak.values()]
        return (array, references, *self._strong)

    def add(self, check: GuardCheck) -> None:
        kind, owner, key, expected = check
        if self._by_words and kind in ("attribute", "method"):
            words = words_of_attribute(owner, key, expected)
            if words is not None:
                self._add_words(words)
                return
        if kind == "bytes":
            self._add_bytes(owner, expected)
        elif kind == "layout":
            self._add_layout(owner, expected)
        elif kind == "length":
            self._records.append(
                (RecordKind.LENGTH, self._id(owner), _length_offset(owner), 0, expected)
            )
        elif kind == "item" and isinstance(owner, tuple):
            if owner[key] is not expected:
                self._records.append((RecordKind.NEVER,))
        elif kind == "item":
            self._records.append((RecordKind.ITEM, self._id(owner), key, self._id(expected)))
        elif kind in ("cell", "type", "part"):
            offset = {"cell": VALUE_AT, "type": TYPE_AT}.get(kind) or _PART_AT[key]
            self._records.append((RecordKind.FIELD, self._id(owner), offset, self._id(expected)))
        elif kind == "method":
            ids = self._id(owner), self._id(key), self._id(expected)
            self._records.append((RecordKind.METHOD, *ids, id(types.MethodType)))
        elif kind == "call":
            self._strong.append(owner)
            self._records.append((RecordKind.CALL, id(owner), 0, self._id(expected)))
        else:
            self._records.append((_KINDS[kind], self._id(owner), self._id(key), self._id(expected)))

    def _add_words(self, words: Iterable[Word | DictItem]) -> None:
        for word in words:
            if isinstance(word, DictItem):  # the word before tells that it is the owner's dict
                ids = self._id(word.key), self._id(word.expected)
                self._records.append((RecordKind.DICT, id(word.owner), *ids))
            elif (id(word.owner), word.offset) not in self._known:
                self._known.add((id(word.owner), word.offset))
                self._records.append(
                    (RecordKind.FIELD, self._id(word.owner), word.offset, word.value)
                )

    def _id(self, x: Any) -> int:
        """Return the address of an object to which the table refers; 0 for `MISSING`."""
        if x is MISSING:
            return 0
        if type(x).__weakrefoffset__:
            self._weak[id(x)] = x
        else:
            self._strong.append(x)
        return id(x)

    def _add_layout(self, array: np.ndarray, expected: np.ndarray) -> None:
        sizes = np.array([*expected.shape, *expected.strides, 0], np.int64)
        self._strong += [array, sizes, expected.dtype]
        ids = id(array), id(expected.dtype)
        self._records.append((RecordKind.LAYOUT, *ids, sizes.ctypes.data, expected.ndim))

    def _add_bytes(self, array: np.ndarray, expected: bytes | int | None) -> None:
        if not array.flags.c_contiguous or array.dtype.hasobject:
            self.add(GuardCheck("call", _contents_check(array, expected), None, True))
            return
        self._add_layout(array, array)  # it tells how many bytes there are
        start = array.ctypes.data
        if expected is None and array.nbytes <= _MAX_COMPARED_BYTES:
            expected = array.tobytes()
        if isinstance(expected, bytes):
            self._strong.append(expected)
            address = id(expected) + _BYTES_AT
            is_possible = len(expected) == array.nbytes
            kind = RecordKind.BYTES if is_possible else RecordKind.NEVER
            self._records.append((kind, id(array), start, address, array.nbytes))
        else:
            total = checksum(array) if expected is None else expected
            signed = (total + (1 << 63)) % (1 << 64) - (1 << 63)
            address = engine().shared_address("wend.checksum")
            self._records.append(
                (RecordKind.CHECKSUM, id(array), start, signed, array.nbytes, address)
            )


def _length_offset(owner: Any) -> int:
    for kind, offset in _LENGTH_AT.items():
        if isinstance(owner, kind):
            return offset
    raise TypeError(f"a check of the length takes a list, tuple, dict or set, not {owner!r:.40}")


def _contents_check(array: np.ndarray, expected: bytes | int | None) -> Callable[[], bool]:
    """Return a callable that compares the elements of an array that is not contiguous."""
    old = array.tobytes() if expected is None else expected
    if isinstance(old, bytes):
        return lambda: array.tobytes() == old
    return lambda: checksum(np.ascontiguousarray(array)) == old


@cache
def _checksum_function() -> Callable[[int, int], int]:
    type = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_int64)
    return type(engine().shared_address("wend.checksum"))


def checksum(array: np.ndarray) -> int:
    """Return the 64-bit checksum of the elements of a C-contiguous array."""
    return _checksum_function()(array.ctypes.data, array.nbytes)
