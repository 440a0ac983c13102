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

MADE = [
    "TABLE * 2",
    "np.full(3, 2.0)[:]",
    "np.zeros(3)",
    "np.arange(3.0)",
    "np.ones((2, 3))[0]",
    "a * 2",
    "a",
    "b",
    "a.copy()",
]
MATRICES = [
    *("np.zeros((2, 3))", "np.stack([a, b])", "np.arange(6.0).reshape(2, 3)"),
    *("np.linspace(0.0, 1.0, 6).reshape(2, 3)", "np.arange(6.0).reshape(3, 2).T"),
]
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
    "{p}.sort()",
    "{p}.fill(2.5)",
    "np.add.at({p}, [0, 0], {q}[1])",
    "{p}[n % 3] += 2.0",
    "{p}[::-1][0] = x",
    "m[0] = {p}",
    "m[0] += {q}; m[0][1] = x",
    "m[n % 2] *= 2.0",
    "m[:, 1] = {p}[:2]",
    "m += {p}",
    "for row in m: row[0] = x",
    "for row in m: row += {p}",
    "m[0], m[1] = m[1], m[0]",
    "d['k'][0] = 7.0",
    "d['k'] *= 2.0",
    "add()",
    "(lambda v: v.fill(x))({p})",
    "[v.put([2], x) for v in ({p}, {q})]",
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
    "{p} = m[0]",
    "{p} = m[n % 2]",
    "{p} = m.T[:, 0]",
    "m.T[1, 0] = x",
    "m.T[n % 3] += 1.0",
    "np.swapaxes(m, 0, 1)[0] *= 2.0",
    "m = m.T.T",
    "{p} = {q}[:, None][:, 0]",
    "{p} = {q}.reshape(3, 1).T[0]",
    "{q}[None][0, 1:] = x",
    "w = {p}.reshape(1, 3).reshape(-1)",
    "{p} = m.reshape(-1)[:3]",
    "{p} = m.sum(axis=0)",
    "{p} = TABLE + 1.0",
    "{p} = TABLE * 2; {p}[0] = 5.0; np.multiply({p}, {q}, out={p})",
    "m = np.stack([{p}, {q}])",
    "m = np.zeros((2, 3))",
    "w = m[1][1:]",
    "w = {p}[::-1][1:]",
    "d['k'] = {p}",
    "d = {{'k': {p}}}",
    "{p} = d['k']",
    "{p} = np.where(x > 1, {p}, {q})",
    "{p} = np.asarray({p})",
    "k = list(k)",
    "k.reverse()",
    "{p}, *_ = k",
    "h2 = h; h2.v = {p}",
    "s = s + m[1][0] + d['k'][1]",
    "s += float({p}[2] > 1)",
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
        f"    m = {draw(st.sampled_from(MATRICES))}",
        f"    d = {{'k': {draw(st.sampled_from(NAMES))}}}",
        "    def add():",
        f"        {draw(st.sampled_from(NAMES))}[1] += 1.0",
        f"        d['k'][2] = {draw(st.sampled_from(NAMES))}[0]",
    ]
    lines += _block(draw, depth, 1)
    lines.append("    return s, a, b, c, w, h.v, k, a + b, len(out), m, d['k']")
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


TABLE = np.array([0.5, 2.0, 1.0])


def compiled(text: str) -> Any:
    """The function of a program, with a file that capture can read."""
    file = f"<alias program {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"np": np, "Holder": Holder, "TABLE": TABLE}
    exec(compile(text, file, "exec"), names)
    return names["f"]
