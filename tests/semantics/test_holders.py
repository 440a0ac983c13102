"""Containers and arrays that something else holds, changed through one of the names.

There is a program for each kind of holder, each form of control flow that chooses one, and each
change. What holds a list must be seen, however it does: in Python the change shows there.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.fuzz.quick import quickly
from tests.helpers.shares import is_chosen
from tests.semantics.world import WAYS, Program, compare

HEAD = """
from collections import ChainMap, OrderedDict, UserList, defaultdict, deque, namedtuple
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType, SimpleNamespace
from typing import NamedTuple
import attrs
Pair = namedtuple("Pair", "p q")
class Row(NamedTuple):
    p: list
    q: float
class Tuple(tuple): pass
class List(list): pass
class Dict(dict): pass
@dataclass
class Data:
    p: list
    q: float
@dataclass(frozen=True)
class Frozen:
    p: list
@dataclass(slots=True)
class Slots:
    p: list
@attrs.define
class Attrs:
    p: list
class Object:
    def __init__(self, p): self.p = p
class Slot:
    __slots__ = ("p",)
    def __init__(self, p): self.p = p
    def get(self): return self.p
def filled(d, v):
    d["p"] = v
    return d
def appended(d, v):
    d.append(v)
    return d
def closure(v): return lambda: v
def default(v): return lambda v=v: v
"""

# What makes a holder of {}, and what gives that back
HOLDERS = {
    "({}, 1.0)": "[0]",
    "Pair({}, 1.0)": ".p",
    "Row({}, 1.0)": ".p",
    "Tuple(({}, 1.0))": "[0]",
    "[{}, 1.0]": "[0]",
    "List([{}])": "[0]",
    "appended([], {})": "[0]",
    "dict(p={})": "['p']",
    "filled(dict(), {})": "['p']",
    "Dict(p={})": "['p']",
    "OrderedDict(p={})": "['p']",
    "filled(defaultdict(list), {})": "['p']",
    "deque([{}, 1.0])": "[0]",
    "Data({}, 1.0)": ".p",
    "Frozen({})": ".p",
    "Slots({})": ".p",
    "Attrs({})": ".p",
    "Object({})": ".p",
    "Object(Object({}))": ".p.p",
    "Slot({})": ".p",
    "Slot({}).get": "()",
    "SimpleNamespace(p={})": ".p",
    "partial(len, {})": ".args[0]",
    "MappingProxyType(dict(p={}))": "['p']",
    "UserList([{}])": "[0]",
    "ChainMap(dict(p={}))": "['p']",
    "closure({})": "()",
    "default({})": "()",
    "Pair(({}, 2.0), 1.0)": ".p[0]",
    "(Object({}),)": "[0].p",
    "OrderedDict(p=deque([{}]))": "['p'][0]",
    "Object(((Pair([[{}]], 1.0),),))": ".p[0][0].p[0][0]",
    "Object(Object(Object(Object(Object({})))))": ".p.p.p.p.p",
}
CHOICES = {
    "ternary": "    r = {a} if x > 0 else {b}\n",
    "if": "    if x > 0:\n        r = {a}\n    else:\n        r = {b}\n",
    "for": "    r = {b}\n    for k in range(n):\n        if x + k > 8:\n            r = {a}\n",
    "while": (
        "    r, k = {b}, 0\n    while k < n:\n        r = {a} if x > 0 else r\n        k += 1\n"
    ),
    "made in each trip": "    r = {b}\n    for k in range(n):\n        r = {a}\n",
    "bound in some runs": "    if x > 0:\n        r = {a}\n    if x <= 0:\n        r = {b}\n",
    "early return": "    r = chosen(x, n, l, m)\n",
    "handler": (
        "    try:\n        r = {a}\n        if x > 0:\n            raise ValueError\n"
        "    except ValueError:\n        r = {b}\n"
    ),
}
CHOSEN = """
def chosen(x, n, l, m):
    for k in range(n):
        if x + k > 8:
            return {a}
    return {b}
"""
MADE = {
    "list": ("[x, 2.0]", "[3.0, x]"),
    "array": ("np.array([x, 2.0])", "np.array([3.0, x])"),
    "object": ("[Object(x)]", "[Object(3.0)]"),
}
CHANGES = {
    "list": ["l[0] += x", "m[0] = 9.0", "{r}[0] = 12.0", "l.append(x)", "{r}.append(x)"],
    "array": ["l[0] += x", "m[0] = 9.0", "{r}[0] = 12.0"],
    "object": ["l[0].p = 12.0", "{r}[0].p += x"],
}
STEPS = ["f(1.0, 9)", "f(-1.0, 9)", "f(2.0, 12)", "f(-9.0, 11)"]
SEEN = {"list": "{}", "array": "[*{}]", "object": "{}[0].p"}


def programs() -> Iterator[Program]:
    """Yield the programs: the choice makes the holder, or what it chooses is held already."""
    for (holder, get), choice, kind in itertools.product(HOLDERS.items(), CHOICES, MADE):
        for change, is_held in itertools.product(CHANGES[kind], (False, True)):
            a, b = holder.format("l"), holder.format("m")
            l, m = MADE[kind]
            body, r = f"    l, m = {l}, {m}\n", "r" if is_held else f"r{get}"
            seen = ["l", "m", r]
            if is_held:
                body += f"    h, i = {a}, {b}\n"
                a, b, seen = "l", "m", [*seen, f"h{get}", f"i{get}"]
            body += CHOICES[choice].format(a=a, b=b)
            body += f"    {change.format(r=r)}\n"
            body += f"    return {', '.join(SEEN[kind].format(name) for name in seen)}\n"
            name = f"{kind} {holder} {choice} {change}{' held' * is_held}"
            head = HEAD + CHOSEN.format(a=a, b=b)
            yield Program(name, f"{head}def f(x, n):\n{body}", STEPS)


SHARE = 90  # of the programs, one in so many in a short run


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", range(4))
def test_holders(number: int) -> None:
    chosen = [p for p in programs() if is_chosen(p.name, SHARE)][number::4]
    with quickly():
        for program in chosen:
            ways = WAYS if is_chosen(program.name, 3 * SHARE) else ["reference"]
            difference = compare(program, ways)
            assert difference is None or difference.kind == "refused", f"{program}\n\n{difference}"
