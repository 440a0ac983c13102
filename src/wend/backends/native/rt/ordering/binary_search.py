"""Interleaved binary searches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wend.backends.native.target.writer import Writer

_INTERLEAVED = 8  # searches at once: their cache misses overlap

Predicate = Callable[[str], str]  # index -> i1


def last(w: Writer, size: str, predicates: Sequence[Predicate]) -> list[str]:
    """Emit the search for the last index below `size` where each predicate holds, else 0.

    A predicate holds up to some index and nowhere after it. The only branch is that of the loop,
    whose trip count does not depend on the data: the half to search next is unpredictable, and
    without a misprediction the processor can start the next searches meanwhile.
    """
    head, look, done, before = *map(w.new_label, ("head", "look", "done")), w.block
    w.jump(head)
    w.start(head)
    firsts = [w.open_phi("i64", "0", before) for _ in predicates]
    count, close_count = w.open_phi("i64", size, before)
    w.branch(w.define(f"icmp sgt i64 {count}, 1"), look, done)
    w.start(look)
    half = w.define(f"lshr i64 {count}, 1")
    middles = [w.define(f"add i64 {first}, {half}") for first, _ in firsts]
    flags = [flag(middle) for flag, middle in zip(predicates, middles, strict=True)]
    for (first, close), middle, flag in zip(firsts, middles, flags, strict=True):
        close(w.define(f"select i1 {flag}, i64 {middle}, i64 {first}, !unpredictable !{{}}"))
    close_count(w.define(f"sub i64 {count}, {half}"))
    w.jump(head)
    w.start(done)
    return [first for first, _ in firsts]


def loop(w: Writer, count: str, search: Callable[[Sequence[str]], None]) -> None:
    """Emit a loop that runs `search` on blocks of `_INTERLEAVED` indices, then on single ones."""
    blocks = w.define(f"udiv i64 {count}, {_INTERLEAVED}")
    done = w.define(f"mul i64 {blocks}, {_INTERLEAVED}")

    def several(block: str) -> None:
        start = w.define(f"mul i64 {block}, {_INTERLEAVED}")
        search([w.define(f"add i64 {start}, {k}") for k in range(_INTERLEAVED)])

    w.loop(blocks, several)
    w.loop(
        w.define(f"sub i64 {count}, {done}"), lambda k: search([w.define(f"add i64 {done}, {k}")])
    )
