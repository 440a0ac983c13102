"""Records of arguments that are compared, and not put into the block of a call."""

from __future__ import annotations

import struct
import types
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from wend.backends.fastcall import CallStatic
from wend.backends.native.fastcall import descriptor as code
from wend.backends.native.target.value_layout import SLOT_BYTES


class StaticRecords:
    """The records of the arguments of a call that are compared, as `wend.put` reads them."""

    def __init__(self, statics: Sequence[CallStatic]) -> None:
        self._statics = statics

    def words(self) -> list[int]:
        """Return the records, to follow those of the params."""
        words: list[int] = []
        for static in self._statics:
            kind, *compared = _compared(static)
            words += [kind, SLOT_BYTES * 9, 0, static.index, 0, *compared, 0]
        return words

    def references(self, call_words: np.ndarray) -> list[Any]:
        """Return references to the expected objects; once one is gone, calls fall back.

        Addresses are used again, so a call must not compare with that of an object that is gone.
        """
        arguments = code.WORDS.index("arguments")  # globals go before the last objects do

        def stop(_: Any) -> None:
            call_words[arguments] = -1

        return [
            weakref.ref(x, stop) if type(x).__weakrefoffset__ else x
            for static in self._statics
            for x in _objects(static)
        ]


def _objects(static: CallStatic) -> tuple[Any, ...]:
    """Return the objects whose addresses are compared."""
    expected = static.expected
    return (expected.__func__, expected.__self__) if static.match == "method" else (expected,)


def _compared(static: CallStatic) -> tuple[int, int, int, int]:
    """Return the kind of a record and the words that it compares."""
    expected = static.expected
    if static.match == "identity":
        return code.IDENTICAL, id(expected), 0, 0
    if static.match == "equality":
        return code.EQUAL, id(expected), id(type(expected)), 0
    if static.match == "bits":
        return code.SAME_BITS, *struct.unpack("q", struct.pack("d", expected)), id(float), 0
    return (
        code.SAME_METHOD,
        id(expected.__func__),
        id(types.MethodType),
        id(expected.__self__),
    )
