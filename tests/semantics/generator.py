"""Random programs: a world, a function that reads it, calls, and changes between them.

The programs are valid Python most of the time, and most are of what wend supports. What is known
to differ is left out by construction (docs/python.md, "Numbers and their types"): numbers keep
small, no divisor is zero, a variable keeps its class, and results share no arrays.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from typing import Any

from tests.semantics.making import (
    arguments,
    arrays,
    classes,
    containers,
    control,
    errors,
    functions,
    keyed,
    objects,
    optional,
    outside,
    plain_code,
    queues,
    text_states,
    texts,
)
from tests.semantics.making.expressions import array, boolean, integer, real
from tests.semantics.making.writer import Writer
from tests.semantics.world import Program

WORLD = {**outside.WORLD, **functions.FUNCTIONS, **classes.WORLD, **plain_code.WORLD}
STATEMENTS: dict[str, tuple[float, Any, bool]] = {
    **control.STATEMENTS,
    **containers.STATEMENTS,
    **keyed.STATEMENTS,
    **queues.STATEMENTS,
    **optional.STATEMENTS,
    **text_states.STATEMENTS,
    **functions.STATEMENTS,
    **objects.STATEMENTS,
    **arrays.STATEMENTS,
    **texts.STATEMENTS,
    **errors.STATEMENTS,
    **plain_code.STATEMENTS,
}
COMPOUND = {**control.COMPOUND, **errors.COMPOUND}
IMPORTS = {
    "contextlib": "import contextlib",
    "functools": "import functools",
    "heapq": "import heapq",
    "itertools": "import itertools",
    "logging": "import logging",
    "warnings": "import warnings",
    "Counter": "from collections import Counter",
    "defaultdict": "from collections import defaultdict",
    "deque": "from collections import deque",
    "namedtuple": "from collections import namedtuple",
    "dataclass": "from dataclasses import dataclass",
    "ModuleType": "from types import ModuleType",
    "SimpleNamespace": "from types import SimpleNamespace",
}
CALLS = 4
EXPRESSIONS = {"int": integer, "float": real, "bool": boolean, "array": array}


@dataclass(frozen=True)
class Generated(Program):
    """A random program, and the names of the features that it has."""

    features: frozenset[str] = field(default=frozenset(), compare=False)


def generate(seed: int) -> Generated:
    """Return the program of a seed: the same one at each call."""
    w = Writer(random.Random(seed))
    w.risky = w.chance(0.35)
    for _ in range(w.number(2, 4)):
        w.note(name := _drawn(w, WORLD))
        WORLD[name][1](w)
    known = list(w.sources)
    values = _arguments(w)
    _results(w, known)
    for _ in range(w.number(3, 8)):
        statement(w, 2)
    w.facts["result"](w)
    text = "\n".join([*w.head, f"def f({', '.join(values)}):", *w.lines])
    imports = [line for word, line in IMPORTS.items() if re.search(rf"\b{word}\b", text)]
    return Generated(
        str(seed), "\n".join([*imports, text]), _steps(w, values), features=frozenset(w.features)
    )


def statement(w: Writer, depth: int) -> None:
    """Write a statement of any family that may stand here."""
    had_scalar, w.has_scalar = w.has_scalar, False
    _statement(w, depth)
    w.has_scalar |= had_scalar


def _statement(w: Writer, depth: int) -> None:
    if depth > 0 and w.chance(0.25):
        name = _drawn(w, COMPOUND)
        if name == "try" and w.staged and not (w.risky and w.chance(0.2)):
            return
        w.note(name)
        COMPOUND[name][1](w, body, depth)
        return
    allowed = {name: entry for name, entry in STATEMENTS.items() if entry[2] or not w.staged}
    name = _drawn(w, allowed)
    before = len(w.lines)
    allowed[name][1](w)
    if len(w.lines) > before:
        w.note(name)


def body(w: Writer, depth: int) -> None:
    for _ in range(w.number(1, 2)):
        statement(w, depth)


def _drawn(w: Writer, table: dict[str, Any]) -> str:
    return w.random.choices(list(table), [entry[0] for entry in table.values()])[0]


def _arguments(w: Writer) -> dict[str, arguments.Values]:
    values: dict[str, arguments.Values] = {}
    for name in "xynabc"[: w.number(1, 4)]:
        w.note(f"argument: {(kind := _drawn(w, arguments.ARGUMENTS))}")
        values[name] = arguments.ARGUMENTS[kind][1](w, name)
        w.arguments[name] = []
    if w.chance(0.3):
        kind, texts = w.choose(
            ("float", ["1.5", "0.5", "-2.0"]), ("int", ["2", "3", "0"]), ("bool", ["True", "False"])
        )
        w.add("opt", kind)
        values[f"opt={texts[0]}"] = lambda: w.choose(*texts)
        w.note("a default")
    return values


def _results(w: Writer, known: list[Any]) -> None:
    kinds = [w.choose("int", "float", "float", "bool", "array") for _ in range(w.number(1, 3))]
    zero = {"int": " + 0", "float": " + 0.0", "bool": " and True", "array": " * 1"}
    form = w.number(0, 3)

    def write(w: Writer) -> None:
        texts = [EXPRESSIONS[kind](w, 1) + zero[kind] for kind in kinds]
        texts = [f"bool({t})" if k == "bool" else t for t, k in zip(texts, kinds, strict=True)]
        if form == 0 and len(kinds) == 1:
            w.write(f"return {texts[0]}")
        elif form == 1:
            w.write(f"return dict({', '.join(f'r{i}={t}' for i, t in enumerate(texts))})")
        elif form == 2:
            w.write(f"return [{', '.join(texts)}]")
        else:
            w.write(f"return {', '.join(texts)},")

    w.facts["result"] = write


def _steps(w: Writer, values: dict[str, arguments.Values]) -> list[str]:
    steps: list[str] = []
    usual = [value() for value in values.values()]
    for number in range(CALLS):
        if number and w.changes and w.chance(0.85):
            steps += [w.choose(*w.changes) for _ in range(w.choose(1, 1, 2))]
        args = []
        for (name, value), same in zip(values.items(), usual, strict=True):
            key, is_option, _ = name.partition("=")
            text = same if w.chance(0.4) else value()
            if is_option:
                args += [f"{key}={text}"] if w.chance(0.6) else []
            else:
                args.append(text)
        steps.append(f"f({', '.join(args)})")
    return steps
