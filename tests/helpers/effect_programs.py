"""Random programs with effects, as Python source: variables, prints, asserts, loops, calls."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st

import wend
import wend.numpy as wnp

# Every expression stays within some bounds, so that no run overflows.
_ATOMS = ["a", "b", "x", "u.value", "v.value", "u", "v", "w[0]", "0.5", "-1.25", "w[1]"]
_BOUNDS = ["0.4", "0.8", "1.2"]
_COUNTS = ["1.2", "1.8", "3.2"]
_atom = st.sampled_from(_ATOMS)
_expression = st.one_of(
    _atom,
    st.builds("wnp.sin({} + {})".format, _atom, _atom),
    st.builds("0.5 * ({} - {})".format, _atom, _atom),
    st.builds("wnp.tanh({} * {})".format, _atom, _atom),
)
_test = st.builds("{} {} {}".format, _expression, st.sampled_from(["<", ">="]), _atom)
_simple = st.one_of(
    st.builds("{} = {} + 0.0".format, st.sampled_from("ab"), _expression),
    st.builds("{}.assign({})".format, st.sampled_from("uv"), _expression),
    st.builds("{}.assign_add({})".format, st.sampled_from("uv"), _expression),
    st.builds("{}.assign_sub({})".format, st.sampled_from("uv"), _expression),
    st.builds("w.assign(w.value * 0.5 + {})".format, _expression),
    st.builds("w.assign(wnp.stack([{}, w[0]]))".format, _expression),
    st.just("u.assign_add(1.0); a = u.value; u.assign(0.25)"),
    st.builds("wend.print({} + 0.0, u.value)".format, _atom),
    st.builds("wend.assert_({} < {}, 'large')".format, _expression, st.sampled_from(_BOUNDS)),
    # Counts how often it runs, so that it fails somewhere on the way.
    st.builds(
        "w.assign(w + 0.5); wend.assert_(w[0] < {}, 'often')".format, st.sampled_from(_COUNTS)
    ),
)


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def _block(parts: list[list[str]]) -> list[str]:
    return [line for part in parts for line in part]


def _if(test: str, then: list[str], otherwise: list[str]) -> list[str]:
    return [f"if {test}:", *_indented(then), "else:", *_indented(otherwise)]


def _loop(number: int, trips: str, body: list[str]) -> list[str]:
    i = f"i{number}"
    return [f"{i} = 0", f"while {i} < {trips}:", *_indented([*body, f"{i} = {i} + 1"])]


def _counted(number: int, trips: str, body: list[str]) -> list[str]:
    return [f"for i{number} in range({trips}):", *_indented(body)]


def _extend(inner: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    number = st.integers(0, 10**6)
    trips = st.sampled_from(["n", "n - 1", "n - 3"])
    return st.one_of(
        st.builds(_if, _test, inner, inner),
        st.builds(_loop, number, trips, inner),
        st.builds(_counted, number, trips, inner),
        st.builds(_block, st.lists(inner, min_size=2, max_size=4)),
    )


_statements = st.recursive(
    st.one_of(
        st.lists(_simple, min_size=1, max_size=3),
        st.just(["a = inner(a, b, n)"]),
        st.just(["inner(b, x, n)"]),
    ),
    _extend,
    max_leaves=8,
)
_inner = st.recursive(st.lists(_simple, min_size=1, max_size=3), _extend, max_leaves=3)
_numbers = iter(range(10**9))


class EffectProgram:
    """A program `main(x, n)`, with an `inner(a, b, n)` that it calls, on three variables."""

    def __init__(self, inner: list[str], main: list[str]) -> None:
        head = ["b = 0.5 * x"]
        self.source = "\n".join(
            [
                "def plain_inner(a, b, n):",
                *_indented(["x = a", *inner, "return a + 0.25 * b"]),
                "def main(x, n):",
                *_indented(["a = x + 0.0", *head, *main, "return a, b, u.value"]),
            ]
        )

    def __repr__(self) -> str:
        return f"EffectProgram:\n{self.source}\n"

    def made(self, wrap: Callable[..., Any]) -> tuple[Callable[..., Any], list[wend.Variable]]:
        """The program's function and its variables; `wrap` makes what is run of a function."""
        u, v = wend.Variable(0.5, name="u"), wend.Variable(-0.25, name="v")
        w = wend.Variable([1.0, 0.25], name="w")
        file = f"<effect program {next(_numbers)}>"
        lines = self.source.splitlines(keepends=True)
        linecache.cache[file] = len(self.source), None, lines, file
        scope: dict[str, Any] = {"wend": wend, "wnp": wnp, "u": u, "v": v, "w": w}
        exec(compile(self.source, file, "exec"), scope)
        scope["inner"] = wrap(scope["plain_inner"])
        return wrap(scope["main"]), [u, v, w]


effect_programs = st.builds(EffectProgram, _inner, _statements)
