"""Arrays: elements, updates in place, views, arguments that are globals."""

from __future__ import annotations

from tests.semantics.making.expressions import array, boolean, integer, known_integer, real
from tests.semantics.making.writer import Writer


def _own(w: Writer) -> str:
    """Return an array that `f` makes."""
    names = [s.text for s in w.of_kind("array") if s.assigned]
    if not names or w.chance(0.2):
        if w.staged and not names:
            return ""
        return w.assign("array", array(w) + " * 1.0")
    return w.choose(*names)


def update(w: Writer) -> None:
    name = _own(w)
    if not name:
        return
    x = real(w, 1)
    index = w.choose(0, -1, f"{known_integer(w)} % 3", f"{integer(w, 1)} % 3")
    w.write(
        w.choose(
            f"{name}[{index}] = {x}",
            f"{name}[{index}] += {x}",
            f"{name} += {x}",
            f"{name} *= {w.choose(2, 0.5, -1)}",
            f"{name}[1:] = {x}",
            f"{name}[:2] -= {x}",
            f"{name}[::2] *= 2",
            f"{name}[[0, 1]] = {name}[[1, 0]]",
            f"{name}[{name} > {w.number(0, 2)}] = {x}",
            f"{name}.sort()",
            f"{name}.fill({x})",
            f"np.add({name}, {x}, out={name})",
            f"{name}[:] = {array(w, 0)}",
        )
    )


def view(w: Writer) -> None:
    name = _own(w)
    if not name:
        return
    part = w.name("part")
    w.write(f"{part} = {name}[{w.choose('1:', '::-1', ':2', '::2')}]")
    w.write(f"{w.choose(part, name)}[{w.number(0, 1)}] {w.choose('=', '+=')} {real(w, 1)}")
    if w.chance(0.5):
        w.write(f"{part} {w.choose('+=', '*=')} 2")
    w.add(f"{part}[0]", "float", scalar=True)
    w.assign("float", f"{part}.sum() + {name}[1]", scalar=True)


def alias(w: Writer) -> None:
    name = _own(w)
    if not name:
        return
    other = w.name("same")
    w.write(f"{other} = {name}", f"{other}[{w.number(0, 2)}] = {real(w, 0)}")
    w.assign("bool", f"{name} is {other}", known=True)
    w.assign("float", f"{name}.sum() + {other}[0]", scalar=True)


def argument_update(w: Writer) -> None:
    """The caller's array is changed; it may be a global, too."""
    names = [a for a, values in w.arguments.items() if w.facts.get("kinds", {}).get(a) == "array"]
    if not names or w.staged:
        return
    a = w.choose(*names)
    w.write(f"{a}[{w.number(-2, 2)}] {w.choose('=', '+=')} {real(w, 1)}")
    if w.chance(0.3):
        w.write(f"{a} *= {w.choose(2, 0.5)}")


def reduction(w: Writer) -> None:
    a, x = array(w, 1), real(w, 0)
    form = w.number(0, 4)
    if form < 3:
        w.assign(
            "float",
            w.choose(
                f"{a}.sum()",
                f"np.dot({a}, {array(w, 0)})",
                f"({a} @ np.ones(3))",
                f"{a}.max() - {a}.min()",
                f"np.prod(np.clip({a}, -2.0, 2.0))",
                f"{a}[{a} > {x}].sum()",
                f"np.where({a} > 0, {a}, {x}).sum()",
                f"{a}.reshape(3, 1).sum(axis=0)[0]",
                f"np.median({a})",
                f"sum({a})",
                f"np.outer({a}, {a})[1, 2]",
                f"np.diff({a})[0]",
            ),
            scalar=True,
        )
    elif form == 3:
        w.assign("int", f"int({w.choose(f'({a} > {x}).sum()', f'{a}.argmax()', f'len({a})')})")
    else:
        w.assign("bool", f"bool(({a} > {x}).{w.choose('any', 'all')}())")


def unpacked(w: Writer) -> None:
    names = [w.name("v") for _ in range(3)]
    w.write(f"{', '.join(names)} = {array(w, 0)} * 1.0")
    for name in names:
        w.add(name, "float", scalar=True, assigned=True)


def matrix(w: Writer) -> None:
    name = w.name("m")
    w.write(f"{name} = np.{w.choose('zeros', 'ones')}((2, 3))")
    w.write(f"{name}[{w.number(0, 1)}] = {array(w, 1)}")
    w.write(f"{name}[:, {w.number(0, 2)}] {w.choose('=', '+=')} {real(w, 1)}")
    w.write(f"{name}[{integer(w, 1)} % 2, {known_integer(w)} % 3] = {real(w, 0)}")
    w.assign(
        "array",
        w.choose(
            f"{name}[0] * 1",
            f"{name}.sum(axis=0)",
            f"({name} @ np.eye(3))[1]",
            f"{name}.T[:, 1].copy()",
            f"({name} + {array(w, 0)})[0]",
            f"{name}.max(axis=0)",
        ),
    )


def known_array(w: Writer) -> None:
    """An array that stays NumPy's, until something traced comes in."""
    name = w.name("z")
    w.write(f"{name} = np.{w.choose('zeros(3)', 'arange(3.0)', 'array([0.5, 2.0, -1.0])')}")
    w.write(f"{name}[0] = {known_integer(w)}")
    w.assign("float", f"float({name}[0]) + 0.5", known=True)
    with w.block(f"if {boolean(w)}:", staged=True):
        w.write(f"{name}[1] += {real(w, 1)}")
    w.add(name, "array", assigned=True)


def held(w: Writer) -> None:
    """An array in a container, changed by another name."""
    name = _own(w)
    if not name or w.staged:
        return
    box = w.name("box")
    w.write(f"{box} = {w.choose(f'[{name}, 1.5]', f'({name}, {name})')}")
    w.write(f"{box}[0][{w.number(0, 2)}] = {real(w, 1)}")
    w.assign("float", f"{name}.sum() + {box}[0][1]", scalar=True)


def other_dtypes(w: Writer) -> None:
    """Arrays of ints and bools."""
    name, n = w.name("k"), integer(w, 1)
    w.write(f"{name} = np.array([{n}, {w.number(0, 3)}, 2])")
    if w.chance(0.5):
        w.write(f"{name}[{known_integer(w)} % 3] {w.choose('=', '+=', '//=')} {w.number(1, 4)}")
    w.assign(
        "int",
        "int("
        + w.choose(
            f"{name}.sum()",
            f"({name} % 3).max()",
            f"({name} // 2)[0]",
            f"({name} > {n}).sum()",
            f"{name}[{name} > 1].sum()",
            f"np.bitwise_and({name}, 3)[1]",
            f"{name}.astype(float)[0] + 1.0",
            f"np.argsort({name})[0]",
            f"{name}.prod() % 7",
            f"np.count_nonzero({name} == 2)",
            f"len(set({name}.shape))",
        )
        + ")",
    )
    w.assign("float", f"({name} / 2)[{w.number(0, 2)}] + {real(w, 0)}", scalar=True)
    w.assign("bool", f"bool((({name} > 1) & ({name} < 4)).any())")


def row_loop(w: Writer) -> None:
    """A loop over rows that changes them in place."""
    name, row, total = w.name("m"), w.name("row"), w.name("total")
    w.write(f"{name} = np.outer({array(w, 0)}, np.array([1.0, 2.0]))", f"{total} = 0.0")
    with w.block(f"for {row} in {name}:", staged=True):
        w.write(w.choose(f"{row} += 1.0", f"{row}[0] = {real(w, 0)}", f"{row} *= {row}[1] * 0.5"))
        w.write(f"{total} = {total} + {row}.sum()")
    w.assign("float", f"{name}[1, 0] + {total}", scalar=True)
    w.assign("array", f"{name}[:, {w.number(0, 1)}].copy()")


STATEMENTS = {
    "an update of an array": (3, update, True),
    "a view": (1.5, view, True),
    "an alias": (1, alias, True),
    "an update of an argument": (3, argument_update, False),
    "a reduction": (2.5, reduction, True),
    "unpacking an array": (0.8, unpacked, True),
    "a matrix": (1.2, matrix, True),
    "an array of Python": (1, known_array, False),
    "ints and bools in arrays": (1.5, other_dtypes, True),
    "rows": (1, row_loop, True),
    "an array in a container": (1, held, False),
}
