"""The arguments of `f`: what its text may read of them, and their values in each call."""

from __future__ import annotations

from collections.abc import Callable

from tests.semantics.making import classes
from tests.semantics.making.writer import Writer

Values = Callable[[], str]


def _half(w: Writer) -> str:
    return str(w.number(-5, 8) / 2)


def a_float(w: Writer, name: str) -> Values:
    w.add(name, "float", assigned=True)
    return lambda: _half(w)


def an_int(w: Writer, name: str) -> Values:
    w.add(name, "int", assigned=True)
    return lambda: str(w.number(-2, 5))


def a_bool(w: Writer, name: str) -> Values:
    w.add(name, "bool")
    w.add(f"({name} is True)", "bool")
    return lambda: w.choose("True", "False")


def a_number(w: Writer, name: str) -> Values:
    w.add(name, "num")
    w.add(f"({name} + 0.5)", "float", scalar=True)
    w.add(f"isinstance({name}, float)", "bool", known=True)
    w.add(f"int({name} > 1)", "int")
    return lambda: w.choose(_half(w), str(w.number(-2, 5)), "True", f"np.float64({_half(w)})")


def an_array(w: Writer, name: str) -> Values:
    w.add(name, "array")
    w.add(f"{name}[{w.number(-2, 2)}]", "float", scalar=True)
    w.add(f"float({name}.sum())", "float")
    w.facts["kinds"] = {**w.facts.get("kinds", {}), name: "array"}
    names = w.facts.get("arrays", [])

    def value() -> str:
        if names and w.chance(0.25):
            w.note("a global array as argument")
            return str(w.choose(*names, f"{names[0]}[:]"))
        return f"np.array([{_half(w)}, {_half(w)}, {_half(w)}])"

    return value


def a_list(w: Writer, name: str) -> Values:
    w.add(f"{name}[0]", "float")
    w.add(f"sum({name})", "float")
    w.add(f"{name}[-1]", "float")
    w.add(f"len({name})", "int", known=True)
    w.add(f"isinstance({name}, tuple)", "bool", known=True)
    size = w.number(2, 3)
    brackets = w.choose("[]", "[]", "()")

    def value() -> str:
        length = size if w.chance(0.7) else w.number(2, 4)
        return brackets[0] + ", ".join(_half(w) for _ in range(length)) + brackets[1]

    return value


def a_dict(w: Writer, name: str) -> Values:
    keys = w.choose(["'a'", "'b'"], ["1", "'a'"], ["'n'", "2.0", "'m'"])
    w.add(f"{name}[{keys[0]}]", "float")
    w.add(f"{name}.get({keys[1]}, 0.5)", "float")
    w.add(f"list({name}.values())[0]", "float")
    w.add(f"len({name})", "int", known=True)
    w.add(f"({keys[1]} in {name})", "bool", known=True)
    w.add(f"(next(iter({name})) == {keys[0]})", "bool", known=True)
    w.facts.setdefault("dicts", []).append((name, "float", keys))

    def value() -> str:
        order = w.random.sample(keys, len(keys)) if w.chance(0.5) else list(keys)
        if w.chance(0.15):
            order = order[:1] if order[0] == keys[0] else [*order, "'extra'"]
        return "{" + ", ".join(f"{k}: {_half(w)}" for k in order) + "}"

    return value


def an_object(w: Writer, name: str) -> Values:
    cls = classes.a_class(w)
    classes.offer(w, cls, name, known=not cls.is_tree)
    objects = [n for n in w.facts.get("objects", []) if n[1] is cls]
    if not objects or w.chance(0.5):
        for _ in range(2):
            p = w.name("p")
            w.outside(
                f"{p} = {cls.made.replace('#', _half(w))}",
                *(change.replace("self", p) for change in cls.changes),
            )
            objects.append((p, cls))
    return lambda: w.choose(*objects)[0] if w.chance(0.8) else cls.made.replace("#", _half(w))


def a_text(w: Writer, name: str) -> Values:
    w.add(name, "str", known=True)
    w.add(f"len({name})", "int", known=True)
    w.add(f"({name} == 'up')", "bool", known=True)
    w.add(f"{name}.startswith('u')", "bool", known=True)
    return lambda: w.choose("'up'", "'down'", "'u'")


def a_function(w: Writer, name: str) -> Values:
    w.facts.setdefault("functions", []).append((name, 1))
    names = [n for n, _ in w.facts["functions"] if n.isidentifier() and n != name]
    return lambda: w.choose(*names, "math.fabs", "abs", "float")


def a_mixture(w: Writer, name: str) -> Values:
    """Values of any class, which `f` tells apart."""
    v = w.name("v")
    w.write(
        f"if isinstance({name}, dict):",
        f"    {v} = {name}['a'] + len({name})",
        f"elif isinstance({name}, np.ndarray):",
        f"    {v} = float({name}.sum())",
        f"elif isinstance({name}, (list, tuple)):",
        f"    {v} = {name}[0] + 1.5",
        f"elif {name} is None or isinstance({name}, str):",
        f"    {v} = 0.5",
        "else:",
        f"    {v} = {name} * 1.0",
    )
    w.add(v, "float", assigned=True, scalar=True)
    w.add(f"hasattr({name}, 'shape')", "bool", known=True)
    w.add(f"hasattr({name}, '__len__')", "bool", known=True)
    return lambda: w.choose(
        _half(w), "2", "True", "None", "'s'", "{'a': 1.5}", "{'b': 0.5, 'a': 1.0}", "[2.0]",
        "(1.5, 2.0)", "np.array([1.0, 0.5])", "np.array(1.5)", "np.float64(2.5)", "np.int64(2)",
    )  # fmt: skip


def numbers(w: Writer, name: str) -> Values:
    """Nested containers of numbers."""
    w.add(f"{name}['p'][0]", "float")
    w.add(f"{name}['p'][1]", "int")
    w.add(f"{name}['q']['r']", "float")
    return lambda: f"{{'p': ({_half(w)}, {w.number(-1, 4)}), 'q': {{'r': {_half(w)}}}}}"


ARGUMENTS = {
    "float": (5, a_float),
    "int": (3, an_int),
    "bool": (1, a_bool),
    "number": (2, a_number),
    "array": (3, an_array),
    "list": (1.5, a_list),
    "dict": (1.5, a_dict),
    "object": (1.5, an_object),
    "text": (0.7, a_text),
    "function": (0.7, a_function),
    "mixture": (1, a_mixture),
    "nested": (0.7, numbers),
}
