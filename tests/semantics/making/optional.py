"""Names, attributes, items and results that are None until they are set."""

from __future__ import annotations

from tests.semantics.making.expressions import boolean, integer, real
from tests.semantics.making.writer import Writer


def _loop(w: Writer) -> tuple[str, str]:
    """Return the opening of a loop, and what its trips read."""
    i = w.name("i")
    if (found := w.pick(["array"])) and w.chance(0.4):
        return f"for {i} in {found.text}:", i
    return f"for {i} in range({w.choose(integer(w, 0) + ' % 5', '3', '4')}):", f"({i} * 0.5)"


def _read(w: Writer, place: str) -> None:
    """Read what may be None, in one of the ways that tell None apart."""
    w.write(
        w.choose(
            f"{(v := w.name('v'))} = {place} if {place} is not None else -1.0",
            f"{v} = -1.0 if {place} is None else {place} * 2",
            f"{v} = 0.5 if {place} is None or {place} > 1 else {place}",
            f"{v} = 0.0\nif {place} is not None and {place} > 0: {v} = {place}",
        ).replace("\n", "\n" + "    " * w.indent)
    )
    w.add(v, "float", assigned=True, scalar=True)
    if w.chance(0.3):
        w.assign("bool", f"{place} is {w.choose('', 'not ')}None")
    if w.chance(0.1) and not w.staged:
        w.write(f"{v} = {place} + 0.5")  # TypeError where it is None


def best(w: Writer) -> None:
    """The best item so far."""
    name, (opening, item) = w.name("best"), _loop(w)
    x = f"({item} + {real(w, 0)}) % 4"
    w.write(f"{name} = None")
    with w.block(opening, staged=True):
        condition = w.choose(
            f"{name} is None or {x} {w.choose('<', '>')} {name}",
            f"{boolean(w, 1)}",
            f"{name} is None",
        )
        w.write(f"if {condition}:", f"    {name} = {x}")
        if w.chance(0.2):
            w.write(f"elif {boolean(w, 1)}:", f"    {name} = None")
        if w.chance(0.2):
            w.write(f"if {name} is not None and {name} > 2:", "    break")
    _read(w, name)


def previous(w: Writer) -> None:
    """The item of the trip before, None in the first."""
    name, total, (opening, item) = w.name("before"), w.name("v"), _loop(w)
    w.write(f"{name} = None", f"{total} = 0.0")
    with w.block(opening, staged=True):
        w.write(f"if {name} is not None:", f"    {total} = {total} + {item} - {name} * 0.5")
        w.write(f"{name} = {item} + {real(w, 0)}")
    w.add(total, "float", assigned=True, scalar=True)
    _read(w, name)


def attribute(w: Writer) -> None:
    """An attribute or an item of a dict, set by the first trip or on one path."""
    owner, x = w.name("o"), real(w, 1)
    made, place = w.choose(
        ("SimpleNamespace(v=None)", f"{owner}.v"), ("{'v': None, 'n': 0}", f"{owner}['v']")
    )
    w.write(f"{owner} = {made}")
    opening, item = w.choose(_loop(w), (f"if {boolean(w, 1)}:", "1.5"))
    with w.block(opening, staged=True):
        w.write(
            f"if {place} is None:",
            f"    {place} = {x} + 0.0",
            f"{place} = {place} * 0.5 + {item}",
        )
    _read(w, place)


def result(w: Writer) -> None:
    """A function that returns None on some paths."""
    name, r = w.name("find"), w.name("r")
    with w.block(f"def {name}(u, limit=2):"):
        if w.chance(0.5):
            w.write("for k in range(4):", "    if u + k > limit:", "        return u * 0.5 + k")
        else:
            w.write("if u > limit:", "    return u - limit", "if u < 0:", "    return None")
        w.write(w.choose("return None", "return", "pass"))
    w.write(f"{r} = {name}({real(w, 1)} + 0.0)")
    _read(w, r)


STATEMENTS = {
    "None, or the best": (1.5, best, True),
    "None, or the one before": (1, previous, True),
    "None in an object": (1.2, attribute, True),
    "None as a result": (1.2, result, True),
}
