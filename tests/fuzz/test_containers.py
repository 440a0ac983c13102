"""Random functions that change their arguments leave in each call what plain Python leaves.

Many calls of each, for the first ones do not enter compiled code directly; some fail, some pass a
container twice.
"""

from __future__ import annotations

import copy
import dataclasses
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wend
from tests.helpers.compiled import compiled
from tests.helpers.shares import sized

CALLS = 20


@dataclasses.dataclass
class Point:
    x: float
    v: float
    name: str = "p"


@dataclasses.dataclass(slots=True)
class Record:
    a: float
    l: list[float]


# By the name of an argument: what makes it, what numbers it has, and statements that change it
ARGUMENTS: dict[str, tuple[Callable[[Callable[[], float]], Any], list[str], list[str]]] = {
    "l": (
        lambda f: [f(), f(), f()],
        ["l[0]", "l[-1]"],
        ["l[0] = # + 1.0", "l[1] += #", "l.reverse()", "l[0], l[1] = l[1], l[0]"],
    ),
    "m": (lambda f: [f(), f(), f()], ["m[0]"], ["m[1] = # * 0.5", "m.append(m.pop(0))"]),
    "d": (
        lambda f: {"a": f(), "b": f()},
        ["d['a']", "d['b']"],
        ["d['a'] = # - 2.0", "d['b'] *= 0.5", "d['a'], d['b'] = d['b'], d['a']"],
    ),
    "p": (lambda f: Point(f(), f()), ["p.x", "p.v"], ["p.x += p.v * 0.1", "p.v = #"]),
    "s": (
        lambda f: Record(f(), [f(), f()]),
        ["s.a", "s.l[0]"],
        ["s.a = #", "s.l[0] -= #", "s.l = [s.a, 1.0]"],
    ),
    "t": (lambda f: (f(), [f()]), ["t[0]", "t[1][0]"], ["t[1][0] += t[0]"]),
    "x": (lambda f: f(), ["x"], ["x = x + 1.0"]),
}


class Writer:
    """Writes the statements of a function of some arguments."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = self.random.sample([*ARGUMENTS], self.random.randint(2, 5))

    def number(self) -> str:
        numbers = [text for name in self.names for text in ARGUMENTS[name][1]]
        return self.random.choice([*numbers, "1.5"])

    def change(self, *, is_certain: bool) -> str:
        # On one path alone another list would stand in the place of the old one.
        changes = [
            text
            for name in self.names
            for text in ARGUMENTS[name][2]
            if is_certain or "= [" not in text
        ]
        if is_certain and {"d", "l"} <= {*self.names}:
            changes += ["d['k'] = l", "d['k'] = [#]"]
        return self.random.choice(changes).replace("#", self.number())

    def statement(self) -> list[str]:
        choice = self.random.random()
        if choice < 0.15:
            return [f"if {self.number()} < -9.0:", "    raise ValueError('too low')"]
        if choice < 0.4:
            lines = [f"if {self.number()} > {self.number()}:"]
            lines.append(f"    {self.change(is_certain=False)}")
            other = ["else:", f"    {self.change(is_certain=False)}"]
            return lines + (other if choice < 0.3 else [])
        return [self.change(is_certain=True)]

    def function(self) -> str:
        lines = [x for _ in range(self.random.randint(1, 4)) for x in self.statement()]
        name, number = self.random.choice(self.names), self.number()
        results = [name, number, "None", f"({name}, {number})", f"{{'r': {number}, 'o': {name}}}"]
        body = "\n".join(f"    {x}" for x in [*lines, f"return {self.random.choice(results)}"])
        return f"def fun({', '.join(self.names)}):\n{body}\n"

    def call(self, before: dict[str, Any] | None) -> tuple[list[Any], dict[str, Any]]:
        """Return arguments, perhaps those of the call before, some by name, some one object."""

        def number() -> float:
            is_low = self.random.random() < 0.03
            return -20.0 if is_low else round(self.random.uniform(-3, 3), 3)

        if before is None or self.random.random() < 0.7:
            before = {name: ARGUMENTS[name][0](number) for name in self.names}
        if {"l", "m"} <= before.keys() and self.random.random() < 0.15:
            before["m"] = before["l"]
        split = self.random.randint(0, len(self.names)) if self.random.random() < 0.3 else None
        by_name = self.names[split:] if split is not None else []
        self.random.shuffle(by_name)
        positional = self.names[: len(self.names) - len(by_name)]
        return [before[x] for x in positional], {x: before[x] for x in by_name}


def children(x: Any) -> list[Any]:
    if dataclasses.is_dataclass(x):
        return [getattr(x, field.name) for field in dataclasses.fields(x)]
    return [*x.values()] if isinstance(x, dict) else [*x] if isinstance(x, (list, tuple)) else []


def containers(x: Any) -> Iterator[Any]:
    if children(x) and not isinstance(x, tuple):
        yield x
    for child in children(x):
        yield from containers(child)


def shown(x: Any, numbers: dict[int, int]) -> Any:
    """Return what a value holds, and which of its containers are those of the arguments."""
    if isinstance(x, (float, np.floating)):
        return round(float(x), 9)
    keys = [*x] if isinstance(x, dict) else []
    parts = [shown(child, numbers) for child in children(x)]
    return (type(x), numbers.get(id(x)), keys, parts) if parts or keys else x


def outcome(call: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Return what a call gives, and what it leaves in its arguments."""
    passed = *args, *kwargs.values()
    held = [*containers(passed)]  # none of them may go, and leave its id to another
    numbers = {id(x): k for k, x in enumerate(held)}
    try:
        result = shown(call(*args, **kwargs), numbers)
    except ValueError as error:
        result = str(error).partition("\n")[0]
    return result, [shown(x, numbers) for x in passed]


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("seed", range(sized(12, 1000)))
def test_arguments_after_each_call(seed: int, backend: str) -> None:
    writer = Writer(seed)
    fun = compiled(writer.function(), "fun")
    run, before = wend.function(fun, backend=backend), None
    for _ in range(CALLS):
        args, kwargs = writer.call(before)
        own = copy.deepcopy((args, kwargs))
        assert outcome(run, args, kwargs) == outcome(fun, *own)
        before = dict(zip(writer.names, args, strict=False)) | kwargs
