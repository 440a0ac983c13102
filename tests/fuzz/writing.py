"""Writes random programs: the text of a plain Python function `f`, and arguments for some calls.

Floats are of two kinds, as in the random graphs: programs decide by, sort and look up by *exact*
ones, which are small whole numbers; what is done with *rounded* ones is smooth. So the path that a
program takes does not depend on rounding, and the program is smooth in its rounded arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.fuzz.program import Program

SHAPES: tuple[tuple[int | str, ...], ...] = (
    *((), (), (3,), (3,), (3,), (5,), (2, 3), (2, 3), (3, 3), (0,), (17,), (2, 3, 2)),
    *(("n",), ("n",), ("n",), ("n", 3), ("n", 3), (3, "n")),
)
SIZES = (0, 1, 2, 3, 5, 7, 19, 33)
RETURNED = 4  # at most so many results


class Unfit(Exception):
    """A step for which there is nothing."""


@dataclass(frozen=True)
class Kind:
    """What is known of a value: its dtype, its shape, and whether it is a rounded float."""

    dtype: str
    shape: tuple[int | str, ...]
    rounded: bool = False

    @property
    def is_float(self) -> bool:
        return self.dtype in ("f8", "f4")

    @property
    def is_whole(self) -> bool:
        return self.dtype in ("i8", "i4")

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def of_shape(self) -> str:
        """The shape as programs write it."""
        return f"({''.join(f'{d}, ' for d in self.shape)})"


INT, FLAG = Kind("i8", ()), Kind("?", ())


class Writer:
    """Writes the lines of a function; `env` is what its names hold."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.env: dict[str, Kind] = {}
        self.fixed: set[str] = set()  # names that are only read
        self.counters: list[str] = ["k", "n"]
        self.lists: dict[str, Kind] = {}
        self.variables: dict[str, Kind] = {}
        self.functions: dict[str, tuple[list[Kind], Kind]] = {}
        self.results: list[str] = []
        self.indent, self.made, self.loops = 1, 0, 0
        self.ends_early = False

    # Choices
    def number(self, most: int) -> int:
        return self.draw(st.integers(0, most))

    def choose(self, options: Sequence[Any]) -> Any:
        if not options:
            raise Unfit
        return options[self.number(len(options) - 1)]

    def name(self, fits: Callable[[Kind], bool] = lambda kind: True) -> str:
        return self.choose([name for name, kind in self.env.items() if fits(kind)][::-1][:8])

    def new_name(self, letter: str = "v") -> str:
        self.made += 1
        return f"{letter}{self.made}"

    def write(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """What is written inside goes under `head`; names made there are not known after."""
        kept = dict(self.env), dict(self.lists), len(self.counters)
        start = len(self.lines)
        self.write(head)
        self.indent += 1
        try:
            yield
        finally:
            self.indent -= 1
            self.env, self.lists = kept[0], kept[1]
            del self.counters[kept[2] :]
        if len(self.lines) == start + 1:
            self.lines.append("    " * (self.indent + 1) + "pass")

    # Expressions
    def expr(self, kind: Kind, depth: int = 2) -> str:
        """An expression of a kind; of exact ones small enough to stay exact."""
        for _ in range(3):
            try:
                return self._expr(kind, depth)
            except Unfit:
                continue
        return self.leaf(kind)

    def _expr(self, kind: Kind, depth: int) -> str:
        if depth == 0 or self.number(3) == 0:
            return self.leaf(kind)
        forms = [self.binary, self.binary, self.where, self.reduced, self.part, self.moved]
        forms += [self.listed, self.called, self.either]
        if kind.is_float and kind.rounded:
            forms += [self.smooth, self.smooth, self.smooth, self.product, self.powers]
            forms += [self.running, self.taken]
        elif kind.dtype != "?":
            forms += [self.ordered, self.ordered, self.product, self.running, self.taken]
        else:
            forms = [self.flags, self.flags, self.moved, self.part, self.reduced]
        return self.choose(forms)(kind, depth - 1)

    def leaf(self, kind: Kind) -> str:
        same = [
            name
            for name, found in self.env.items()
            if found.dtype == kind.dtype
            and found.shape == kind.shape
            and (kind.rounded or not found.rounded)
        ][::-1][:6]
        same += [
            f"{name}.value.copy()"  # what a variable holds is not to be written to
            for name, found in self.variables.items()
            if found.dtype == kind.dtype
            and found.shape == kind.shape
            and (kind.rounded or not found.rounded)
        ]
        if same and self.number(5):
            return self.choose(same)
        if not kind.shape and kind.dtype == "i8" and self.number(2):
            return self.choose(self.counters)
        spread = [
            name
            for name, found in self.env.items()
            if found.shape == kind.shape[kind.rank - found.rank :]
            and (kind.rounded or not found.rounded)
        ][::-1][:6]
        if spread and self.number(4):
            name = self.choose(spread)
            text = f"np.broadcast_to({name}, {kind.of_shape})"
            return text if self.env[name].dtype == kind.dtype else f"{text}.astype('{kind.dtype}')"
        number = self.choose([0, 1, 2, 3, -1])
        if kind.dtype == "?":
            return f"np.full({kind.of_shape}, {bool(number)})"
        if len(kind.shape) == 1 and self.number(1):
            return f"np.arange({kind.shape[0]}, dtype='{kind.dtype}')"
        if kind.rounded:
            number = self.choose([0.5, 1.25, -0.75, 0.0])
        return f"np.full({kind.of_shape}, {number}, '{kind.dtype}')"

    def narrower(self, kind: Kind) -> Kind:
        """A kind that broadcasts to this one, or the same."""
        cut = self.number(kind.rank)
        shape = kind.shape[cut:]
        if shape and self.number(3) == 0:
            shape = (1, *shape[1:])
        return replace(kind, shape=shape)

    def binary(self, kind: Kind, depth: int) -> str:
        a, b = self.expr(kind, depth), self.expr(self.narrower(kind), depth)
        if kind.is_whole and self.number(2) == 0:
            op = self.choose(["//", "%"])
            return f"({a} {op} {self.choose([2, 3, -3])})"
        if self.number(3) == 0:
            b = self.choose(["0.5", "2.0", "-1.5"] if kind.rounded else ["2", "1", "-1", "3"])
        if self.number(3) == 0:
            b = self.choose(self.counters)
        if self.number(1):
            a, b = b, a
        if not (kind.rounded or self.number(2)):
            return f"np.{self.choose(['minimum', 'maximum'])}({a}, {b})"
        text = f"({a} {self.choose(['+', '-', '*'])} {b})"
        return text if kind.rounded else self.small(kind, text)

    def small(self, kind: Kind, text: str) -> str:
        """What is exact stays small."""
        if kind.is_whole and self.number(1):
            return f"({text} % 7)"
        return f"np.clip({text}, -8, 8)"

    def smooth(self, kind: Kind, depth: int) -> str:
        x = self.expr(kind, depth)
        form = self.choose(
            [
                *("np.sin({x})", "np.tanh({x})", "np.cos({x})", "np.exp(np.sin({x}))"),
                *("np.sqrt(1.0 + {x} * {x})", "np.log(2.5 + np.sin({x}))", "np.arctan({x})"),
                *("{y} / (2.0 + np.cos({x}))", "np.log1p(np.exp(-np.sin({x})))", "-{x}"),
                *("np.logaddexp(np.sin({x}), 0.5)", "np.square({x})", "np.arctan2({y}, 3.0)"),
                *("np.expm1(np.tanh({x}))", "np.sinh(np.sin({x}))", "1.0 / (1.0 + np.exp(-{x}))"),
            ]
        )
        return "(" + form.format(x=x, y=self.expr(kind, 0)) + ")"

    def powers(self, kind: Kind, depth: int) -> str:
        x = f"(1.5 + np.sin({self.expr(kind, depth)}))"
        which = self.number(4)
        if which == 0:
            return f"({x} ** {self.choose([2, 3, -1, 0, 0.5, -0.5, 1.5, 2.0])})"
        if which == 1:
            return f"(np.tanh({self.expr(kind, depth)}) ** {self.choose([2, 3, 1, 0])})"
        if which == 2:
            return f"({x} ** np.sin({self.expr(kind, depth)}))"
        if which == 3:
            return f"np.power({x}, {self.expr(replace(kind, rounded=False), 0)})"
        return f"({self.choose([2.0, 0.5])} ** np.cos({self.expr(kind, depth)}))"

    def flags(self, kind: Kind, depth: int) -> str:
        which = self.number(3)
        if which == 0 and depth:
            a, b = self.expr(kind, depth), self.expr(self.narrower(kind), depth)
            return f"({a} {self.choose(['&', '|', '^'])} {b})"
        if which == 1 and depth:
            return f"~{self.expr(kind, depth)}"
        of = Kind(self.choose(["f8", "i8", "f4"]), kind.shape)
        other = self.expr(self.narrower(of), 0) if self.number(1) else self.choose([0, 1, 2])
        return f"({self.expr(of, depth)} {self.choose(['<', '<=', '>', '==', '!='])} {other})"

    def where(self, kind: Kind, depth: int) -> str:
        mask = self.expr(replace(self.narrower(kind), dtype="?", rounded=False), depth)
        return f"np.where({mask}, {self.expr(kind, depth)}, {self.expr(kind, depth)})"

    def either(self, kind: Kind, depth: int) -> str:
        a, b = self.expr(kind, depth), self.expr(kind, depth)
        return f"({a} if {self.test()} else {b})"

    def reduced(self, kind: Kind, depth: int) -> str:
        """A reduction of something that has one more axis, or all of its axes."""
        if kind.rank == 0 and self.number(2) == 0:
            source = self.name(lambda k: k.dtype == kind.dtype and k.rounded <= kind.rounded)
            axes = ""
        else:
            axis = self.number(kind.rank)
            dim = self.choose([2, 3, "n", 5])
            shape = (*kind.shape[:axis], dim, *kind.shape[axis:])
            source = self.expr(replace(kind, shape=shape), depth)
            axes = f", axis={axis if self.number(1) else axis - len(shape)}"
        if kind.dtype == "?":
            return f"np.{self.choose(['any', 'all'])}({source}{axes})"
        names = ["sum", "sum", "mean"] if kind.rounded else ["sum", "max", "min"]
        name = self.choose(names)
        if name != "sum":
            return f"np.{name}({source}{axes})"
        dtype = f", dtype='{kind.dtype}'" if kind.is_whole else ""
        text = f"np.sum({source}{axes}{dtype})"
        return text if kind.rounded else self.small(kind, text)

    def position(self, size: int | str) -> str:
        """A whole number that is a position; now and then it is none."""
        if size == 0:
            raise Unfit  # refused when traced, even where it does not run
        which = self.number(9)
        if which == 9:
            return self.choose([x for x in self.counters if x != "n"])
        if which > 6:
            return self.choose(["0", "-1"])
        of = f"max({size}, 1)" if size == "n" else str(max(int(size), 1))
        if which > 3:
            return f"{self.choose(self.counters)} % {of}"
        return f"{self.expr(INT, 0)} % {of}"

    def part(self, kind: Kind, depth: int) -> str:
        """A row or a column, or a slice of something longer."""
        if kind.rank and self.number(1):
            first, *rest = kind.shape
            if isinstance(first, int):
                start, step, more = self.number(1), self.choose([1, 1, 2, -1]), self.number(2)
                size = first * abs(step) + more + start
                source = self.expr(replace(kind, shape=(size, *rest)), 0)
                if step < 0:
                    return f"{source}[::-1][{start}:{start + first}]"
                return f"{source}[{start}:{start + first * step}:{step}]"
        axis = self.number(kind.rank)
        dim = self.choose([3, 2, "n", 5])
        source = self.expr(replace(kind, shape=(*kind.shape[:axis], dim, *kind.shape[axis:])), 0)
        return f"{source}[{':, ' * axis}{self.position(dim)}]"

    def moved(self, kind: Kind, depth: int) -> str:
        which = self.number(6)
        if which == 0 and kind.rank == 2:
            return f"{self.expr(replace(kind, shape=kind.shape[::-1]), depth)}.T"
        if which == 1 and kind.rank:
            return f"{self.expr(kind, depth)}[::-1]"
        if which == 2 and kind.rank:
            axis = self.number(kind.rank - 1)
            return f"np.roll({self.expr(kind, depth)}, {self.choose([1, -1, 2])}, axis={axis})"
        if which == 3 and kind.rank == 2 and kind.shape[0] == 2:
            row = replace(kind, shape=kind.shape[1:])
            return f"np.stack([{self.expr(row, depth)}, {self.expr(row, depth)}])"
        if which == 4 and kind.rank and isinstance(kind.shape[0], int) and kind.shape[0] > 1:
            first, *rest = kind.shape
            a = self.expr(replace(kind, shape=(1, *rest)), depth)
            b = self.expr(replace(kind, shape=(first - 1, *rest)), depth)
            return f"np.concatenate([{a}, {b}])"
        if which == 5 and kind.is_float:
            other = replace(kind, dtype=self.choose(["f8", "f4", "i8"]))
            if other.dtype != "i8" or (kind.rank and not kind.rounded):
                source = self.expr(replace(other, rounded=kind.rounded), depth)
                return f"{source}.astype('{kind.dtype}')"
        if kind.rank > 1 and all(isinstance(d, int) for d in kind.shape):
            size = int(np.prod(kind.shape))
            return f"{self.expr(replace(kind, shape=(size,)), depth)}.reshape{kind.of_shape}"
        raise Unfit

    def listed(self, kind: Kind, depth: int) -> str:
        fits = [name for name, k in self.lists.items() if k == kind]
        if fits:
            name = self.choose(fits)
            where = self.choose(["-1", "0", f"{self.choose(self.counters)} % len({name})"])
            return f"{name}[{where}]"
        row = replace(kind, shape=kind.shape[1:])
        fits = [name for name, k in self.lists.items() if kind.rank and k == row]
        name = self.choose(fits)
        if isinstance(kind.shape[0], int) and kind.shape[0] < 2:
            return f"np.stack({name})[:{kind.shape[0]}]"
        raise Unfit

    def called(self, kind: Kind, depth: int) -> str:
        fits = [name for name, (_, result) in self.functions.items() if result == kind]
        name = self.choose(fits)
        return f"{name}({', '.join(self.expr(k, 0) for k in self.functions[name][0])})"

    def ordered(self, kind: Kind, depth: int) -> str:
        which = self.number(4)
        if which == 0 and kind.rank:
            axis = self.number(kind.rank - 1)
            return f"np.sort({self.expr(kind, depth)}, axis={axis})"
        of = replace(kind, dtype=self.choose(["f8", "i8", "f4"]))
        if kind.dtype == "i8" and which < 3 and kind.rank:
            axis = self.number(kind.rank - 1)
            return f"np.argsort({self.expr(of, depth)}, axis={axis}, kind='stable')"
        if kind.dtype == "i8" and which == 3:
            axis = self.number(kind.rank)
            source = replace(of, shape=(*kind.shape[:axis], 3, *kind.shape[axis:]))
            name = self.choose(["argmax", "argmin"])
            return f"np.{name}({self.expr(source, depth)}, axis={axis})"
        if kind.dtype == "i8":
            among = self.expr(replace(of, shape=(self.choose([3, "n"]),)), 0)
            return f"np.searchsorted(np.sort({among}), {self.expr(of, depth)})"
        if kind.rank:
            return f"np.abs({self.expr(kind, depth)})"
        among = self.name(lambda k: k.rank > 0 and k.dtype == kind.dtype and not k.rounded)
        return self.small(
            kind, f"np.sum({among}[{among} > {self.number(2)}], dtype='{kind.dtype}')"
        )

    def product(self, kind: Kind, depth: int) -> str:
        inner = self.choose([3, 2, "n"])
        if kind.rank == 0:
            shapes: Any = ((inner,), (inner,))
        elif kind.rank == 1:
            shapes = self.choose(
                [((kind.shape[0], inner), (inner,)), ((inner,), (inner, kind.shape[0]))]
            )
        elif kind.rank == 2:
            shapes = ((kind.shape[0], inner), (inner, kind.shape[1]))
        else:
            shapes = ((*kind.shape[:2], inner), (inner, kind.shape[2]))
        a, b = (self.expr(replace(kind, shape=s), depth) for s in shapes)
        text = f"({a} @ {b})"
        return text if kind.rounded else self.small(kind, text)

    def running(self, kind: Kind, depth: int) -> str:
        if not kind.rank:
            raise Unfit
        axis = self.number(kind.rank - 1)
        text = f"np.cumsum({self.expr(kind, depth)}, axis={axis}, dtype='{kind.dtype}')"
        return text if kind.rounded else self.small(kind, text)

    def taken(self, kind: Kind, depth: int) -> str:
        if not kind.rank:
            raise Unfit
        size = self.choose([3, 5, 2])
        where = self.expr(Kind("i8", (kind.shape[0],)), depth)
        source = self.expr(replace(kind, shape=(size, *kind.shape[1:])), depth)
        if self.number(1):
            return f"{source}[{where} % {size}]"
        if kind.rank == 1:
            order = f"np.argsort({self.expr(Kind('f8', kind.shape), 0)}, kind='stable')"
            return f"np.take_along_axis({self.expr(kind, depth)}, {order}, axis=0)"
        return f"np.take({source}, {where} % {size}, axis=0)"

    def test(self) -> str:
        """Something to decide by."""
        which = self.number(5)
        if which == 0:
            return f"{self.choose(self.counters)} {self.choose(['>', '<', '=='])} {self.number(3)}"
        if which == 1:
            return f"{self.choose(self.counters)} % 2 == 0"
        if which == 2:
            a, b = (self.expr(Kind("f8", ()), 1) for _ in range(2))
            return f"{a} < {b}"
        if which == 3:
            flags = self.expr(Kind("?", self.choose(SHAPES)), 1)
            return f"np.{self.choose(['any', 'all'])}({flags})"
        if which == 4:
            left, right = self.test(), self.test()
            return f"({left} {self.choose(['and', 'or'])} {right})"
        return f"not {self.expr(FLAG, 1)}"

    # Statements
    def assigned(self, kind: Kind) -> str:
        """An expression for a name that may be carried: it stays small in a loop."""
        text = self.expr(kind)
        if kind.rank and self.number(4):
            text = f"np.copy({text})"  # mostly no view: many changes of what has views are refused
        if not self.loops or kind.dtype == "?":
            return text
        if kind.rounded:
            return f"np.{self.choose(['sin', 'tanh'])}({text})"
        return self.small(kind, text)

    def statement(self, depth: int) -> None:
        simple = [self.set_new, self.set_again, self.set_again, self.set_part, self.set_part]
        simple += [self.change, self.push, self.push, self.assign, self.swap, self.leave]
        nested = [self.branch, self.count, self.count, self.while_, self.rows, self.endless]
        mark = len(self.lines)
        kept = dict(self.env), dict(self.lists), self.indent, self.loops, len(self.counters)
        try:
            if depth and self.number(2) == 0:
                self.choose(nested)(depth - 1)
            else:
                self.choose(simple)()
        except Unfit:
            del self.lines[mark:]
            self.env, self.lists, self.indent, self.loops = kept[:4]
            del self.counters[kept[4] :]

    def body(self, depth: int, most: int = 4) -> None:
        for _ in range(1 + self.number(most - 1)):
            self.statement(depth)

    def kind(self) -> Kind:
        dtype = self.choose(["f8", "f8", "f8", "f8", "f4", "i8", "i8", "i4", "?"])
        rounded = dtype in ("f8", "f4") and self.number(2) > 0
        return Kind(dtype, self.choose(SHAPES), rounded)

    def set_new(self) -> None:
        kind = self.kind()
        text, name = self.assigned(kind), self.new_name()
        self.write(f"{name} = {text}")
        self.env[name] = kind

    def carried(self, fits: Callable[[Kind], bool] = lambda kind: True) -> str:
        """A name that may be changed: what is returned is taken first."""
        names = [x for x, kind in self.env.items() if fits(kind) and x not in self.fixed]
        return self.choose([*(x for x in names if x in self.results), *names])

    def set_again(self) -> None:
        name = self.carried()
        self.write(f"{name} = {self.assigned(self.env[name])}")

    def set_part(self) -> None:
        name = self.carried(lambda kind: kind.rank > 0 and kind.dtype != "?")
        kind = self.env[name]
        which = self.number(6)
        first = kind.shape[0]
        if which == 0:
            mask = self.expr(Kind("?", kind.shape), 1)
            where, part = mask, replace(kind, shape=())
        elif which == 1:
            where, part = self.choose(["1:", ":-1", "::2", "::-1"]), replace(kind, shape=())
        elif which == 2 and kind.rank > 1:
            where = f":, {self.position(kind.shape[1])}"
            part = replace(kind, shape=(kind.shape[0], *kind.shape[2:]))
        elif which == 3 and kind.rank > 1:
            where = f"{self.position(first)}, {self.position(kind.shape[1])}"
            part = replace(kind, shape=kind.shape[2:])
        elif which == 4 and first != 0:
            places = self.expr(Kind("i8", (2,)), 0)
            of = f"max({first}, 1)"
            value = self.assigned(replace(kind, shape=kind.shape[1:]))
            self.write(f"np.add.at({name}, {places} % {of}, {value})")
            if not kind.rounded:
                self.write(f"{name} = {self.small(kind, name)}")
            return
        else:
            where, part = self.position(first), replace(kind, shape=kind.shape[1:])
        op = self.choose(["=", "=", "+=", "*="]) if kind.rounded else "="
        self.write(f"{name}[{where}] {op} {self.assigned(part)}")

    def change(self) -> None:
        name = self.carried(lambda kind: kind.rounded)
        kind = self.narrower(self.env[name])
        self.write(f"{name} {self.choose(['+=', '-=', '*='])} {self.assigned(kind)}")
        if self.loops:
            self.write(f"{name} = np.tanh({name})")

    def push(self) -> None:
        if self.lists and self.number(7):
            name = self.choose([*self.lists])
            if self.number(4) == 0:
                self.write(f"if len({name}) > 1:")
                self.write(f"    {name}.pop()")
            else:
                self.write(f"{name}.append({self.assigned(self.lists[name])})")
            return
        if self.loops:
            raise Unfit
        kind, name = self.kind(), self.new_name("l")
        self.write(f"{name} = [{self.expr(kind, 1)}]")
        self.lists[name] = kind

    def assign(self) -> None:
        name = self.choose([*self.variables])
        value = self.assigned(self.variables[name])
        if self.variables[name].rounded and self.number(2) == 0:
            self.write(f"{name}.assign_add({value})")
        else:
            self.write(f"{name}.assign({value})")

    def swap(self) -> None:
        a = self.carried()
        b = self.carried(lambda kind: kind == self.env[a])
        self.write(f"{a}, {b} = {b}, {a}")

    def leave(self) -> None:
        """An early end: of a trip, of a loop, of the function."""
        ends = ["return"] if not self.loops else ["break", "continue", "break", "return"]
        end = self.choose(ends)
        with self.block(f"if {self.test()}:"):
            self.write(self.last() if end == "return" else end)
            self.ends_early |= end == "return"

    def last(self) -> str:
        return f"return {', '.join(self.results)},"

    def branch(self, depth: int) -> None:
        with self.block(f"if {self.test()}:"):
            self.body(depth, 3)
        if self.number(3) == 0:
            with self.block(f"elif {self.test()}:"):
                self.body(depth, 2)
        if self.number(2):
            with self.block("else:"):
                self.body(depth, 3)

    @contextmanager
    def looping(self, head: str) -> Iterator[None]:
        self.loops += 1
        with self.block(head):
            yield
        self.loops -= 1

    def bound(self) -> str:
        return self.choose(["3", "k", "n", "k % 3", "0", "1", "4", f"{self.expr(INT, 0)} % 4"])

    def count(self, depth: int) -> None:
        i, bound = self.new_name("i"), self.bound()
        span = self.choose([bound, bound, f"1, {bound}", f"{bound}, 0, -1", f"0, {bound}, 2"])
        with self.looping(f"for {i} in range({span}):"):
            self.counters.append(i)
            self.body(depth)

    def while_(self, depth: int) -> None:
        j, bound = self.new_name("j"), self.bound()
        self.write(f"{j} = 0")
        more = f" and {self.test()}" if self.number(1) else ""
        with self.looping(f"while {j} < {bound}{more}:"):
            self.write(f"{j} += 1")
            self.counters.append(j)
            self.body(depth)

    def endless(self, depth: int) -> None:
        j = self.new_name("j")
        self.write(f"{j} = 0")
        with self.looping("while True:"):
            self.counters.append(j)
            self.write(f"{j} += 1")  # first, for a trip may end early
            with self.block(f"if {j} > {self.bound()}:"):
                self.write("break")
            if self.number(1):
                self.body(0, 2)
                with self.block(f"if {self.test()}:"):
                    self.write("break")
            self.body(depth, 3)

    def rows(self, depth: int) -> None:
        name = self.name(lambda kind: kind.rank > 0)
        kind, row = self.env[name], self.new_name("r")
        i = self.new_name("i")
        head = f"for {i}, {row} in enumerate({name}.copy()):"
        with self.looping(head):
            self.counters.append(i)
            self.env[row] = replace(kind, shape=kind.shape[1:])
            self.fixed.add(row)
            self.body(depth, 3)

    def function(self) -> None:
        """A function inside, which may read what is around it."""
        kinds = [self.kind() for _ in range(1 + self.number(1))]
        name, names = self.new_name("g"), [self.new_name("a") for _ in kinds]
        result = self.kind()
        self.loops += 1
        with self.block(f"def {name}({', '.join(names)}):"):
            self.env.update(zip(names, kinds, strict=True))
            self.fixed.update(names)
            if self.number(2) == 0:
                with self.block(f"if {self.test()}:"):
                    self.write(f"return {self.assigned(result)}")
            self.write(f"return {self.assigned(result)}")
        self.loops -= 1
        self.functions[name] = kinds, result


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Programs of every kind of statement, with arguments for two or three calls."""
    w = Writer(draw)
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
    if w.number(3) == 0:  # an argument itself is changed, in the caller's array
        w.fixed.discard(w.choose(list(kinds)))
    for _ in range(1 + w.number(5)):
        w.statement(2)
    for name in w.lists:
        if not w.ends_early:
            w.write(f"{name} = np.stack({name})")
            w.results.append(name)
    w.write(w.last())
    names = ", ".join([*kinds, "k"])
    text = "\n".join([*head, f"def f({names}):", *w.lines]) + "\n"
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    calls = []
    for _ in range(2 + w.number(1)):
        size = w.choose(SIZES)
        args = [numbers(rng, kind, size) for kind in kinds.values()]
        calls.append((*args, w.number(4)))
    rounded = [k for k, kind in enumerate(kinds.values()) if kind.rounded]
    return Program(text, tuple(calls), tuple(rounded))


def numbers(rng: np.random.Generator, kind: Kind, size: int) -> Any:
    """An argument of a kind, where n is `size`."""
    shape = tuple(size if d == "n" else int(d) for d in kind.shape)
    if kind.rounded:
        return rng.normal(size=shape).round(3).astype(kind.dtype)
    low, high = (0, 2) if kind.dtype == "?" else (-4, 5)
    return np.asarray(rng.integers(low, high, shape)).astype(kind.dtype)
