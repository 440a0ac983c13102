"""Tables of sixteen numbers: in memory, or with AVX-512 in registers."""

from __future__ import annotations

from collections.abc import Sequence

from wend.backends.native.math import avx512
from wend.backends.native.math.body import Body, Term


def lookup(word: Term, symbol: str, values: Sequence[float]) -> Term:
    """Return which of sixteen numbers the low four bits say.

    Args:
        word: those bits.
        symbol: the table in memory.
        values: the same numbers.
    """
    b = word.body
    if b.wide:
        return avx512.entry(word, values)
    word = word & (len(values) - 1)
    if b.lanes == 1:
        return Term(b, "real", _load(b, word.name, symbol))
    found, type = "poison", b.type("real")
    for i in range(b.lanes):
        index = b.define(f"extractelement {b.typed(word)}, i64 {i}")
        value = f"{b.format.real} {_load(b, index, symbol)}"
        found = b.define(f"insertelement {type} {found}, {value}, i64 {i}")
    return Term(b, "real", found)


def _load(b: Body, index: str, symbol: str) -> str:
    real, word = b.format.real, b.format.element("word")
    place = b.define(f"getelementptr {real}, ptr @wend.{symbol}, {word} {index}")
    return b.define(f"load {real}, ptr {place}, !invariant.load !{{}}")
