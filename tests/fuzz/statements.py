"""Random statements: assignments, changes in place, branches, loops, functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from tests.fuzz.expressions import Expressions
from tests.fuzz.kinds import INT, SHAPES, Kind
from tests.fuzz.writer import Unfit


class Statements(Expressions):
    """Writes statements."""

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
        simple += [self.object, self.exchange]
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

    def object(self) -> None:
        """An object with two attributes, or a dict of two items, which may be assigned."""
        if self.loops:
            raise Unfit
        name, kinds = self.new_name("o"), [self.kind() for _ in range(2)]
        a, b = (self.assigned(kind) for kind in kinds)
        if self.number(1):
            self.write(f"{name} = Pair({a}, {b})")
            parts = [f"{name}.a", f"{name}.b"]
            self.has_objects = True
        else:
            self.write(f"{name} = {{'a': {a}, 'b': {b}}}")
            parts = [f"{name}['a']", f"{name}['b']"]
        self.env.update(zip(parts, kinds, strict=True))

    def exchange(self) -> None:
        """Two names through a tuple that has a name."""
        a = self.carried()
        b = self.carried(lambda kind: kind == self.env[a])
        name = self.new_name("t")
        self.write(f"{name} = ({self.assigned(self.env[a])}, {a})")
        self.write(f"{a}, {b} = {name}")

    def carried(self, fits: Callable[[Kind], bool] = lambda kind: True) -> str:
        """A name that may be changed: what is returned is taken first."""
        names = [x for x, kind in self.env.items() if fits(kind) and x not in self.fixed]
        return self.choose([*(x for x in names if x in self.results), *names])

    def set_again(self) -> None:
        name = self.carried()
        self.write(f"{name} = {self.assigned(self.env[name])}")

    def set_part(self) -> None:
        name = self.carried(lambda kind: kind.rank > 0)
        kind = self.env[name]
        which = self.number(6)
        first = kind.shape[0]
        if which == 0:
            mask = self.expr(Kind("?", kind.shape), 1)
            where, part = mask, replace(kind, shape=())
        elif which == 1:
            some, other = self.position(first), self.position(first)
            runs = [f"{some}:", f":{some}", f"{some}:{other}", f"{some} - 1::-1"]
            where = self.choose(["1:", ":-1", "::2", "::-1", *runs])
            part = replace(kind, shape=())
        elif which == 2 and kind.rank > 1:
            where = f":, {self.position(kind.shape[1])}"
            part = replace(kind, shape=(kind.shape[0], *kind.shape[2:]))
        elif which == 3 and kind.rank > 1:
            where = f"{self.position(first)}, {self.position(kind.shape[1])}"
            part = replace(kind, shape=kind.shape[2:])
        elif which == 4 and first != 0 and kind.dtype != "?":
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
        value = self.assigned(part)
        if ":" in where and op != "=" and self.number(1):
            view = self.new_name("w")
            self.write(f"{view} = {name}[{where}]")
            self.write(f"{view} {op} {value}")
        else:
            self.write(f"{name}[{where}] {op} {value}")

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
        narrow = self.choose(self.narrow)
        return self.choose(["3", "k", "n", "k % 3", "0", "1", narrow, f"{self.expr(INT, 0)} % 4"])

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
