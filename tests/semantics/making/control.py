"""Branches and loops, and what their bodies assign."""

from __future__ import annotations

from collections.abc import Callable

from tests.semantics.making.expressions import (
    array,
    boolean,
    integer,
    known_boolean,
    known_integer,
    number,
    real,
)
from tests.semantics.making.writer import Source, Writer


def assign(w: Writer) -> None:
    kind = w.choose("int", "float", "float", "bool", "array")
    facts = {"scalar": True} if kind == "float" and w.chance(0.3) else {}
    if kind == "bool":
        w.assign("bool", boolean(w))
    elif kind == "array":
        w.assign("array", array(w))
    elif kind == "int":
        w.assign("int", integer(w, 3) + w.choose("", " + 0"))
    elif facts:
        w.assign("float", real(w, 3) + " + 0.0", **facts)
    else:
        with w.restricted(scalar=False):
            w.assign("float", real(w, 3) + " + 0.0")


def _carry(w: Writer) -> Source:
    """Return a traced variable that a branch or loop may give another value of its kind."""
    variables = [s for s in w.of_kind("int", "float") if s.assigned]
    if not variables:
        kind = w.choose("int", "float")
        w.assign(kind, "0" if kind == "int" else w.choose("0.0", "1.5"))
        variables = [w.sources[-1]]
    source = w.choose(*variables)
    if source.known:
        w.add(source.text, source.kind, assigned=True, scalar=source.scalar)
        source = w.sources[-1]
    return source


def reassign(w: Writer) -> None:
    source = _carry(w)
    name, kind = source.text, source.kind
    if kind == "int":
        w.write(
            w.choose(
                f"{name} = {integer(w)} + 0",
                f"{name} = ({name} + {integer(w, 1)}) % 13",
                f"{name} += {w.number(1, 3)}",
                f"{name} = {name} - 1 if {boolean(w, 1)} else {name} + 2",
                f"{name} //= 2",
            )
        )
        return
    with w.restricted(**({} if source.scalar else {"scalar": False})):
        w.write(
            w.choose(
                f"{name} = {real(w)} + 0.0",
                f"{name} = ({name} + {real(w, 1)}) % 8",
                f"{name} -= {w.number(1, 5) / 2}",
                f"{name} = {name} * 0.5 + {w.number(-2, 3)}",
                f"{name} = {name} if {boolean(w, 1)} else -{name}",
            )
        )


def branch(w: Writer, body: Callable[[Writer, int], None], depth: int) -> None:
    carry = _carry(w)
    test = w.choose(boolean, boolean, known_boolean)
    staged = test is boolean
    with w.block(f"if {test(w)}:", staged=staged):
        if w.chance(0.5):
            reassign(w)
        body(w, depth - 1)
    if w.chance(0.3):
        with w.block(f"elif {test(w)}:", staged=staged):
            w.write(f"{carry.text} = {carry.text} + 1")
    if w.chance(0.4):
        with w.block("else:", staged=staged):
            reassign(w)
            if w.chance(0.4):
                body(w, depth - 1)


def bind_in_branch(w: Writer) -> None:
    name, kind = w.name("v"), w.choose(integer, real)
    zero = " + 0" if kind is integer else " + 0.0"
    with w.restricted(scalar=False):
        with w.block(f"if {boolean(w)}:", staged=True):
            w.write(f"{name} = {kind(w, 2)}{zero}")
        with w.block("else:", staged=True):
            w.write(f"{name} = {kind(w, 1)}{zero}")
    w.add(name, "int" if kind is integer else "float", assigned=True)


def early_return(w: Writer) -> None:
    """A return on one path; the results of all have one structure."""
    if "result" in w.facts:
        with w.block(f"if {boolean(w)}:", staged=True):
            w.facts["result"](w)


def while_loop(w: Writer, body: Callable[[Writer, int], None], depth: int) -> None:
    count, total = w.name("t"), _carry(w)
    form = w.number(0, 3)
    w.write(f"{count} = {w.number(0, 1)}")
    limit = w.choose("3", "4", f"min({integer(w, 1)}, 4)")
    opening = f"while {count} < {limit}:"
    if form == 0:
        opening = f"while {count} < 4 and {boolean(w, 1)}:"
    if form == 1:
        opening = "while True:"
    with w.block(opening, staged=True):
        w.write(f"{count} += 1")
        w.add(count, "int")
        w.write(f"{total.text} = {total.text} {w.choose('+', '-')} {count}")
        if form == 1 or w.chance(0.3):
            test = boolean(w, 1)
            w.write(f"if {count} > 3 or {test}:", "    break")
        if w.chance(0.2):
            w.write(f"if {boolean(w, 1)}:", "    continue")
        if w.chance(0.6):
            body(w, depth - 1)
    if form != 1 and w.chance(0.2):
        with w.block("else:", staged=True):
            reassign(w)
    w.add(count, "int")


def for_loop(w: Writer, body: Callable[[Writer, int], None], depth: int) -> None:
    i, v = w.name("i"), w.name("e")
    total = _carry(w)
    options: list[tuple[str, dict[str, str], bool]] = [
        (f"for {i} in range({w.number(0, 4)}):", {i: "int"}, True),
        (f"for {i} in range({w.number(0, 1)}, {known_integer(w)} + 2):", {i: "int"}, True),
        (f"for {i} in range({integer(w, 1)} % 5):", {i: "int"}, True),
        (f"for {i}, {v} in enumerate([0.5, {real(w, 0)}, 2.0]):", {i: "int", v: "float"}, False),
        (f"for {i}, {v} in zip(range(3), (1.5, {real(w, 0)})):", {i: "int", v: "float"}, False),
        (f"for {i} in (2, 0, 1):", {i: "int"}, False),
        (f"for {v} in reversed([{real(w, 0)}, 0.5]):", {v: "float"}, False),
        (f"for {i}, {v} in {{2: 0.5, 1: {real(w, 0)}}}.items():", {i: "int", v: "float"}, False),
    ]
    if found := w.pick(["array"]):
        options += [
            (f"for {v} in {found.text}:", {v: "scalar"}, True),
            (f"for {i}, {v} in enumerate({found.text}):", {i: "int", v: "scalar"}, True),
        ]
    opening, names, staged = w.choose(*options)
    with w.block(opening, staged=staged):
        for name, kind in names.items():
            known = not staged and kind == "int"
            kind, scalar = ("float", True) if kind == "scalar" else (kind, False)
            w.add(name, kind, known=known, scalar=scalar)
        item = i if i in names else f"int({v} > 1)"
        w.write(f"{total.text} = {total.text} {w.choose('+', '-')} {item}")
        if w.chance(0.2):
            with w.block(f"if {boolean(w, 1)}:", staged=True):
                w.write(w.choose("break", "continue"))
                w.staged = True
        if w.chance(0.6):
            body(w, depth - 1)
    if w.chance(0.15):
        with w.block("else:", staged=staged):
            reassign(w)


def walrus(w: Writer) -> None:
    name = w.name("y")
    with w.block(f"if ({name} := {real(w, 1)} + 0.0) > {w.number(-1, 2)}:", staged=True):
        reassign(w)
    w.add(name, "float", assigned=True)


def matching(w: Writer) -> None:
    name = w.name("v")
    with w.restricted(scalar=False):
        w.write(f"match {integer(w, 1)}:")
        w.write(f"    case {w.number(0, 1)}:", f"        {name} = {real(w, 1)} + 0.0")
        w.write(f"    case 2 | {w.number(3, 4)}:", f"        {name} = {real(w, 0)} + 0.5")
        w.write(f"    case k if k > {w.number(2, 5)}:", f"        {name} = k * 0.5")
        w.write("    case _:", f"        {name} = -1.0")
    w.add(name, "float", assigned=True)


def by_kind(w: Writer) -> None:
    """Python decides by the class of an argument."""
    source = w.pick(["num", "int", "float"])
    if source is None:
        return
    name, n = w.name("v"), source.text
    first, second = w.choose(
        ("bool", "int"), ("int", "float"), ("float", "int"), ("np.ndarray", "(int, float)")
    )
    w.write(f"if isinstance({n}, {first}):", f"    {name} = {number(w, 0)} * 1.0 + 1")
    w.write(f"elif isinstance({n}, {second}):", f"    {name} = {number(w, 0)} - 0.5")
    w.write("else:", f"    {name} = {real(w, 1)} + 0.0")
    w.add(name, "float", assigned=True, scalar=True)


STATEMENTS = {
    "an assignment": (5, assign, True),
    "a reassignment": (3, reassign, True),
    "a name bound by branches": (2, bind_in_branch, True),
    "an early return": (1.2, early_return, False),
    "a walrus": (0.8, walrus, True),
    "match": (0.8, matching, True),
    "a branch by class": (1.5, by_kind, False),
}
COMPOUND = {"if": (5, branch), "while": (2.5, while_loop), "for": (4, for_loop)}
