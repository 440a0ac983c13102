"""Search by halves, of several at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wend.backends.native.target.writer import Writer

_AT_ONCE = 8  # memory answers them together

Holds = Callable[[str], str]  # of a number, whether something holds of it: an i1


def last(w: Writer, size: str, holds: Sequence[Holds]) -> list[str]:
    """The last number under `size` of which each holds that holds of all before it; else 0.

    There is no branch but that of the loop, which goes on as often whatever is found: processors
    cannot tell which half is next, but may look in the meantime for what is sought after this.
    """
    head, look, done, before = *map(w.new_label, ("head", "look", "done")), w.block
    w.jump(head)
    w.start(head)
    firsts = [w.open_phi("i64", "0", before) for _ in holds]
    count, close_count = w.open_phi("i64", size, before)
    w.branch(w.define(f"icmp sgt i64 {count}, 1"), look, done)
    w.start(look)
    half = w.define(f"lshr i64 {count}, 1")
    middles = [w.define(f"add i64 {first}, {half}") for first, _ in firsts]
    flags = [flag(middle) for flag, middle in zip(holds, middles, strict=True)]
    for (first, close), middle, flag in zip(firsts, middles, flags, strict=True):
        close(w.define(f"select i1 {flag}, i64 {middle}, i64 {first}, !unpredictable !{{}}"))
    close_count(w.define(f"sub i64 {count}, {half}"))
    w.jump(head)
    w.start(done)
    return [first for first, _ in firsts]


def loop(w: Writer, count: str, search: Callable[[Sequence[str]], None]) -> None:
    """Run a search for each number under `count`: of several, or of one."""
    blocks = w.define(f"udiv i64 {count}, {_AT_ONCE}")
    done = w.define(f"mul i64 {blocks}, {_AT_ONCE}")

    def several(block: str) -> None:
        start = w.define(f"mul i64 {block}, {_AT_ONCE}")
        search([w.define(f"add i64 {start}, {k}") for k in range(_AT_ONCE)])

    w.loop(blocks, several)
    w.loop(
        w.define(f"sub i64 {count}, {done}"), lambda k: search([w.define(f"add i64 {done}, {k}")])
    )
