"""Random programs of numbers under vmap: loops, branches, exits, checks, positions past a loop.

A program is run for many elements by `vmap` and by a Python loop. Its derivatives are those of the
program that is compiled for one element.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
from hypothesis import strategies as st

import wend
import wend.numpy as wnp
from tests.fuzz.program import Program
from wend.passes import chunk_maps, lane_maps

_FLOATS = (
    "0.5 * {a} + 0.3 * {b}",
    "{a} - 0.4 * {b} * {c}",
    "{a} * {b} / (1.0 + {a} * {a})",
    "np.sin({a} + {b})",
    "np.tanh({a} * {b}) + 0.1 * {c}",
    "np.sqrt(1.0 + {a} * {a})",
    "np.exp(-{a} * {a}) + {b} * 0.25",
    "np.where({a} < {b}, {c} * 0.5, {a} * {a} * 0.25)",
    "np.maximum({a}, {b} * {b} * 0.5)",
    "np.abs({a}) * 0.75",
    "{a} * 0.5 + 0.05 * {i}",
    "np.clip({a}, -1.5, 1.5) * {b}",
    "np.log1p(np.abs({a})) - {b} * 0.5",
)
_TESTS = ("{a} < {b}", "{a} * {a} > 0.4", "np.sin(3.0 * {a}) > 0.2", "{i} % 3 == 1", "{i} > {j}")
_INTS = ("{i} + 1", "({i} * 3 + {j}) % 7", "{i} // 2 + {j} % 4", "abs({i} - {j})", "min({i}, 5)")
_FAILING = ("{a} > 1.3", "{a} + {b} < -1.5", "{i} > 4", "{a} * {b} > 1.2", "{a} != {a}")
_COMMON = 0.7  # what elements share
_TABLE = (0.7, -0.4, 1.1, 0.2, -0.9)


@dataclass(slots=True)
class _Writer:
    """Writes a function of two floats and an int."""

    draw: Any
    has_table: bool  # loops that read one have no lanes in registers
    has_checks: bool
    lines: list[str] = field(default_factory=list)
    loops: int = 0
    floats: list[str] = field(default_factory=lambda: ["x", "y"])
    ints: list[str] = field(default_factory=lambda: ["n"])

    def pick(self, options: Any) -> Any:
        return options[self.draw(st.integers(0, len(options) - 1))]

    def filled(self, form: str) -> str:
        names = {key: self.pick(self.floats) for key in "abc"}
        return form.format(**names, i=self.pick(self.ints), j=self.pick(self.ints))

    def write(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def block(self, depth: int, count: int, *, in_loop: bool = False) -> None:
        """Write statements; names that they define are not known after them."""
        floats, ints = [*self.floats], [*self.ints]
        for _ in range(count):
            self.statement(depth, in_loop=in_loop)
        self.floats, self.ints = floats, ints

    def statement(self, depth: int, *, in_loop: bool) -> None:
        kinds = ["float", "float", "int", "update"]
        kinds += ["read"] if self.has_table else []
        kinds += ["check", "check"] if self.has_checks else []
        if depth < 4:
            kinds += ["if", "if"]
            kinds += ["while", "while", "for"] if self.loops < 4 else []
            kinds += ["search"] if self.loops < 4 and self.has_table else []
        if in_loop:
            kinds += ["exit"]
        match self.pick(kinds):
            case "float":
                self.define(depth, "v", _FLOATS, self.floats)
            case "int":
                self.define(depth, "m", _INTS, self.ints)
            case "update":
                name = self.pick(self.floats)
                self.write(depth, f"{name} = {self.filled(self.pick(_FLOATS))}")
            case "if":
                self.write(depth, f"if {self.filled(self.pick(_TESTS))}:")
                self.block(depth + 1, self.draw(st.integers(1, 2)), in_loop=in_loop)
                self.update(depth + 1)
                if self.draw(st.booleans()):
                    self.write(depth, "else:")
                    self.block(depth + 1, 1, in_loop=in_loop)
                    self.update(depth + 1)
            case "read":  # where a loop has found nothing, its position is past the table
                # What is read is returned: an operation whose value nothing uses raises nothing.
                k, name = self.pick(self.ints), self.pick(self.floats)
                guard = self.pick([f"if {k} < 5:", f"if {k} < 5:", f"if {k} < 5:", "if True:"])
                self.write(depth, guard)
                self.write(depth + 1, f"read = read * 0.5 + {name} * table[{k}]")
            case "check":
                self.check(depth)
            case "exit":
                self.write(depth, f"if {self.filled(self.pick(_TESTS))}:")
                self.write(depth + 1, "break")
            case kind:
                self.loop(depth, kind)

    def check(self, depth: int) -> None:
        """Write a check whose text has the last bits of no float."""
        test, number = self.filled(self.pick(_FAILING)), self.pick(self.ints)
        if self.draw(st.booleans()):
            self.write(depth, f'assert not ({test}), f"{{{number}}}"')
            return
        self.write(depth, f"if {test}:")
        self.write(depth + 1, f'raise ValueError(f"{len(self.lines)}: {{{number}}}")')

    def define(self, depth: int, letter: str, forms: Sequence[str], names: list[str]) -> None:
        name = f"{letter}{len(self.lines)}"
        self.write(depth, f"{name} = {self.filled(self.pick(forms))}")
        names.append(name)

    def update(self, depth: int) -> None:
        self.write(depth, f"{self.pick(self.floats)} = {self.filled(self.pick(_FLOATS))}")

    def loop(self, depth: int, kind: str) -> None:
        self.loops += 1
        k = f"k{len(self.lines)}"
        bound = self.pick(["n", "6", self.pick(self.ints) + " % 5"])
        if kind == "search":  # its position is past the table where nothing is found
            self.write(depth, f"{k} = 0")
            self.write(depth, f"while {k} < 5 and table[{k}] < {self.pick(self.floats)}:")
            self.write(depth + 1, f"{k} = {k} + 1")
            self.ints.append(k)
            return
        if kind == "for":
            self.write(depth, f"for {k} in range({bound}):")
        else:
            self.write(depth, f"{k} = 0")
            test = self.filled(self.pick(_TESTS))
            self.write(depth, f"while {k} < {bound}" + self.pick(["", f" and {test}"]) + ":")
        floats, ints = [*self.floats], [*self.ints]
        self.ints.append(k)
        self.block(depth + 1, self.draw(st.integers(1, 3)), in_loop=kind == "for")
        self.update(depth + 1)
        if kind == "while":
            self.write(depth + 1, f"{k} = {k} + 1")
        self.floats, self.ints = floats, ints
        if kind == "while":
            self.ints.append(k)


@st.composite
def mapped_programs(draw: Any) -> Program:
    """Functions of numbers, with the columns of their elements."""
    table, checks = draw(st.integers(0, 3)) == 3, draw(st.integers(0, 2)) == 2
    writer = _Writer(draw, has_table=table, has_checks=checks)
    for _ in range(draw(st.integers(1, 4))):
        writer.statement(1, in_loop=False)
    if not writer.loops:
        writer.loop(1, "while")
    if checks and "{" not in "".join(writer.lines):
        writer.check(1)
    total = " + ".join(f"{0.5 + 0.1 * k:.1f} * {x}" for k, x in enumerate(writer.floats[-4:]))
    start = [f"table = np.array({list(_TABLE)})", "def f(x, y, n):", "    read = 0.0"]
    text = "\n".join([*start, *writer.lines])
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    count = writer.pick([1, 7, 17, 40])
    columns = (rng.uniform(-2, 2, count), rng.uniform(-2, 2, count), rng.geometric(0.2, count) - 1)
    return Program(f"{text}\n    return {total} + read\n", (columns,), (0, 1))


@contextmanager
def _narrow(lanes: int) -> Iterator[None]:
    """Lanes and chunks for few elements."""
    registers = mock.patch.multiple(lane_maps, MIN_ELEMENTS=0, NARROW=lanes, WIDE=lanes)
    chunks = mock.patch.multiple(chunk_maps, _MIN_LANE_GROUPS=1, _MIN_REFILLS=1, _MIN_IN_LOOPS=2)
    with registers, chunks, wend.config(threads=2):
        yield


def check_mapped(program: Program, *, seen: Counter | None = None) -> None:
    """Compare a program under vmap with a loop over the elements, and its derivatives.

    Raises:
        AssertionError: they differ.
    """
    seen = Counter() if seen is None else seen
    plain, _ = program.plain()
    fun, _ = program.staged()
    (columns,) = program.calls
    rows = list(zip(*columns, strict=True))
    with np.errstate(all="ignore"):
        expected, error = _loop(plain, rows)
        if error is not None:
            seen["raise"] += 1
            _check_raises(program, fun, columns, error, len(expected))
            return
        mapped = wend.vmap(fun)
        with _narrow(4 if len(rows) < 20 else 8):
            _close(mapped(*columns), expected)
            seen["in lanes" if " lanes" in mapped.explain() else "in loops"] += 1
            _check_derivatives(fun, columns, rows, second=program.text.count("\n") <= 14)
            if _loop(plain, [(x, _COMMON, n) for x, _, n in rows])[1] is None:
                _check_sums(fun, columns, rows)


def _loop(plain: Any, rows: Sequence[Any]) -> tuple[list[Any], Exception | None]:
    """Return the results up to the first error, and that."""
    expected: list[Any] = []
    for row in rows:
        try:
            expected.append(plain(*row))
        except (IndexError, ValueError, AssertionError) as error:
            return expected, error
    return expected, None


def _check_derivatives(fun: Any, columns: Any, rows: Any, *, second: bool) -> None:
    both = wend.value_and_grad(fun, argnums=(0, 1))
    _close_trees(wend.vmap(both)(*columns), [both(*row) for row in rows])
    if second:
        twice = wend.grad(lambda x, y, n: wend.grad(fun)(x, y, n) ** 2, argnums=(0, 1))
        _close_trees(wend.vmap(twice)(*columns), [twice(*row) for row in rows])


def _check_sums(fun: Any, columns: Any, rows: Any) -> None:
    """Check the gradient of a sum of elements that share a number."""

    def total(x: Any, y: Any) -> Any:
        return wnp.sum(wend.vmap(fun, in_axes=(0, None, 0))(x, y, columns[2]))

    own, common = wend.grad(total, argnums=(0, 1))(columns[0], _COMMON)
    slopes = [wend.grad(fun, argnums=(0, 1))(x, _COMMON, n) for x, _, n in rows]
    _close(own, [x for x, _ in slopes])
    _close(common, sum(y for _, y in slopes))


def _check_raises(
    program: Program, fun: Callable[..., Any], columns: Any, error: Exception, number: int
) -> None:
    """Check that vmap raises an error, in the function and in its gradient.

    A program with checks raises that of the first element that fails, and tells its number.
    """
    has_checks = "raise " in program.text or "assert " in program.text
    for form in (fun, wend.value_and_grad(fun, argnums=(0, 1))):
        found = None
        with _narrow(4 if len(columns[0]) < 20 else 8):
            try:
                wend.vmap(form)(*columns)
            except type(error) as raised:
                found = raised
        assert found is not None, f"vmap raised no {error!r}"
        # A gradient's backward reads may fail, too, so it may have no flags
        if has_checks and (form is fun or not isinstance(error, IndexError)):
            assert str(found) == str(error), f"vmap raised {found!r}, not {error!r}"
            note = f"in element {number} of vmap"
            assert note in found.__notes__, f"{found.__notes__} lack {note!r}"


def _close(results: Any, expected: Any) -> None:
    np.testing.assert_allclose(results, np.array(expected), rtol=1e-7, atol=1e-7)


def _close_trees(results: Any, rows: Any) -> None:
    leaves = wend.tree.leaves(results)
    columns = zip(*map(wend.tree.leaves, rows), strict=True)
    for x, expected in zip(leaves, columns, strict=True):
        _close(x, expected)
