"""Heaps and deques, which grow and shrink in loops."""

from __future__ import annotations

from tests.semantics.making.expressions import boolean, integer, real
from tests.semantics.making.writer import Writer


def _trips(w: Writer) -> str:
    return w.choose(f"{integer(w, 0)} % 5", "3", "4")


def heap(w: Writer) -> None:
    """A heap of numbers, or of tuples of them."""
    name, i, x, total = w.name("heap"), w.name("i"), real(w, 0), w.name("v")
    item, read = w.choose(
        (f"({x} + {i} * 1.5) % 4", "{}"),
        (f"(({x} + {i} * 1.5) % 4, {i})", "{}[0]"),
        (f"({i} * 3 % 4, {x} + {i})", "{}[1]"),
    )
    start = item.replace(i, "0")
    if w.chance(0.5):
        w.write(f"{name} = []")
    else:
        w.write(f"{name} = [{start}, {item.replace(i, '1')}]")
        w.write(f"heapq.heapify({name})")
    w.write(f"{total} = 0.0")
    with w.block(f"for {i} in range({_trips(w)}):", staged=True):
        w.write(
            w.choose(
                f"heapq.heappush({name}, {item})",
                f"if {boolean(w, 1)}: heapq.heappush({name}, {item})",
                f"{total} += {read.format(f'heapq.heappushpop({name}, {item})')}",
                f"if {name}: {total} -= {read.format(f'heapq.heapreplace({name}, {item})')}",
            )
        )
        if w.chance(0.4):
            w.write(f"if len({name}) > {w.number(1, 2)}: heapq.heappop({name})")
    if w.chance(0.5):
        with w.block(f"while {name}:", staged=True):
            w.write(f"{total} = {total} * 0.5 + {read.format(f'heapq.heappop({name})')}")
            if w.chance(0.3):
                w.write(f"if {boolean(w, 1)}:", "    break")
    elif w.chance(0.5):
        w.write(f"if {name}: {total} += {read.format(f'{name}[0]')}")
    else:
        w.write(f"{total} += sum({read.format('t')} for t in heapq.nsmallest(2, {name}))")
    w.assign("int", f"len({name})")
    w.add(total, "float", assigned=True, scalar=True)


def queue(w: Writer) -> None:
    """A deque whose length only the run knows."""
    name, i, x, total = w.name("q"), w.name("i"), real(w, 0), w.name("v")
    most = w.choose("", "", ", maxlen=3")
    w.write(f"{name} = deque([{w.choose('', x + ' + 0.0', x + ' + 0.0, 0.5')}]{most})")
    w.write(f"{total} = 0.0")
    with w.block(f"for {i} in range({_trips(w)}):", staged=True):
        for _ in range(w.number(1, 2)):
            w.write(
                w.choose(
                    f"{name}.append({x} + {i})",
                    f"{name}.appendleft({x} - {i})",
                    f"if {boolean(w, 1)}: {name}.append({i} * 0.5)",
                    f"if {name}: {total} += {name}.popleft()",
                    f"if len({name}) > 1: {total} -= {name}.pop()",
                    f"{name}.extend([{x} + 0.0, 1.5])",
                    f"if {name}: {name}[{w.choose(0, -1)}] += 1.0",
                )
            )
    end = w.number(0, 3)
    if end == 0:
        with w.block(f"while {name}:", staged=True):
            w.write(f"{total} = {total} * 0.5 + {name}.{w.choose('pop', 'popleft')}()")
    elif end == 1:
        w.write(f"{total} += sum({name})")
    elif end == 2:
        w.write(f"for item in {name}: {total} = {total} * 0.5 + item")
    else:
        w.write(f"if {name}: {total} += {name}[0] - {name}[-1]")
    w.assign("int", f"len({name})")
    w.add(total, "float", assigned=True, scalar=True)


STATEMENTS = {"a heap": (1.2, heap, True), "a queue": (1.2, queue, True)}
