"""What a call that fails leaves in objects of the caller, for random programs, against Python."""

from __future__ import annotations

import linecache
import math  # noqa: F401 - of the programs
import random
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import pytest

import wend
from wend.base.refusals import is_refusal

attrs = pytest.importorskip("attrs")

PROGRAMS = 4  # more by hand: `fails(seed, backend)` for other seeds


@dataclass
class Inner:
    p: float
    q: Any


@dataclass
class Body:
    x: float
    v: Any
    n: int
    c: Inner


@attrs.define
class Slotted:
    x: float
    v: Any


@wend.function
def compiled(b: Any, l: Any, k: Any) -> Any:
    b.x = b.x + 1.0
    l[0] = l[0] * 0.5 + b.x
    for i in range(3):
        b.v[i] = b.v[i] + l[1]
        b.n += 1
        l[1] = l[1] + b.v[k + i]
    return b.x + l[1]


def helper(c: Any, d: Any, k: Any) -> Any:
    c.x = c.x + d["a"]
    d["b"] = d["b"] + c.v[k] * 2.0
    if c.x > 9.0:
        c.x = 0.5
        raise KeyError("helper")
    d["a"] = d["b"] - d["a"]
    return c.x


class Checked:
    def __init__(self, value: Any, b: Any) -> None:
        self.value = value
        b.x = b.x + 0.25
        if value > 12.0:
            raise ValueError("made")
        b.n += 2


# What fails is used: an operation whose value nothing uses is not run.
EXPRESSIONS = (
    "b.x", "l[1]", "d['a']", "b.c.p", "a.x", "b.v[k]", "b.v[1]", "l[0] + d['b']", "y * 0.5",
    "a.v[k - 1]", "b.x + l[2]", "abs(b.c.q[k])", "math.sqrt(6.0 - b.x)", "b.v[b.n]",
    "math.log(b.x - 1.5)", "Checked(y, b).value",
)  # fmt: skip
TARGETS = ("b.x", "b.c.p", "l[0]", "l[2]", "d['a']", "d['b']", "a.x", "b.v[0]", "a.v[k]", "y")
STATEMENTS = (
    "b.n += 1", "l[1] = b.x - l[1]", "b.c.q[k] += y", "y += helper(a, d, k)",
    "y += compiled(b, l, k - 1)", "l[0], b.x = b.x, l[0]", "b.v *= 0.5", "d['a'] += float(len(l))",
    "y, b.c.p = b.c.p, y + b.v[k]", "y -= helper(b, d, k)",
)  # fmt: skip
OUTERMOST = (
    "b.c = Inner(b.c.p + y, b.c.q * 2.0)", "b.v = b.v + y", "a.v = a.v + b.v", "l.append(y)",
    "l.insert(1, b.x)", "d['c'] = y", "l.reverse()",
)  # fmt: skip
TESTS = ("y > 3.0", "b.x < 4.0", "l[1] > d['a']", "b.n % 2 == 0", "k > 1", "b.v[k] > 1.0")


class Maker:
    """Makes one program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = ["def program(b, a, l, d, k, y):"]
        self.loops = 0

    def made(self) -> str:
        self.block(1, self.random.randint(3, 7))
        self.lines.append("    return y")
        return "\n".join(self.lines)

    def block(self, depth: int, count: int) -> None:
        for _ in range(count):
            self.statement(depth)

    def add(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def statement(self, depth: int) -> None:
        pick, draw = self.random.choice, self.random.random()
        if depth < 4 and draw < 0.3:
            kind = pick(("if", "if", "for", "while"))
            if kind == "if":
                self.add(depth, f"if {pick(TESTS)}:")
                self.block(depth + 1, self.random.randint(1, 3))
                if self.random.random() < 0.4:
                    self.add(depth, "else:")
                    self.block(depth + 1, self.random.randint(1, 2))
                return
            self.loops += 1
            i = f"i{self.loops}"
            if kind == "for":
                self.add(depth, f"for {i} in range(k + {self.random.randint(0, 2)}):")
            else:
                self.add(depth, f"{i} = 0")
                self.add(depth, f"while {i} < k + 1:")
                self.add(depth + 1, f"{i} += 1")
            self.block(depth + 1, self.random.randint(1, 3))
            if self.random.random() < 0.5:
                self.add(depth + 1, f"b.v[{i}] = y")
        elif draw < 0.45:
            self.add(depth, f"if {pick(TESTS)}:")
            if self.random.random() < 0.6:
                self.add(depth + 1, f"{pick(TARGETS)} = y + 1.0")
            error = pick(("ValueError('stop')", "RuntimeError(f'{y:.3g}')", "IndexError(1)"))
            self.add(depth + 1, f"raise {error}")
        elif draw < 0.75:
            target, expression = pick(TARGETS), pick(EXPRESSIONS)
            form = pick(("{0} += {1}", "{0} = {0} * 0.5 + {1}"))
            self.add(depth, form.format(target, expression))
        else:
            self.add(depth, pick(STATEMENTS + OUTERMOST if depth == 1 else STATEMENTS))


def program_of(text: str, name: str) -> Callable[..., Any]:
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    scope = dict(globals())
    exec(compile(text, name, "exec"), scope)
    program: Callable[..., Any] = scope["program"]
    return program


def arguments(k: int, y: float, *, is_shared: bool) -> tuple[Any, ...]:
    b = Body(1.0 + y, np.arange(3.0), k, Inner(0.5, np.ones(3)))
    a: Any = b if is_shared else Slotted(2.0, np.array([0.25, 1.0, 2.0]))
    return b, a, [y, 1.5, 2.0], {"a": 0.5, "b": y}, k, y


def shown(value: Any) -> Any:
    """Return values and structure; a scalar of NumPy and a number of Python are one."""
    if is_dataclass(value) or attrs.has(type(value)):
        names = [
            f.name for f in (fields(value) if is_dataclass(value) else attrs.fields(type(value)))
        ]
        return {name: shown(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {key: shown(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(item) for item in value]
    return np.asarray(value).dtype.kind, np.round(np.asarray(value), 9).tolist()


def outcome(fun: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    """Return the result or the class of the error, and what the arguments hold then."""
    try:
        end = shown(fun(*given))
    except Exception as error:  # of any class: it is compared
        if is_refusal(error):
            raise
        end = type(error).__name__
    return end, shown(given), given[0] is given[1]


def fails(seed: int, backend: str, text: str | None = None) -> tuple[str, int]:
    """Return what differs for a program, and how many calls failed: -1 if it is refused."""
    text = text or Maker(seed).made()
    program = program_of(text, f"<failing {seed}>")
    function = wend.function(program, backend=backend)
    failed = 0
    for is_shared in False, True:
        for k, y in (0, 0.5), (1, 2.0), (2, 1.25), (2, 4.0), (3, 0.75), (-4, 1.0), (1, 13.0):
            expected = outcome(program, arguments(k, y, is_shared=is_shared))
            failed += isinstance(expected[0], str)
            for _ in range(2):
                try:
                    actual = outcome(function, arguments(k, y, is_shared=is_shared))
                except Exception as error:  # a refusal
                    return (f"refused {type(error).__name__}: {error}", -1)
                if actual != expected:
                    return f"k={k} y={y} shared={is_shared}\n{expected}\n{actual}\n{text}", failed
    return "", failed


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_failing_call_leaves_what_python_leaves(backend: str) -> None:
    failed = compared = 0
    for seed in range(PROGRAMS):
        difference, count = fails(seed, backend)
        if count < 0:
            continue
        assert not difference
        compared, failed = compared + 1, failed + count
    assert compared > PROGRAMS // 2
    assert failed > PROGRAMS
