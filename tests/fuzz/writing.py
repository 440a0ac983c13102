"""Writes random programs: the text of a plain Python function `f`, and arguments for some calls.

Floats are of two kinds, as in the random graphs: programs decide by, sort and look up by *exact*
ones, which are small whole numbers; what is done with *rounded* ones is smooth. So the path that a
program takes does not depend on rounding, and the program is smooth in its rounded arguments.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests.fuzz.kinds import SIZES, Kind, numbers
from tests.fuzz.program import Program
from tests.fuzz.statements import Statements

RETURNED = 4  # at most so many results
PAIR = """class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b
""".splitlines()


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Programs of every kind of statement, with arguments for two or three calls."""
    w = Statements(draw)
    kinds = {"x": Kind("f8", ("n",), rounded=True), "e": Kind("f8", ("n",))}
    for _ in range(w.number(3)):
        kind = w.kind()
        kinds[w.new_name("x" if kind.rounded else "e")] = kind
    w.env.update(kinds)
    w.fixed.update(kinds)
    head: list[str] = []
    for _ in range(w.number(1)):
        kind = w.kind()
        if "n" not in kind.shape:
            name = w.new_name("V")
            head.append(
                f"{name} = Variable(np.full({kind.of_shape}, {w.number(2)}, '{kind.dtype}'))"
            )
            w.variables[name] = kind
    w.write("n = x.shape[0]")
    for _ in range(w.number(1)):
        w.function()
    for _ in range(1 + w.number(RETURNED - 1)):
        kind, name = w.kind(), w.new_name("v")
        own = [x for x, k in kinds.items() if k == kind]
        w.write(f"{name} = {f'{w.choose(own)}.copy()' if own else w.expr(kind, 1)}")
        w.env[name] = kind
        w.results.append(name)
    if w.number(1):
        w.push()
    if w.number(2) == 0:
        w.object()
        w.results += [x for x in w.env if x[:1] == "o"]
    if w.number(3) == 0:  # an argument itself is changed, in the caller's array
        w.fixed.discard(w.choose(list(kinds)))
    for _ in range(1 + w.number(5)):
        w.statement(2)
    for name in w.lists:
        if not w.ends_early:
            w.write(f"{name} = np.stack({name})")
            w.results.append(name)
    w.write(w.last())
    names = ", ".join([*kinds, "k", "h"])
    head += PAIR if w.has_objects else []
    text = "\n".join([*head, f"def f({names}):", *w.lines]) + "\n"
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    calls = []
    for _ in range(2 + w.number(1)):
        size = w.choose(SIZES)
        args = [numbers(rng, kind, size) for kind in kinds.values()]
        narrow = np.dtype(w.choose(["i1", "u1", "i2", "u8"])).type(w.number(3))
        calls.append((*args, w.number(4), narrow))
    rounded = [k for k, kind in enumerate(kinds.values()) if kind.rounded]
    return Program(text, tuple(calls), tuple(rounded))
