"""Classes and their objects: global ones, arguments, and those that `f` makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.semantics.making.writer import Writer

Reads = list[tuple[str, str]]  # an expression of "self", and its kind


@dataclass
class Class:
    """What is known of a class of the program.

    Attributes:
        name: its name.
        made: the call that makes an object, with a place for a float.
        reads: what its objects tell.
        attributes: the names of its objects' floats, which may be assigned.
        changes: statements that change an object.
        methods: its methods of one float, which give one.
        is_tree: whether the numbers of an object that is an argument are traced.
    """

    name: str
    made: str
    reads: Reads
    attributes: list[str]
    changes: list[str]
    methods: list[str]
    is_tree: bool = False


def _members(w: Writer, name: str) -> list[tuple[str, Reads, list[str], list[str]]]:
    """Return possible members: text, reads, steps that change the class, methods."""
    n, half = w.number(-2, 5), w.number(-3, 6) / 2
    return [
        (f"rate = {n}", [("self.rate", "int")], [f"{name}.rate = {w.number(-3, 7)}"], []),
        (
            "table = {'a': 1, 'b': 2}",
            [("self.table['a']", "int"), ("len(self.table)", "int")],
            [f"{name}.table['a'] = {n}", f"{name}.table['c'] = 4", f"{name}.table = {{'a': 5}}"],
            [],
        ),
        (
            "@property\ndef double(self):\n    return self.v * 2",
            [("self.double", "float")],
            [f"{name}.double = property(lambda self: self.v + {n})"],
            [],
        ),
        (
            f"def scaled(self, u):\n    return self.v * u + {n}",
            [],
            [f"{name}.scaled = lambda self, u: u - {half}"],
            ["scaled"],
        ),
        (
            f"def limited(self, u):\n    if u > self.v:\n        return {half}\n    return self.v",
            [],
            [f"setattr({name}, 'limited', lambda self, u: self.v - u)"],
            ["limited"],
        ),
        (
            f"def __len__(self):\n    return {abs(n)}",
            [("len(self)", "int")],
            [f"{name}.__len__ = lambda self: {w.number(0, 5)}"],
            [],
        ),
        (
            f"def __bool__(self):\n    return {n > 1}",
            [("bool(self)", "bool"), ("(not self)", "bool"), ("(1 if self else 2)", "int")],
            [f"{name}.__bool__ = lambda self: {n <= 1}"],
            [],
        ),
        (
            "def __mul__(self, other):\n    return self.v * other + 0.5",
            [("(self * 2)", "float")],
            [f"{name}.__mul__ = lambda self, other: {half} - other"],
            ["__mul__"],
        ),
        (
            "def __radd__(self, other):\n    return other - self.v\n__add__ = __radd__",
            [("(1.5 + self)", "float"), ("(self + 2)", "float")],
            [f"{name}.__radd__ = lambda self, other: {half}"],
            ["__add__"],
        ),
        (
            "def __getitem__(self, i):\n    return self.v * i",
            [("self[2]", "float"), ("self[-1]", "float")],
            [f"{name}.__getitem__ = lambda self, i: i + {half}"],
            [],
        ),
        (
            "def __iter__(self):\n    return iter([self.v, 1.5])",
            [("sum(self)", "float"), ("list(self)[1]", "float"), ("next(iter(self))", "float")],
            [f"{name}.__iter__ = lambda self: iter([{half}, {half}])"],
            [],
        ),
        (
            f"def __contains__(self, k):\n    return k == {n}",
            [(f"({w.number(0, 2)} in self)", "bool")],
            [f"{name}.__contains__ = lambda self, k: k > 0"],
            [],
        ),
        (
            f"def __getattr__(self, k):\n    return {n} if k == 'extra' else object().k",
            [("self.extra", "int"), ("hasattr(self, 'other')", "bool")],
            [f"{name}.extra = {w.number(-2, 6)}"],
            [],
        ),
        (
            f"def __call__(self, u):\n    return u * {half} + self.v",
            [("self(1.5)", "float")],
            [f"{name}.__call__ = lambda self, u: u + {n}"],
            ["__call__"],
        ),
        (
            f"@classmethod\ndef size(cls):\n    return len(cls.__name__) + {n}",
            [("self.size()", "int")],
            [f"{name}.size = classmethod(lambda cls: {n})"],
            [],
        ),
        (
            "@staticmethod\ndef twice(u):\n    return u * 2",
            [("self.twice(1.5)", "float")],
            [f"{name}.twice = staticmethod(float)"],
            ["twice"],
        ),
        (
            "@functools.cached_property\ndef once(self):\n    return self.v * 3",
            [("self.once", "float")],
            [],
            [],
        ),
        ("def __repr__(self):\n    return f'<{self.v}>'", [("len(repr(self))", "int")], [], []),
        (
            f"def __eq__(self, other):\n    return self.v == {half}\n__hash__ = None",
            [("(self == 1)", "bool")],
            [f"{name}.__eq__ = lambda self, other: True"],
            [],
        ),
    ]


def plain_class(w: Writer, slots: bool = False) -> Class:
    name = w.name("C")
    members = w.random.sample(_members(w, name), w.number(2, 5))
    if slots:
        members = [m for m in members if "cached" not in m[0]]
    lines = ["__slots__ = ('v', 'b')"] if slots else []
    lines += ["def __init__(self, v, b=1):", "    self.v = v", "    self.b = b"]
    reads: Reads = [("self.v", "float"), ("self.b", "int")]
    methods: list[str] = []
    for text, more, changes, named in members:
        lines += text.splitlines()
        reads += more
        w.changes += changes
        methods += named
    changes = [
        f"self.v = {w.number(-3, 6)}.5",
        "self.b += 1",
        f"setattr(self, 'v', {w.number(0, 3)}.0)",
    ]
    if not slots:
        lines += ["    ", "def bump(self, u):", "    self.v = self.v + u", "    return self.v"]
        changes += [f"vars(self)['v'] = {w.number(-2, 2)}.5", "self.bump(0.5)", "self.rate = 9"]
    w.outside("\n".join([f"class {name}:", *("    " + line for line in lines)]))
    w.note("slots" if slots else "a class")
    return Class(name, f"{name}(#)", reads, ["v"], changes, methods)


def slotted_class(w: Writer) -> Class:
    return plain_class(w, slots=True)


def data_class(w: Writer) -> Class:
    name, frozen = w.name("D"), w.choose("", "(frozen=True)", "(order=True)")
    w.outside(
        f"@dataclass{frozen}\nclass {name}:\n    v: float\n    b: int = {w.number(0, 3)}\n"
        f"    def scaled(self, u):\n        return self.v * u - self.b"
    )
    reads: Reads = [("self.v", "float"), ("self.b", "int"), (f"(self == {name}(1.5))", "bool")]
    changes = [] if "frozen" in frozen else [f"self.v = {w.number(-3, 6)}.5", "self.b -= 1"]
    w.note("a dataclass")
    w.changes.append(f"{name}.scaled = lambda self, u: u + self.v")
    attributes = [] if "frozen" in frozen else ["v"]
    return Class(name, f"{name}(#)", reads, attributes, changes, ["scaled"], is_tree=True)


def derived_class(w: Writer) -> Class:
    base = plain_class(w)
    name = w.name("S")
    w.outside(
        f"class {name}({base.name}):\n    depth = {w.number(0, 3)}\n"
        f"    def __init__(self, v, b=2):\n        super().__init__(v, b)\n"
        f"        self.extra = v + 1\n"
        f"    def own(self, u):\n        return self.v - u * self.depth",
        f"{name}.depth = {w.number(-2, 5)}",
        f"{base.name}.rate = {w.number(-2, 5)}",
        f"{name}.own = lambda self, u: u",
    )
    reads = [r for r in base.reads if "extra" not in r[0]]
    reads += [("self.depth", "int"), (f"isinstance(self, {base.name})", "bool")]
    w.note("a derived class")
    return Class(name, f"{name}(#)", reads, base.attributes, base.changes, [*base.methods, "own"])


CLASSES: dict[str, tuple[float, Callable[[Writer], Class]]] = {
    "plain": (4, plain_class),
    "slots": (1, slotted_class),
    "data": (2, data_class),
    "derived": (1, derived_class),
}


def a_class(w: Writer) -> Class:
    """Return a class of the program, a new one now and then."""
    classes: list[Class] = w.facts.setdefault("classes", [])
    if not classes:
        names = list(CLASSES)
        name = w.random.choices(names, [CLASSES[n][0] for n in names])[0]
        classes.append(CLASSES[name][1](w))
    return w.choose(*classes)


def offer(w: Writer, cls: Class, name: str, known: bool) -> None:
    """Let expressions read an object."""
    for text, kind in w.random.sample(cls.reads, min(4, len(cls.reads))):
        if "cached" in text or (
            not known and kind != "float" and "self.b" not in text and w.chance(0.5)
        ):
            continue
        w.add(text.replace("self", name), kind, known=known)
    for method in cls.methods:
        w.facts.setdefault("methods", []).append((name, method))


def global_object(w: Writer) -> None:
    cls, name = a_class(w), w.name("p")
    w.outside(
        f"{name} = {cls.made.replace('#', str(w.number(-3, 6) / 2))}",
        *(change.replace("self", name) for change in cls.changes),
        f"{name} = {cls.made.replace('#', str(w.number(-3, 6) / 2))}",
    )
    offer(w, cls, name, known=True)
    if w.chance(0.3):
        outer = w.name("outer")
        w.outside(
            f"{outer} = SimpleNamespace(p={name}, l=[{name}, {name}])",
            f"{outer}.p.b = {w.number(-2, 5)}" if cls.changes else f"{outer}.q = 1",
            f"{outer}.p = {cls.made.replace('#', '2.5')}",
        )
        w.add(f"{outer}.p.v", "float", known=True)
        w.add(f"sum(o.b for o in {outer}.l)", "int", known=True)
        w.note("objects in objects")


WORLD = {"a global object": (4, global_object)}
