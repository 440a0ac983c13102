"""Random expressions over the names in scope."""

from __future__ import annotations

from tests.semantics.making.writer import Writer

COMPARISONS = "<", ">", "<=", ">=", "==", "!="


def integer(w: Writer, depth: int = 2) -> str:
    """Write an expression of an int."""
    if depth <= 0 or w.chance(0.25):
        source = w.pick(["int"]) if w.chance(0.8) else None
        return source.text if source else str(w.number(-3, 5))
    a, b = integer(w, depth - 1), integer(w, depth - 2)
    c = w.choose(2, 3, 5, -2, -3)
    form = w.number(0, 27)
    if form < 9:
        return w.choose(f"({a} + {b})", f"({a} - {b})", f"({a} + {abs(c)})", f"({a} * {c} % 11)")
    if form < 13:
        return w.choose(f"({a} // {c})", f"({a} % {c})", f"divmod({a}, {c})[{w.number(0, 1)}]")
    if form == 13:
        return w.choose(f"({a} % 5 << {abs(c)})", f"({a} >> 1)", f"({a} & {b})", f"({a} | {b})")
    if form == 14:
        return w.choose(f"({a} ^ {b})", f"-({a})", f"~({a})", f"({a} % 7) ** 2")
    if form == 15:
        return w.choose(f"max({a}, {b})", f"min({a}, {b}, 7)", f"abs({a})", f"sum([{a}, {b}])")
    if form == 16:
        x = real(w, depth - 1)
        return w.choose(f"int({x})", f"round({x})", f"math.floor({x})", f"math.ceil({x})")
    if form == 17:
        return f"({a} if {boolean(w, depth - 1)} else {b})"
    if form == 18:
        return f"int({boolean(w, depth - 1)})"
    if form == 19:
        return w.choose(f"[{a}, {b}][{w.number(-2, 1)}]", f"sorted([{a}, {b}, 2])[1]")
    if form == 20:
        return w.choose(f"(lambda v: v + {b})({a})", f"(lambda v, u={b}: v - u)({a})")
    if form == 21:
        return w.choose(f"({a} or {b})", f"({a} and {b})", f"math.gcd({a}, {abs(c)})")
    if form == 22:
        return w.choose(f"len([{a}, {b}])", f"pow({a}, 2) % 9", f"math.trunc({real(w, 0)})")
    if form == 23:
        return f"({a}, {b})[{boolean(w, 0)}]"
    if form == 24:
        return w.choose(f"next(iter([{a}, {b}]))", f"dict(a={a}, b={b})['b']")
    if form == 25:
        return w.choose(f"({a}).bit_length()", f"({a}).real", f"int(str({known_integer(w)}))")
    if form == 26:
        x = boolean(w, 0)
        return w.choose(
            f"({a} + {x})", f"({x} * 3)", f"-({x})", f"({x} + {x})", f"sum([{x}, True])"
        )
    return w.choose(a, f"int({real(w, 0)} * 2)")


def known_integer(w: Writer) -> str:
    """Write an expression whose value Python knows during tracing."""
    with w.restricted(known=True):
        source = w.pick(["int"])
    return source.text if source and w.chance(0.7) else str(w.number(0, 3))


def real(w: Writer, depth: int = 2) -> str:
    """Write an expression of a float."""
    if depth <= 0 or w.chance(0.25):
        source = w.pick(["float"]) if w.chance(0.85) else None
        return source.text if source else str(w.number(-5, 7) / 2)
    a, b, c = real(w, depth - 1), real(w, depth - 2), w.choose(2, 3, 0.5, -1.5)
    form = w.number(0, 29)
    if form < 11:
        return w.choose(f"({a} + {b})", f"({a} - {b})", f"({a} * {c})", f"({a} + {c})")
    if form < 13:
        return w.choose(f"({a} / 2)", f"({a} / -0.5)", f"({integer(w, depth - 1)} / 4)")
    if form < 15:
        return w.choose(f"({a} + {integer(w, depth - 1)})", f"({integer(w, 0)} * 0.5 - {a})")
    if form < 17:
        return w.choose(f"({a} // {c})", f"({a} % {c})", f"divmod({a}, {c})[{w.number(0, 1)}]")
    if form == 17:
        return w.choose(f"-({a})", f"+({a})", f"abs({a})", f"({a} % 4) ** 2")
    if form == 18:
        return w.choose(f"max({a}, {b})", f"min({a}, {b}, 2.5)", f"sum([{a}, {b}])")
    if form == 19:
        return f"float({integer(w, depth - 1)})"
    if form == 20:
        return f"({a} if {boolean(w, depth - 1)} else {b})"
    if form == 21:
        return w.choose(
            f"math.fabs({a})",
            f"math.copysign(1.5, {a})",
            f"math.fmod({a}, 3)",
            f"math.ldexp({a}, 1)",
        )
    if form == 22:
        return w.choose(f"[{a}, {b}][{w.number(-2, 1)}]", f"sorted([{a}, {b}, 1.5])[1]")
    if form == 23:
        return w.choose(f"(lambda v: v + {b})({a})", f"(lambda v, u={b}: v - u)({a})")
    if form == 24:
        return w.choose(f"({a} or {b})", f"({a} and {b})", f"({a}).real", f"({a}).conjugate()")
    if form == 25:
        return w.choose(f"{{'p': {a}, 'q': {b}}}['p']", f"dict(p={a}).get('p', {b})")
    if form == 26:
        return w.choose(
            f"sum(v * 2 for v in ({a}, {b}))", f"max((v for v in [{a}, {b}]), default=0.0)"
        )
    if form == 27:
        return w.choose(f"{{'p': {a}}}.get('q', {b})", f"getattr(object(), 'v', {a})")
    if form == 28 and w.chance(0.4):
        return w.choose(
            f"round({a}, {w.number(0, 2)})",
            f"({a} * {boolean(w, 0)})",
            f"(-0.0 if {boolean(w, 0)} else {b})",
            f"math.modf({a})[0]",
            f"abs(complex({a}, 0.0))",
            f"float('1.5') * {b}",
            f"math.sqrt(({a}) ** 2)",
            f"max([{a}, {b}], key=lambda v: (v > 1, v))",
            f"(2.0 ** ({integer(w, 0)} % 4))",
        )
    if form == 28 and (array := w.pick(["array"])) and w.only.get("scalar") is not False:
        return element(w, array.text)
    return a


def element(w: Writer, array: str) -> str:
    """Write a float taken from an array of three or more."""
    w.has_scalar = True
    index = w.choose("0", "-1", "1", known_integer(w) + " % 3", integer(w, 1) + " % 3")
    return w.choose(
        f"{array}[{index}]",
        f"{array}[{index}]",
        f"float({array}[{index}])",
        f"{array}.{w.choose('sum', 'max', 'min')}()",
        f"np.{w.choose('sum', 'max', 'amin')}({array})",
        f"{array}[{w.choose('1:', ':2', '::-1', '-2:')}].sum()",
        f"max({array})",
        f"sum({array})",
    )


def boolean(w: Writer, depth: int = 2) -> str:
    """Write an expression of a bool."""
    if depth <= 0 and (source := w.pick(["bool"])) and w.chance(0.6):
        return source.text
    compare = w.choose(*COMPARISONS)
    form = w.number(0, 15)
    if depth > 0 and form < 2:
        return f"({boolean(w, depth - 1)} {w.choose('and', 'or')} {boolean(w, depth - 1)})"
    if depth > 0 and form == 2:
        return f"(not {boolean(w, depth - 1)})"
    if depth > 0 and form == 3:
        return f"(-1 {w.choose('<', '<=')} {integer(w, depth - 1)} < {w.number(2, 6)})"
    if depth > 0 and form == 4:
        return f"({integer(w, depth - 1)} in ({w.number(0, 2)}, {w.number(3, 5)}))"
    if depth > 0 and form == 5:
        return f"bool({integer(w, depth - 1)})"
    if depth > 0 and form == 6:
        items = ", ".join(integer(w, depth - 1) for _ in range(3))
        return f"{w.choose('any', 'all')}(v {compare} 1 for v in ({items}))"
    if depth > 0 and form == 7:
        return f"isinstance({number(w, 0)}, {w.choose('int', 'float', 'bool', '(int, str)')})"
    if form < 12:
        return f"({integer(w, depth - 1)} {compare} {integer(w, 0)})"
    return f"({real(w, depth - 1)} {compare} {w.number(-2, 6) / 2})"


def number(w: Writer, depth: int = 1) -> str:
    """Write an expression of an int, a float, or of whichever an argument is."""
    source = w.pick(["num"])
    if source and w.chance(0.7):
        return w.choose(source.text, f"({source.text} + 1)", f"({source.text} * 2)")
    return w.choose(integer, real)(w, depth)


def known_boolean(w: Writer) -> str:
    """Write a test that Python decides during tracing."""
    with w.restricted(known=True):
        return boolean(w, 1)


def array(w: Writer, depth: int = 1) -> str:
    """Write an expression of a new array of three floats."""
    source = w.pick(["array"])
    if source is None:
        items = ", ".join(str(w.number(-4, 6) / 2) for _ in range(3))
        return w.choose(f"np.array([{items}])", "np.arange(3.0)", "np.ones(3)", "np.zeros(3)")
    a, b = source.text, (w.pick(["array"]) or source).text
    x = real(w, depth)
    return w.choose(
        f"({a} + {b})",
        f"({a} * {x})",
        f"({x} - {a})",
        f"({a} * 2 - {b})",
        f"np.maximum({a}, {x})",
        f"np.where({a} > {w.number(-2, 4) / 2}, {a}, {x})",
        f"{a}.copy()",
        f"np.cumsum({a})",
        f"np.sort({a})",
        f"({a}[::-1] + 1)",
        f"abs({a})",
        f"np.concatenate([{a}[1:], {a}[:1]])",
        f"np.array([{x}, {real(w, 0)}, {a}[0]])",
        f"np.full(3, {x})",
        f"np.clip({a}, -1.0, 2.0)",
        f"np.roll({a}, 1)",
    )
