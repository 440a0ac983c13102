"""Positions that need no test: the loops that people write have them, and no others do."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from tests.capture.programs import compiled
from tests.helpers.graphs import traced

import wend
from wend.backends.native.analysis.positions_in_range import positions_in_range
from wend.backends.native.module import prepare_for_emission
from wend.ops.updating import ELEMENT_POSITIONS
from wend.trace.recording.run_errors import StagedRaiseError

SIZE = 6


def heap(x: Any, n: Any) -> Any:
    x = x.copy()
    for end in range(len(x) - 1, 0, -1):
        i = 0
        while True:
            child = 2 * i + 1
            if child >= end:
                break
            if child + 1 < end and x[child + 1] > x[child]:
                child += 1
            if x[i] >= x[child]:
                break
            larger = x[child]
            x[child] = x[i]
            x[i] = larger
            i = child
    return x


def insertion(x: Any, n: Any) -> Any:
    x = x.copy()
    for i in range(1, len(x)):
        here, k = x[i], i
        while k > 0 and x[k - 1] > here:
            x[k] = x[k - 1]
            k -= 1
        x[k] = here
    return x


def bisection(x: Any, n: Any) -> Any:
    low, high = 0, len(x)
    while low < high:
        middle = (low + high) // 2
        if x[middle] < n:
            low = middle + 1
        else:
            high = middle
    return low


def two_ends(x: Any, n: Any) -> Any:
    i, k = 0, len(x) - 1
    while i < k and i < len(x) and k >= 0:
        if x[i] + x[k] > n:
            k -= 1
        else:
            i += 1
    return i


def guarded(x: Any, n: Any) -> Any:
    total = 0.0
    for i in range(20):
        place = n + i
        if not (place < 0 or place >= len(x)):
            total = total + x[place]
        if 0 <= place - 2 < len(x):
            total = total + x[place - 2]
        if i % 2 == 0 and n - i >= 0 and n - i < len(x):
            total = total + x[n - i]
    return total


def remainders(x: Any, n: Any) -> Any:
    total, i = 0.0, 0
    for k in range(30):
        i = (i * 7 + k) % len(x)
        total = total + x[i] * x[max(0, min(n + k, len(x) - 1))] - x[i // 2 - len(x)]
    return total


@pytest.mark.parametrize(
    "function",
    [heap, insertion, bisection, two_ends, guarded, remainders],
    ids=lambda x: x.__name__,
)
def test_loops_as_people_write_them_test_no_position(function: Any) -> None:
    graph = prepare_for_emission(traced(function, np.ones(SIZE), 3, optimize=True))
    known = positions_in_range(graph)
    accesses = [node for node in graph.walk() if node.op in ELEMENT_POSITIONS]
    assert accesses
    for node in accesses:
        for k in range(ELEMENT_POSITIONS[node.op], len(node.operands)):
            assert (node, k) in known, node
    x = np.random.default_rng(0).standard_normal(SIZE)
    for n in (-30, 0, 2, 5, 9):
        np.testing.assert_allclose(wend.function(function)(x, n), function(x, n))


def overflowing(x: Any, n: Any) -> Any:
    i, total = 1, 0.0
    for _ in range(64):  # 2⁶⁴ is 0 again
        total = total + x[i % 3]
        i = i * n
    return total + x[i % 3]


def negated(x: Any, n: Any) -> Any:
    total, k = 0.0, 0
    while k < len(x):
        if n * 2 + 1 < 7 and n * 2 + 1 >= 1:  # also where n * 2 has wrapped
            total = total + x[n]
        k += 1
    return total


def test_numbers_that_wrap_are_in_no_interval() -> None:
    x = np.arange(20.0)
    graph = prepare_for_emission(traced(negated, x, 1, optimize=True))
    (read,) = (node for node in graph.walk() if node.op in ELEMENT_POSITIONS)
    assert (read, 1) not in positions_in_range(graph)
    assert wend.function(negated)(x, 1) == negated(x, 1)
    with pytest.raises(IndexError):
        wend.function(negated)(x, -(2**63))
    assert wend.function(overflowing)(x, 2) == 95.0  # 32 times 1, 31 times 2, and −2⁶³ % 3


def test_the_work_is_linear_however_deep_loops_are() -> None:
    lines = ["def f(x, n):", "    s = 0.0"]
    for depth in range(12):
        indent = "    " * (depth + 1)
        lines += [f"{indent}i{depth} = n", f"{indent}while i{depth} > 0 and x[i{depth} - 1] > s:"]
        lines += [f"{indent}    i{depth} = i{depth} // 2"]
    function = compiled("\n".join([*lines, "    " * 13 + "s = s + 1.0", "    return s"]))
    assert wend.function(function)(np.ones(SIZE), 3) == function(np.ones(SIZE), 3)


class Writer:
    """Random programs on integers, whose positions are often out of range."""

    def __init__(self, seed: int) -> None:
        self.random, self.lines, self.loops = random.Random(seed), ["    s = 0.0"], 0

    def integer(self, depth: int = 2) -> str:
        choose = self.random.choice
        if not depth or self.random.random() < 0.3:
            return choose(["i", "j", "k", "n", str(self.random.randint(-3, 8))])
        x, y = self.integer(depth - 1), self.integer(depth - 1)
        forms = ["{x} + {y}", "{x} - {y}", "2 * {x}", "{x} // 2", "{x} % 6", "min({x}, {y})"]
        return f"({choose([*forms, 'max({x}, {y})', '-{x}']).format(x=x, y=y)})"

    def position(self) -> str:
        """A position that Python does not know, as one that it knows is refused out of range."""
        return f"{self.integer(1)} + {self.random.choice('ijkn')} - n"

    def test(self, depth: int = 2) -> str:
        choose = self.random.choice
        if not depth or self.random.random() < 0.5:
            sign = choose(["<", "<=", ">", ">=", "==", "!="])
            return f"{self.integer(1)} {sign} {choose([self.integer(1), '6', '0', '5'])}"
        x, y = self.test(depth - 1), self.test(depth - 1)
        return f"({choose(['{x} and {y}', '{x} or {y}', 'not {x}']).format(x=x, y=y)})"

    def block(self, indent: str, depth: int) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.statement(indent, depth)

    def statement(self, indent: str, depth: int) -> None:
        kind = self.random.choice(["set", "set", "read", "read", "write", "if", "while", "for"])
        add = self.lines.append
        if kind == "set" or (kind in ("if", "while", "for") and not depth):
            add(f"{indent}{self.random.choice('ijk')} = {self.integer()}")
        elif kind == "read":
            add(f"{indent}s = s + x[{self.position()}]")
        elif kind == "write":
            add(f"{indent}x[{self.position()}] = s * 0.5")
        elif kind == "if":
            add(f"{indent}if {self.test()}:")
            self.block(indent + "    ", depth - 1)
            if self.random.random() < 0.5:
                add(f"{indent}else:")
                self.block(indent + "    ", depth - 1)
        elif kind == "while":
            trips = f"t{self.loops}"
            self.loops += 1
            add(f"{indent}{trips} = 0")
            add(f"{indent}while {trips} < 9 and {self.test()}:")
            add(f"{indent}    {trips} += 1")
            self.block(indent + "    ", depth - 1)
            if self.random.random() < 0.3:
                add(f"{indent}    if {self.test(1)}:")
                add(f"{indent}        break")
        else:
            name = self.random.choice("ijk")
            bounds = self.random.choice(["n", "6", "3, 6", "5, -1, -1"])
            add(f"{indent}for {name} in range({bounds}):")
            self.block(indent + "    ", depth - 1)

    def program(self) -> str:
        self.block("    ", 3)
        self.block("    ", 3)
        head = ["import numpy as np", "def f(x, i, j, k, n):", "    x = x.copy()"]
        return "\n".join([*head, *self.lines, "    return s, x, i + j + k"])


def outcome(function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except StagedRaiseError:
        return None  # refused: what cannot be right is in a branch
    except IndexError:
        return "IndexError"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_end_as_in_python(seed: int) -> None:
    function = compiled(Writer(seed).program())
    run = wend.function(function)
    x = np.random.default_rng(seed).standard_normal(SIZE)
    for args in ((0, 1, 2, 4), (-2, 5, 3, 0), (7, -7, 6, 6)):
        mine, theirs = outcome(run, x, *args), outcome(function, x, *args)
        if mine is None:
            continue
        if isinstance(theirs, str) or isinstance(mine, str):
            assert mine == theirs, args
            continue
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9)
