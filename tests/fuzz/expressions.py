"""Random expressions of a kind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz.kinds import FLAG, INT, SHAPES, Kind
from tests.fuzz.writer import Unfit, Writer


class Expressions(Writer):
    """Writes expressions; of exact ones small enough to stay exact."""

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
        forms += [self.listed, self.called, self.either, self.of_pair]
        if kind.is_float and kind.rounded:
            forms += [self.smooth, self.smooth, self.smooth, self.product, self.powers]
            forms += [self.running, self.taken, self.complex_]
        elif kind.dtype != "?":
            forms += [self.ordered, self.ordered, self.product, self.running, self.taken]
            forms += [self.half] if kind.is_float else []
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

    def complex_(self, kind: Kind, depth: int) -> str:
        """A real part of complex numbers that stay away from 0."""
        x, y = self.expr(kind, depth), self.expr(kind, 0)
        unit = "np.complex64(1j)" if kind.dtype == "f4" else "1j"
        z = f"(2.0 + np.sin({x}) + {unit} * {y})"
        form = self.choose(
            [
                "np.abs({})",
                "({} * {}).real",
                "np.imag(1.0 / {})",
                "np.angle({})",
                "np.conj({}).imag",
            ]
        )
        return form.replace("{}", z)

    def half(self, kind: Kind, depth: int) -> str:
        """Arithmetic of small whole numbers in float16, which is exact."""
        x, y = (f"{self.expr(kind, depth)}.astype('f2')" for _ in range(2))
        op = self.choose(["+", "-", "*"])
        return f"np.clip({x} {op} {y}, -8, 8).astype('{kind.dtype}')"

    def of_pair(self, kind: Kind, depth: int) -> str:
        """An item of a tuple."""
        a, b = self.expr(kind, depth), self.expr(kind, 0)
        where = self.choose(["0", "-1", f"{self.choose(self.counters)} % 2", self.position(2)])
        return f"({a}, {b})[{where}]"

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
            if self.number(5) == 0 and depth and kind.rounded:
                ends = self.choose(["{}:", ":{}", "{}::-1"]).format(self.position(dim))
                source = f"{source}[{':, ' * axis}{ends}]"
                return f"np.sum({source}, axis={axis})"
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
        which = self.number(11)
        if which == 11:
            return self.choose(["h", "-h"])
        if which == 10:
            dtype = self.choose(["i1", "u1", "i2", "u4"])
            of = f"max({size}, 1)" if size == "n" else str(max(int(size), 1))
            return f"np.{np.dtype(dtype).name}({self.choose(self.counters)} % {of})"
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
            counter = self.choose(self.counters)
            forms = [f"{counter} % len({name})", f"-1 - {counter} % len({name})", f"-{counter}"]
            where = self.choose(["-1", "0", "-2", "h", *forms])
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
