"""Statements about objects: methods, operators, attributes, identity, local classes."""

from __future__ import annotations

from tests.semantics.making.classes import Class, offer
from tests.semantics.making.expressions import boolean, integer, real
from tests.semantics.making.writer import Writer


def method(w: Writer) -> None:
    in_scope = [(n, m) for n, m in w.facts.get("methods", []) if w.has(n)]
    if in_scope:
        name, method = w.choose(*in_scope)
        w.assign("float", f"{name}.{method}({real(w, 1)}) + 0.0")


def operator(w: Writer) -> None:
    in_scope = [(n, m) for n, m in w.facts.get("methods", []) if w.has(n)]
    for name, called in in_scope:
        if called == "__mul__":
            w.assign("float", f"{name} * {real(w, 1)} + 0.0")
            return
        if called == "__add__":
            w.assign(
                "float", f"{real(w, 1)} + {name}" if w.chance(0.5) else f"{name} + {real(w, 0)}"
            )
            return
    method(w)


def local_object(w: Writer) -> None:
    classes: list[Class] = w.facts.get("classes", [])
    if not classes:
        return local_class(w)
    cls, name = w.choose(*classes), w.name("o")
    w.write(f"{name} = {cls.made.replace('#', real(w, 1) + ' + 0.0')}")
    offer(w, cls, name, known=False)
    w.facts.setdefault("locals", []).append((name, cls))
    return None


def local_class(w: Writer) -> None:
    name = w.name("Local")
    a, b = real(w, 1), integer(w, 1)
    with w.block(f"class {name}:"):
        w.write(f"limit = {w.number(-1, 3)}", f"shared = {a}")
        w.write("def __init__(self, v):", "    self.v = v", f"    self.n = {b} + 0")
        w.write("def step(self, u):", f"    self.v = self.v {w.choose('+', '-')} u * self.limit")
        w.write("    return self.v")
        w.write("@property", "def far(self):", f"    return abs(self.v) > {w.number(0, 4)}")
    o = w.name("o")
    w.write(f"{o} = {name}({real(w, 1)} + 0.0)")
    cls = Class(
        name,
        f"{name}(#)",
        [
            ("self.v", "float"),
            ("self.n", "int"),
            ("self.shared", "float"),
            ("bool(self.far)", "bool"),
        ],
        ["v"],
        [],
        ["step"],
    )
    offer(w, cls, o, known=False)
    w.facts.setdefault("locals", []).append((o, cls))
    if w.chance(0.5):
        with w.block(f"if {boolean(w)}:", staged=True):
            w.write(f"{o}.step({real(w, 0)})")


def _locals(w: Writer) -> list[tuple[str, Class]]:
    return [(n, c) for n, c in w.facts.get("locals", []) if w.has(n)]


def change_local(w: Writer) -> None:
    in_scope = [(n, c) for n, c in _locals(w) if c.attributes]
    if not in_scope:
        return local_object(w)
    name, _ = w.choose(*in_scope)
    value = real(w, 2)
    w.write(
        w.choose(
            f"{name}.v = {value} + 0.0",
            f"{name}.v += {value}",
            f"setattr({name}, 'v', {name}.v - {value})",
            f"{name}.v, {name}.b = {value} * 0.5, {w.number(0, 3)}"
            if not w.staged
            else f"{name}.v -= 1",
        )
    )
    w.add(f"{name}.v", "float")
    return None


def new_attribute(w: Writer) -> None:
    """An attribute that only one path, or the first trip, binds."""
    in_scope = [(n, c) for n, c in _locals(w) if c.attributes and not c.name.startswith("D")]
    if not in_scope or (w.staged and not w.risky):
        return
    name, _ = w.choose(*in_scope)
    attribute = w.name("q")
    if w.staged or (w.risky and w.chance(0.3)):
        with w.block(f"if {boolean(w)}:", staged=True):
            w.write(f"with contextlib.suppress(AttributeError): {name}.{attribute} = {real(w, 0)}")
        text = w.choose(f"hasattr({name}, '{attribute}')", f"getattr({name}, '{attribute}', -1.0)")
        w.assign(
            "bool" if "has" in text else "float",
            text + (" and True" if "has" in text else " + 0.0"),
        )
        return
    with w.block("try:"):
        w.write(f"{name}.{attribute} = {real(w, 1)}")
    with w.block("except AttributeError:"):
        w.write("pass")
    w.assign("float", f"getattr({name}, '{attribute}', -1.0) + 0.0")
    w.assign("bool", f"hasattr({name}, '{attribute}')", known=True)


def identity(w: Writer) -> None:
    x, y = w.choose(integer, real)(w, 0), real(w, 0)
    sources = [
        s.text for s in w.sources if s.kind in ("num", "float", "int") and s.text.isidentifier()
    ]
    n = w.choose(*sources) if sources else x
    w.assign(
        "bool",
        w.choose(
            f"isinstance({n}, (int, str))",
            f"type({n}) is {w.choose('int', 'float', 'bool')}",
            *(
                (f"({n} is None)", f"({n} is not None)")
                if n.isidentifier()
                else (f"({y} > 1) is None",)
            ),
            f"hasattr({n}, '{w.choose('shape', 'real', 'bit_length', 'is_integer', '__len__')}')",
            f"callable({n})",
            f"isinstance({x}, float)",
            f"({y} > 1) is {w.choose('True', 'False')}",
            f"type({x}) is type({y})",
            f"np.isscalar({n})",
            f"({n}).__class__ is float",
            f"issubclass(type({n}), int)",
            f"isinstance({x} > 1, int)",
        ),
    )


def local_cached(w: Writer) -> None:
    name, o = w.name("Cache"), w.name("o")
    with w.block(f"class {name}:"):
        w.write("@functools.cached_property", "def once(self):", f"    return {real(w, 1)} + 0.0")
    w.write(f"{o} = {name}()")
    w.assign("float", f"{o}.once + {o}.once * 2")
    w.assign("int", f"len(vars({o}))", known=True)


STATEMENTS = {
    "a method": (3, method, True),
    "an operator of a class": (2, operator, True),
    "a local object": (3, local_object, True),
    "a local class": (2, local_class, False),
    "a change of a local object": (3, change_local, True),
    "a new attribute": (4, new_attribute, True),
    "identity and class": (2.5, identity, True),
    "a cached property": (0.7, local_cached, True),
}
