"""Random programs of nested control flow: source text that plain Python runs in bounded time."""

from __future__ import annotations

import hashlib
import linecache
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "c")  # ints, bound from the start
FLOATS = ("x", "y")


class Writer:
    """Draws a program; every loop is counted, so every program ends."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.counters = 0

    def pick(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def write(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    # Expressions
    def integer(self, depth: int = 2) -> str:
        kind = self.pick("name", "name", "constant", "sum", "ternary", "call", "made")
        if depth == 0 or kind == "name":
            return self.pick(*NAMES)
        if kind == "constant":
            return str(self.pick(-2, 0, 1, 3))
        if kind == "sum":
            return f"({self.integer(depth - 1)} {self.pick('+', '-')} {self.integer(depth - 1)})"
        if kind == "call":
            return f"{self.pick('min', 'max')}({self.integer(depth - 1)}, 9)"
        if kind == "made":
            return self.made(depth)
        return f"({self.integer(depth - 1)} if {self.test(depth - 1)} else {self.integer(0)})"

    def made(self, depth: int) -> str:
        """An integer by way of a comprehension, a lambda, a helper or a walrus."""
        first, second = self.integer(depth - 1), self.integer(0)
        return self.pick(
            f"sum([{first} + k for k in (0, 1, 2)])",
            "sum([k for k in (1, 2, 3) if k > 1 and (a := k) < 3])",
            f"(lambda v: v + 1 if v > {second} else v)({first})",
            f"limit({first})",
            f"partial({first})",
            f"power(2, 3) + {first}",
            f"(b := {first})",
            f"[{first}, {second}][1]",
        )

    def test(self, depth: int = 2) -> str:
        kind = self.pick(
            "compare", "compare", "chain", "and", "or", "not", "float", "walrus", "ternary", "bound"
        )
        if depth == 0 or kind == "compare":
            return (
                f"{self.pick(*NAMES)} {self.pick('<', '>', '==', '!=', '<=')} {self.pick(0, 1, 3)}"
            )
        if kind == "float":
            return f"{self.pick(*FLOATS)} > {self.pick(0.5, 2.0)}"
        if kind == "chain":
            return f"-2 < {self.integer(0)} <= {self.integer(0)}"
        if kind == "not":
            return f"not ({self.test(depth - 1)})"
        if kind == "ternary":
            return f"({self.test(0)} if {self.test(depth - 1)} else {self.test(0)})"
        if kind == "bound":
            # Bound where it is read, though one side may be skipped.
            self.counters += 1
            w = f"w{self.counters}"
            return self.pick(
                f"({self.test(0)} and ({w} := {self.integer(0)}) > 0 and {w} < 5)",
                f"({self.test(0)} or ({w} := {self.integer(0)}) > 0 or {w} < -5)",
                f"-9 < ({w} := {self.integer(0)}) < (c := {self.integer(0)}) < 9",
            )
        if kind == "walrus":
            return f"({self.pick(*NAMES)} := {self.integer(0)} + 1) > 2"
        return f"({self.test(depth - 1)} {kind} {self.test(depth - 1)})"

    # Statements
    def block(self, indent: int, depth: int, loops: int) -> None:
        for _ in range(self.draw(st.integers(1, 3))):
            self.statement(indent, depth, loops)

    def statement(self, indent: int, depth: int, loops: int) -> None:
        kinds = ["assign", "assign", "float", "augment", "swap"]
        if depth > 0:
            kinds += ["if", "if", "while", "for", "for_list", "try", "with", "match", "call"]
        if loops:
            kinds += ["break", "continue"]
        kinds += ["return"]
        getattr(self, f"_{self.pick(*kinds)}")(indent, depth, loops)

    def _assign(self, indent: int, depth: int, loops: int) -> None:
        self.write(indent, f"{self.pick(*NAMES)} = {self.integer()}")

    def _float(self, indent: int, depth: int, loops: int) -> None:
        value = self.pick("0.5 * x + a", "y - x", "x * 0.25", "0.5 * y + 1.0")
        self.write(indent, f"{self.pick(*FLOATS)} = {value}")

    def _augment(self, indent: int, depth: int, loops: int) -> None:
        target = self.pick(*NAMES, "box.v", "d['k']")
        self.write(indent, f"{target} {self.pick('+=', '-=')} {self.integer(0)}")

    def _swap(self, indent: int, depth: int, loops: int) -> None:
        self.write(indent, "a, b = b, a")

    def _call(self, indent: int, depth: int, loops: int) -> None:
        self.write(indent, self.pick("bump(a)", "box.v = b", "d['k'] = c", "c = box.v + d['k']"))

    def _break(self, indent: int, depth: int, loops: int) -> None:
        self.write(indent, f"if {self.test(1)}:")
        self.write(indent + 1, "break")

    def _continue(self, indent: int, depth: int, loops: int) -> None:
        self.write(indent, f"if {self.test(1)}:")
        self.write(indent + 1, "continue")

    def _return(self, indent: int, depth: int, loops: int) -> None:
        self.write(indent, f"if {self.test(1)}:")
        self.write(indent + 1, f"return {self.integer(0)}, {self.integer(0)}, x, y, box.v, d['k']")

    def _if(self, indent: int, depth: int, loops: int) -> None:
        self.write(indent, f"if {self.test()}:")
        self.block(indent + 1, depth - 1, loops)
        if self.draw(st.booleans()):
            self.write(indent, f"elif {self.test(1)}:")
            self.block(indent + 1, depth - 1, loops)
        if self.draw(st.booleans()):
            self.write(indent, "else:")
            self.block(indent + 1, depth - 1, loops)

    def _else(self, indent: int, depth: int, loops: int) -> None:
        if self.pick(True, False, False):
            self.write(indent, "else:")
            self.block(indent + 1, depth - 1, loops)

    def _while(self, indent: int, depth: int, loops: int) -> None:
        self.counters += 1
        counter = f"n{self.counters}"
        self.write(indent, f"{counter} = 0")
        self.write(indent, f"while {counter} < {self.pick(0, 1, 3)} and {self.test(1)}:")
        self.write(indent + 1, f"{counter} += 1")
        self.block(indent + 1, depth - 1, loops + 1)
        self._else(indent, depth, loops)

    def _for(self, indent: int, depth: int, loops: int) -> None:
        self.counters += 1
        bounds = self.pick("3", "1, 4", "4, 0, -2", "min(a, 3)", "0")
        self.write(indent, f"for i{self.counters} in range({bounds}):")
        self.write(indent + 1, f"{self.pick(*NAMES)} = i{self.counters}")
        self.block(indent + 1, depth - 1, loops + 1)
        self._else(indent, depth, loops)

    def _for_list(self, indent: int, depth: int, loops: int) -> None:
        self.counters += 1
        self.write(indent, f"for k{self.counters} in {self.pick('[1, 2]', '(0, b)', '[]')}:")
        self.write(indent + 1, f"{self.pick(*NAMES)} = k{self.counters}")
        self.block(indent + 1, depth - 1, loops + 1)
        self._else(indent, depth, loops)

    def _try(self, indent: int, depth: int, loops: int) -> None:
        self.write(indent, "try:")
        self.block(indent + 1, depth - 1, loops)
        self.write(indent, "finally:")
        self.write(indent + 1, f"{self.pick(*NAMES)} = {self.integer(1)}")

    def _with(self, indent: int, depth: int, loops: int) -> None:
        self.write(indent, "with contextlib.nullcontext():")
        self.block(indent + 1, depth - 1, loops)

    def _match(self, indent: int, depth: int, loops: int) -> None:
        self.write(indent, f"match {self.integer(1)}:")
        self.write(indent + 1, f"case {self.pick('0', '1 | 2', '3')}:")
        self.block(indent + 2, depth - 1, loops)
        self.write(indent + 1, f"case m if m {self.pick('>', '<')} 1:")
        self.block(indent + 2, depth - 1, loops)
        if self.draw(st.booleans()):
            self.write(indent + 1, "case _:")
            self.block(indent + 2, depth - 1, loops)


@st.composite
def programs(draw: Any, depth: int = 4) -> str:
    """The text of a function `f(a, b, x)`."""
    writer = Writer(draw)
    writer.lines += [
        "import contextlib",
        "class Box: pass",
        "import functools",
        "def limit(v):",
        "    while v > 4:",
        "        v = v - 3",
        "        if v == 5:",
        "            return v",
        "    return v",
        "def power(v, k):",
        "    return 1 if k == 0 else v * power(v, k - 1)",
        "partial = functools.partial(lambda k, v: v if v < k else k, 6)",
        "def f(a, b, x):",
        "    c = 0",
        "    y = 1.5",
        "    box = Box()",
        "    box.v = 1",
        "    d = {'k': 0}",
        "    def bump(by):",
        "        nonlocal c",
        "        if by > 0:",
        "            c = c + 1",
        "        box.v = box.v + by",
    ]
    writer.block(1, depth, 0)
    writer.write(1, "return a, b, x, y, box.v, d['k'] + c")
    return "\n".join(writer.lines) + "\n"


def compiled(text: str) -> Callable[..., Any]:
    """The function of a program, with its source where tools look for it."""
    # Named by its text: a failure that is run again says the same.
    file = f"<program {hashlib.sha256(text.encode()).hexdigest()[:12]}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    variables: dict[str, Any] = {}
    exec(compile(text, file, "exec"), variables)
    return variables["f"]
