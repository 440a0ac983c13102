"""Annotations of locals, attributes and items, which functions never evaluate."""

from __future__ import annotations

import textwrap

import pytest

import wend
from tests.fuzz.quick import quickly
from tests.semantics.world import Program, compare

# What a function does with an annotation; `r` is its result
FORMS = {
    "value": "y: float = 2.0 * x\nr = r + y",
    "bare_then_set": "y: float\ny = x + 1.0\nr = r * y",
    "bare_after": "y = x\ny: float\nr = r + y",
    "unknown_name": "y: Nowhere[here] = x * 3.0\nr = r + y",
    "never_evaluated": "y: print('annotated') = x\nr = r + y",
    "text": "y: 'np.ndarray' = np.array([x, r])\nr = r + y.sum()",
    "parenthesised": "(y): float = x\nr = r + y",
    "parenthesised_bare": "(y): float\ny = x\nr = r + y",
    "global_in_parentheses": "(g): float\nr = r + g * x",
    "tuple": "y: tuple = x, 2.0 * x\nr = r + y[1]",
    "star": "y: tuple = *[x, r], x\nr = r + y[2] * y[1]",
    "list": "y: list[float] = [x]\ny.append(r)\nr = r + sum(y)",
    "again": "r: float = r + x",
    "own": "x: float = x * 2.0\nr = r + x",
    "parameter_bare": "x: float\nr = r + x",
    "walrus": "y: float = (z := x) + 1.0\nr = r + y * z",
    "call": "y: float = h(x)\nr = r + y",
    "conditional": "y: float = x if r > 1.0 else -x\nr = r + y",
    "and": "y: bool = r > 1.0 and x > 0.0\nr = r + y",
    "comprehension": "y: list = [x * j for j in range(3)]\nr = r + y[2]",
    "lambda": "y: Nowhere = lambda a: a * x\nr = r + y(r)",
    "attribute": "o.v: float = x * 2.0\nr = r + o.v",
    "attribute_bare": "o.v: float\nr = r + o.v",
    "attribute_of_call_bare": "h(o).v: float\nr = r + o.v",
    "attribute_never": "o.v: print('annotated') = r\nr = r + o.v",
    "item": "l[1]: float = x\nr = r + l[1] * l[0]",
    "item_bare": "l[h(1)]: float\nr = r + l[1]",
    "item_of_dict": "d['k']: float = r\nr = r + d['k'] * x",
    "item_of_array": "w[k - 2]: float = x\nr = r + w.sum()",
    "item_text": "w[0:1]: 'np.ndarray' = x\nr = r + w[0]",
    "loop_variable": "i: int\nfor i in range(2):\n    r = r + x * i",
    "range_variable_traced": "i: int\nfor i in range(k):\n    y: float = x * i\n    r = r + y",
    "nested_def": (
        "def s(a: float, b: 'Nowhere' = x) -> float:\n    y: Nowhere = a * b\n"
        "    return y\nr = r + s(r)"
    ),
    "class_body": "class C:\n    v: float = 2.0\n    u: int\nr = r + C.v * x",
    "final": "y: Final[float] = x\nr = r + y",
    "none": "y: float | None = None\ny = x if y is None else y\nr = r + y",
    "with": "y: float\nwith nothing() as y:\n    r = r + y",
    "deleted": "y: float = x\ndel y\nr = r + x",
    "unpack_after": "a: float\nb: float\na, b = x, r\nr = a * b",
}
PLACES = {
    "plain": "FORM",
    "after_return": "if k <= 2:\n    return r, l, d, w\nFORM",
    "after_traced_return": "if x < 1.0:\n    return r, l, d, w\nFORM",
    "if": "if x > 1.0:\n    FORM",
    "else": "if x < 1.0:\n    r = r * 3.0\nelse:\n    FORM",
    "elif": "if x < 1.0:\n    r = r * 3.0\nelif k > 2:\n    FORM",
    "while": "while r < 10.0:\n    r = r + 2.0\n    FORM",
    "for": "for j in range(k):\n    FORM",
    "for_break": "for j in range(5):\n    if j >= k:\n        break\n    FORM",
    "for_continue": "for j in range(4):\n    if j == k:\n        continue\n    FORM",
    "loop_return": "for j in range(k):\n    if r > 6.0:\n        return r, l, d, w\n    FORM",
    "if_in_for": "for j in range(k):\n    if x > j:\n        FORM",
    "loop_else": "for j in range(2):\n    if x > 100.0:\n        break\nelse:\n    FORM",
    "try": (
        "try:\n    FORM\n    if x < 1.0:\n        raise ValueError('no')\n"
        "except ValueError:\n    r = -1.0 * r"
    ),
    "handler": (
        "try:\n    if x > 1.0:\n        raise ValueError('no')\nexcept ValueError:\n    FORM"
    ),
    "finally": "try:\n    r = r * 2.0\nfinally:\n    FORM",
    "with": "with nothing() as e:\n    FORM",
    "match": "match k:\n    case 3:\n        FORM\n    case _:\n        r = 2.0 * x",
    "helper": (
        "def t(x, r):\n    if r > 50.0:\n        return r\n    FORM\n    return r\nr = t(x, r)"
    ),
    "scan": "for e in np.array([1.0, 2.0, 3.0]) * x:\n    FORM",
}
MODULE = """
from contextlib import contextmanager
g = 4.0
class O:
    v = 1.0
def h(a):
    print("h")
    return a
@contextmanager
def nothing():
    yield 2.0
"""
BEFORE = [
    "r = 1.0 * x",
    "o = O()",
    "o.v = 3.0",
    "l = [x, 2.0]",
    "d = {'k': x}",
    "w = np.ones(3) * x",
]
STEPS = ["f(1.5, 3)", "f(0.5, 3)", "f(1.5, 2)", "f(2.5, 0)"]


def program(form: str, place: str, *, is_postponed: bool) -> Program:
    lines: list[str] = []
    for line in PLACES[place].splitlines():
        code = line.lstrip()
        indent = line[: len(line) - len(code)]
        lines += [
            indent + part for part in (FORMS[form].splitlines() if code == "FORM" else [code])
        ]
    body = "\n".join([*BEFORE, *lines, "return r, l, d, w"])
    future = "from __future__ import annotations\n" if is_postponed else ""
    source = future + MODULE + "def f(x, k):\n" + textwrap.indent(body, "    ")
    return Program(f"{form} {place}", source, STEPS)


@pytest.mark.sampled(48)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("form", FORMS)
def test_annotations_change_nothing(form: str, place: str) -> None:
    is_postponed = (len(form) + len(place)) % 2 == 0
    with quickly(), wend.config(verify=False, cache_dir=""):
        difference = compare(program(form, place, is_postponed=is_postponed), ["reference"])
    assert difference is None, f"{difference}"
