"""Functions around `f`: defaults, closures, partials, memos, generators, and changes of them."""

from __future__ import annotations

from tests.semantics.making.expressions import boolean, integer, real
from tests.semantics.making.writer import Writer


def _body(w: Writer, *names: str) -> str:
    """Write an expression of the parameters and of globals that Python knows."""
    sources = w.sources
    w.sources = [s for s in sources if s.known and not s.assigned and s.kind != "array"]
    for name in names:
        w.add(name, "float")
    text = real(w, 2)
    w.sources = sources
    return text if any(name in text for name in names) else f"{names[0]} + {text}"


def _offer(w: Writer, name: str, arity: int) -> None:
    w.facts.setdefault("functions", []).append((name, arity))


def helper(w: Writer) -> None:
    name = w.name("h")
    default, other = w.number(-2, 4) / 2, w.number(-4, 6) / 2
    star = w.choose("", "*, ")
    w.outside(
        f"def {name}(v, {star}b={default}):\n    return {_body(w, 'v', 'b')}",
        f"{name}.__kwdefaults__ = {{'b': {other}}}"
        if star
        else f"{name}.__defaults__ = ({other},)",
        f"{name} = lambda v, b=1.0: v - b",
        f"def {name}(v, b=0.5):\n    return b - v",
        f"{name}.__code__ = (lambda v, b=1.0: v * 2 + b).__code__" if not star else f"{name} = abs",
    )
    _offer(w, name, 1)
    w.add(f"{name}({w.number(0, 3)}.0)", "float", known=True)


def branching_helper(w: Writer) -> None:
    name = w.name("h")
    w.outside(
        f"def {name}(v):\n    if v > {w.number(-1, 2)}:\n        return {_body(w, 'v')}\n"
        f"    return {_body(w, 'v')}",
        f"{name} = lambda v: v + 2.5",
    )
    _offer(w, name, 1)


def closure(w: Writer) -> None:
    name = w.name("inner")
    w.outside(
        f"def make_{name}(n):\n    def {name}(v):\n        return v * n + 1\n"
        f"    def bump(k):\n        nonlocal n\n        n += k\n    return {name}, bump\n"
        f"{name}, bump_{name} = make_{name}({w.number(-1, 3)})",
        f"bump_{name}({w.number(1, 3)})",
        f"{name}.__closure__[0].cell_contents = {w.number(-2, 5)}",
        f"{name}, bump_{name} = make_{name}(4)",
    )
    _offer(w, name, 1)


def list_default(w: Writer) -> None:
    name = w.name("h")
    w.outside(
        f"L{name} = [1.0, 2.5]\ndef {name}(v, l=L{name}):\n    return v + sum(l) * len(l)",
        f"L{name}.append(0.5)",
        f"L{name}[0] = {w.number(-2, 6)}.5",
        f"{name}.__defaults__[0][1] = 4.0",
    )
    _offer(w, name, 1)


def partial(w: Writer) -> None:
    name = w.name("part")
    w.outside(
        f"def base_{name}(a, v, b=1.0):\n    return a * v + b\n"
        f"{name} = functools.partial(base_{name}, {w.number(1, 3)}, b={w.number(-2, 3)}.5)",
        f"{name} = functools.partial(base_{name}, {w.number(-2, 3)})",
        f"{name}.keywords['b'] = 3.5",
        f"base_{name} = lambda a, v, b: 0.0",
        f"base_{name}.__code__ = (lambda a, v, b=1.0: a - v - b).__code__",
    )
    _offer(w, name, 1)


def memo(w: Writer) -> None:
    name, k = w.name("memo"), w.name("k")
    w.outside(
        f"{k} = {w.number(1, 4)}\n@functools.lru_cache\ndef {name}(n):\n    return n * {k} + 1",
        f"{k} = {w.number(-2, 7)}",
        f"{k} = {w.number(-2, 7)}; {name}.cache_clear()",
        f"{name}.cache_clear()",
    )
    w.add(f"{name}({w.number(0, 2)})", "int", known=True)
    w.add(k, "int", known=True)


def function_attribute(w: Writer) -> None:
    name = w.name("h")
    w.outside(
        f"def {name}(v):\n    return v * {name}.factor\n{name}.factor = {w.number(1, 3)}",
        f"{name}.factor = {w.number(-2, 5)}",
        f"{name}.__dict__['factor'] = {w.number(-2, 5)}",
    )
    _offer(w, name, 1)
    w.add(f"{name}.factor", "int", known=True)


def generator(w: Writer) -> None:
    name = w.name("gen")
    w.outside(
        f"g{name} = {w.number(1, 3)}\ndef {name}(n, v):\n    for i in range(n):\n"
        f"        yield i * v + g{name}",
        f"g{name} = {w.number(-2, 6)}",
        f"def {name}(n, v):\n    yield v\n    yield from [v + g{name}] * n",
    )
    w.facts.setdefault("generators", []).append(name)


def wrapped(w: Writer) -> None:
    name = w.name("deco")
    w.outside(
        f"{name}_scale = {w.number(1, 3)}\ndef {name}(fun):\n    @functools.wraps(fun)\n"
        f"    def wrapper(*args, **options):\n        return fun(*args, **options) * {name}_scale\n"
        f"    return wrapper\n@{name}\ndef {name}d(v):\n    return v + 0.5",
        f"{name}_scale = {w.number(-2, 5)}",
        f"{name}d = {name}d.__wrapped__",
    )
    _offer(w, f"{name}d", 1)


def composed(w: Writer) -> None:
    """A table of functions."""
    name = w.name("ops")
    w.outside(
        f"{name} = {{'up': lambda v: v + 1, 'double': lambda v: v * 2}}",
        f"{name}['up'] = lambda v: v - {w.number(1, 4)}",
        f"{name}['up'], {name}['double'] = {name}['double'], {name}['up']",
    )
    _offer(w, f"{name}['up']", 1)
    _offer(w, f"{name}['double']", 1)


FUNCTIONS = {
    "a helper with defaults": (3, helper),
    "a helper with a branch": (2, branching_helper),
    "a closure": (2, closure),
    "a list as default": (1, list_default),
    "a partial": (1.5, partial),
    "a global memo": (1, memo),
    "a function's attribute": (1, function_attribute),
    "a generator function": (1, generator),
    "a decorator": (1, wrapped),
    "a table of functions": (1, composed),
}


# Statements


def call(w: Writer) -> None:
    if functions := w.facts.get("functions"):
        name, _ = w.choose(*functions)
        w.assign("float", f"{name}({real(w, 1)}) + 0.0")


def local_function(w: Writer) -> None:
    name = w.name("g")
    a, b = real(w, 1), real(w, 1)
    form = w.number(0, 4)
    if form == 0:
        w.write(f"def {name}(u, b={a}):", f"    return u * 2 + b + {b}")
    elif form == 1:
        w.write(f"{name} = lambda u, *rest: u - {a} + len(rest)")
    elif form == 2:
        w.write(f"def {name}(u):", f"    if u > {w.number(-1, 2)}:", f"        return u + {a}")
        w.write("    return u * 0.5")
    elif form == 3:
        w.write(f"{name} = functools.partial(lambda b, u: u + b, {a})")
    else:
        count = w.name("n")
        w.write(f"{count} = 0.0", f"def {name}(u):", f"    nonlocal_{count} = u + {a}")
        w.write(f"    return nonlocal_{count} + {count}", f"{count} = {b}")
    with w.restricted():
        w.assign(
            "float", f"{name}({real(w, 1)})" + w.choose("", f" + {name}({integer(w, 0)} + 0.5)")
        )


def counting_closure(w: Writer) -> None:
    total, name = w.name("total"), w.name("add")
    w.write(f"{total} = {real(w, 0)} + 0.0")
    w.write(f"def {name}(u):", f"    nonlocal {total}", f"    {total} = {total} + u")
    w.write(f"    return {total}")
    if w.chance(0.5):
        with w.block(f"if {boolean(w)}:", staged=True):
            w.write(f"{name}({real(w, 1)})")
    w.write(f"{name}({real(w, 1)})")
    w.add(total, "float")


def local_memo(w: Writer) -> None:
    name = w.name("cached")
    w.write("@functools.lru_cache", f"def {name}(n):", f"    return n * {real(w, 1)}")
    w.assign("float", f"{name}(2) + {name}(2) - {name}({w.number(1, 2)})")
    if w.risky and w.chance(0.4):
        with w.block(f"if {boolean(w)}:", staged=True):
            w.write(f"{name}(3)")
    w.assign("int", f"{name}.cache_info().hits", known=True)


def generating(w: Writer) -> None:
    if names := w.facts.get("generators"):
        name, a = w.choose(*names), real(w, 1)
        w.assign(
            "float",
            w.choose(
                f"sum({name}(2, {a})) + 0.0",
                f"next({name}(2, {a})) + 0.0",
                f"list({name}(3, {a}))[-1] + 0.0",
                f"max(v for v in {name}(2, {a})) + 0.0",
            ),
        )


def mapped(w: Writer) -> None:
    a, b = real(w, 1), real(w, 0)
    fun = w.choose("lambda v: v * 2", "abs", "float", "lambda v: v + 1.5")
    w.assign(
        "float",
        w.choose(
            f"sum(map({fun}, [{a}, {b}]))",
            f"functools.reduce(lambda p, q: p - q, [{a}, {b}, 1.5])",
            f"list(map({fun}, ({a}, {b})))[1] + 0.0",
            f"sum(u * v for u, v in zip([{a}, {b}], (2, 3)))",
            f"max([{a}, {b}], key={w.choose('abs', 'lambda v: -v')})",
            f"sorted([{a}, {b}, 0.5], reverse=True)[0]",
            f"sum(itertools.chain([{a}], ({b},)))",
            f"list(itertools.accumulate([{a}, {b}]))[-1]",
        ),
    )


STATEMENTS = {
    "a call of a helper": (4, call, True),
    "a local function": (2, local_function, True),
    "a closure that counts": (1.5, counting_closure, False),
    "a local memo": (0.7, local_memo, False),
    "a generator": (4, generating, True),
    "map, reduce, sorted": (1.5, mapped, True),
}
