"""Random programs in which arrays have several names: aliases, views, tuples, lists, helpers."""

from __future__ import annotations

import itertools
import linecache
from typing import Any

import numpy as np
from hypothesis import strategies as st

NAMES = ("a", "b", "c")
_numbers = itertools.count()

HEAD = """\
def change(q, v):
    q[0] = v
    q += 1.0


def same(q):
    return q


def f(a, b, n, x):
"""

MADE = ["np.zeros(3)", "np.arange(3.0)", "np.ones((2, 3))[0]", "a * 2", "a", "b", "a.copy()"]
CHANGES = [
    "{p}[0] = x",
    "{p}[1] = 5.0",
    "{p}[:2] += {q}[1:]",
    "{p} += 1.0",
    "{p} *= {q}",
    "{p}[:] = {q} * 2",
    "{p}[{p} > 2] = 0.5",
    "change({p}, x)",
    "change({p}, 2.0)",
    "r = {p}[1:]; r[0] += 3.0",
    "t = ({p}, {q}); t[0][2] = x",
    "l = [{q}, {p}]; l[1][0] -= 1.0",
    "np.add({p}, {q}, out={p})",
    "{p}[0], {p}[1] = {p}[1], {p}[0]",
]
BINDINGS = [
    "{p} = {q}",
    "{p} = {q} + 1.0",
    "{p} = {q}.copy()",
    "{p}, {q} = {q}, {p}",
    "{p} = same({q})",
    "{p} = {q} if x > 1 else {p}",
    "{p} = ({q}, {p})[0]",
    "w = {p}[:2]",
    "w = {p}",
    "h.v = {p}",
    "{p} = h.v",
    "k = [{p}, {q}]",
    "k[0][1] = x",
    "k[0] = {p}",
    "h.v[2] = x",
    "h.v[1] += 1.0",
    "s = s + {p}.sum() + w[1]",
    "s = s + {p}[0] + k[0][1] + h.v[0]",
    "w[0] = 4.0",
]


@st.composite
def alias_programs(draw: Any, depth: int = 2) -> str:
    """The text of a function `f(a, b, n, x)`, where a and b are vectors of three."""
    lines = [f"    c = {draw(st.sampled_from(MADE))}"]
    if draw(st.booleans()):
        lines.append(f"    b = {draw(st.sampled_from(MADE))}")
    lines += [
        "    h = Holder()",
        f"    h.v = {draw(st.sampled_from(NAMES))}",
        f"    w = {draw(st.sampled_from(NAMES))}[:2]",
        f"    k = [{draw(st.sampled_from(NAMES))}, {draw(st.sampled_from(NAMES))}]",
        "    s = 0.0",
        "    out = []",
    ]
    lines += _block(draw, depth, 1)
    lines.append("    return s, a, b, c, w, h.v, k, a + b, len(out)")
    return HEAD + "\n".join(lines) + "\n"


def _block(draw: Any, depth: int, indent: int) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        lines += _statement(draw, depth, "    " * indent, indent)
    return lines


def _statement(draw: Any, depth: int, pad: str, indent: int) -> list[str]:
    kinds = ["change", "change", "bind"] + (["if", "while", "for"] if depth else [])
    kind = draw(st.sampled_from(kinds))
    names = {"p": draw(st.sampled_from(NAMES)), "q": draw(st.sampled_from(NAMES))}
    if kind == "change":
        return [pad + draw(st.sampled_from(CHANGES)).format(**names)]
    if kind == "bind":
        return [pad + draw(st.sampled_from(BINDINGS)).format(**names)]
    body = _block(draw, depth - 1, indent + 1)
    if kind == "if":
        other = _block(draw, depth - 1, indent + 1) if draw(st.booleans()) else None
        test = draw(st.sampled_from(["x > 1", "n > 1", "{p}[0] < x", "s > 3"])).format(**names)
        tail = [] if other is None else [f"{pad}else:", *other]
        return [f"{pad}if {test}:", *body, *tail]
    if kind == "for":
        if draw(st.booleans()):
            added = draw(st.sampled_from(["{p}", "{p}.copy()", "{p} * 2", "w"])).format(**names)
            body.append(f"{pad}    out.append({added})")
        return [f"{pad}for i{indent} in range({draw(st.sampled_from(['n', '2']))}):", *body]
    counter = f"j{indent}"
    return [f"{pad}{counter} = 0", f"{pad}while {counter} < n:", *body, f"{pad}    {counter} += 1"]


class Holder:
    """Something with an attribute."""


def compiled(text: str) -> Any:
    """The function of a program, with a file that capture can read."""
    file = f"<alias program {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"np": np, "Holder": Holder}
    exec(compile(text, file, "exec"), names)
    return names["f"]
