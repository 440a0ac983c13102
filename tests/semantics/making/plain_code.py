"""Code that runs as plain Python while `f` is traced, and reads or changes objects of outside.

Constructors, generators and operators get such objects as arguments, keep them, and use them later.
"""

from __future__ import annotations

from tests.semantics.making.expressions import integer, real
from tests.semantics.making.writer import Writer


def source(w: Writer) -> None:
    """A global object with a number, a list and a dict, and changes of each."""
    name, n = w.name("src"), w.number(-2, 4)
    text = f"SimpleNamespace(k={n}, l=[{n}, {w.number(-2, 5)}], d={{'a': {w.number(0, 4)}}})"
    w.outside(
        f"{name} = {text}",
        f"{name}.k = {w.number(-3, 6)}",
        f"{name}.l.append({w.number(-3, 6)})",
        f"{name}.l[0] = {w.number(-3, 6)}",
        f"{name}.l = [{w.number(-3, 6)}]",
        f"{name}.d['a'] = {w.number(-3, 6)}",
        f"{name} = {text.replace('k=', 'k=1 + ')}",
    )
    w.facts.setdefault("plain sources", []).append(name)
    w.add(f"{name}.k", "int", known=True)


def _read(w: Writer, owner: str) -> str:
    """Return an expression that reads a source, by the ways in which objects are read."""
    return w.choose(
        f"{owner}.k",
        f"{owner}.l[0]",
        f"len({owner}.l)",
        f"sum({owner}.l)",
        f"{owner}.d['a']",
        f"{owner}.d.get('a', 0)",
        f"getattr({owner}, 'k')",
        f"vars({owner})['k']",
        f"max({owner}.l)",
        f"[*{owner}.l][-1]",
    )


def _holder(w: Writer) -> str:
    """Write a class whose constructor reads an object, and whose operators do; return its name."""
    name = w.name("Holder")
    read = _read(w, "src")
    lines = [f"class {name}:", "    def __init__(self, src, v=1.0):", "        self.src = src"]
    lines += [f"        self.first = {read}", "        self.v = v"]
    later = _read(w, "self.src")
    other = _read(w, "other.src")
    bodies = {
        "__add__": f"(self, u):\n        return self.v + u * {later}",
        "__radd__": f"(self, u):\n        return u - {later}",
        "__mul__": f"(self, other):\n        return {name}(other.src, self.v * {other})",
        "__getitem__": f"(self, i):\n        return self.first + i * {later}",
        "__len__": f"(self):\n        return abs({later}) + 1",
        "__iter__": f"(self):\n        yield self.first\n        yield {later}",
        "__contains__": f"(self, u):\n        return u == {later}",
        "__call__": f"(self, u):\n        return u * {later} + self.first",
        "__eq__": f"(self, other):\n        return {later} == {other}",
        "__neg__": f"(self):\n        return {name}(self.src, {later} + 0.5)",
    }
    for method, text in bodies.items():
        lines.append(f"    def {method}{text}")
    w.outside("\n".join([*lines, "    __hash__ = None"]))
    w.changes.append(f"{name}.__len__ = lambda self: {w.number(1, 4)}")
    return name


def holder(w: Writer) -> None:
    """Objects that `f` makes of objects of outside, and their operators."""
    if not (sources := w.facts.get("plain sources")):
        return
    names = w.facts.setdefault("holders", [])
    if not names:
        names.append(_holder(w))
    cls, src, o = w.choose(*names), w.choose(*sources), w.name("h")
    w.write(f"{o} = {cls}({src}, {real(w, 1)} + 0.0)")
    p = w.choose(o, f"{cls}({w.choose(*sources)})")
    texts = [
        ("float", f"({o} + {real(w, 0)}) + 0.0"),
        ("float", f"({real(w, 0)} + {o}) + 0.0"),
        ("float", f"({o} * {p}).v + 0.0"),
        ("int", f"{o}[2] + 0"),
        ("int", f"len({o}) + 0"),
        ("int", f"sum({o}) + 0"),
        ("int", f"max([*{o}]) + 0"),
        ("bool", f"({w.number(0, 3)} in {o}) and True"),
        ("float", f"{o}({real(w, 0)}) + 0.0"),
        ("bool", f"({o} == {p}) and True"),
        ("float", f"(-{o}).v + 0.0"),
        ("int", f"{o}.first + {o}.src.k"),
        ("int", f"sum(i * 2 for i in {o}) + 0"),
        ("int", f"sorted({o}, key=lambda i: -i)[0]"),
        ("int", f"functools.reduce(lambda a, b: a - b, {o}, 1)"),
    ]
    for kind, text in w.random.sample(texts, 2):
        w.assign(kind, text)


def generator(w: Writer) -> None:
    """A generator that gets an object of outside, or changes one."""
    if not (sources := w.facts.get("plain sources")):
        return
    name, src = w.name("walk"), w.choose(*sources)
    w.outside(
        f"def {name}(src, u):\n    for i in src.l:\n        yield i * u + {_read(w, 'src')}",
    )
    u = w.choose(integer(w, 0), str(w.number(1, 3)))
    form = w.choose("sum({})", "[*{}][0]", "next({})", "next(iter({}))", "sum(list({})[-1:])")
    w.assign("int", form.format(f"{name}({src}, {u})") + " + 0")


def changing(w: Writer) -> None:
    """Plain code that changes an object of outside: refused, or done at each call."""
    if not (sources := w.facts.get("plain sources")) or not w.risky or w.staged:
        return
    name, src = w.name("Changing"), w.choose(*sources)
    change = w.choose("src.l.append(1)", "src.k += 1", "src.d['a'] = 7", "src.l[0] += 2")
    w.outside(
        f"class {name}:\n    def __init__(self, src):\n        self.src = src\n"
        f"    def __len__(self):\n        src = self.src\n        {change}\n        return 2\n"
        f"    def __iter__(self):\n        src = self.src\n        {change}\n        yield 1\n"
    )
    w.assign("int", w.choose(f"len({name}({src}))", f"sum({name}({src}))", f"[*{name}({src})][0]"))


WORLD = {"an object that plain code reads": (2.5, source)}
STATEMENTS = {
    "an object of an object": (2.5, holder, True),
    "a generator over an object": (1.5, generator, True),
    "plain code with effects": (1, changing, False),
}
