"""What an error leaves in the caller's containers, for each change, error and place of it."""

from __future__ import annotations

import dataclasses
import itertools
import linecache
import types
from typing import Any

import numpy as np
import pytest

import wend
from wend.base.refusals import is_refusal

CHANGES = {
    "append": "o['l'].append(x * i)",
    "append to an attribute": "m.l.append(x * i)",
    "append to an argument": "l.append(x * i)",
    "insert": "l.insert(0, x * i)",
    "pop": "l.pop()",
    "an item": "l[0] = x * i",
    "an item of a dict": "o['n'] = x * i",
    "a new key": "o['k'] = x * i",
    "an attribute": "m.v = m.v + x * i",
    "a nested item": "o['r'][0][1] = x * i",
    "append a list": "o['r'].append([x * i])",
    "extend": "l.extend([x, x * i])",
    "clear": "l.clear()",
    "delete": "del l[0]",
    "an element": "a[1] = x * i",
    "swap": "l[0], l[1] = l[1], l[0]",
    "reverse": "l.reverse()",
    "a helper": "note(l, x * i)",
}
ERRORS = {
    "raise": "if i * x > 2: raise ValueError('far')",
    "assert": "assert i * x <= 2, i",
    "element": "m.v = m.v + 0 * a[i + j]",
    "item": "m.v = m.v + q[i + j]",
    "inverse": "m.v = m.v + np.linalg.inv(np.array([[1.0, 2.0], [2.0, 4.0 + x * (2 - i)]]))[0, 0]",
}
PLACES = {
    "for": """
def f(x, o, m, l, a, q, j):
    for i in range(6):
        {change}
        {error}
    return x
""",
    "while": """
def f(x, o, m, l, a, q, j):
    i = 0
    while i < 6:
        {error}
        {change}
        i += 1
    return x
""",
    "handled in the loop": """
def f(x, o, m, l, a, q, j):
    n = 0
    for i in range(6):
        try:
            {change}
            {error}
        except (ValueError, IndexError, AssertionError, np.linalg.LinAlgError):
            n += 1
        m.v += 1
    return n
""",
    "handled around it": """
def f(x, o, m, l, a, q, j):
    try:
        for i in range(6):
            {change}
            {error}
    except (ValueError, IndexError, AssertionError, np.linalg.LinAlgError):
        m.v = -1.0
        return -1.0
    return x
""",
    "a function": """
def g(x, o, m, l, a, q, j, i):
    {change}
    {error}
def f(x, o, m, l, a, q, j):
    for i in range(6):
        g(x, o, m, l, a, q, j, i)
    return x
""",
    "no loop": """
def f(x, o, m, l, a, q, j):
    i = 2
    {change}
    if x > 1: i = 4
    {error}
    {change}
    return x
""",
}
NUMBERS = itertools.count()


@dataclasses.dataclass
class Model:
    v: float = 1.0
    l: list[Any] = dataclasses.field(default_factory=lambda: [1.0])


def note(items: list[Any], value: Any) -> None:
    items.append(value)


def _function(text: str) -> Any:
    file = f"<errors {next(NUMBERS)}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    module = types.ModuleType("errors")
    vars(module).update(np=np, note=note)
    exec(compile(text, file, "exec"), vars(module))
    return module.f


def _outcome(fun: Any, x: float, j: int) -> Any:
    """Return what a call gives, and what it leaves in its arguments; None if it is refused."""
    nested: dict[str, Any] = {"l": [0.5], "n": 0.0, "r": [[1.0, 2.0], [3.0]]}
    arguments = nested, Model(), [3.0, 1.0, 2.0], np.arange(5.0), [1.0, 2.0, 3.0, 4.0]
    try:
        result: Any = fun(x, *arguments, j)
    except Exception as error:
        if is_refusal(error):
            return None
        result = type(error).__name__
    return _rounded([result, *arguments])


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(x) for key, x in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_rounded(x) for x in value]
    if isinstance(value, Model):
        return _rounded(vars(value))
    return value if isinstance(value, str) else round(float(value), 9)


COMBINATIONS = [
    pytest.param(*names, id="-".join(names), marks=() if number % 11 == 0 else pytest.mark.slow)
    for number, names in enumerate(itertools.product(PLACES, CHANGES, ERRORS))
]


@pytest.mark.parametrize(("place", "change", "error"), COMBINATIONS)
def test_what_an_error_leaves(place: str, change: str, error: str) -> None:
    fun = _function(PLACES[place].format(change=CHANGES[change], error=ERRORS[error]))
    for backend in "native", "numpy":
        compiled = wend.function(fun)
        with wend.config(backend=backend):
            for x, j in (1.0, 0), (0.1, -9), (3.0, 2):
                found = _outcome(compiled, x, j)
                assert found is None or found == _outcome(fun, x, j)
