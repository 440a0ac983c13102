"""Programs that ask for the kind of each value, as the function itself sees it.

`kinds.txt` lists how values are made: an argument, an operation on one, a statement that binds one.
A program makes several of them in one place, and prints of each its class, its text, what
`isinstance` and `is` say of it, and the dtypes of narrow arrays times it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from tests.semantics import world
from tests.semantics.world import Difference, Program, compare

HEAD = """
import collections, contextlib, functools, itertools, operator, statistics
from dataclasses import dataclass
narrow = np.ones(1, np.float32), np.ones(1, np.int8)
GX, GN, GB, GS, GZ = 2.5, 3, True, np.float32(1.5), np.array(2.0)
GA, GC = np.array([1.0, 2.0]), np.array([1.0, 2.0], np.float32)
def see(label, v):
    singletons = v is True, v is False, v is None
    classes = [isinstance(v, c) for c in (float, int, bool, np.generic, np.ndarray)]
    dtypes = [str((array * v).dtype) for array in narrow]
    print(label, type(v).__name__, v.__class__.__name__, singletons, classes, dtypes, repr(v))
    print(hasattr(v, "dtype"), np.isscalar(v))
class O:
    c = 1.5
    def __init__(self, v): self.v, self.w = v, 0.0
    @property
    def p(self): return self.v * 1
    def m(self, v): return v
@dataclass
class D:
    v: float = 0.0
def same(v, u=2, *args, t=1.0, **kw): return v
def default(v=2.5): return v
def two(v, u): return v, u
def gen(v, n):
    for k in range(2): yield v
    yield n
def rec(v, m): return v if m <= 0 else rec(v, m - 1)
def early(v, u):
    if v > 0: return u
    return u
def early2(v):
    if v > 100: return v * 2
    return v
def tryit(v):
    try: return v
    finally: pass
def raising(v):
    try: raise ValueError(v)
    except ValueError as e: return e.args[0]
def cell(v):
    def inner(): return v
    return inner()
def cell2(v):
    u = v
    def inner():
        nonlocal u
        u = u + 1
        return u
    inner()
    return u
"""
NUMBERS = {"x": "float", "n": "int", "b": "bool", "s": "np.float32", "d": "np.float64"}
STEPS = [
    "f(1.5, 3, True, np.float32(0.5), np.float64(2.5), np.array(1.5), *rows(1.0, 2.0))",
    "f(-1.5, 2, False, np.float32(-0.5), np.float64(-2.5), np.array(-1.5), *rows(-1.0, 2.0))",
]
ROWS = """
def rows(p, q):
    return [np.array([p, q], dtype) for dtype in (float, np.float32, int, np.int32)]
"""
# Where a value is made: the lines around it
PLACES = {
    "straight": "{}",
    "a loop": "for ko in range(n):\n{}",
    "a while": "ko = 0.0\nwhile ko < n:\n    ko += 1.5\n{}",
    "rows": "for ko in a:\n{}",
    "after a loop": "ko = 0.0\nwhile ko < n:\n    ko += 1.5\n{}",
    "a branch": "if x > 0:\n{}\nelse:\n    print('no')",
    "a branch in a loop": "for ko in range(n):\n  if ko == 1:\n{}",
    "a handler": "try:\n    if x > 0: raise ValueError\nexcept ValueError:\n{}",
    "an inner function": "def inner():\n{}\ninner()",
}
AT_THE_MARGIN = ("straight", "after a loop")


@cache
def parts() -> Mapping[str, Sequence[str]]:
    """Return the parts of `kinds.txt`; statements are apart by empty lines."""
    blocks = Path(__file__).with_name("kinds.txt").read_text().split("\n=== ")[1:]
    texts = dict(block.split("\n", 1) for block in blocks)
    return {
        title: text.strip("\n").split("\n\n" if title == "statements" else "\n")
        for title, text in texts.items()
    }


def ways_to_make_values() -> Iterator[str]:
    """Yield statements that bind `v`."""
    table = parts()
    for text in (*table["values"], *table["others"]):
        yield f"v = {text}"
    for placeholders, operations in ("values", "operations"), ("arrays", "operations of arrays"):
        for value in table[placeholders]:
            for operation in table[operations]:
                yield "v = " + operation.replace("$", value)
    for statement in table["statements"]:
        for value in table["values"] if "$" in statement else [""]:
            yield statement.replace("$", value)


def program(ways: Sequence[str], place: str) -> Program:
    """Return the program that makes values in a place."""
    lines = [f"{way}\nsee({way!r}, v)" for way in ways]
    indented = textwrap.indent("\n".join(lines), "    ")
    body = PLACES[place].format("\n".join(lines) if place in AT_THE_MARGIN else indented)
    arguments = ", ".join([*NUMBERS, "z", *parts()["arrays"]])
    source = f"{HEAD}{ROWS}def f({arguments}):\n{textwrap.indent(body, '    ')}\n    return x\n"
    return Program(f"{place}: {ways[0]}", source, STEPS)


def is_valid(way: str) -> bool:
    """Return whether Python makes the value without an error or a warning."""
    outcomes = world.run(program([way], "straight"), world.PLAIN)
    return all(outcome[0][0] == "value" and not outcome[3] for outcome in outcomes)


def differences(ways: Sequence[str], place: str, count: int = 12) -> Iterator[Difference]:
    """Yield how values differ from Python's, or are refused, one by one."""
    for start in range(0, len(ways), count):
        some = ways[start : start + count]
        difference = compare(program(some, place), ["reference"])
        if difference is None:
            continue
        if len(some) == 1:
            yield difference
        else:
            yield from differences(some, place, (len(some) + 1) // 2)
